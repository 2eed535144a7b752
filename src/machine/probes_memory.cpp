// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Bandwidth of every level. In a cache, a call sweeps its arrays many times, each thread its own slice. In DRAM, a
// call sweeps one segment once and a window is a few segments: whoever comes back to a segment finds it evicted.
#include <fulcrum/ops/probes.h>

#include <fmt/format.h>

#include <algorithm>

#include "machine/probe_call.h"
#include "machine/probes.h"
#include "machine/working_sets.h"

namespace fulcrum::machine {
namespace {

struct Mix {
  std::string_view name, op, variant;
  int arrays;
  bool in_small_caches;  // non-temporal stores mean nothing there
};
constexpr Mix kMixes[] = {{"read", "probe_read", "default", 1, true},
                          {"copy", "probe_copy", "default", 2, true},
                          {"triad", "probe_triad", "default", 3, true},
                          {"copy_nt", "probe_copy", "stream", 2, false},
                          {"triad_nt", "probe_triad", "stream", 3, false}};

// How far an array is pushed out of line with the one before. Loads that look like a recent store in their last 12
// address bits wait for it, on some CPUs more than on others: windows take turns and the best layout shows.
constexpr std::int64_t kStaggerBytes[] = {0, 1088, 2176, 3264};
constexpr std::int64_t kPieceBytes = ops::kProbePiece * 4;
constexpr std::int64_t kStaggerRoom = 2 * kPieceBytes;         // behind three arrays that are staggered
constexpr std::int64_t kSegmentBytes = std::int64_t{8} << 20;  // of one array, a thread

/// Arrays of `n` elements at these addresses; the last is written, a read has its sum at `sum`.
Result<Args> bind_arrays(const ProbeCall& call, const Mix& mix, std::int64_t n,
                         std::span<std::byte* const> arrays, std::byte* sum) {
  FULCRUM_TRY(Args args, call.arguments(n));
  for (int i = 0; i < mix.arrays; ++i) args.ptr[i] = arrays[static_cast<std::size_t>(i)];
  if (mix.arrays == 1) args.ptr[1] = sum;
  return args;
}

void fill(std::byte* data, std::int64_t bytes) {
  auto* values = reinterpret_cast<float*>(data);
  for (std::int64_t i = 0; i < bytes / 4; ++i) values[i] = static_cast<float>(i & 1023) * 0x1p-10F;
}

/// What all bandwidth probes have in common. Their unit of work is one pass over `n` elements of each array.
Probe make_probe(const ProbeTarget& target, std::size_t level, const Mix& mix, int threads, std::int64_t n) {
  return Probe{
      .what = fmt::format("{} {}, {}", target.cpu.levels[level].name, mix.name, count_of_threads(threads)),
      .threads = threads,
      .work = 4.0 * static_cast<double>(n) * mix.arrays,
      .store =
          [&cpu = target.cpu, level, name = std::string(mix.name), threads](const Quantity& rate) {
            auto& rates = threads > 1 ? cpu.levels[level].all_threads : cpu.levels[level].one_thread;
            rates[name] = rate;
          },
  };
}

Status add_cache_mix(const ProbeTarget& target, std::size_t level, const Mix& mix, int threads,
                     std::int64_t bytes, std::byte* data, std::byte* sum, ProbeSet& set) {
  // The longest vectors are not always the fastest way to a cache: the two best instruction sets take turns.
  std::vector<std::string> isas = backends::isas();
  isas.resize(std::min<std::size_t>(isas.size(), 2));
  FULCRUM_TRY(const auto call, ProbeCall::make(mix.op, "simd", mix.variant, threads, isas));
  const std::int64_t n =
      std::max<std::int64_t>(1, bytes / mix.arrays / kPieceBytes) * ops::kProbePiece * threads;
  std::vector<Args> layouts;
  for (const std::int64_t stagger : kStaggerBytes) {
    std::byte* arrays[3];
    for (int i = 0; i < mix.arrays; ++i) arrays[i] = data + i * (n * 4 + stagger);
    FULCRUM_TRY(const Args args, bind_arrays(*call, mix, n, arrays, sum));
    layouts.push_back(args);
    if (mix.arrays == 1) break;
  }
  Probe probe = make_probe(target, level, mix, threads, n);
  probe.isas = std::move(isas);
  probe.usual = usual_of_level(target.cpu.levels, level, threads);
  probe.window_seconds = short_window_seconds(threads);
  probe.run = [call, layouts = std::move(layouts), turn = std::size_t{0}](std::int64_t passes) mutable {
    Args& args = layouts[turn++ % layouts.size()];
    args.scalar[0].i = passes;
    call->run(args);
  };
  set.probes.push_back(std::move(probe));
  return {};
}

/// Memory of a level for so many threads: three arrays, each followed by the widest stagger, and a place for sums.
Status add_cache_level(const ProbeTarget& target, std::size_t level, int threads, ProbeSet& set) {
  const std::vector<MemoryLevel>& levels = target.cpu.levels;
  const std::int64_t bytes = cache_set_bytes(levels, level, threads);
  if (bytes == 0) return {};
  const std::int64_t set_bytes = std::max(bytes, 3 * kPieceBytes) * threads + 4 * kPieceBytes;
  FULCRUM_TRY(Arena made, Arena::make(set_bytes + kPieceBytes));
  const auto arena = std::make_shared<Arena>(std::move(made));
  set.memory.push_back(arena);
  fill(arena->data(), set_bytes);
  const bool last = is_last_cache(levels, level);
  for (const Mix& mix : kMixes) {
    if (!mix.in_small_caches && !last) continue;
    FULCRUM_CHECK(
        add_cache_mix(target, level, mix, threads, bytes, arena->data(), arena->data() + set_bytes, set));
  }
  return {};
}

/// Three arrays in one arena, cut into segments, each first touched by the threads that will sweep it.
struct DramArrays {
  std::shared_ptr<Arena> arena;
  std::int64_t segment_elements = 0;
  std::int64_t segments = 0;  // of one array
  std::int64_t segment_bytes() const { return segment_elements * 4; }
  std::byte* segment(std::int64_t array, std::int64_t index) const {
    return arena->data() + (array * segments + index) * segment_bytes();
  }
  std::byte* sum() const { return segment(3, 0) + kStaggerRoom; }
};

Result<DramArrays> make_dram_arrays(std::int64_t array_bytes, int threads) {
  DramArrays arrays;
  const std::int64_t slice = std::clamp(array_bytes / threads, kPieceBytes, kSegmentBytes) / kPieceBytes;
  arrays.segment_elements = slice * ops::kProbePiece * threads;
  arrays.segments = std::max<std::int64_t>(1, array_bytes / arrays.segment_bytes());
  FULCRUM_TRY(Arena arena,
              Arena::make(3 * arrays.segments * arrays.segment_bytes() + kStaggerRoom + kPieceBytes));
  arrays.arena = std::make_shared<Arena>(std::move(arena));
  for (std::int64_t i = 0; i < 3 * arrays.segments; ++i) {
    std::byte* segment = arrays.segment(0, i);
    const auto touch = [](void* data, std::int64_t begin, std::int64_t end) {
      fill(static_cast<std::byte*>(data) + begin * kPieceBytes, (end - begin) * kPieceBytes);
    };
    backends::parallel(slice * threads, threads, touch, segment);
  }
  return arrays;
}

Status add_dram_mix(const ProbeTarget& target, const Mix& mix, int threads, const DramArrays& arrays,
                    ProbeSet& set) {
  FULCRUM_TRY(const auto call, ProbeCall::make(mix.op, "simd", mix.variant, threads));
  std::vector<Args> calls;
  const auto add = [&](std::byte* first, std::byte* second, std::byte* third) -> Status {
    std::byte* segments[3] = {first, second, third};
    FULCRUM_TRY(const Args args, bind_arrays(*call, mix, arrays.segment_elements, segments, arrays.sum()));
    calls.push_back(args);
    return {};
  };
  const std::int64_t n = arrays.segments;
  if (mix.arrays == 1) {  // the two arrays that nobody writes, as one
    for (std::int64_t i = 0; i < 2 * n; ++i) FULCRUM_CHECK(add(arrays.segment(0, i), nullptr, nullptr));
  }
  // Which banks of memory are open at a time is luck of the pages: every sweep puts other segments together, further
  // out of line, so that good and bad pairs come up in every run. The last array is the one that is written.
  for (std::int64_t sweep = 0; mix.arrays > 1 && sweep < std::ssize(kStaggerBytes); ++sweep) {
    const std::int64_t stagger = kStaggerBytes[sweep];
    for (std::int64_t i = 0; i < n; ++i) {
      std::byte* second = arrays.segment(1, (i + sweep) % n) + stagger;
      std::byte* third = arrays.segment(2, (i + 2 * sweep) % n) + 2 * stagger;
      FULCRUM_CHECK(add(arrays.segment(0, i), mix.arrays == 2 ? third : second, third));
    }
  }
  Probe probe = make_probe(target, target.cpu.levels.size() - 1, mix, threads, arrays.segment_elements);
  probe.run = [call, calls = std::move(calls), next = std::size_t{0}](std::int64_t count) mutable {
    for (std::int64_t i = 0; i < count; ++i) call->run(calls[next++ % calls.size()]);
  };
  set.probes.push_back(std::move(probe));
  return {};
}

}  // namespace

Status add_cache_probes(const ProbeTarget& target, ProbeSet& set) {
  for (std::size_t level = 0; level + 1 < target.cpu.levels.size(); ++level) {
    FULCRUM_CHECK(add_cache_level(target, level, 1, set));
    if (target.threads > 1) FULCRUM_CHECK(add_cache_level(target, level, target.threads, set));
  }
  return {};
}

Status add_dram_probes(const ProbeTarget& target, ProbeSet& set) {
  const DramSets sizes = dram_sets(target.cpu.levels, target.threads, target.available_bytes);
  FULCRUM_TRY(const DramArrays all, make_dram_arrays(sizes.array_bytes, target.threads));
  set.memory.push_back(all.arena);
  DramArrays one = all;
  if (target.threads > 1) {
    if (target.numa_nodes > 1) {  // one thread wants its memory on its own node
      FULCRUM_TRY(one, make_dram_arrays(sizes.array_bytes, 1));
      set.memory.push_back(one.arena);
    }
    for (const Mix& mix : kMixes) FULCRUM_CHECK(add_dram_mix(target, mix, target.threads, all, set));
  }
  for (const Mix& mix : kMixes) FULCRUM_CHECK(add_dram_mix(target, mix, 1, one, set));
  return {};
}

}  // namespace fulcrum::machine
