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

/// The tape with parameters in place and operands numbered as slots of shared memory: leaves, then temporaries.
void place_operands(const fulcrum_args& a, ops::Tape& tape) {
  ops::bind_tape(*ops::tape_of(a), a, tape);
  const auto slot = [&](std::uint8_t operand) {
    if (!ops::is_temporary(operand)) return operand;
    return static_cast<std::uint8_t>(operand - ops::kTapeLeaves + tape.leaves);
  };
  for (int i = 0; i < tape.length; ++i) {
    tape.step[i].a = slot(tape.step[i].a);
    tape.step[i].b = slot(tape.step[i].b);
  }
}

template <template <class, int, int> class Kind, class Pack, int kItems, int kCtasPerSm>
fulcrum_status launch_tape(const TapeCall& call, const Span& span, void* stream, int64_t count) {
  const auto kernel = interpret<Kind, Pack, kItems, kMapThreads, kCtasPerSm>;
  constexpr size_t kSlotBytes = sizeof(Pack) * kItems * kMapThreads, kDeclared = 48 << 10;
  const size_t bytes = kSlotBytes * static_cast<size_t>(call.tape.leaves + call.tape.temporaries);
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
template <template <class, int, int> class Kind, int kItems, int kCtasPerSm>
fulcrum_status run(const fulcrum_args* a, void* stream, int64_t count) {
  const int64_t n = a->dim[0];
  if (n == 0) return done();
  TapeCall call;
  place_operands(*a, call.tape);
  // Leaves that the tape does not have stand for the result here, so that one rule finds the common alignment.
  call.operands.out = a->out<float>(ops::kTapeResult);
  for (int leaf = 0; leaf < ops::kTapeLeaves; ++leaf) {
    call.operands.in[leaf] = leaf < call.tape.leaves ? a->in<float>(leaf) : call.operands.out;
  }
  const int common = common_head(call.operands);
  if (common < 0) return launch_tape<Kind, float, 4 * kItems, kCtasPerSm>(call, Span{n, 0, 0}, stream, count);
  return launch_tape<Kind, float4, kItems, kCtasPerSm>(call, span_of(n, common), stream, count);
}

}  // namespace

std::span<const fulcrum_kernel> expression() {
  static const fulcrum_kernel kernels[] = {
      fulcrum_kernel{.variant = "default", .level = 1, .isa = isa, .run = run<Work, 2, 5>},
      fulcrum_kernel{.variant = "tile1", .level = 1, .isa = isa, .run = run<Work, 1, 6>},
      fulcrum_kernel{.variant = "late", .level = 1, .isa = isa, .run = run<LateWork, 2, 4>},
      fulcrum_kernel{.variant = "late_tile1", .level = 1, .isa = isa, .run = run<LateWork, 1, 6>},
  };
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
