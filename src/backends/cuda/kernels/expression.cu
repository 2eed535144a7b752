// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// expression on the device: one launch that reads each leaf once and writes the result once, whatever the tape says.
// The steps of most expressions take less time than their bytes, so that what counts is that all leaves of a thread are
// on their way before the first step.
#include "backends/cuda/tape.cuh"

namespace fulcrum::backends::cuda::kernels {
namespace {

using namespace streaming;

DeviceTape device_tape(const fulcrum_args& a) {
  ops::Tape bound;
  ops::bind_tape(*ops::tape_of(a), a, bound);
  DeviceTape tape;
  translate(bound, tape);
  return tape;
}

/// Shared memory of a CTA. Tapes that would need more take fewer vectors a thread: all slots fit with one.
constexpr size_t kMostShared = 64 << 10, kDeclared = 48 << 10;
constexpr size_t slot_bytes(int items) { return sizeof(float4) * kMapThreads * static_cast<size_t>(items); }
static_assert(slot_bytes(1) * (ops::kTapeLeaves + ops::kTapeTemporaries) <= kMostShared);

template <bool kHeavy, class Pack, int kItems, int kCtasPerSm>
fulcrum_status launch_tape(const TapeCall& call, const Span& span, void* stream, int64_t count) {
  const auto kernel = interpret<kHeavy, Pack, kItems, kMapThreads, kCtasPerSm>;
  const size_t bytes = sizeof(Pack) * kItems * kMapThreads * static_cast<size_t>(call.tape.slots);
  if (bytes > kDeclared) FULCRUM_STATUS(allow_shared<kMostShared>(kernel));
  const int64_t tiles = divide_up(span.units, kMapThreads * kItems);
  const int64_t ctas = tiles + (span.odd > 0 ? 1 : 0);
  const Launch shape{ctas, kMapThreads, can_follow(nullptr) != 0, 1, bytes};
  const Signal signal = count == 1 ? take_signal() : Signal{};
  return launch(kernel, shape, stream, count, call, span, signal);
}

/// CTAs that an SM should have room for, by vectors a thread and by the kind of steps: as many as registers allow.
constexpr int room_for_tape(int items, bool heavy) {
  if (items == 1) return 8;
  if (items == 2) return heavy ? 5 : 6;
  return heavy ? 3 : 4;
}

template <int kItems>
fulcrum_status run_tape_of(const TapeCall& call, int64_t n, void* stream, int64_t count) {
  if constexpr (kItems > 1) {
    if (slot_bytes(kItems) * static_cast<size_t>(call.tape.slots) > kMostShared) {
      return run_tape_of<kItems / 2>(call, n, stream, count);
    }
  }
  constexpr int kLight = room_for_tape(kItems, false), kFull = room_for_tape(kItems, true);
  const int common = common_head(call.operands);
  const Span span = common < 0 ? Span{n, 0, 0} : span_of(n, common);
  const auto go = [&](auto launcher) { return launcher(call, span, stream, count); };
  if (common < 0) {
    return call.tape.heavy ? go(launch_tape<true, float, 4 * kItems, kFull>)
                           : go(launch_tape<false, float, 4 * kItems, kLight>);
  }
  return call.tape.heavy ? go(launch_tape<true, float4, kItems, kFull>)
                         : go(launch_tape<false, float4, kItems, kLight>);
}

/// Where there is much to compute for each byte, more elements should share what decoding a step costs; else more threads
/// have more loads on their way. The border lies between chains that were measured on both sides of it.
bool computes_much(const DeviceTape& tape) { return tape.instructions >= 8 * (tape.leaves + 1); }

/// kItems vectors a thread; 0: as many as suit the tape.
template <int kItems>
fulcrum_status run(const fulcrum_args* a, void* stream, int64_t count) {
  if (a->dim[0] == 0) return done();
  TapeCall call;
  call.tape = device_tape(*a);
  // Leaves that the tape does not have stand for the result here, so that one rule finds the common alignment.
  call.operands.out = a->out<float>(ops::kTapeResult);
  for (int leaf = 0; leaf < ops::kTapeLeaves; ++leaf) {
    call.operands.in[leaf] = leaf < call.tape.leaves ? a->in<float>(leaf) : call.operands.out;
  }
  if constexpr (kItems > 0) return run_tape_of<kItems>(call, a->dim[0], stream, count);
  if (computes_much(call.tape)) return run_tape_of<4>(call, a->dim[0], stream, count);
  return run_tape_of<2>(call, a->dim[0], stream, count);
}

}  // namespace

std::span<const fulcrum_kernel> expression() {
  static const fulcrum_kernel kernels[] = {
      fulcrum_kernel{.variant = "default", .level = 1, .isa = isa, .run = run<0>},
      fulcrum_kernel{.variant = "tile2", .level = 1, .isa = isa, .run = run<2>},
      fulcrum_kernel{.variant = "tile4", .level = 1, .isa = isa, .run = run<4>},
  };
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
