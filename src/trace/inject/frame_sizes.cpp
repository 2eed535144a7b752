// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Section .nv.info of a cubin is a list of attributes: a byte for the format, one for what it is, and either two bytes
// of value or their number and so many bytes. The frame size of a function is a symbol's number and the bytes.
#include "trace/inject/frame_sizes.h"

#include <elf.h>

#include <cstring>

namespace fulcrum::trace::inject {
namespace {

constexpr unsigned char kCounted = 0x04, kFrameSize = 0x11;
constexpr std::size_t kMostKernels = 65536;

/// Bytes that are only read where they are.
struct CubinImage {
  const char* data;
  std::size_t size;

  template <class T>
  bool read(std::uint64_t at, T& value) const {
    if (at > size || size - at < sizeof(T)) return false;
    std::memcpy(&value, data + at, sizeof(T));
    return true;
  }
  std::string_view text(std::uint64_t at) const {
    if (at >= size) return {};
    const void* end = std::memchr(data + at, 0, size - at);
    return end == nullptr
               ? std::string_view()
               : std::string_view(data + at, std::size_t(static_cast<const char*>(end) - data - at));
  }
};

struct CubinSections {
  Elf64_Shdr info{}, symbols{}, strings{};
};

bool find_sections(const CubinImage& image, CubinSections& out) {
  Elf64_Ehdr header;
  if (!image.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr))
    return false;
  const auto section = [&](std::uint32_t i, Elf64_Shdr& shdr) {
    return i < header.e_shnum && image.read(header.e_shoff + std::uint64_t{i} * sizeof(Elf64_Shdr), shdr);
  };
  Elf64_Shdr names;
  if (!section(header.e_shstrndx, names)) return false;
  bool info = false, symbols = false;
  for (std::uint32_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr one;
    if (!section(i, one)) return false;
    if (one.sh_type == SHT_SYMTAB && section(one.sh_link, out.strings)) out.symbols = one, symbols = true;
    if (image.text(names.sh_offset + one.sh_name) == ".nv.info") out.info = one, info = true;
  }
  return info && symbols;
}

}  // namespace

void FrameSizes::add(const void* cubin, std::size_t bytes) {
  const CubinImage image{static_cast<const char*>(cubin), bytes};
  CubinSections sections;
  if (cubin == nullptr || !find_sections(image, sections)) return;
  const std::uint64_t end = sections.info.sh_offset + sections.info.sh_size;
  for (std::uint64_t at = sections.info.sh_offset; at < end;) {
    unsigned char format = 0, what = 0;
    std::uint16_t count = 0;
    if (!image.read(at, format) || !image.read(at + 1, what) || !image.read(at + 2, count)) return;
    std::uint32_t value[2] = {};  // symbol, bytes
    Elf64_Sym symbol;
    if (format == kCounted && what == kFrameSize && count >= sizeof value && image.read(at + 4, value) &&
        value[1] != 0 &&
        image.read(sections.symbols.sh_offset + std::uint64_t{value[0]} * sizeof(symbol), symbol)) {
      const std::string_view name = image.text(sections.strings.sh_offset + symbol.st_name);
      const std::lock_guard lock(mutex_);
      if (!name.empty() && bytes_.size() < kMostKernels) bytes_[std::string(name)] = value[1];
    }
    at += 4 + (format == kCounted ? count : 0);
  }
}

std::uint32_t FrameSizes::of(std::string_view kernel) const {
  const std::lock_guard lock(mutex_);
  if (bytes_.empty()) return 0;
  const auto found = bytes_.find(std::string(kernel));
  return found == bytes_.end() ? 0 : found->second;
}

FrameSizes& frame_sizes() {
  static auto* const all = new FrameSizes;  // never destroyed: callbacks come until the very end
  return *all;
}

}  // namespace fulcrum::trace::inject
