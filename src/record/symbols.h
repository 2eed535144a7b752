// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Names for locations: function, inlined calls, file and line.
#pragma once

#include <fulcrum/core/profile.h>

#include <memory>
#include <unordered_map>

#include "record/chosen.h"
#include "record/function_starts.h"
#include "record/jit_map.h"
#include "record/libdw.h"
#include "record/modules.h"
#include "record/symbol_index.h"

namespace fulcrum::record {

/// Demangled, without what the compiler adds to the names of clones and parts (".constprop.0", ".cold").
std::string plain_name(std::string_view symbol);

class Symbols {
 public:
  explicit Symbols(const Modules& modules) : modules_(modules) {}
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;
  ~Symbols();
  /// The frames at a location, innermost inlined call first, the function itself last. Never empty.
  std::vector<Frame> frames_at(const Location&);
  /// ELF addresses of the function around a location, from its symbol or the unwind table.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> extent_of(const Location&);
  /// Names of generated code of a process, which its unwinder collected.
  void set_jit(pid_t pid, JitMap map) { jit_.insert_or_assign(pid, std::move(map)); }

 private:
  struct File {
    Dwfl* dwfl = nullptr;
    DwflModule* module = nullptr;
    FunctionStarts starts;
    SymbolIndex index;
    std::map<std::uint64_t, std::string> chosen;  // see chosen.h
    bool indexed = false;                         // the index knows all that libdw knows
  };
  struct Named {
    std::string name;  // as in the table
    std::uint64_t begin = 0, size = 0;
  };
  File& file_of(std::uint32_t module);
  /// The symbol around an address of the file, or the nearest before it that does not say where it ends.
  static std::optional<Named> symbol_at(const File&, std::uint64_t address);
  std::string nameless(const File&, const Module&, std::uint64_t address) const;
  void add_inlined(File&, std::uint64_t address, std::vector<Frame>& frames);
  Frame kernel_frame(std::uint64_t address);
  Frame jit_frame(const Module&, std::uint64_t address);

  const Modules& modules_;
  std::unordered_map<std::uint32_t, File> files_;
  std::unordered_map<pid_t, JitMap> jit_;
  std::map<std::uint64_t, std::string> kernel_;
  bool kernel_read_ = false;
};

}  // namespace fulcrum::record
