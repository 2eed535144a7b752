// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the recorder and the library it preloads into a program share: sizes of recognised calls, and samples where
// timers take the place of perf events. Plain data in a memory file whose path is in FULCRUM_PRELOAD.
#pragma once

#include <stdint.h>

namespace fulcrum::record::inject {

constexpr uint64_t kMagic = 0x66756c6372756d31;
constexpr uint32_t kCallEntries = 1024, kSampleSlots = 128, kStackBytes = 16384;
constexpr uint32_t kMostDims = 4, kRegisterWords = 33, kLoopEntries = 256, kLoopWords = 32;

/// Recognised functions; the order is that of kCallNames in calls.cpp of the recorder.
enum class Function : uint32_t { none, sgemm, dgemm, sgemv, dgemv, sdot, ddot, saxpy, daxpy };

/// One function with one set of sizes: an entry of an open hash table, taken by compare-and-swap and never given back.
struct CallEntry {
  uint32_t function;  // Function; 0: free
  uint32_t ready;     // the sizes are written
  int64_t dims[kMostDims];
  uint64_t calls, nanoseconds;
};

/// One parallel region of OpenMP in one process, by the function that runs it; taken and kept like a CallEntry.
struct LoopEntry {
  uint64_t key;       // 0: free
  uint64_t function;  // its address; inside: one in it
  int32_t pid;
  uint32_t inside;  // a loop that its threads began, and no region
  uint32_t busy;    // being written
  uint64_t entries, nanoseconds, longest_ns;
  uint64_t iterations;  // of the longest entry; 0: the code has to say
  uint32_t word_count;
  uint64_t words[kLoopWords];  // what the longest entry was given
};

struct SampleSlot {
  uint32_t state;  // 0 free, 1 being written, 2 complete
  int32_t pid, tid;
  uint32_t stack_bytes;
  uint64_t time_ns;                    // CLOCK_MONOTONIC
  uint64_t weight_ns;                  // CPU time since the last one
  uint64_t registers[kRegisterWords];  // by DWARF number
  alignas(16) unsigned char stack[kStackBytes];
};

struct Memory {
  uint64_t magic;
  uint64_t timer_period_ns;  // 0: no timers
  uint64_t lost_samples, lost_calls, threads;
  uint64_t next_slot;
  CallEntry calls[kCallEntries];
  LoopEntry loops[kLoopEntries];
  SampleSlot samples[kSampleSlots];
};

/// The memory, mapped at load; null when nobody records.
extern Memory* memory;
void start_timers();
/// What would have been called without us; the program ends where there is nothing.
void* real_function(const char* name, void* ours);

}  // namespace fulcrum::record::inject
