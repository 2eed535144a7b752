// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether a traced binary is older than its sources or another build of it: files with set times, line tables by hand.
#include "trace/run/stale.h"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>

#include "trace/run/line_table.h"

namespace fulcrum::trace {
namespace {

namespace fs = std::filesystem;

template <class T>
std::string raw(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}
std::string zero_ended(std::string_view text) { return std::string(text) + '\0'; }

/// An ELF file of nothing but sections.
std::string elf_with(const std::vector<std::pair<std::string, std::string>>& sections) {
  std::string names(1, '\0'), body;
  std::vector<Elf64_Shdr> headers(1);
  for (const auto& [name, content] : sections) {
    headers.push_back({.sh_name = static_cast<Elf64_Word>(names.size()),
                       .sh_type = SHT_PROGBITS,
                       .sh_offset = sizeof(Elf64_Ehdr) + body.size(),
                       .sh_size = content.size()});
    names += zero_ended(name);
    body += content;
  }
  headers.push_back(
      {.sh_type = SHT_STRTAB, .sh_offset = sizeof(Elf64_Ehdr) + body.size(), .sh_size = names.size()});
  body += names;
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_shoff = sizeof(head) + body.size();
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = static_cast<Elf64_Half>(headers.size());
  head.e_shstrndx = static_cast<Elf64_Half>(headers.size() - 1);
  std::string file = raw(head) + body;
  for (const Elf64_Shdr& header : headers) file += raw(header);
  return file;
}

std::string unit(std::uint16_t version, const std::string& tables) {
  std::string rest = raw(version);
  if (version == 5) rest += std::string("\x08\x00", 2);
  std::string header = std::string(version >= 4 ? 5 : 4, '\1') + '\x04' + std::string(3, '\1') + tables;
  rest += raw(static_cast<std::uint32_t>(header.size())) + header;
  return raw(static_cast<std::uint32_t>(rest.size())) + rest;
}

/// Folders by offsets into .debug_line_str, files by name, folder and a checksum that is skipped.
std::string version_5(const fs::path& folder, const std::string& file, std::string& strings) {
  std::string tables = std::string("\x01\x01\x1f\x02", 4);
  for (const std::string& name : {folder.string(), std::string("src")}) {
    tables += raw(static_cast<std::uint32_t>(strings.size()));
    strings += zero_ended(name);
  }
  tables +=
      std::string("\x03\x01\x08\x02\x0b\x05\x1e\x01", 8) + zero_ended(file) + '\x01' + std::string(16, 'm');
  return unit(5, tables);
}

TEST(LineTable, SourcesOfBothFormsAreFound) {
  std::string strings;
  const std::string new_form = version_5("/home/me/app", "main.cu", strings);
  const std::string old_form =
      unit(4, zero_ended("/home/me/lib") + '\0' + zero_ended("a.cpp") + std::string("\x01\0\0", 3) +
                  zero_ended("b.cpp") + std::string("\0\0\0", 3) + '\0');
  const auto sources =
      sources_of(elf_with({{".debug_line", new_form + old_form}, {".debug_line_str", strings}}));
  EXPECT_EQ(sources, (std::vector<std::string>{"/home/me/app/src/main.cu", "/home/me/lib/a.cpp"}));
}

TEST(LineTable, DamagedFilesGiveFewerSourcesAndNothingElse) {
  std::string strings;
  const std::string tables = version_5("/home/me/app", "main.cu", strings);
  const std::string whole = elf_with({{".debug_line", tables + tables}, {".debug_line_str", strings}});
  EXPECT_TRUE(sources_of("").empty());
  EXPECT_TRUE(sources_of("#!/bin/sh\n").empty());
  for (std::size_t size = 0; size < whole.size(); ++size) sources_of(std::string_view(whole).substr(0, size));
  std::mt19937 random(3);
  for (int i = 0; i < 10'000; ++i) {
    std::string damaged = whole;
    damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    EXPECT_LE(sources_of(damaged).size(), 300u);
  }
}

class Stale : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("fulcrum_stale_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path write(const std::string& name, const std::string& content, std::int64_t seconds) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    const timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    return path;
  }
  GpuTrace::Binary look(const fs::path& binary, std::int64_t modified_ns = 0) {
    std::vector<GpuTrace::Binary> list{{.path = binary.string(), .modified_ns = modified_ns}};
    look_for_newer(list);
    return list[0];
  }
  fs::path folder_;
};

TEST_F(Stale, ASourceInTheLineTableThatIsNewerIsNamed) {
  std::string strings;
  const std::string tables = version_5(folder_, "main.cu", strings);
  const std::string elf = elf_with({{".debug_line", tables}, {".debug_line_str", strings}});
  const fs::path binary = write("build/app", elf, 1'000'000'000);
  const fs::path source = write("src/main.cu", "x", 999'999'999);
  EXPECT_EQ(look(binary).newer, "");
  write("src/main.cu", "x", 1'000'000'001);
  EXPECT_EQ(look(binary).newer, "") << "clocks may be off by as much";
  write("src/main.cu", "x", 1'000'000'060);
  EXPECT_EQ(look(binary).newer, source.string());
  EXPECT_EQ(look(binary).newer_by_ns, 60'000'000'000);
  write("src/app.cu", "x", 1'000'000'090);
  EXPECT_EQ(look(binary).newer, source.string()) << "a line table knows better than names";
}

TEST_F(Stale, WithoutALineTableTheNameTells) {
  const fs::path binary = write("build/app", "no debug information", 1'000'000'000);
  write("src/other.cu", "x", 1'000'000'100);
  EXPECT_EQ(look(binary).newer, "");
  const fs::path source = write("src/app.cu", "x", 1'000'000'100);
  EXPECT_EQ(look(binary).newer, source.string());
}

TEST_F(Stale, ANewerBuildBesideItIsNamed) {
  const fs::path binary = write("build/app", "old", 1'000'000'000);
  write("docs/app", "not in a build folder", 1'000'000'200);
  EXPECT_EQ(look(binary).newer, "");
  const fs::path newer = write("build-release/app", "new", 1'000'000'100);
  EXPECT_EQ(look(binary).newer, newer.string());
  EXPECT_EQ(look(newer).newer, "");
}

TEST_F(Stale, WhatWasRebuiltSinceIsLeftAlone) {
  const fs::path binary = write("build/app", "x", 1'000'000'000);
  write("src/app.cu", "x", 1'000'000'100);
  EXPECT_EQ(look(binary, 999'000'000'000'000'000).newer, "");
  EXPECT_NE(look(binary, 1'000'000'000'000'000'000).newer, "");
  EXPECT_EQ(look("/usr/bin/env").newer, "");
  EXPECT_EQ(look("relative/app").newer, "");
}

}  // namespace
}  // namespace fulcrum::trace
