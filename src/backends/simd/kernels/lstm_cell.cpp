// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// lstm_cell by register tiles that hold all four gates of one vector of hidden units for several batch rows: the sums
// start at the bias, take the inputs, then the hidden state, and go through the point-wise part without leaving the
// registers. Weights are laid out for that once, when the call is planned.
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
#include "backends/simd/math-inl.h"
#include "backends/simd/plan_memory.h"
#include "backends/simd/transpose-inl.h"
#include "backends/table.h"

#ifndef FULCRUM_BACKENDS_SIMD_KERNELS_LSTM_CELL_
#define FULCRUM_BACKENDS_SIMD_KERNELS_LSTM_CELL_
namespace fulcrum::backends::simd {

/// One panel a vector of hidden units: its biases, then for each input and each hidden unit its weights, always the
/// four gates side by side. `run` is of the instruction set that the panels were made for.
struct LstmPlan {
  hwy::AlignedFreeUniquePtr<float[]> panels;
  void (*run)(const fulcrum_args& a, const LstmPlan& plan, std::int64_t begin, std::int64_t end) = nullptr;
};

}  // namespace fulcrum::backends::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

constexpr std::size_t kGates = ops::kLstmGates;
constexpr std::size_t kPanelColumns = kGates * kLanes;
// Accumulators, a broadcast a row and one vector of weights: 6 * 4 + 6 + 1 of 32 registers with AVX-512, 3 * 4 + 3 + 1
// of 16 elsewhere.
constexpr std::size_t kTileRows = HWY_TARGET <= HWY_AVX3 ? 6 : 3;

/// The arguments by name.
struct Cell {
  const float *x, *h, *c;
  float *next_h, *next_c;
  std::size_t inputs, hidden;

  explicit Cell(const fulcrum_args& a)
      : x(a.in<float>(0)),
        h(a.in<float>(1)),
        c(a.in<float>(2)),
        next_h(a.out<float>(6)),
        next_c(a.out<float>(7)),
        inputs(static_cast<std::size_t>(a.dim[1])),
        hidden(static_cast<std::size_t>(a.dim[2])) {}

  std::size_t panel_floats() const { return (1 + inputs + hidden) * kPanelColumns; }
};

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
HWY_NOINLINE void step(const Cell& cell, const float* panel, std::size_t row, std::size_t unit,
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
  for (std::size_t i = 0; i < kRows; ++i) {
    const std::size_t at = (row + i) * cell.hidden + unit;
    const auto before = lanes == kLanes ? hn::LoadU(d, cell.c + at) : load_first(cell.c + at, lanes);
    const auto kept = hn::Mul(sigmoid(sum[i][ops::kGateForget]), before);
    const auto c = hn::MulAdd(sigmoid(sum[i][ops::kGateInput]), tanh(sum[i][ops::kGateCell]), kept);
    const auto h = hn::Mul(sigmoid(sum[i][ops::kGateOutput]), tanh(c));
    if (lanes == kLanes) {
      hn::StoreU(c, d, cell.next_c + at);
      hn::StoreU(h, d, cell.next_h + at);
    } else {
      store_first(c, cell.next_c + at, lanes);
      store_first(h, cell.next_h + at, lanes);
    }
  }
}

using Step = void (*)(const Cell&, const float*, std::size_t, std::size_t, std::size_t);
template <std::size_t... kIndex>
constexpr std::array<Step, sizeof...(kIndex)> steps(std::index_sequence<kIndex...>) {
  return {step<kIndex + 1>...};
}
constexpr auto kSteps = steps(std::make_index_sequence<kTileRows>());

/// Rows are dealt out evenly over tiles, since a short tile reads as many weights as a full one.
void run_rows(const Cell& cell, const float* panel, std::size_t row, std::size_t end, std::size_t unit) {
  const std::size_t lanes = std::min(kLanes, cell.hidden - unit);
  for (std::size_t left = (end - row + kTileRows - 1) / kTileRows; row < end; --left) {
    const std::size_t rows = (end - row + left - 1) / left;
    kSteps[rows - 1](cell, panel, row, unit, lanes);
    row += rows;
  }
}

void run_pieces(const fulcrum_args& a, const LstmPlan& plan, std::int64_t begin, std::int64_t end) {
  const Cell cell(a);
  const std::int64_t row_blocks = (a.dim[0] + ops::kLstmRows - 1) / ops::kLstmRows;
  for (std::int64_t piece = begin; piece < end; ++piece) {
    const std::int64_t row = piece % row_blocks * ops::kLstmRows;
    const auto last_row = static_cast<std::size_t>(std::min(row + ops::kLstmRows, a.dim[0]));
    const auto first = static_cast<std::size_t>(piece / row_blocks * ops::kLstmUnits);
    const std::size_t last = std::min(first + static_cast<std::size_t>(ops::kLstmUnits), cell.hidden);
    for (std::size_t unit = first; unit < last; unit += kLanes) {
      const float* panel = plan.panels.get() + unit / kLanes * cell.panel_floats();
      run_rows(cell, panel, static_cast<std::size_t>(row), last_row, unit);
    }
  }
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
  const Cell cell(a);
  for (auto p = static_cast<std::size_t>(begin); p < static_cast<std::size_t>(end); ++p) {
    float* panel = panels + p * cell.panel_floats();
    pack(a.in<float>(5), cell.hidden, 1, p * kLanes, panel);
    panel += kPanelColumns;
    pack(a.in<float>(3), cell.hidden, cell.inputs, p * kLanes, panel);
    panel += cell.inputs * kPanelColumns;
    pack(a.in<float>(4), cell.hidden, cell.hidden, p * kLanes, panel);
  }
}

bool make_lstm_plan(const fulcrum_args& a, LstmPlan& plan) {
  const Cell cell(a);
  const std::size_t panels = (cell.hidden + kLanes - 1) / kLanes, floats = panels * cell.panel_floats();
  plan.panels = plan_memory<float>(floats);
  plan.run = run_pieces;
  if (!plan.panels) return false;
  Packing packing{a, plan.panels.get()};
  plan_parts(static_cast<std::int64_t>(panels), static_cast<std::int64_t>(floats * sizeof(float)),
             pack_panels, &packing);
  return true;
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(make_lstm_plan);

fulcrum_status make_plan(const fulcrum_kernel*, const fulcrum_args* a, void** made) {
  auto plan = std::make_unique<LstmPlan>();
  if (!(HWY_DYNAMIC_DISPATCH(make_lstm_plan))(*a, *plan)) {
    return fulcrum_status{FULCRUM_OUT_OF_MEMORY, "no memory for the packed weights"};
  }
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
                                            .plan_reads = 0b111000}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
