// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Loads Capstone.
#include "record/disassemble.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>

namespace fulcrum::record {
namespace {

/// An instruction as version 4 and version 5 hand it out; they differ in how many bytes of code they copy.
template <std::size_t kBytes>
struct Decoded {
  unsigned int id;
  std::uint64_t address;
  std::uint16_t size;
  std::uint8_t bytes[kBytes];
  char mnemonic[32];
  char operands[160];
  void* detail;
};

struct Capstone {
  std::size_t handle = 0;
  std::size_t (*disasm)(std::size_t, const std::uint8_t*, std::size_t, std::uint64_t, std::size_t,
                        void**) = nullptr;
  void (*release)(void*, std::size_t) = nullptr;
  int major = 0;
  bool there = false;
  std::string text = "Capstone is not installed";
};

Capstone load_capstone() {
  Capstone c;
#if !defined(__x86_64__)
  c.text = "only x86-64 code is looked into";
  return c;
#endif
  void* library = nullptr;
  for (const char* name : {"libcapstone.so.4", "libcapstone.so.5"}) {
    if (!library) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (!library) return c;
  const auto version = reinterpret_cast<unsigned (*)(int*, int*)>(::dlsym(library, "cs_version"));
  const auto open = reinterpret_cast<int (*)(int, int, std::size_t*)>(::dlsym(library, "cs_open"));
  c.disasm = reinterpret_cast<decltype(c.disasm)>(::dlsym(library, "cs_disasm"));
  c.release = reinterpret_cast<decltype(c.release)>(::dlsym(library, "cs_free"));
  if (!version || !open || !c.disasm || !c.release) return c;
  int minor = 0;
  version(&c.major, &minor);
  constexpr int kX86 = 3, kMode64 = 8;
  c.there = (c.major == 4 || c.major == 5) && open(kX86, kMode64, &c.handle) == 0;
  c.text = fmt::format("Capstone {}.{}", c.major, minor);
  return c;
}

const Capstone& capstone() {
  static const Capstone instance = load_capstone();
  return instance;
}

template <std::size_t kBytes>
void copy(const void* from, std::size_t count, std::vector<Instruction>& to) {
  const auto* decoded = static_cast<const Decoded<kBytes>*>(from);
  for (std::size_t i = 0; i < count; ++i) {
    to.push_back({decoded[i].address, decoded[i].size, decoded[i].mnemonic, decoded[i].operands});
  }
}

}  // namespace

bool can_disassemble() { return capstone().there; }
const std::string& disassembler_text() { return capstone().text; }

std::vector<Instruction> disassemble(std::span<const std::byte> code, std::uint64_t address) {
  std::vector<Instruction> result;
  const Capstone& c = capstone();
  if (!c.there) return result;
  void* decoded = nullptr;
  const std::size_t count = c.disasm(c.handle, reinterpret_cast<const std::uint8_t*>(code.data()),
                                     code.size(), address, 0, &decoded);
  if (count == 0) return result;
  if (c.major == 4) copy<16>(decoded, count, result);
  if (c.major == 5) copy<24>(decoded, count, result);
  c.release(decoded, count);
  return result;
}

}  // namespace fulcrum::record
