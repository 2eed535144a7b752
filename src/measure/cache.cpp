// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See cache.h. The proof is by bandwidth: where L3 and DRAM have nearly the same latency (122 and 140 ns on a
// shared VM), they still differ by half in rate.
#include "measure/cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace fulcrum::measure {
namespace {

constexpr double kControl = 1.25;  // the second read must be this much faster, else the first says nothing
constexpr int kMaxAttempts = 11;   // one may be disturbed, six seldom are
constexpr double kProofSeconds = 0.2;

#if defined(__x86_64__)

constexpr std::size_t kLine = 64;

bool has_clflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1u << 23)) != 0;
}

__attribute__((target("clflushopt"))) void flush_unordered(const std::byte* begin, const std::byte* end) {
  for (; begin < end; begin += kLine) _mm_clflushopt(const_cast<std::byte*>(begin));
}

void flush_range(const std::byte* begin, const std::byte* end) {
  static const bool unordered = has_clflushopt();
  if (unordered) {
    flush_unordered(begin, end);
  } else {
    for (; begin < end; begin += kLine) _mm_clflush(begin);
  }
}

void flush_done() { _mm_mfence(); }

#elif defined(__aarch64__)

constexpr std::size_t kLine = 64;

void flush_range(const std::byte* begin, const std::byte* end) {
  for (; begin < end; begin += kLine) asm volatile("dc civac, %0" : : "r"(begin) : "memory");
}

void flush_done() { asm volatile("dsb sy" : : : "memory"); }

#else

constexpr std::size_t kLine = 64;
constexpr std::size_t kEvictBytes = std::size_t{256}
                                    << 20;  // over twice the largest last-level cache we know

void flush_range(const std::byte*, const std::byte*) {}

// No instruction for it: writing more than every cache holds pushes the operands out.
void flush_done() {
  static const std::unique_ptr<std::byte[]> buffer(new std::byte[kEvictBytes]);
  static unsigned round = 0;
  ++round;
  for (std::size_t i = 0; i < kEvictBytes; i += kLine) buffer[i] = static_cast<std::byte>(round);
}

#endif

double read_rate(const MemoryLevel& level) {
  const auto read = level.one_thread.find("read");
  return read == level.one_thread.end() ? 0 : read->second.value;
}

// The rate between DRAM's and the last cache's, equally far from both in ratio: what is slower came from
// DRAM. 0: not known. DRAM's own rate is no good limit, because a few MB stream faster than the large array
// it was measured on (38 instead of 34 GB/s on a shared VM).
double dividing_rate(const Machine& machine) {
  const auto& levels = machine.cpu.levels;
  if (levels.size() < 2) return 0;
  return std::sqrt(read_rate(levels.back()) * read_rate(levels[levels.size() - 2]));
}

}  // namespace

void flush(const Operands& operands) {
  for (const auto& operand : operands) {
    const auto address = reinterpret_cast<std::uintptr_t>(operand.data());
    const std::byte* first_line = operand.data() - address % kLine;
    flush_range(first_line, operand.data() + operand.size());
  }
  flush_done();
}

// Wide loads and four sums in registers: a read that is itself slower than DRAM could not tell a cache from
// it.
std::uint64_t read_all(const Operands& operands) {
  using Words = std::uint64_t __attribute__((vector_size(16)));
  const auto load = [](const std::byte* at) {
    Words words;
    std::memcpy(&words, at, sizeof words);
    return words;
  };
  constexpr std::size_t kStep = 4 * sizeof(Words);
  Words a{}, b{}, c{}, d{};
  std::uint64_t rest = 0;
  for (const auto& operand : operands) {
    const std::byte* at = operand.data();
    std::size_t left = operand.size();
    for (; left >= kStep; left -= kStep, at += kStep) {
      a += load(at);
      b += load(at + 16);
      c += load(at + 32);
      d += load(at + 48);
    }
    for (; left > 0; --left, ++at) rest += static_cast<std::uint64_t>(*at);
  }
  const Words sum = (a + b) + (c + d);
  return rest + sum[0] + sum[1];
}

bool proves_cold(const Sentinel& sentinel, const Machine& machine) {
  const double limit = dividing_rate(machine);
  if (limit <= 0 || sentinel.bytes <= 0) return false;
  if (sentinel.bytes > limit * sentinel.first_seconds) return false;
  const bool holdable = !streams(static_cast<std::int64_t>(sentinel.bytes), 1, machine);
  return !holdable || sentinel.first_seconds >= kControl * sentinel.again_seconds;
}

bool proves_warm(const Sentinel& sentinel, const Machine& machine) {
  const double limit = dividing_rate(machine);
  if (limit <= 0 || sentinel.bytes <= 0) return false;
  if (sentinel.bytes > limit * sentinel.first_seconds) return true;
  const auto& latency = machine.cpu.levels.back().latency_seconds;
  return latency && sentinel.first_seconds < latency->value;
}

bool streams(std::int64_t working_set_bytes, int threads, const Machine& machine) {
  for (const MemoryLevel& level : machine.cpu.levels) {
    const int instances = std::max(1, threads / std::max(1, level.shared_by_threads));
    if (level.capacity_bytes > 0 && working_set_bytes <= level.capacity_bytes * instances) return false;
  }
  return true;
}

Result<bool> verify_cache(const Session& session, Cache cache, const Operands& operands,
                          const std::function<Status()>& call, double call_seconds, const Machine& machine) {
  Sentinel sentinel;
  for (const auto& operand : operands) sentinel.bytes += static_cast<double>(operand.size());
  if (kProofSeconds < call_seconds && session.left_seconds() < 2 * call_seconds) return false;
  const int attempts =
      std::clamp(static_cast<int>(kProofSeconds / std::max(call_seconds, 1e-9)), 1, kMaxAttempts);
  std::vector<double> first, again;
  volatile std::uint64_t sink = 0;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    FULCRUM_CHECK(call());
    if (cache == Cache::cold) flush(operands);
    const double begin = session.now();
    sink = sink + read_all(operands);
    const double middle = session.now();
    sink = sink + read_all(operands);
    first.push_back(middle - begin);
    again.push_back(session.now() - middle);
  }
  sentinel.first_seconds = stats::median(first);
  sentinel.again_seconds = stats::median(again);
  return cache == Cache::cold ? proves_cold(sentinel, machine) : proves_warm(sentinel, machine);
}

}  // namespace fulcrum::measure
