// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What lies where in the processes that are recorded: binaries (one entry a file, however many processes map it) and
// the executable mappings of each process.
#pragma once

#include <fulcrum/core.h>
#include <sys/types.h>

#include <map>
#include <unordered_map>

namespace fulcrum::record {

struct Module {
  enum class Kind : std::uint8_t {
    file,
    vdso,
    jit,  // code without a file, of one process
    kernel,
    unknown,  // an address in no mapping that we know
  };
  Kind kind = Kind::file;
  std::string path;       // as the process sees it; "[vdso]", "[kernel]", "[jit]", "[unknown]"
  std::string name;       // the last part of it
  std::string open_path;  // where we can read it; empty: nowhere
  pid_t pid = 0;          // jit: whose
  struct Segment {
    std::uint64_t offset, address, file_bytes;
    bool executable;
  };
  std::vector<Segment> segments;  // PT_LOAD
  std::uint64_t entry = 0;        // ELF address of the entry point
  bool elf = false;
};

/// Where an instruction is, independent of where its module was loaded.
struct Location {
  std::uint32_t module = 0;
  std::uint64_t address = 0;  // ELF address; jit, kernel and unknown: as run
  bool operator==(const Location&) const = default;
};

class Modules {
 public:
  Modules();
  /// The module of a mapping's file name in process `pid`.
  std::uint32_t find_or_add(std::string_view path, pid_t pid);
  const Module& operator[](std::uint32_t number) const { return all_[number]; }
  std::size_t size() const { return all_.size(); }

  static constexpr std::uint32_t kUnknown = 0, kKernel = 1;

 private:
  std::vector<Module> all_;
  std::unordered_map<std::string, std::uint32_t> by_key_;
};

/// The executable mappings of one process.
class AddressSpace {
 public:
  struct Mapping {
    std::uint64_t begin = 0, end = 0, offset = 0;
    std::uint32_t module = 0;
    std::uint64_t bias = 0;  // run address minus ELF address
    bool placed = false;     // the bias is known
  };
  void add(std::uint64_t begin, std::uint64_t bytes, std::uint64_t offset, std::uint32_t module,
           const Module&);
  void clear();
  const Mapping* find(std::uint64_t address) const;
  Location locate(std::uint64_t address) const;
  const std::map<std::uint64_t, Mapping>& mappings() const { return by_begin_; }
  /// New with each change, the same in a copy; `replaced` counts the changes that took something away.
  std::uint64_t version() const { return version_; }
  std::uint64_t replaced() const { return replaced_; }

 private:
  std::map<std::uint64_t, Mapping> by_begin_;
  std::uint64_t version_ = 0, replaced_ = 0;
};

/// The executable mappings of a process that runs already.
void read_maps(pid_t pid, Modules&, AddressSpace&);

/// A copy of this kernel's vDSO as a file of its own, for readers that want one; -1 when there is none.
int vdso_descriptor();

}  // namespace fulcrum::record
