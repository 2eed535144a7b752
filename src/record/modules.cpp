// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Binaries and mappings.
#include "record/modules.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace fulcrum::record {
namespace {

std::string last_part(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

bool read_at(int descriptor, void* to, std::size_t bytes, std::uint64_t offset) {
  return ::pread(descriptor, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

/// The loadable segments of a 64-bit ELF file.
bool read_segments(int descriptor, Module& module) {
  Elf64_Ehdr header;
  if (!read_at(descriptor, &header, sizeof(header), 0)) return false;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    return false;
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > 4096) return false;
  module.entry = header.e_entry;
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr program;
    if (!read_at(descriptor, &program, sizeof(program), header.e_phoff + i * sizeof(program))) return false;
    if (program.p_type != PT_LOAD) continue;
    module.segments.push_back(
        {program.p_offset, program.p_vaddr, program.p_filesz, (program.p_flags & PF_X) != 0});
  }
  return !module.segments.empty();
}

/// No two states of any address space have the same number, so that a copy is known as one until it changes.
std::uint64_t next_version() {
  static std::uint64_t version = 0;
  return ++version;
}

bool is_file_name(std::string_view path) {
  return path.size() > 1 && path[0] == '/' && path[1] != '/' && !path.starts_with("/memfd:") &&
         !path.starts_with("/dev/zero") && !path.starts_with("/SYSV") && !path.starts_with("/anon_hugepage");
}

void open_module(Module& module, pid_t pid) {
  // The process may live in another root or have an older file than the one that has the name now.
  for (const std::string& path : {module.path, fmt::format("/proc/{}/root{}", pid, module.path)}) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) continue;
    module.open_path = path;
    module.elf = read_segments(descriptor, module);
    ::close(descriptor);
    return;
  }
}

/// Run address minus ELF address of the bytes mapped from `offset` on; nothing when no segment holds them.
std::optional<std::uint64_t> bias_of(const Module& module, std::uint64_t begin, std::uint64_t offset) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const bool executable : {true, false}) {
    for (const Module::Segment& s : module.segments) {
      if (s.executable != executable) continue;
      const std::uint64_t first = s.offset / page * page;
      if (offset < first || offset >= s.offset + s.file_bytes) continue;
      return begin - (s.address - s.offset + offset);
    }
  }
  return std::nullopt;
}

}  // namespace

Modules::Modules() {
  all_.push_back(Module{.kind = Module::Kind::unknown, .path = "[unknown]", .name = "[unknown]"});
  all_.push_back(Module{.kind = Module::Kind::kernel, .path = "[kernel]", .name = "[kernel]"});
}

std::uint32_t Modules::find_or_add(std::string_view path, pid_t pid) {
  Module module;
  if (path == "[vdso]") {
    module.kind = Module::Kind::vdso;
  } else if (path == "[vsyscall]" || !is_file_name(path)) {
    module.kind = Module::Kind::jit;
    module.pid = pid;
  }
  const bool jit = module.kind == Module::Kind::jit;
  module.path = jit ? "[jit]" : std::string(path);
  const std::string key = jit ? fmt::format("[jit {}]", pid) : module.path;
  const auto [entry, is_new] = by_key_.try_emplace(key, static_cast<std::uint32_t>(all_.size()));
  if (!is_new) return entry->second;
  module.name = last_part(module.path);
  if (module.kind == Module::Kind::file) open_module(module, pid);
  if (module.kind == Module::Kind::vdso && vdso_descriptor() >= 0) {
    module.elf = read_segments(vdso_descriptor(), module);
  }
  all_.push_back(std::move(module));
  return entry->second;
}

void AddressSpace::add(std::uint64_t begin, std::uint64_t bytes, std::uint64_t offset, std::uint32_t number,
                       const Module& module) {
  Mapping mapping{.begin = begin, .end = begin + bytes, .offset = offset, .module = number};
  if (module.elf) {
    if (const auto bias = bias_of(module, begin, module.kind == Module::Kind::vdso ? 0 : offset)) {
      mapping.bias = *bias;
      mapping.placed = true;
    }
  }
  // What lay there before is gone: the kernel tells of new mappings only.
  auto next = by_begin_.lower_bound(begin);
  if (next != by_begin_.begin() && std::prev(next)->second.end > begin) --next;
  while (next != by_begin_.end() && next->second.begin < mapping.end) {
    const Mapping& old = next->second;
    if (old.begin == mapping.begin && old.end == mapping.end && old.module == number &&
        old.bias == mapping.bias) {
      return;
    }
    Mapping rest = old;
    rest.begin = mapping.end;
    const bool has_head = old.begin < begin;
    const bool has_rest = old.end > mapping.end;
    ++replaced_;
    if (has_head) next->second.end = begin;
    next = has_head ? std::next(next) : by_begin_.erase(next);
    if (has_rest) next = by_begin_.emplace(rest.begin, rest).first;
    if (has_rest) break;
  }
  by_begin_[begin] = mapping;
  version_ = next_version();
}

void AddressSpace::clear() {
  by_begin_.clear();
  version_ = next_version();
  ++replaced_;
}

const AddressSpace::Mapping* AddressSpace::find(std::uint64_t address) const {
  auto next = by_begin_.upper_bound(address);
  if (next == by_begin_.begin()) return nullptr;
  const Mapping& mapping = std::prev(next)->second;
  return address < mapping.end ? &mapping : nullptr;
}

Location AddressSpace::locate(std::uint64_t address) const {
  const Mapping* mapping = find(address);
  if (!mapping) return {Modules::kUnknown, address};
  return {mapping->module, mapping->placed ? address - mapping->bias : address};
}

void read_maps(pid_t pid, Modules& modules, AddressSpace& space) {
  const auto text = read_file(fmt::format("/proc/{}/maps", pid));
  if (!text.ok()) return;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    unsigned long begin = 0, end = 0, offset = 0;
    char rights[8] = "";
    int path_at = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %7s %lx %*s %*s %n", &begin, &end, rights, &offset, &path_at) < 4)
      continue;
    if (rights[2] != 'x') continue;
    const std::string path = path_at > 0 ? line.substr(static_cast<std::size_t>(path_at)) : "";
    const std::uint32_t number = modules.find_or_add(path, pid);
    space.add(begin, end - begin, offset, number, modules[number]);
  }
}

int vdso_descriptor() {
  static const int descriptor = [] {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel gives the address as a number
    const auto* image = reinterpret_cast<const char*>(::getauxval(AT_SYSINFO_EHDR));
    if (!image) return -1;
    Elf64_Ehdr header;
    std::memcpy(&header, image, sizeof(header));
    // The section headers come last in the image.
    const std::size_t bytes = header.e_shoff + static_cast<std::size_t>(header.e_shentsize) * header.e_shnum;
    const int file = ::memfd_create("vdso", MFD_CLOEXEC);
    if (file >= 0 && ::write(file, image, bytes) != static_cast<ssize_t>(bytes)) return -1;
    return file;
  }();
  return descriptor;
}

}  // namespace fulcrum::record
