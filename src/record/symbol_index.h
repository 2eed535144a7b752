// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions that an ELF file's own symbol table names, sorted by address. libdw looks through the whole table for
// every address, which takes milliseconds in libraries with hundreds of thousands of symbols.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fulcrum::record {

class SymbolIndex {
 public:
  struct Symbol {
    std::uint64_t begin = 0, size = 0;  // size 0: the table does not say
    std::uint64_t limit = 0;            // where its section ends; 0: not known
    std::uint64_t name_at = 0;          // where in the file its name begins
    std::uint8_t rank = 0;              // of several at one address the highest counts
    bool chooser = false;               // its code only picks the function that is then called by its name
  };

  SymbolIndex() = default;
  SymbolIndex(SymbolIndex&& other) noexcept;
  SymbolIndex& operator=(SymbolIndex&& other) noexcept;
  ~SymbolIndex();
  /// The fuller of the file's tables; empty when it has none. The descriptor stays the caller's.
  static SymbolIndex read(int descriptor);
  /// The function around an address of the file.
  std::optional<Symbol> find(std::uint64_t address) const;
  std::string name(const Symbol&) const;
  /// Whether an address is one of the linker's stubs, through which other files' functions are called.
  bool is_stub(std::uint64_t address) const;
  /// Symbols whose code picks another function when the library is loaded.
  std::vector<Symbol> choosers() const;
  /// Entries of the table that was read, whatever they stand for.
  std::size_t table_entries() const { return table_entries_; }

 private:
  std::vector<Symbol> symbols_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> stubs_;  // from, up to
  std::size_t table_entries_ = 0;
  int descriptor_ = -1;  // names are read when they are asked for
};

}  // namespace fulcrum::record
