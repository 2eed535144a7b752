// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the functions of a binary begin, from its unwind table (.eh_frame_hdr), which stripping leaves in place. So
// samples of a stripped program still gather by function.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum::record {

class FunctionStarts {
 public:
  /// Of the ELF file open at `descriptor`; empty when it has no such table or an unusual one.
  static FunctionStarts read(int descriptor);
  /// Of the bytes of a .eh_frame_hdr section that is linked at `address`.
  static FunctionStarts parse(std::span<const std::byte> section, std::uint64_t address);
  /// The last start at or before `address`.
  std::optional<std::uint64_t> find(std::uint64_t address) const;
  /// The first start behind `address`.
  std::optional<std::uint64_t> next(std::uint64_t address) const;
  std::size_t size() const { return starts_.size(); }

 private:
  std::vector<std::uint64_t> starts_;
};

}  // namespace fulcrum::record
