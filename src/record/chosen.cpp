// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See chosen.h.
#include "record/chosen.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

namespace fulcrum::record {
namespace {

bool same_file(const char* one, const char* other) {
  struct stat a {};
  struct stat b {};
  return ::stat(one, &a) == 0 && ::stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool in_code(const Module& module, std::uint64_t address) {
  for (const Module::Segment& s : module.segments) {
    if (s.executable && address >= s.address && address - s.address < s.file_bytes) return true;
  }
  return false;
}

/// "memcpy" rather than "__memcpy_chk".
bool is_plainer(const std::string& name, const std::string& than) {
  const bool hidden = name.starts_with('_'), than_hidden = than.starts_with('_');
  return hidden != than_hidden ? than_hidden : name.size() < than.size();
}

}  // namespace

std::map<std::uint64_t, std::string> chosen_functions(const Module& module, const SymbolIndex& index) {
  std::map<std::uint64_t, std::string> names;
  const auto choosers = index.choosers();
  if (choosers.empty()) return names;
  void* const library = ::dlopen(module.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return names;
  const link_map* loaded = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &loaded) == 0 && loaded != nullptr &&
      same_file(loaded->l_name, module.open_path.c_str())) {
    for (const SymbolIndex::Symbol& chooser : choosers) {
      const std::string name = index.name(chooser);
      const auto at = reinterpret_cast<std::uint64_t>(::dlsym(library, name.c_str()));
      // What another library has put in its place is not its own.
      if (at < loaded->l_addr || !in_code(module, at - loaded->l_addr)) continue;
      const auto [entry, is_new] = names.try_emplace(at - loaded->l_addr, name);
      if (!is_new && is_plainer(name, entry->second)) entry->second = name;
    }
  }
  ::dlclose(library);
  return names;
}

}  // namespace fulcrum::record
