// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The table is that of the Linux Standard Base: a header, then sorted pairs of start and description, relative to the
// section's own address.
#include "record/function_starts.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace fulcrum::record {
namespace {

// DW_EH_PE encodings that linkers write here.
constexpr std::uint8_t kFourBytes = 0x03, kSignedFourBytes = 0x0b, kRelativeToTable = 0x30;

template <class T>
bool read_object(int descriptor, std::uint64_t offset, T& object) {
  return ::pread(descriptor, &object, sizeof(T), static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(sizeof(T));
}

}  // namespace

FunctionStarts FunctionStarts::parse(std::span<const std::byte> section, std::uint64_t address) {
  FunctionStarts result;
  if (section.size() < 12) return result;
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint8_t>(section[i]); };
  const bool usual = byte(0) == 1 && (byte(1) & 0x0f) == kSignedFourBytes &&
                     ((byte(2) & 0x0f) == kFourBytes || (byte(2) & 0x0f) == kSignedFourBytes) &&
                     byte(3) == (kRelativeToTable | kSignedFourBytes);
  if (!usual) return result;
  std::uint32_t count = 0;
  std::memcpy(&count, section.data() + 8, 4);
  count = std::min<std::uint32_t>(count, static_cast<std::uint32_t>((section.size() - 12) / 8));
  result.starts_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::int32_t relative = 0;
    std::memcpy(&relative, section.data() + 12 + i * 8, 4);
    result.starts_.push_back(address + static_cast<std::uint64_t>(static_cast<std::int64_t>(relative)));
  }
  std::sort(result.starts_.begin(), result.starts_.end());
  return result;
}

FunctionStarts FunctionStarts::read(int descriptor) {
  Elf64_Ehdr header;
  if (!read_object(descriptor, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr program;
    if (!read_object(descriptor, header.e_phoff + i * sizeof(program), program)) return {};
    if (program.p_type != PT_GNU_EH_FRAME || program.p_filesz > (std::uint64_t{64} << 20)) continue;
    std::vector<std::byte> section(program.p_filesz);
    const ssize_t got =
        ::pread(descriptor, section.data(), section.size(), static_cast<off_t>(program.p_offset));
    if (got != static_cast<ssize_t>(section.size())) return {};
    return parse(section, program.p_vaddr);
  }
  return {};
}

std::optional<std::uint64_t> FunctionStarts::find(std::uint64_t address) const {
  const auto next = std::upper_bound(starts_.begin(), starts_.end(), address);
  if (next == starts_.begin()) return std::nullopt;
  return *std::prev(next);
}

std::optional<std::uint64_t> FunctionStarts::next(std::uint64_t address) const {
  const auto found = std::upper_bound(starts_.begin(), starts_.end(), address);
  return found == starts_.end() ? std::nullopt : std::optional(*found);
}

}  // namespace fulcrum::record
