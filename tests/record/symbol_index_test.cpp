// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Symbol tables made by hand: which of several names an address gets, and tables that lie.
#include "record/symbol_index.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "record/chosen.h"

namespace fulcrum::record {
namespace {

struct Entry {
  const char* name;
  std::uint64_t begin, size;
  unsigned char binding = STB_GLOBAL, type = STT_FUNC;
  std::uint16_t section = 1;
};
struct Code {
  const char* name;
  std::uint64_t begin, size;
};

/// A file in memory: header, one table, its names, three section headers and those of sections with code.
class File {
 public:
  explicit File(const std::vector<Entry>& entries, std::uint64_t claimed_entries = 0,
                const std::vector<Code>& code = {}) {
    std::string names(1, '\0');
    std::vector<Elf64_Sym> symbols(1);
    for (const Entry& entry : entries) {
      Elf64_Sym symbol{};
      symbol.st_name = static_cast<Elf64_Word>(names.size());
      symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(entry.binding, entry.type));
      symbol.st_shndx = entry.section;
      symbol.st_value = entry.begin;
      symbol.st_size = entry.size;
      symbols.push_back(symbol);
      names += entry.name;
      names += '\0';
    }
    std::vector<Elf64_Shdr> sections;
    for (const Code& one : code) {
      Elf64_Shdr section{};
      section.sh_name = static_cast<Elf64_Word>(names.size());
      section.sh_flags = SHF_EXECINSTR;
      section.sh_addr = one.begin;
      section.sh_size = one.size;
      sections.push_back(section);
      names += one.name;
      names += '\0';
    }
    const std::uint64_t symbol_bytes = symbols.size() * sizeof(Elf64_Sym);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(3 + sections.size());
    header.e_shstrndx = 2;
    header.e_shoff = sizeof(header) + symbol_bytes + names.size();
    Elf64_Shdr table{}, strings{};
    table.sh_type = SHT_SYMTAB;
    table.sh_offset = sizeof(header);
    table.sh_size = claimed_entries ? claimed_entries * sizeof(Elf64_Sym) : symbol_bytes;
    table.sh_entsize = sizeof(Elf64_Sym);
    table.sh_link = 2;
    strings.sh_type = SHT_STRTAB;
    strings.sh_offset = sizeof(header) + symbol_bytes;
    strings.sh_size = names.size();
    put(&header, sizeof(header));
    put(symbols.data(), symbol_bytes);
    put(names.data(), names.size());
    const Elf64_Shdr none{};
    put(&none, sizeof(none));
    put(&table, sizeof(table));
    put(&strings, sizeof(strings));
    put(sections.data(), sections.size() * sizeof(Elf64_Shdr));
  }
  ~File() { ::close(descriptor_); }
  int descriptor() const { return descriptor_; }

 private:
  void put(const void* bytes, std::size_t count) {
    ASSERT_EQ(::write(descriptor_, bytes, count), static_cast<ssize_t>(count));
  }
  int descriptor_ = ::memfd_create("elf", MFD_CLOEXEC);
};

std::string name_at(const SymbolIndex& index, std::uint64_t address) {
  const auto symbol = index.find(address);
  return symbol ? index.name(*symbol) : "";
}

TEST(SymbolIndex, AnAddressHasTheNameOfTheFunctionAroundIt) {
  const File file({{"second", 0x2000, 0x80}, {"first", 0x1000, 0x40}});
  const SymbolIndex index = SymbolIndex::read(file.descriptor());
  EXPECT_EQ(name_at(index, 0x1000), "first");
  EXPECT_EQ(name_at(index, 0x103f), "first");
  EXPECT_EQ(name_at(index, 0x1040), "") << "past its end";
  EXPECT_EQ(name_at(index, 0x207f), "second");
  EXPECT_EQ(name_at(index, 0xfff), "");
  EXPECT_EQ(index.table_entries(), 3u);
}

TEST(SymbolIndex, OfSeveralNamesAtOneAddressTheGlobalFunctionCounts) {
  const File file({{"global", 0x1000, 0x40},
                   {"label", 0x1000, 0, STB_GLOBAL, STT_NOTYPE},
                   {"local", 0x1000, 0x40, STB_LOCAL},
                   {"weak", 0x1000, 0x40, STB_WEAK},
                   {"table", 0x1000, 0x40, STB_GLOBAL, STT_OBJECT}});
  const SymbolIndex index = SymbolIndex::read(file.descriptor());
  EXPECT_EQ(name_at(index, 0x1010), "global");
}

TEST(SymbolIndex, BehindASymbolInsideAnotherTheOuterOneGoesOn) {
  const File file({{"outer", 0x1000, 0x100}, {"inner", 0x1020, 0x10}});
  const SymbolIndex index = SymbolIndex::read(file.descriptor());
  EXPECT_EQ(name_at(index, 0x1028), "inner");
  EXPECT_EQ(name_at(index, 0x1030), "outer");
}

TEST(SymbolIndex, ASymbolWithoutSizeReachesToTheNextOne) {
  const File file({{"start", 0x1000, 0}, {"next", 0x1100, 0x10}});
  const SymbolIndex index = SymbolIndex::read(file.descriptor());
  EXPECT_EQ(name_at(index, 0x10ff), "start");
  EXPECT_EQ(name_at(index, 0x1110), "");
}

TEST(SymbolIndex, KnowsWhichCodeOnlyChooses) {
  const File file({{"plain", 0x1000, 0x40}, {"pow", 0x2000, 0x40, STB_GLOBAL, STT_GNU_IFUNC}});
  const SymbolIndex index = SymbolIndex::read(file.descriptor());
  ASSERT_EQ(index.choosers().size(), 1u);
  EXPECT_EQ(index.name(index.choosers()[0]), "pow");
}

TEST(ChosenFunctions, AreNamedByWhatTheirLibraryChoseInThisProcess) {
  Dl_info libm{};
  ASSERT_NE(::dladdr(::dlsym(RTLD_DEFAULT, "cbrt"), &libm), 0);
  Modules modules;
  const Module& module = modules[modules.find_or_add(libm.dli_fname, ::getpid())];
  const int descriptor = ::open(libm.dli_fname, O_RDONLY | O_CLOEXEC);
  const SymbolIndex index = SymbolIndex::read(descriptor);
  ::close(descriptor);
  if (index.choosers().empty()) GTEST_SKIP() << "SKIPPED: this math library chooses nothing";
  const auto names = chosen_functions(module, index);
  const auto base = reinterpret_cast<std::uint64_t>(libm.dli_fbase);
  for (const char* name : {"sin", "cos"}) {
    const auto at = reinterpret_cast<std::uint64_t>(::dlsym(RTLD_DEFAULT, name)) - base;
    ASSERT_EQ(names.count(at), 1u) << name;
    EXPECT_EQ(names.at(at), name);
  }
  // A library that is not loaded here has chosen nothing.
  Module other = module;
  other.path = other.open_path = "/nowhere/libm.so.6";
  EXPECT_TRUE(chosen_functions(other, index).empty());
}

TEST(SymbolIndex, ATableThatPromisesMoreThanTheFileHoldsGivesWhatIsThere) {
  for (const std::uint64_t claimed : {std::uint64_t{4000}, std::uint64_t{1} << 40}) {
    const File file({{"first", 0x1000, 0x40}}, claimed);
    const SymbolIndex index = SymbolIndex::read(file.descriptor());
    EXPECT_LE(index.table_entries(), 30u);
  }
  const int empty = ::memfd_create("empty", MFD_CLOEXEC);
  EXPECT_FALSE(SymbolIndex::read(empty).find(0x1000).has_value());
  ::close(empty);
}

TEST(SymbolIndex, AStubOfTheLinkerIsNoPartOfTheFunctionBeforeIt) {
  // "_init" has no size and lies right before the stubs.
  const File file({{.name = "_init", .begin = 0x1000, .size = 0, .section = 3}, {"main", 0x10c0, 0x40}}, 0,
                  {{".init", 0x1000, 0x20}, {".plt", 0x1020, 0x40}, {".plt.sec", 0x1060, 0x40}});
  const SymbolIndex index = SymbolIndex::read(file.descriptor());
  EXPECT_EQ(name_at(index, 0x1010), "_init");
  EXPECT_FALSE(index.is_stub(0x1010));
  for (const std::uint64_t address : {0x1020, 0x105f, 0x1060, 0x109f}) {
    EXPECT_TRUE(index.is_stub(address)) << address;
    EXPECT_EQ(name_at(index, address), "") << address;
  }
  EXPECT_FALSE(index.is_stub(0x10a0));
  EXPECT_EQ(name_at(index, 0x10c0), "main");
}

}  // namespace
}  // namespace fulcrum::record
