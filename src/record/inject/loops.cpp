// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Stands before what GCC calls to begin a parallel region of OpenMP, and notes which code it runs, how often, how long,
// and what it was given: how many iterations a loop has is in there, and nobody else can tell.
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "record/inject/shared.h"

namespace fulcrum::record::inject {
namespace {

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

LoopEntry* entry_of(uint64_t function) {
  const auto pid = static_cast<uint64_t>(getpid());
  const uint64_t key = function ^ pid << 48;
  for (uint64_t tries = 0, at = (key >> 4) * 31; tries < 32; ++tries, ++at) {
    LoopEntry& entry = memory->loops[at % kLoopEntries];
    uint64_t free_entry = 0;
    if (__atomic_compare_exchange_n(&entry.key, &free_entry, key, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE) ||
        free_entry == key) {
      entry.function = function;
      entry.pid = static_cast<int32_t>(pid);
      return &entry;
    }
  }
  return nullptr;
}

/// What the region was given lies in its caller's frame. The kernel reads it: a struct that ends where its page does is
/// no reason to fault.
void copy_words(LoopEntry& entry, const void* data) {
  memset(entry.words, 0, sizeof(entry.words));
  entry.word_count = 0;
  for (uint64_t bytes = sizeof(entry.words); data && bytes >= 64; bytes /= 2) {
    const iovec to{entry.words, bytes}, from{const_cast<void*>(data), bytes};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(bytes)) continue;
    entry.word_count = static_cast<uint32_t>(bytes / sizeof(uint64_t));
    return;
  }
}

/// The longest entry speaks for all of them: sizes may change from one to the next.
void note(uint64_t function, const void* data, uint64_t iterations, uint64_t nanoseconds) {
  LoopEntry* entry = memory ? entry_of(function) : nullptr;
  if (!entry) return;
  __atomic_add_fetch(&entry->entries, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&entry->nanoseconds, nanoseconds, __ATOMIC_RELAXED);
  if (nanoseconds <= __atomic_load_n(&entry->longest_ns, __ATOMIC_RELAXED)) return;
  if (__atomic_exchange_n(&entry->busy, 1, __ATOMIC_ACQUIRE) != 0) return;
  __atomic_store_n(&entry->longest_ns, nanoseconds, __ATOMIC_RELAXED);
  entry->iterations = iterations;
  copy_words(*entry, data);
  __atomic_store_n(&entry->busy, 0, __ATOMIC_RELEASE);
}

/// A loop whose bounds every thread hands over from inside its region.
void note_inside(void* caller, uint64_t iterations) {
  LoopEntry* entry = memory ? entry_of(reinterpret_cast<uint64_t>(caller)) : nullptr;
  if (!entry) return;
  entry->inside = 1;
  __atomic_add_fetch(&entry->entries, 1, __ATOMIC_RELAXED);
  if (iterations > __atomic_load_n(&entry->iterations, __ATOMIC_RELAXED))
    __atomic_store_n(&entry->iterations, iterations, __ATOMIC_RELAXED);
}

/// The runtime that the caller was linked with: one process may hold several, and a region begun in one of them cannot
/// end in another.
void* search(const char* name, void* ours, void* caller) {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(caller, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) && map && map->l_name &&
      *map->l_name) {
    if (void* library = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD)) {
      void* found = dlsym(library, name);
      dlclose(library);
      if (found && found != ours) return found;
    }
  }
  return real_function(name, ours);
}

struct Known {
  void *caller, *function;
  uint32_t ready;
};
constexpr uint32_t kKnown = 64;

/// As search, remembered by the place of the call.
void* real_for(Known (&known)[kKnown], const char* name, void* ours, void* caller) {
  Known& slot = known[(reinterpret_cast<uint64_t>(caller) >> 2) % kKnown];
  if (__atomic_load_n(&slot.ready, __ATOMIC_ACQUIRE) == 2 && slot.caller == caller) return slot.function;
  void* found = search(name, ours, caller);
  uint32_t free_slot = 0;
  if (__atomic_compare_exchange_n(&slot.ready, &free_slot, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    slot.caller = caller;
    slot.function = found;
    __atomic_store_n(&slot.ready, 2, __ATOMIC_RELEASE);
  }
  return found;
}

uint64_t turns(long start, long end, long step) {
  if (step == 0 || (step > 0 ? end <= start : end >= start)) return 0;
  const uint64_t distance = step > 0 ? static_cast<uint64_t>(end) - static_cast<uint64_t>(start)
                                     : static_cast<uint64_t>(start) - static_cast<uint64_t>(end);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  return (distance + stride - 1) / stride;
}

using Region = void (*)(void*);

}  // namespace
}  // namespace fulcrum::record::inject

using namespace fulcrum::record::inject;

#define FULCRUM_EXPORT extern "C" __attribute__((visibility("default")))
// `iterations`: 0 where only the code of the region knows.
#define FULCRUM_LOOP(name, iterations, ...)                                                 \
  static Known known[kKnown];                                                               \
  const auto call = reinterpret_cast<decltype(&name)>(                                      \
      real_for(known, #name, reinterpret_cast<void*>(&name), __builtin_return_address(0))); \
  const uint64_t begin = now_ns();                                                          \
  call(function, data, __VA_ARGS__);                                                        \
  note(reinterpret_cast<uint64_t>(function), data, iterations, now_ns() - begin)

FULCRUM_EXPORT void GOMP_parallel(Region function, void* data, unsigned threads, unsigned flags) {
  FULCRUM_LOOP(GOMP_parallel, 0, threads, flags);
}

#define FULCRUM_CHUNKED(name)                                                                              \
  FULCRUM_EXPORT void name(Region function, void* data, unsigned threads, long start, long end, long step, \
                           long chunk, unsigned flags) {                                                   \
    FULCRUM_LOOP(name, turns(start, end, step), threads, start, end, step, chunk, flags);                  \
  }
#define FULCRUM_UNCHUNKED(name)                                                                            \
  FULCRUM_EXPORT void name(Region function, void* data, unsigned threads, long start, long end, long step, \
                           unsigned flags) {                                                               \
    FULCRUM_LOOP(name, turns(start, end, step), threads, start, end, step, flags);                         \
  }
FULCRUM_CHUNKED(GOMP_parallel_loop_static)
FULCRUM_CHUNKED(GOMP_parallel_loop_dynamic)
FULCRUM_CHUNKED(GOMP_parallel_loop_guided)
FULCRUM_CHUNKED(GOMP_parallel_loop_nonmonotonic_dynamic)
FULCRUM_CHUNKED(GOMP_parallel_loop_nonmonotonic_guided)
FULCRUM_UNCHUNKED(GOMP_parallel_loop_runtime)
FULCRUM_UNCHUNKED(GOMP_parallel_loop_nonmonotonic_runtime)
FULCRUM_UNCHUNKED(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

// The same inside of a region that has begun already.
#define FULCRUM_INSIDE(name, ...)                                                                        \
  static Known known[kKnown];                                                                            \
  void* const caller = __builtin_return_address(0);                                                      \
  const auto call =                                                                                      \
      reinterpret_cast<decltype(&name)>(real_for(known, #name, reinterpret_cast<void*>(&name), caller)); \
  note_inside(caller, turns(start, end, step));                                                          \
  return call(start, end, step, __VA_ARGS__)
#define FULCRUM_CHUNKED_INSIDE(name)                                                               \
  FULCRUM_EXPORT bool name(long start, long end, long step, long chunk, long* first, long* last) { \
    FULCRUM_INSIDE(name, chunk, first, last);                                                      \
  }
#define FULCRUM_UNCHUNKED_INSIDE(name)                                                 \
  FULCRUM_EXPORT bool name(long start, long end, long step, long* first, long* last) { \
    FULCRUM_INSIDE(name, first, last);                                                 \
  }
FULCRUM_CHUNKED_INSIDE(GOMP_loop_dynamic_start)
FULCRUM_CHUNKED_INSIDE(GOMP_loop_guided_start)
FULCRUM_CHUNKED_INSIDE(GOMP_loop_nonmonotonic_dynamic_start)
FULCRUM_CHUNKED_INSIDE(GOMP_loop_nonmonotonic_guided_start)
FULCRUM_UNCHUNKED_INSIDE(GOMP_loop_runtime_start)
FULCRUM_UNCHUNKED_INSIDE(GOMP_loop_nonmonotonic_runtime_start)
FULCRUM_UNCHUNKED_INSIDE(GOMP_loop_maybe_nonmonotonic_runtime_start)
