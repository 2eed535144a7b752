// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The table entry of a kernel over rows: plan and dispatch around what softmax-inl.h does per instruction set.
#pragma once

#include <fulcrum/ops/softmax.h>

#include <new>
#include <span>

#include "backends/simd/isa.h"
#include "backends/table.h"

namespace fulcrum::backends::simd {

/// Work of a kernel file: `count` whole calls, and the pieces [begin, end) of a phase (the second one writes), whose
/// parts begin at parts[0].
using RunRows = void (*)(const fulcrum_args&, std::int64_t count, ops::SoftmaxPart* parts);
using RowsPhase = void (*)(const fulcrum_args&, bool write, std::int64_t begin, std::int64_t end,
                           ops::SoftmaxPart* parts);

/// Room for the parts of a row.
inline fulcrum_status plan_row(const fulcrum_kernel*, const fulcrum_args* a, void** plan) {
  const auto chunks = static_cast<std::size_t>(ops::softmax_chunks(a->dim[1]));
  *plan = ::operator new(chunks * sizeof(ops::SoftmaxPart), std::nothrow);
  if (*plan) return done();
  return fulcrum_status{FULCRUM_OUT_OF_MEMORY, "no memory for the parts of a row"};
}

inline void drop_row(void* plan) { ::operator delete(plan); }

template <RunRows kRun>
fulcrum_status run_rows(const fulcrum_args* a, void*, std::int64_t count) {
  kRun(*a, count, static_cast<ops::SoftmaxPart*>(a->plan));
  return done();
}

template <RowsPhase kPhase>
void partial_rows(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end,
                  void* scratch) {
  auto* parts = static_cast<ops::SoftmaxPart*>(scratch);  // null: rows of one chunk need none
  kPhase(*a, phase == 1, begin, end, parts ? parts + begin : nullptr);
}

template <RunRows kRun, RowsPhase kPhase>
std::span<const fulcrum_kernel> row_kernels() {
  static const fulcrum_kernel kernels[] = {fulcrum_kernel{.variant = "default",
                                                          .level = 1,
                                                          .isa = isa_name,
                                                          .plan = plan_row,
                                                          .drop = drop_row,
                                                          .run = run_rows<kRun>,
                                                          .partial = partial_rows<kPhase>}};
  return kernels;
}

}  // namespace fulcrum::backends::simd
