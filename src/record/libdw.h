// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of elfutils' libdw that we call. It is found at run time, so the few types it hands out are declared here
// and neither its headers nor the library are needed to build or to start the program.
#pragma once

#include <elf.h>
#include <fulcrum/core.h>
#include <sys/types.h>

#include <cstddef>

namespace fulcrum::record {

// Opaque to us.
struct Dwfl;
struct DwflModule;
struct DwflThread;
struct DwflFrame;
struct DwflLine;
struct DwarfCfi;
struct DwarfFrame;
struct DwarfFiles;
struct Elf;

// Ours to hold, filled by the library.
struct DwarfDie {
  void* address;
  void* unit;
  void* abbreviation;
  long padding;
};
struct DwarfAttribute {
  unsigned int code;
  unsigned int form;
  unsigned char* value;
  void* unit;
};

using DwarfAddress = std::uint64_t;
using DwarfWord = std::uint64_t;

struct DwflCallbacks {
  int (*find_elf)(DwflModule*, void**, const char*, DwarfAddress, char**, Elf**);
  int (*find_debuginfo)(DwflModule*, void**, const char*, DwarfAddress, const char*, const char*, Elf64_Word,
                        char**);
  int (*section_address)(DwflModule*, void**, const char*, DwarfAddress, const char*, Elf64_Word,
                         const Elf64_Shdr*, DwarfAddress*);
  char** debuginfo_path;
};

struct DwflThreadCallbacks {
  pid_t (*next_thread)(Dwfl*, void*, void**);
  bool (*get_thread)(Dwfl*, pid_t, void*, void**);
  bool (*memory_read)(Dwfl*, DwarfAddress, DwarfWord*, void*);
  bool (*set_initial_registers)(DwflThread*, void*);
  void (*detach)(Dwfl*, void*);
  void (*thread_detach)(DwflThread*, void*);
};

/// What its callbacks return.
inline constexpr int kDwarfContinue = 0, kDwarfAbort = 1;

struct Libdw {
  Dwfl* (*dwfl_begin)(const DwflCallbacks*);
  void (*dwfl_end)(Dwfl*);
  const char* (*dwfl_errmsg)(int);
  void (*dwfl_report_begin_add)(Dwfl*);
  DwflModule* (*dwfl_report_elf)(Dwfl*, const char*, const char*, int, DwarfAddress, bool);
  int (*dwfl_report_end)(Dwfl*, int (*)(DwflModule*, void*, const char*, DwarfAddress, void*), void*);
  bool (*dwfl_attach_state)(Dwfl*, Elf*, pid_t, const DwflThreadCallbacks*, void*);
  int (*dwfl_getthread_frames)(Dwfl*, pid_t, int (*)(DwflFrame*, void*), void*);
  bool (*dwfl_thread_state_registers)(DwflThread*, int, unsigned, const DwarfWord*);
  void (*dwfl_thread_state_register_pc)(DwflThread*, DwarfWord);
  bool (*dwfl_frame_pc)(DwflFrame*, DwarfAddress*, bool*);
  int (*dwfl_frame_reg)(DwflFrame*, unsigned, DwarfWord*);  // 0.188 and newer; null before
  DwflModule* (*dwfl_addrmodule)(Dwfl*, DwarfAddress);
  const char* (*dwfl_module_addrinfo)(DwflModule*, DwarfAddress, DwarfAddress*, Elf64_Sym*, Elf64_Word*,
                                      Elf**, DwarfAddress*);
  int (*dwfl_module_getsymtab)(DwflModule*);
  DwarfDie* (*dwfl_module_addrdie)(DwflModule*, DwarfAddress, DwarfAddress*);
  DwarfCfi* (*dwfl_module_eh_cfi)(DwflModule*, DwarfAddress*);
  DwarfCfi* (*dwfl_module_dwarf_cfi)(DwflModule*, DwarfAddress*);
  DwflLine* (*dwfl_module_getsrc)(DwflModule*, DwarfAddress);
  const char* (*dwfl_lineinfo)(DwflLine*, DwarfAddress*, int*, int*, DwarfWord*, DwarfWord*);
  decltype(DwflCallbacks::find_debuginfo) dwfl_build_id_find_debuginfo;
  decltype(DwflCallbacks::section_address) dwfl_offline_section_address;
  int (*dwarf_cfi_addrframe)(DwarfCfi*, DwarfAddress, DwarfFrame**);
  int (*dwarf_getscopes)(DwarfDie*, DwarfAddress, DwarfDie**);
  int (*dwarf_getscopes_die)(DwarfDie*, DwarfDie**);
  int (*dwarf_tag)(DwarfDie*);
  const char* (*dwarf_diename)(DwarfDie*);
  DwarfAttribute* (*dwarf_attr)(DwarfDie*, unsigned, DwarfAttribute*);
  DwarfAttribute* (*dwarf_attr_integrate)(DwarfDie*, unsigned, DwarfAttribute*);
  int (*dwarf_formudata)(DwarfAttribute*, DwarfWord*);
  const char* (*dwarf_formstring)(DwarfAttribute*);
  int (*dwarf_getsrcfiles)(DwarfDie*, DwarfFiles**, std::size_t*);
  const char* (*dwarf_filesrc)(DwarfFiles*, std::size_t, DwarfWord*, DwarfWord*);
};

/// The library, loaded once; null when it is absent or too old.
const Libdw* libdw();
/// "libdw.so.1", or why there is none.
const std::string& libdw_text();

/// Callbacks for a Dwfl whose modules are reported by file: separate debug files are looked for on this machine only,
/// never on the network.
const DwflCallbacks* local_callbacks();

}  // namespace fulcrum::record
