// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// From registers and a piece of stack to return addresses, by call frame information (CFI) at every step. Frame
// pointers are not followed: a leaf that never set one up hides its caller, which is often the function that matters.
#pragma once

#include <unordered_map>

#include "record/events.h"
#include "record/jit_map.h"
#include "record/libdw.h"
#include "record/modules.h"

namespace fulcrum::record {

struct UnwoundStack {
  struct Step {
    std::uint64_t address = 0;  // of the instruction; of the call, for callers
  };
  std::vector<Step> steps;      // leaf first
  bool complete = false;        // reached the start of the thread
  bool dump_too_small = false;  // more of the stack would have helped
  std::string why;              // when not complete
};

/// Unwinds the samples of one process.
class Unwinder {
 public:
  Unwinder(pid_t pid, const Modules& modules) : pid_(pid), modules_(modules), jit_(pid) {}
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;
  ~Unwinder();

  void unwind(const AddressSpace&, const SampleView&, UnwoundStack& out);
  JitMap& jit() { return jit_; }

 private:
  struct Callbacks;
  bool prepare(const AddressSpace&);
  void report(const AddressSpace::Mapping&);
  bool read(std::uint64_t address, std::uint64_t* result);
  bool has_cfi(std::uint64_t address);
  int take(DwflFrame*);
  bool save_callee_registers(DwflFrame*);
  bool walk();

  pid_t pid_;
  const Modules& modules_;
  JitMap jit_;
  Dwfl* dwfl_ = nullptr;
  bool attached_ = false;
  std::uint64_t version_ = ~std::uint64_t{0}, replaced_ = 0;
  std::unordered_map<std::uint64_t, bool> cfi_;                // by address: is there unwind information
  std::unordered_map<std::uint64_t, std::uint64_t> reported_;  // bias by module number

  // The sample at hand.
  const AddressSpace* space_ = nullptr;
  const SampleView* sample_ = nullptr;
  Registers registers_{};
  UnwoundStack* out_ = nullptr;
  bool read_beyond_ = false, read_elsewhere_ = false, stopped_at_trampoline_ = false, stopped_ = false;
};

}  // namespace fulcrum::record
