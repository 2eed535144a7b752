// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// lstm_cell by register tiles that hold all four gates of one vector of hidden units for several batch rows: the sums
// start at the bias, take the inputs, then the hidden state, and go through the point-wise part without leaving the
// registers. Weights are laid out for that once, when the call is planned. A plan for any data has none of that: its
// calls take the weights as they lie.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/lstm_cell.cpp"
#include <fulcrum/ops/lstm_cell.h>
#include <hwy/aligned_allocator.h>
#include <hwy/foreach_target.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "backends/plan_threads.h"
#include "backends/simd/isa.h"
#include "backends/simd/lstm_dots-inl.h"
#include "backends/simd/math-inl.h"
#include "backends/simd/plan_memory.h"
#include "backends/simd/transpose-inl.h"
#include "backends/table.h"

#ifndef FULCRUM_BACKENDS_SIMD_KERNELS_LSTM_CELL_
#define FULCRUM_BACKENDS_SIMD_KERNELS_LSTM_CELL_
namespace fulcrum::backends::simd {

/// One panel a vector of hidden units: its biases, then for each input and each hidden unit its weights, always the
/// four gates side by side. `run` is of the instruction set that the panels were made for; without panels it needs none.
struct LstmPlan {
  hwy::AlignedFreeUniquePtr<float[]> panels;
  void (*run)(const fulcrum_args& a, const LstmPlan& plan, std::int64_t begin, std::int64_t end) = nullptr;
};

}  // namespace fulcrum::backends::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

constexpr std::size_t kPanelColumns = kGates * kLanes;

std::size_t panel_floats(const LstmCell& cell) { return (1 + cell.inputs + cell.hidden) * kPanelColumns; }

/// sum += weights[n, kPanelColumns] * from, for kRows rows of `from`.
template <std::size_t kRows>
HWY_INLINE void add_products(const float* weights, const float* from, std::size_t n,
                             Floats (&sum)[kRows][kGates]) {
  const Float d;
  for (std::size_t k = 0; k < n; ++k, weights += kPanelColumns) {
    Floats left[kRows];
    HWY_UNROLL(8)
    for (std::size_t i = 0; i < kRows; ++i) left[i] = hn::Set(d, from[i * n + k]);
    HWY_UNROLL(4)
    for (std::size_t g = 0; g < kGates; ++g) {
      const auto right = hn::Load(d, weights + g * kLanes);
      HWY_UNROLL(8)
      for (std::size_t i = 0; i < kRows; ++i) sum[i][g] = hn::MulAdd(left[i], right, sum[i][g]);
    }
  }
}

/// kRows batch rows from `row` on, `lanes` hidden units from `unit` on.
template <std::size_t kRows>
HWY_NOINLINE void step(const LstmCell& cell, const float* panel, std::size_t row, std::size_t unit,
                       std::size_t lanes) {
  const Float d;
  Floats sum[kRows][kGates];
  HWY_UNROLL(8)
  for (std::size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (std::size_t g = 0; g < kGates; ++g) sum[i][g] = hn::Load(d, panel + g * kLanes);
  }
  panel += kPanelColumns;
  add_products<kRows>(panel, cell.x + row * cell.inputs, cell.inputs, sum);
  add_products<kRows>(panel + cell.inputs * kPanelColumns, cell.h + row * cell.hidden, cell.hidden, sum);
  HWY_UNROLL(8)
  for (std::size_t i = 0; i < kRows; ++i) step_units(cell, sum[i], row + i, unit, lanes);
}

using Step = void (*)(const LstmCell&, const float*, std::size_t, std::size_t, std::size_t);
template <std::size_t... kIndex>
constexpr std::array<Step, sizeof...(kIndex)> steps(std::index_sequence<kIndex...>) {
  return {step<kIndex + 1>...};
}
constexpr auto kSteps = steps(std::make_index_sequence<kTileRows>());

/// Rows are dealt out evenly over tiles, since a short tile reads as many weights as a full one.
void run_rows(const LstmCell& cell, const float* panel, std::size_t row, std::size_t end, std::size_t unit) {
  const std::size_t lanes = std::min(kLanes, cell.hidden - unit);
  for (std::size_t left = (end - row + kTileRows - 1) / kTileRows; row < end; --left) {
    const std::size_t rows = (end - row + left - 1) / left;
    kSteps[rows - 1](cell, panel, row, unit, lanes);
    row += rows;
  }
}

/// Calls work(row, last_row, unit, last_unit) for each piece.
template <class Work>
HWY_INLINE void for_pieces(const fulcrum_args& a, std::int64_t begin, std::int64_t end, const Work& work) {
  const std::int64_t row_blocks = (a.dim[0] + ops::kLstmRows - 1) / ops::kLstmRows;
  for (std::int64_t piece = begin; piece < end; ++piece) {
    const std::int64_t row = piece % row_blocks * ops::kLstmRows, unit = piece / row_blocks * ops::kLstmUnits;
    const auto last_row = std::min(row + ops::kLstmRows, a.dim[0]);
    const auto last_unit = std::min(unit + ops::kLstmUnits, a.dim[2]);
    work(static_cast<std::size_t>(row), static_cast<std::size_t>(last_row), static_cast<std::size_t>(unit),
         static_cast<std::size_t>(last_unit));
  }
}

void run_packed(const fulcrum_args& a, const LstmPlan& plan, std::int64_t begin, std::int64_t end) {
  const LstmCell cell(a);
  for_pieces(a, begin, end,
             [&](std::size_t row, std::size_t last_row, std::size_t first, std::size_t last) HWY_ATTR {
               for (std::size_t unit = first; unit < last; unit += kLanes)
                 run_rows(cell, plan.panels.get() + unit / kLanes * panel_floats(cell), row, last_row, unit);
             });
}

void run_in_place(const fulcrum_args& a, const LstmPlan&, std::int64_t begin, std::int64_t end) {
  const LstmCell cell(a);
  for_pieces(a, begin, end,
             [&](std::size_t row, std::size_t last_row, std::size_t first, std::size_t last)
                 HWY_ATTR { step_in_place(cell, row, last_row, first, last); });
}

/// Rows `gate * hidden + unit ...` of a weight matrix [4 * hidden, n] as columns of a panel.
void pack(const float* weights, std::size_t hidden, std::size_t n, std::size_t unit, float* panel) {
  const std::size_t units = std::min(kLanes, hidden - unit);
  for (std::size_t g = 0; g < kGates; ++g) {
    float* to = panel + g * kLanes;
    transpose(weights + (g * hidden + unit) * n, n, units, n, to, kPanelColumns);
    for (std::size_t k = 0; k < n && units < kLanes; ++k)
      std::fill(to + k * kPanelColumns + units, to + k * kPanelColumns + kLanes, 0.0F);
  }
}

struct Packing {
  const fulcrum_args& a;
  float* panels;
};

void pack_panels(void* context, std::int64_t begin, std::int64_t end) {
  const auto& [a, panels] = *static_cast<const Packing*>(context);
  const LstmCell cell(a);
  for (auto p = static_cast<std::size_t>(begin); p < static_cast<std::size_t>(end); ++p) {
    float* panel = panels + p * panel_floats(cell);
    pack(cell.bias, cell.hidden, 1, p * kLanes, panel);
    panel += kPanelColumns;
    pack(cell.x_weights, cell.hidden, cell.inputs, p * kLanes, panel);
    panel += cell.inputs * kPanelColumns;
    pack(cell.h_weights, cell.hidden, cell.hidden, p * kLanes, panel);
  }
}

bool make_lstm_plan(const fulcrum_args& a, LstmPlan& plan) {
  const LstmCell cell(a);
  const std::size_t panels = (cell.hidden + kLanes - 1) / kLanes, floats = panels * panel_floats(cell);
  plan.panels = plan_memory<float>(floats);
  plan.run = run_packed;
  if (!plan.panels) return false;
  Packing packing{a, plan.panels.get()};
  plan_parts(static_cast<std::int64_t>(panels), static_cast<std::int64_t>(floats * sizeof(float)),
             pack_panels, &packing);
  return true;
}

void make_lstm_plan_for_any(LstmPlan& plan) { plan.run = run_in_place; }

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(make_lstm_plan);
HWY_EXPORT(make_lstm_plan_for_any);

fulcrum_status make_plan(const fulcrum_kernel*, const fulcrum_args* a, void** made) {
  auto plan = std::make_unique<LstmPlan>();
  if (!(HWY_DYNAMIC_DISPATCH(make_lstm_plan))(*a, *plan)) {
    return fulcrum_status{FULCRUM_OUT_OF_MEMORY, "no memory for the packed weights"};
  }
  *made = plan.release();
  return done();
}

/// With more batch rows laying weights out is a tenth of the call, and tiles over them gain more than that. Rows of weights
/// that are so long that those of the batch leave the cache meanwhile are laid out sooner.
fulcrum_status make_plan_for_any(const fulcrum_kernel*, const fulcrum_args* a, void** made) {
  constexpr std::int64_t kMostRows = 64, kLongRow = 1024;
  if (a->dim[0] > (a->dim[1] + a->dim[2] > kLongRow ? ops::kLstmRows : kMostRows)) return done();
  auto plan = std::make_unique<LstmPlan>();
  (HWY_DYNAMIC_DISPATCH(make_lstm_plan_for_any))(*plan);
  *made = plan.release();
  return done();
}

void drop_plan(void* plan) { delete static_cast<LstmPlan*>(plan); }

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  const auto& plan = *static_cast<const LstmPlan*>(a->plan);
  plan.run(*a, plan, begin, end);
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const std::int64_t row_blocks = (a->dim[0] + ops::kLstmRows - 1) / ops::kLstmRows;
  const std::int64_t unit_blocks = (a->dim[2] + ops::kLstmUnits - 1) / ops::kLstmUnits;
  for (std::int64_t call = 0; call < count; ++call) partial(a, 0, 0, row_blocks * unit_blocks, nullptr);
  return done();
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> lstm_cell() {
  static const fulcrum_kernel kernels[] = {{.variant = "default",
                                            .level = 1,
                                            .isa = isa_name,
                                            .plan = make_plan,
                                            .drop = drop_plan,
                                            .run = run,
                                            .partial = partial,
                                            .plan_reads = 0b111000,
                                            .plan_for_any = make_plan_for_any}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
