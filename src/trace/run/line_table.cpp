// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The headers of DWARF line tables, versions 2 to 5, as far as they name files. Relative folders of versions before 5
// are relative to something that stands elsewhere, so those files are left out.
#include "trace/run/line_table.h"

#include <elf.h>

#include <cstring>
#include <set>

namespace fulcrum::trace {
namespace {

/// Reads little-endian numbers and texts; past the end everything is 0 and empty, and ok() is false.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}
  bool ok() const { return ok_; }
  std::string_view take(std::uint64_t size) {
    ok_ = ok_ && size <= rest_.size();
    const std::string_view taken = ok_ ? rest_.substr(0, size) : std::string_view{};
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::uint64_t number(std::size_t size) {
    std::uint64_t value = 0;
    const std::string_view bytes = take(size);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof(value)));
    return value;
  }
  std::uint64_t leb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; ok_; shift += 7) {
      const std::uint64_t byte = number(1);
      if (shift < 64) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  std::string_view text() {
    const std::size_t end = rest_.find('\0');
    const std::string_view found = take(end == std::string_view::npos ? rest_.size() + 1 : end);
    take(1);
    return found;
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

struct Sections {
  std::string_view line, line_strings, strings;
};

Sections find_sections(std::string_view elf) {
  Sections found;
  Elf64_Ehdr head;
  if (elf.size() < sizeof(head)) return found;
  std::memcpy(&head, elf.data(), sizeof(head));
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
      head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_shentsize != sizeof(Elf64_Shdr)) {
    return found;
  }
  const auto header = [&](std::size_t number, Elf64_Shdr& section) {
    const std::uint64_t at = head.e_shoff + number * sizeof(section);
    if (head.e_shoff > elf.size() || at > elf.size() || elf.size() - at < sizeof(section)) return false;
    std::memcpy(&section, elf.data() + at, sizeof(section));
    return true;
  };
  const auto content = [&](const Elf64_Shdr& s) {
    const bool inside = s.sh_offset <= elf.size() && s.sh_size <= elf.size() - s.sh_offset;
    const bool plain = s.sh_type != SHT_NOBITS && (s.sh_flags & SHF_COMPRESSED) == 0;
    return inside && plain ? elf.substr(s.sh_offset, s.sh_size) : std::string_view{};
  };
  Elf64_Shdr names_header;
  if (!header(head.e_shstrndx, names_header)) return found;
  const std::string_view names = content(names_header);
  for (std::size_t i = 0; i < head.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!header(i, section) || section.sh_name >= names.size()) continue;
    const std::string_view name = Cursor(names.substr(section.sh_name)).text();
    if (name == ".debug_line") found.line = content(section);
    if (name == ".debug_line_str") found.line_strings = content(section);
    if (name == ".debug_str") found.strings = content(section);
  }
  return found;
}

struct Entry {
  std::string_view path;
  std::uint64_t folder = 0;
};

/// A table of version 5, which says how its entries are written.
std::vector<Entry> read_entries(Cursor& cursor, const Sections& sections, std::size_t offset_size) {
  enum : std::uint64_t { kPath = 1, kFolder = 2 };
  std::vector<std::pair<std::uint64_t, std::uint64_t>> fields(cursor.number(1));
  for (auto& [content, form] : fields) {
    content = cursor.leb();
    form = cursor.leb();
  }
  std::vector<Entry> entries;
  for (std::uint64_t left = cursor.leb(); left > 0 && cursor.ok() && !fields.empty(); --left) {
    Entry& entry = entries.emplace_back();
    for (const auto& [content, form] : fields) {
      std::string_view text;
      std::uint64_t number = 0;
      const auto from = [&](std::string_view table) {
        const std::uint64_t at = cursor.number(offset_size);
        return at < table.size() ? Cursor(table.substr(at)).text() : std::string_view{};
      };
      switch (form) {
        case 0x08:
          text = cursor.text();
          break;  // string
        case 0x0e:
          text = from(sections.strings);
          break;  // strp
        case 0x1f:
          text = from(sections.line_strings);
          break;  // line_strp
        case 0x0b:
          number = cursor.number(1);
          break;  // data1
        case 0x05:
          number = cursor.number(2);
          break;  // data2
        case 0x06:
          number = cursor.number(4);
          break;  // data4
        case 0x0f:
          number = cursor.leb();
          break;  // udata
        case 0x1e:
          cursor.take(16);
          break;  // data16
        case 0x09:
          cursor.take(cursor.leb());
          break;  // block
        default:
          return {};
      }
      if (content == kPath) entry.path = text;
      if (content == kFolder) entry.folder = number;
    }
  }
  return entries;
}

/// Tables before version 5: folders, then files; folder 0 is not in the table.
void read_old_tables(Cursor& cursor, std::vector<Entry>& folders, std::vector<Entry>& files) {
  folders.emplace_back();
  for (std::string_view name = cursor.text(); !name.empty(); name = cursor.text()) folders.push_back({name});
  for (std::string_view name = cursor.text(); !name.empty(); name = cursor.text()) {
    files.push_back({name, cursor.leb()});
    cursor.leb();
    cursor.leb();
  }
}

void add_paths(const std::vector<Entry>& folders, const std::vector<Entry>& files,
               std::set<std::string>& to) {
  for (const Entry& file : files) {
    std::filesystem::path path(file.path);
    if (file.folder < folders.size()) path = folders[file.folder].path / path;
    if (path.is_relative() && !folders.empty()) path = folders[0].path / path;
    if (path.is_absolute()) to.insert(path.lexically_normal().string());
  }
}

}  // namespace

std::vector<std::string> sources_of(std::string_view elf) {
  const Sections sections = find_sections(elf);
  std::set<std::string> paths;
  Cursor all(sections.line);
  while (all.ok()) {
    std::uint64_t length = all.number(4);
    const std::size_t offset_size = length == 0xffffffff ? 8 : 4;
    if (offset_size == 8) length = all.number(8);
    if (length == 0) break;
    Cursor unit(all.take(length));
    const std::uint64_t version = unit.number(2);
    if (version < 2 || version > 5) continue;
    if (version == 5) unit.take(2);
    unit.number(offset_size);
    unit.take(version >= 4 ? 5 : 4);
    const std::uint64_t opcodes = unit.number(1);
    unit.take(opcodes > 0 ? opcodes - 1 : 0);
    std::vector<Entry> folders, files;
    if (version == 5) {
      folders = read_entries(unit, sections, offset_size);
      files = read_entries(unit, sections, offset_size);
    } else {
      read_old_tables(unit, folders, files);
    }
    add_paths(folders, files, paths);
  }
  return {paths.begin(), paths.end()};
}

}  // namespace fulcrum::trace
