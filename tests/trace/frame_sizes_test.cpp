// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Local memory of kernels from the sections of a cubin, whole and cut at every byte.
#include "trace/inject/frame_sizes.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

namespace fulcrum::trace::inject {
namespace {

/// A cubin with two kernels: the first needs 456 bytes a thread, the second none.
std::string cubin() {
  const std::string names = std::string("\0.nv.info\0.symtab\0", 18),
                    strings = std::string("\0spills\0fits\0", 13);
  Elf64_Sym symbols[3]{};
  symbols[1].st_name = 1;
  symbols[2].st_name = 8;
  const auto attribute = [](unsigned char what, std::uint32_t symbol, std::uint32_t value) {
    std::string text{char(4), char(what), char(8), char(0)};
    text.append(reinterpret_cast<const char*>(&symbol), 4).append(reinterpret_cast<const char*>(&value), 4);
    return text;
  };
  // Registers, frame sizes, and one attribute whose value is in its head.
  const std::string info = attribute(0x2f, 1, 32) + std::string("\x03\x1b\x01\x00", 4) +
                           attribute(0x11, 2, 0) + attribute(0x11, 1, 456);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 5;
  header.e_shstrndx = 4;
  std::string text(reinterpret_cast<const char*>(&header), sizeof header);
  Elf64_Shdr sections[5]{};
  const auto put = [&](Elf64_Shdr& section, const void* data, std::size_t size) {
    section.sh_offset = text.size();
    section.sh_size = size;
    text.append(static_cast<const char*>(data), size);
  };
  put(sections[1], info.data(), info.size());
  sections[1].sh_name = 1;
  put(sections[2], symbols, sizeof symbols);
  sections[2].sh_type = SHT_SYMTAB;
  sections[2].sh_link = 3;
  sections[2].sh_name = 10;
  put(sections[3], strings.data(), strings.size());
  put(sections[4], names.data(), names.size());
  header.e_shoff = text.size();
  text.append(reinterpret_cast<const char*>(sections), sizeof sections);
  text.replace(0, sizeof header, reinterpret_cast<const char*>(&header), sizeof header);
  return text;
}

TEST(FrameSizes, AreThoseOfTheCubin) {
  FrameSizes sizes;
  const std::string text = cubin();
  sizes.add(text.data(), text.size());
  EXPECT_EQ(sizes.of("spills"), 456u);
  EXPECT_EQ(sizes.of("fits"), 0u);
  EXPECT_EQ(sizes.of("unknown"), 0u);
}

TEST(FrameSizes, ReadNothingOutsideOfACubinThatIsCutOrNone) {
  const std::string text = cubin();
  for (std::size_t size = 0; size < text.size(); ++size) {
    const std::unique_ptr<char[]> part(new char[size]);  // its end is the end of what may be read
    std::memcpy(part.get(), text.data(), size);
    FrameSizes sizes;
    sizes.add(part.get(), size);
    EXPECT_EQ(sizes.of("spills"), 0u) << size;
  }
  FrameSizes sizes;
  sizes.add(nullptr, 100);
  EXPECT_EQ(sizes.of("spills"), 0u);
}

}  // namespace
}  // namespace fulcrum::trace::inject
