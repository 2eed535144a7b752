// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What is running: the command, and the program and its own libraries with the build-id that the linker gave them and
// when they were written. A trace of a stale build is recognised by these.
#include <array>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include <elf.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/inject/session.h"

namespace fulcrum::trace::inject {
namespace {

bool is_system(std::string_view path) {
  for (const std::string_view folder :
       {"/usr/", "/lib/", "/lib64/", "/lib32/", "/bin/", "/sbin/", "/nix/store/"})
    if (path.substr(0, folder.size()) == folder) return true;
  for (const std::string_view part : {"/site-packages/", "/dist-packages/", "libfulcrum_inject.so", "/cuda-",
                                      "/cuda/", "libfulcrum_preload.so", "/libcuda.so"})
    if (path.find(part) != path.npos) return true;
  return false;
}

std::string build_id(const dl_phdr_info& module) {
  for (int i = 0; i < module.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = module.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(module.dlpi_addr + segment.p_vaddr);
    const char* const end = at + segment.p_memsz;
    while (std::size_t(end - at) > sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const std::size_t name_bytes = (note.n_namesz + 3u) & ~3u, value_bytes = (note.n_descsz + 3u) & ~3u;
      if (std::size_t(end - at) < sizeof note + name_bytes + value_bytes) break;
      const char* name = at + sizeof note;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
        std::string text;
        for (std::size_t b = 0; b < note.n_descsz; ++b) {
          char digits[3];
          std::snprintf(digits, sizeof digits, "%02x",
                        unsigned(static_cast<unsigned char>(name[name_bytes + b])));
          text += digits;
        }
        return text;
      }
      at += sizeof note + name_bytes + value_bytes;
    }
  }
  return {};
}

struct Visit {
  Writer& writer;
  std::set<std::string>& known;
  bool is_first = true;  // the program itself comes first
};

int visit_module(dl_phdr_info* module, std::size_t, void* data) noexcept {
  auto& visit = *static_cast<Visit*>(data);
  const bool is_program = visit.is_first;
  visit.is_first = false;
  try {
    std::string path = module->dlpi_name != nullptr ? module->dlpi_name : "";
    if (is_program) {
      std::array<char, 4096> buffer{};
      const ssize_t length = readlink("/proc/self/exe", buffer.data(), buffer.size() - 1);
      path.assign(buffer.data(), length > 0 ? std::size_t(length) : 0);
    }
    if (path.empty() || path[0] != '/' || (!is_program && is_system(path)) ||
        !visit.known.insert(path).second)
      return 0;
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) return 0;
    file::Binary out{};
    out.path = visit.writer.text(path);
    out.build_id = visit.writer.text(build_id(*module));
    out.modified_ns = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    visit.writer.append(file::Kind::binary, out);
  } catch (...) {
  }
  return 0;
}

}  // namespace

void write_binaries(Writer& writer) noexcept {
  static std::set<std::string>* const known = new std::set<std::string>;
  Visit visit{writer, *known};
  dl_iterate_phdr(visit_module, &visit);
}

void write_command(Writer& writer) noexcept {
  try {
    std::string command;
    if (std::FILE* file = std::fopen("/proc/self/cmdline", "re")) {
      std::array<char, 4096> buffer{};
      const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), file);
      std::fclose(file);
      command.assign(buffer.data(), count);
    }
    while (!command.empty() && command.back() == '\0') command.pop_back();
    for (char& c : command)
      if (c == '\0') c = ' ';
    writer.property("command", command);
  } catch (...) {
  }
}

}  // namespace fulcrum::trace::inject
