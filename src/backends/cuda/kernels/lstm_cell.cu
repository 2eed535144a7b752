// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// lstm_cell on the device, in one launch (lstm_cell.cuh has the kernels). Weights are read as they are given: they are
// operands of the call and may change from one to the next.
#include <limits>
#include <span>

#include "backends/cuda/lstm_cell.cuh"
#include "backends/cuda/lstm_effort.h"
#include "backends/cuda/lstm_tensor.cuh"

namespace fulcrum::backends::cuda {
namespace lstm {
namespace {

bool has_whole_rounds(const Cell& cell) {
  return has_quads(cell) && cell.inputs % (4 * kChains) == 0 && cell.hidden % (4 * kChains) == 0;
}

using WarpsKernel = void (*)(Cell, int, int64_t);

/// Warps that share rows and warps that share a unit find each other's operands in the L1 cache.
fulcrum_status enqueue_warps(WarpsKernel kernel, const Cell& cell, int rows, int warps, void* stream,
                             int64_t count) {
  const int64_t groups = streaming::divide_up(cell.batch, rows);
  const int row_warps = groups >= 2 ? 2 : 1;
  const int64_t unit_blocks = streaming::divide_up(cell.hidden, warps / row_warps);
  const streaming::Launch shape{unit_blocks * streaming::divide_up(groups, row_warps), warps * kWarp,
                                streaming::can_follow(nullptr) != 0};
  return streaming::launch(kernel, shape, stream, count, cell, row_warps, unit_blocks);
}

fulcrum_status enqueue_row(const Cell& cell, void* stream, int64_t count) {
  return enqueue_warps(has_whole_rounds(cell) ? lstm_cell_row<true, 8> : lstm_cell_row<false, 2>, cell, 1,
                       kCtaWarps, stream, count);
}

template <int kRows, int kBatch>
fulcrum_status enqueue_wide(const Cell& cell, void* stream, int64_t count) {
  return enqueue_warps(
      has_whole_rounds(cell) ? lstm_cell_wide<true, kRows, kBatch> : lstm_cell_wide<false, kRows, 2>, cell,
      4 * kRows, kWideWarps, stream, count);
}

template <auto kKernel, class T>
fulcrum_status enqueue_tile_kernel(const Cell& cell, void* stream, int64_t count) {
  static const fulcrum_status allowed = streaming::allow_shared<T::kBytes>(kKernel);
  FULCRUM_STATUS(allowed);
  const int64_t unit_blocks = streaming::divide_up(cell.hidden, T::kUnits);
  const streaming::Launch shape{.ctas = unit_blocks * streaming::divide_up(cell.batch, T::kRows),
                                .threads = kCtaWarps * kWarp,
                                .programmatic = streaming::can_follow(nullptr) != 0,
                                .shared_bytes = T::kBytes};
  return streaming::launch(kKernel, shape, stream, count, cell, unit_blocks);
}

template <int kThreadRows>
fulcrum_status enqueue_tiles(const Cell& cell, void* stream, int64_t count) {
  using T = Tile<kThreadRows>;
  return has_quads(cell) ? enqueue_tile_kernel<lstm_cell_tiles<true, kThreadRows>, T>(cell, stream, count)
                         : enqueue_tile_kernel<lstm_cell_tiles<false, kThreadRows>, T>(cell, stream, count);
}

template <int kBatchTiles>
fulcrum_status enqueue_tensor(const Cell& cell, void* stream, int64_t count) {
  using T = Tile<kBatchTiles>;
  return has_quads(cell) ? enqueue_tile_kernel<lstm_cell_tensor<true, kBatchTiles>, T>(cell, stream, count)
                         : enqueue_tile_kernel<lstm_cell_tensor<false, kBatchTiles>, T>(cell, stream, count);
}

bool has_room_for_tiles() { return device().shared_bytes_per_block >= Tile<8>::kBytes; }

effort::Cell sizes_of(const Cell& cell) {
  return effort::Cell{static_cast<double>(cell.batch), static_cast<double>(cell.inputs),
                      static_cast<double>(cell.hidden)};
}

int tile_rows(const Cell& cell) {
  return static_cast<int>(effort::cell_tile_rows(sizes_of(cell), device().sms));
}

/// The fastest by what each takes on an H200. Never tensor cores: one batch row is twice as slow there, and bits must not
/// depend on how many rows a call has.
Form form_for(const Cell& cell) {
  const effort::Cell sizes = sizes_of(cell);
  Form fastest = Form::wide4;
  double least = std::numeric_limits<double>::infinity();
  const auto offer = [&](Form form, double takes) {
    if (takes >= least) return;
    least = takes;
    fastest = form;
  };
  if (cell.batch == 1) offer(Form::row, effort::cell_warps(sizes, 1));
  offer(Form::wide4, effort::cell_warps(sizes, 4));
  offer(Form::wide8, effort::cell_warps(sizes, 8));
  offer(Form::wide16, effort::cell_warps(sizes, 16));
  if (has_room_for_tiles()) offer(Form::tiled, effort::cell_tiles(sizes, tile_rows(cell)));
  return fastest;
}

}  // namespace

fulcrum_status enqueue_cell(const Cell& cell, Form form, void* stream, int64_t count) {
  if (cell.batch == 0) return done();
  switch (form == Form::best ? form_for(cell) : form) {
    case Form::row:
      return enqueue_row(cell, stream, count);
    case Form::wide4:
      return enqueue_wide<1, 6>(cell, stream, count);
    case Form::wide8:
      return enqueue_wide<2, 6>(cell, stream, count);
    case Form::wide16:
      return enqueue_wide<4, 5>(cell, stream, count);
    case Form::tensor:
      if (cell.batch <= 8) return enqueue_tensor<1>(cell, stream, count);
      if (cell.batch <= 16) return enqueue_tensor<2>(cell, stream, count);
      if (cell.batch <= 32) return enqueue_tensor<4>(cell, stream, count);
      return enqueue_tensor<8>(cell, stream, count);
    default:
      break;
  }
  return tile_rows(cell) == 64 ? enqueue_tiles<8>(cell, stream, count)
                               : enqueue_tiles<4>(cell, stream, count);
}

}  // namespace lstm

namespace kernels {
namespace {

template <lstm::Form kForm>
fulcrum_status run(const fulcrum_args* a, void* stream, int64_t count) {
  const lstm::Cell cell{.x = a->in<float>(0),
                        .h = a->in<float>(1),
                        .c = a->in<float>(2),
                        .input_weights = a->in<float>(3),
                        .hidden_weights = a->in<float>(4),
                        .bias = a->in<float>(5),
                        .next_h = a->out<float>(6),
                        .next_c = a->out<float>(7),
                        .batch = a->dim[0],
                        .inputs = a->dim[1],
                        .hidden = a->dim[2]};
  return lstm::enqueue_cell(cell, kForm, stream, count);
}

int has_room_for_tiles(const fulcrum_args*) { return lstm::has_room_for_tiles(); }

template <lstm::Form kForm>
fulcrum_kernel make(const char* variant, int (*supports)(const fulcrum_args*) = nullptr) {
  return fulcrum_kernel{
      .variant = variant, .level = 1, .isa = streaming::isa, .supports = supports, .run = run<kForm>};
}

}  // namespace

std::span<const fulcrum_kernel> lstm_cell() {
  using lstm::Form;
  static const fulcrum_kernel kernels[] = {
      make<Form::best>("default"), make<Form::wide8>("wide8"), make<Form::wide16>("wide16"),
      make<Form::tiled>("tiled", has_room_for_tiles), make<Form::tensor>("tensor", has_room_for_tiles)};
  return kernels;
}

}  // namespace kernels
}  // namespace fulcrum::backends::cuda
