// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// expression: a few vectors go through all steps of the tape before the next ones, so that only leaves are read from
// memory and only the result is written to it. Loads of a leaf then come at a steady pace, which is what lets the
// processor fetch ahead while it computes; a tile per step in the cache was slower for that reason.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/expression.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>

#include "backends/simd/elementwise.h"
#include "backends/simd/streaming-inl.h"
#include "backends/simd/tape-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

// Processors fetch ahead within a page, not beyond its end, and not for several leaves at their best: what lies so many
// bytes ahead is asked for, unless the whole call fits near the core.
constexpr std::size_t kAheadOfOneLeaf = 2048, kAhead = 4096;
constexpr std::int64_t kNearBytes = 1 << 20;

/// A call on elements that are counted from the first leaf's first.
struct Interpreter {
  ops::Tape tape;
  TapeOperands operands;
  float* result;
  std::size_t ahead = 0;  // 0: nothing is fetched
  HWY_ALIGN float temporaries[ops::kTapeTemporaries][kGroup];

  Interpreter(const fulcrum_args& args, std::int64_t begin)
      : result(args.out<float>(ops::kTapeResult) + begin) {
    ops::bind_tape(*ops::tape_of(args), args, tape);
    for (int leaf = 0; leaf < tape.leaves; ++leaf) {
      operands.from[leaf] = args.in<float>(leaf) + begin;
      operands.moving[leaf] = ~std::size_t{0};
    }
    const auto floats = static_cast<std::int64_t>(sizeof(float));
    if (args.dim[0] * floats * (tape.leaves + 1) > kNearBytes)
      ahead = tape.leaves == 1 ? kAheadOfOneLeaf : kAhead;
    for (int t = 0; t < tape.temporaries; ++t) {
      operands.from[ops::kTapeLeaves + t] = temporaries[t];
      operands.moving[ops::kTapeLeaves + t] = 0;
    }
  }

  HWY_INLINE void fetch(std::size_t i) const {
    if (ahead == 0) return;
    for (int leaf = 0; leaf < tape.leaves; ++leaf) {
      const auto at = reinterpret_cast<std::uintptr_t>(operands.from[leaf] + i) + ahead;
      for (std::size_t line = 0; line < kGroup * sizeof(float); line += 64)
        hwy::Prefetch(reinterpret_cast<const float*>(at + line));
    }
  }

  /// Fewer than a group: through copies of the leaves, by the same arithmetic.
  void run_some(std::size_t i, std::size_t n) {
    HWY_ALIGN float copies[ops::kTapeLeaves][kGroup] = {};
    HWY_ALIGN float results[kGroup];
    TapeOperands all = operands;
    for (int leaf = 0; leaf < tape.leaves; ++leaf) {
      std::copy_n(operands.from[leaf] + i, n, copies[leaf]);
      all.from[leaf] = copies[leaf];
    }
    store_group(run_tape(tape, all, 0), results);
    std::copy_n(results, n, result + i);
  }

  void run(std::size_t n) {
    std::size_t i = 0;
    for (; i + kGroup <= n; i += kGroup) {
      fetch(i);
      store_group(run_tape(tape, operands, i), result + i);
    }
    if (i < n) run_some(i, n - i);
  }

  /// Streaming stores are aligned: elements before the first boundary go the plain way.
  void stream(std::size_t n) {
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(result) / sizeof(float) % kLanes;
    std::size_t i = std::min(beyond == 0 ? 0 : kLanes - beyond, n);
    if (i > 0) run_some(0, i);
    // At several places at once, as long as prefetchers can follow all leaves at all of them.
    const bool at_places = tape.leaves <= 3;
    for (std::size_t length = place_length(n - i); at_places && length > 0; length = place_length(n - i)) {
      for (const std::size_t end = i + length; i < end; i += kGroup) {
        for (std::size_t at = i; at < i + kPlaces * length; at += length) {
          fetch(at);
          stream_group(run_tape(tape, operands, at), result + at);
        }
      }
      i += (kPlaces - 1) * length;
    }
    for (; i + kGroup <= n; i += kGroup) {
      fetch(i);
      stream_group(run_tape(tape, operands, i), result + i);
    }
    if (i < n) run_some(i, n - i);
    hwy::FlushStream();
  }
};

void cover_expression(const fulcrum_args& args, std::int64_t begin, std::int64_t end, std::int64_t count,
                      bool stream) {
  Interpreter interpreter(args, begin);
  const auto n = static_cast<std::size_t>(end - begin);
  for (std::int64_t call = 0; call < count; ++call) {
    stream ? interpreter.stream(n) : interpreter.run(n);
    end_of_call();
  }
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(cover_expression);

void dispatch(const fulcrum_args& a, std::int64_t begin, std::int64_t end, std::int64_t count, bool stream) {
  (HWY_DYNAMIC_DISPATCH(cover_expression))(a, begin, end, count, stream);
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> expression() { return element_kernels<dispatch, ops::kElementPiece>(1); }
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
