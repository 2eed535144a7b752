// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See symbol_index.h. Section headers may lie: every table is read within limits, and a file that breaks off gives what
// was there.
#include "record/symbol_index.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <tuple>
#include <utility>

namespace fulcrum::record {
namespace {

constexpr std::uint64_t kMostTableBytes = std::uint64_t{512} << 20;
constexpr std::size_t kNameBytes = 4096;  // a longer name is cut
// Symbols inside others are rare: labels of hand-written code.
constexpr int kMostNested = 16;

template <class T>
std::vector<T> read_array(int descriptor, std::uint64_t offset, std::uint64_t count) {
  if (count > kMostTableBytes / sizeof(T)) return {};
  std::vector<T> result(count);
  std::uint64_t done = 0;
  while (done < count * sizeof(T)) {
    const ssize_t got = ::pread(descriptor, reinterpret_cast<char*>(result.data()) + done,
                                count * sizeof(T) - done, static_cast<off_t>(offset + done));
    if (got <= 0) break;
    done += static_cast<std::uint64_t>(got);
  }
  result.resize(done / sizeof(T));
  return result;
}

bool is_code(const Elf64_Sym& symbol) {
  const auto type = ELF64_ST_TYPE(symbol.st_info);
  return (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) && symbol.st_shndx != SHN_UNDEF &&
         symbol.st_shndx != SHN_ABS && symbol.st_name != 0 && symbol.st_value != 0;
}

/// Functions before labels, known sizes before unknown ones, global names before weak before local ones.
std::uint8_t rank_of(const Elf64_Sym& symbol) {
  const auto binding = ELF64_ST_BIND(symbol.st_info);
  const int scope = binding == STB_GLOBAL ? 2 : binding == STB_WEAK ? 1 : 0;
  return static_cast<std::uint8_t>((ELF64_ST_TYPE(symbol.st_info) != STT_NOTYPE ? 8 : 0) +
                                   (symbol.st_size != 0 ? 4 : 0) + scope);
}

/// The end of the section that a symbol's code is in.
std::uint64_t end_of_section(const Elf64_Sym& symbol, const std::vector<Elf64_Shdr>& sections) {
  if (symbol.st_shndx >= sections.size()) return 0;
  const Elf64_Shdr& section = sections[symbol.st_shndx];
  const bool holds =
      symbol.st_value >= section.sh_addr && symbol.st_value - section.sh_addr < section.sh_size;
  return (section.sh_flags & SHF_EXECINSTR) != 0 && holds ? section.sh_addr + section.sh_size : 0;
}

/// Sections ".plt", ".plt.sec" and ".plt.got" have no symbols; the nearest one before them is another function's.
std::vector<std::pair<std::uint64_t, std::uint64_t>> stubs_of(int descriptor,
                                                              const std::vector<Elf64_Shdr>& sections,
                                                              std::size_t names) {
  constexpr std::string_view kStubs = ".plt";
  std::vector<std::pair<std::uint64_t, std::uint64_t>> stubs;
  if (names >= sections.size()) return stubs;
  for (const Elf64_Shdr& section : sections) {
    if ((section.sh_flags & SHF_EXECINSTR) == 0 || section.sh_name >= sections[names].sh_size) continue;
    const auto text =
        read_array<char>(descriptor, sections[names].sh_offset + section.sh_name, kStubs.size());
    if (std::string_view(text.data(), text.size()) == kStubs)
      stubs.emplace_back(section.sh_addr, section.sh_addr + section.sh_size);
  }
  return stubs;
}

}  // namespace

SymbolIndex::SymbolIndex(SymbolIndex&& other) noexcept
    : symbols_(std::move(other.symbols_)),
      stubs_(std::move(other.stubs_)),
      table_entries_(other.table_entries_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

SymbolIndex& SymbolIndex::operator=(SymbolIndex&& other) noexcept {
  std::swap(symbols_, other.symbols_);
  std::swap(stubs_, other.stubs_);
  std::swap(table_entries_, other.table_entries_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

SymbolIndex::~SymbolIndex() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

SymbolIndex SymbolIndex::read(int descriptor) {
  SymbolIndex result;
  const auto header = read_array<Elf64_Ehdr>(descriptor, 0, 1);
  if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      header[0].e_ident[EI_CLASS] != ELFCLASS64 || header[0].e_shentsize != sizeof(Elf64_Shdr)) {
    return result;
  }
  const auto sections = read_array<Elf64_Shdr>(descriptor, header[0].e_shoff, header[0].e_shnum);
  result.stubs_ = stubs_of(descriptor, sections, header[0].e_shstrndx);
  const Elf64_Shdr* table = nullptr;
  for (const Elf64_Shdr& section : sections) {
    const bool wanted = section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM;
    if (!wanted || section.sh_entsize != sizeof(Elf64_Sym) || section.sh_link >= sections.size()) continue;
    if (!table || section.sh_size > table->sh_size) table = &section;
  }
  if (!table) return result;
  const Elf64_Shdr& names = sections[table->sh_link];
  const auto symbols =
      read_array<Elf64_Sym>(descriptor, table->sh_offset, table->sh_size / sizeof(Elf64_Sym));
  result.table_entries_ = symbols.size();
  for (const Elf64_Sym& symbol : symbols) {
    if (!is_code(symbol) || symbol.st_name >= names.sh_size) continue;
    result.symbols_.push_back({.begin = symbol.st_value,
                               .size = symbol.st_size,
                               .limit = end_of_section(symbol, sections),
                               .name_at = names.sh_offset + symbol.st_name,
                               .rank = rank_of(symbol),
                               .chooser = ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC});
  }
  std::stable_sort(result.symbols_.begin(), result.symbols_.end(), [](const Symbol& a, const Symbol& b) {
    return std::tie(a.begin, a.rank) < std::tie(b.begin, b.rank);
  });
  result.descriptor_ = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  return result;
}

bool SymbolIndex::is_stub(std::uint64_t address) const {
  return std::any_of(stubs_.begin(), stubs_.end(),
                     [address](const auto& stub) { return address >= stub.first && address < stub.second; });
}

std::optional<SymbolIndex::Symbol> SymbolIndex::find(std::uint64_t address) const {
  auto at = std::upper_bound(symbols_.begin(), symbols_.end(), address,
                             [](std::uint64_t a, const Symbol& symbol) { return a < symbol.begin; });
  std::optional<Symbol> sizeless;
  for (int i = 0; i < kMostNested && at != symbols_.begin(); ++i) {
    --at;
    if (address - at->begin < at->size) return *at;
    if (at->size == 0 && i == 0 && (at->limit == 0 || address < at->limit)) sizeless = *at;
  }
  return sizeless;
}

std::vector<SymbolIndex::Symbol> SymbolIndex::choosers() const {
  std::vector<Symbol> found;
  std::copy_if(symbols_.begin(), symbols_.end(), std::back_inserter(found),
               [](const Symbol& symbol) { return symbol.chooser; });
  return found;
}

std::string SymbolIndex::name(const Symbol& symbol) const {
  std::array<char, kNameBytes> text{};
  const ssize_t got = ::pread(descriptor_, text.data(), text.size() - 1, static_cast<off_t>(symbol.name_at));
  return got > 0 ? std::string(text.data()) : "";
}

}  // namespace fulcrum::record
