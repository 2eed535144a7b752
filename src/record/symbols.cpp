// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Symbols by libdw: the symbol table for the function, debug information where there is any for the inlined calls and
// the lines. Modules are read as linked, so one reading serves every process that mapped the file.
#include "record/symbols.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>

namespace fulcrum::record {
namespace {

// DWARF constants: tags and attributes.
constexpr int kTagInlined = 0x1d, kTagSubprogram = 0x2e;
constexpr unsigned kAtLinkageName = 0x6e, kAtMipsLinkageName = 0x2007, kAtCallFile = 0x58, kAtCallLine = 0x59;

constexpr std::array<std::string_view, 6> kCloneMarks{".constprop.", ".isra.",     ".part.",
                                                      ".cold",       ".lto_priv.", ".clone."};

std::string name_of(const Libdw& dw, DwarfDie* die) {
  for (const unsigned attribute : {kAtLinkageName, kAtMipsLinkageName}) {
    DwarfAttribute memory;
    if (DwarfAttribute* found = dw.dwarf_attr_integrate(die, attribute, &memory)) {
      if (const char* text = dw.dwarf_formstring(found)) return plain_name(text);
    }
  }
  const char* name = dw.dwarf_diename(die);
  return name ? name : "";
}

std::optional<std::uint64_t> number_of(const Libdw& dw, DwarfDie* die, unsigned attribute) {
  DwarfAttribute memory;
  DwarfWord value = 0;
  DwarfAttribute* found = dw.dwarf_attr(die, attribute, &memory);
  if (!found || dw.dwarf_formudata(found, &value) != 0) return std::nullopt;
  return value;
}

void set_line(const Libdw& dw, DwflModule* module, std::uint64_t address, Frame& frame) {
  DwflLine* line = dw.dwfl_module_getsrc(module, address);
  if (!line) return;
  int number = 0;
  const char* file = dw.dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr);
  if (!file) return;
  frame.file = file;
  frame.line = number;
}

}  // namespace

std::string plain_name(std::string_view symbol) {
  std::string name(symbol);
  for (const std::string_view mark : kCloneMarks) {
    const auto at = name.find(mark);
    if (at != std::string::npos && at > 0) name.resize(at);
  }
  // "name@@VERSION" of a versioned symbol.
  if (const auto at = name.find('@'); at != std::string::npos && at > 0) name.resize(at);
  int status = 0;
  char* demangled =
      name.starts_with("_Z") ? abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status) : nullptr;
  if (demangled) name = demangled;
  std::free(demangled);
  return name;
}

Symbols::~Symbols() {
  for (auto& [number, file] : files_) {
    if (file.dwfl) libdw()->dwfl_end(file.dwfl);
  }
}

Symbols::File& Symbols::file_of(std::uint32_t number) {
  const auto [entry, is_new] = files_.try_emplace(number);
  File& file = entry->second;
  if (!is_new) return file;
  const Module& module = modules_[number];
  if (!module.elf) return file;
  const bool vdso = module.kind == Module::Kind::vdso;
  const int descriptor =
      vdso ? ::dup(vdso_descriptor()) : ::open(module.open_path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return file;
  file.starts = FunctionStarts::read(descriptor);
  file.index = SymbolIndex::read(descriptor);
  file.indexed = true;
  if (!vdso) file.chosen = chosen_functions(module, file.index);
  const Libdw* dw = libdw();
  if (dw) file.dwfl = dw->dwfl_begin(local_callbacks());
  if (!file.dwfl) {
    ::close(descriptor);
    return file;
  }
  dw->dwfl_report_begin_add(file.dwfl);
  file.module = dw->dwfl_report_elf(file.dwfl, module.name.c_str(), module.path.c_str(), descriptor, 0, true);
  if (!file.module) ::close(descriptor);
  dw->dwfl_report_end(file.dwfl, nullptr, nullptr);
  // A separate debug file has a fuller table; without one, libdw would look through the same entries one by one.
  const int known = file.module ? dw->dwfl_module_getsymtab(file.module) : 0;
  file.indexed = known <= 0 || static_cast<std::size_t>(known) <= file.index.table_entries();
  return file;
}

std::optional<Symbols::Named> Symbols::symbol_at(const File& file, std::uint64_t address) {
  if (file.index.is_stub(address)) return Named{"[plt]", address, 0};
  if (file.indexed) {
    const auto symbol = file.index.find(address);
    return symbol ? std::optional(Named{file.index.name(*symbol), symbol->begin, symbol->size})
                  : std::nullopt;
  }
  if (!file.module) return std::nullopt;
  Elf64_Sym symbol{};
  DwarfAddress offset = 0;
  const char* name =
      libdw()->dwfl_module_addrinfo(file.module, address, &offset, &symbol, nullptr, nullptr, nullptr);
  // The library also offers the nearest symbol before the address; past its end that is another function's name.
  if (!name || !*name || (offset >= symbol.st_size && symbol.st_size != 0)) return std::nullopt;
  return Named{name, address - offset, symbol.st_size};
}

std::string Symbols::nameless(const File& file, const Module& module, std::uint64_t address) const {
  const std::uint64_t begin = file.starts.find(address).value_or(address);
  const auto chosen = file.chosen.find(begin);
  return chosen != file.chosen.end() ? chosen->second : fmt::format("[{}+0x{:x}]", module.name, begin);
}

/// Replaces the one frame by the chain of inlined calls at `address`, where debug information tells of any.
void Symbols::add_inlined(File& file, std::uint64_t address, std::vector<Frame>& frames) {
  const Libdw& dw = *libdw();
  DwarfAddress bias = 0;
  DwarfDie* unit = dw.dwfl_module_addrdie(file.module, address, &bias);
  if (!unit) return;
  DwarfDie* innermost = nullptr;
  const int found = dw.dwarf_getscopes(unit, address - bias, &innermost);
  DwarfDie* scopes = nullptr;
  const int depth = found > 0 ? dw.dwarf_getscopes_die(&innermost[0], &scopes) : 0;
  DwarfFiles* files = nullptr;
  std::size_t file_count = 0;
  dw.dwarf_getsrcfiles(unit, &files, &file_count);

  Frame function = frames.back();
  std::vector<Frame> chain;
  for (int i = 0; i < depth; ++i) {
    const int tag = dw.dwarf_tag(&scopes[i]);
    if (tag == kTagSubprogram) {
      if (function.function.starts_with('[')) {
        if (std::string name = name_of(dw, &scopes[i]); !name.empty()) function.function = std::move(name);
      }
      break;
    }
    if (tag != kTagInlined) continue;
    Frame inner = function;  // at the line that `function` stands at so far
    inner.function = name_of(dw, &scopes[i]);
    inner.inlined = true;
    if (!inner.function.empty()) chain.push_back(std::move(inner));
    const auto call_file = number_of(dw, &scopes[i], kAtCallFile);
    const auto call_line = number_of(dw, &scopes[i], kAtCallLine);
    const char* name = call_file && *call_file < file_count
                           ? dw.dwarf_filesrc(files, *call_file, nullptr, nullptr)
                           : nullptr;
    function.file = name ? name : "";
    function.line = static_cast<int>(call_line.value_or(0));
  }
  chain.push_back(std::move(function));
  frames = std::move(chain);
  std::free(innermost);
  std::free(scopes);
}

Frame Symbols::kernel_frame(std::uint64_t address) {
  if (!kernel_read_) {
    kernel_read_ = true;
    const auto text = read_file("/proc/kallsyms");
    std::string_view rest = text.ok() ? std::string_view(*text) : std::string_view();
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      std::uint64_t at = 0;
      const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), at, 16);
      const auto left = static_cast<std::size_t>(line.data() + line.size() - end);
      // "ffffffff81000000 T name [module]"; addresses are zero for those who may not see them.
      if (error != std::errc() || at == 0 || left < 4 || (end[1] != 't' && end[1] != 'T' && end[1] != 'W'))
        continue;
      const std::string_view name(end + 3, left - 3);
      kernel_.try_emplace(at, name.substr(0, name.find('\t')));
    }
  }
  Frame frame{.function = "[kernel]", .module = "[kernel]", .address = address};
  const auto next = kernel_.upper_bound(address);
  if (next != kernel_.begin()) frame.function = std::prev(next)->second;
  return frame;
}

Frame Symbols::jit_frame(const Module& module, std::uint64_t address) {
  const auto map = jit_.find(module.pid);
  const JitMap::Entry* entry = map == jit_.end() ? nullptr : map->second.find(address);
  Frame frame{.function = "[generated code]", .module = "[jit]", .address = address};
  if (!entry) return frame;
  frame.function = entry->name;
  // Python writes "py::function:file".
  if (entry->python()) {
    const std::string rest = entry->name.substr(4);
    const auto colon = rest.find(':');
    frame.function = rest.substr(0, colon);
    if (colon != std::string::npos) frame.file = rest.substr(colon + 1);
    frame.module = "python";
  }
  return frame;
}

std::vector<Frame> Symbols::frames_at(const Location& location) {
  const Module& module = modules_[location.module];
  if (module.kind == Module::Kind::kernel) return {kernel_frame(location.address)};
  if (module.kind == Module::Kind::jit) return {jit_frame(module, location.address)};
  if (module.kind == Module::Kind::unknown) {
    return {Frame{.function = "[unknown]", .address = location.address}};
  }
  File& file = file_of(location.module);
  Frame frame{.function = nameless(file, module, location.address),
              .module = module.name,
              .address = location.address};
  if (auto symbol = symbol_at(file, location.address); symbol && !symbol->name.empty())
    frame.function = plain_name(symbol->name);
  if (!file.module) return {frame};
  const Libdw& dw = *libdw();
  set_line(dw, file.module, location.address, frame);
  std::vector<Frame> frames{std::move(frame)};
  if (!frames[0].file.empty()) add_inlined(file, location.address, frames);
  return frames;
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> Symbols::extent_of(const Location& location) {
  if (modules_[location.module].kind != Module::Kind::file) return std::nullopt;
  File& file = file_of(location.module);
  if (const auto symbol = symbol_at(file, location.address); symbol && symbol->size != 0)
    return std::pair{symbol->begin, symbol->begin + symbol->size};
  const auto begin = file.starts.find(location.address), end = file.starts.next(location.address);
  if (!begin || !end) return std::nullopt;
  return std::pair{*begin, *end};
}

}  // namespace fulcrum::record
