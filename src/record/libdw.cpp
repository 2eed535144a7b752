// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Loads libdw at run time.
#include "record/libdw.h"

#include <dlfcn.h>

namespace fulcrum::record {
namespace {

struct Loaded {
  Libdw functions{};
  bool there = false;
  std::string text;
};

Loaded load_libdw() {
  Loaded result;
  void* library = ::dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    result.text = "libdw.so.1 is not installed";
    return result;
  }
  const char* missing = nullptr;
  const auto find = [&](auto& function, const char* name, bool optional = false) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (!function && !optional) missing = name;
  };
  Libdw& f = result.functions;
#define FULCRUM_FIND(name) find(f.name, #name)
  FULCRUM_FIND(dwfl_begin);
  FULCRUM_FIND(dwfl_end);
  FULCRUM_FIND(dwfl_errmsg);
  FULCRUM_FIND(dwfl_report_begin_add);
  FULCRUM_FIND(dwfl_report_elf);
  FULCRUM_FIND(dwfl_report_end);
  FULCRUM_FIND(dwfl_attach_state);
  FULCRUM_FIND(dwfl_getthread_frames);
  FULCRUM_FIND(dwfl_thread_state_registers);
  FULCRUM_FIND(dwfl_thread_state_register_pc);
  FULCRUM_FIND(dwfl_frame_pc);
  find(f.dwfl_frame_reg, "dwfl_frame_reg", true);
  FULCRUM_FIND(dwfl_addrmodule);
  FULCRUM_FIND(dwfl_module_addrinfo);
  FULCRUM_FIND(dwfl_module_getsymtab);
  FULCRUM_FIND(dwfl_module_addrdie);
  FULCRUM_FIND(dwfl_module_eh_cfi);
  FULCRUM_FIND(dwfl_module_dwarf_cfi);
  FULCRUM_FIND(dwfl_module_getsrc);
  FULCRUM_FIND(dwfl_lineinfo);
  FULCRUM_FIND(dwfl_build_id_find_debuginfo);
  FULCRUM_FIND(dwfl_offline_section_address);
  FULCRUM_FIND(dwarf_cfi_addrframe);
  FULCRUM_FIND(dwarf_getscopes);
  FULCRUM_FIND(dwarf_getscopes_die);
  FULCRUM_FIND(dwarf_tag);
  FULCRUM_FIND(dwarf_diename);
  FULCRUM_FIND(dwarf_attr);
  FULCRUM_FIND(dwarf_attr_integrate);
  FULCRUM_FIND(dwarf_formudata);
  FULCRUM_FIND(dwarf_formstring);
  FULCRUM_FIND(dwarf_getsrcfiles);
  FULCRUM_FIND(dwarf_filesrc);
#undef FULCRUM_FIND
  result.there = missing == nullptr;
  result.text = missing ? std::string("libdw.so.1 is too old: it has no ") + missing : "libdw.so.1";
  return result;
}

const Loaded& loaded() {
  static const Loaded instance = load_libdw();
  return instance;
}

int no_elf(DwflModule*, void**, const char*, DwarfAddress, char**, Elf**) { return -1; }

}  // namespace

const Libdw* libdw() { return loaded().there ? &loaded().functions : nullptr; }
const std::string& libdw_text() { return loaded().text; }

const DwflCallbacks* local_callbacks() {
  static char path[] = "/usr/lib/debug";
  static char* path_pointer = path;
  static const DwflCallbacks callbacks = [] {
    DwflCallbacks c{};
    c.find_elf = no_elf;
    c.find_debuginfo = libdw()->dwfl_build_id_find_debuginfo;
    c.section_address = libdw()->dwfl_offline_section_address;
    c.debuginfo_path = &path_pointer;
    return c;
  }();
  return &callbacks;
}

}  // namespace fulcrum::record
