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

template <bool kHeavy, class Pack, int kItems, int kCtasPerSm>
fulcrum_status launch_tape(const TapeCall& call, const Span& span, void* stream, int64_t count) {
  const auto kernel = interpret<kHeavy, Pack, kItems, kMapThreads, kCtasPerSm>;
  constexpr size_t kSlotBytes = sizeof(Pack) * kItems * kMapThreads, kDeclared = 48 << 10;
  const size_t bytes = kSlotBytes * static_cast<size_t>(call.tape.slots);
  if (bytes > kDeclared) {
    FULCRUM_STATUS(allow_shared<kSlotBytes*(ops::kTapeLeaves + ops::kTapeTemporaries)>(kernel));
  }
  const int64_t tiles = divide_up(span.units, kMapThreads * kItems);
  const int64_t ctas = tiles + (span.odd > 0 ? 1 : 0);
  const Launch shape{ctas, kMapThreads, can_follow(nullptr) != 0, 1, bytes};
  const Signal signal = count == 1 ? take_signal() : Signal{};
  return launch(kernel, shape, stream, count, call, span, signal);
}

/// kItems vectors a thread.
template <int kItems, int kCtasPerSm, int kHeavyCtas>
fulcrum_status run(const fulcrum_args* a, void* stream, int64_t count) {
  const int64_t n = a->dim[0];
  if (n == 0) return done();
  TapeCall call;
  call.tape = device_tape(*a);
  // Leaves that the tape does not have stand for the result here, so that one rule finds the common alignment.
  call.operands.out = a->out<float>(ops::kTapeResult);
  for (int leaf = 0; leaf < ops::kTapeLeaves; ++leaf) {
    call.operands.in[leaf] = leaf < call.tape.leaves ? a->in<float>(leaf) : call.operands.out;
  }
  const int common = common_head(call.operands);
  const Span span = common < 0 ? Span{n, 0, 0} : span_of(n, common);
  const auto go = [&](auto launcher) { return launcher(call, span, stream, count); };
  if (call.tape.heavy) {
    if (common < 0) return go(launch_tape<true, float, 4 * kItems, kHeavyCtas>);
    return go(launch_tape<true, float4, kItems, kHeavyCtas>);
  }
  if (common < 0) return go(launch_tape<false, float, 4 * kItems, kCtasPerSm>);
  return go(launch_tape<false, float4, kItems, kCtasPerSm>);
}

}  // namespace

std::span<const fulcrum_kernel> expression() {
  static const fulcrum_kernel kernels[] = {
      fulcrum_kernel{.variant = "default", .level = 1, .isa = isa, .run = run<2, 6, 5>},
      fulcrum_kernel{.variant = "tile1", .level = 1, .isa = isa, .run = run<1, 8, 8>},
      fulcrum_kernel{.variant = "tile4", .level = 1, .isa = isa, .run = run<4, 4, 3>},
  };
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
