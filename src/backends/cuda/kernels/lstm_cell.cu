// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// lstm_cell on the device, in one launch (lstm_cell.cuh has the kernels). Weights are read as they are given: they are
// operands of the call and may change from one to the next.
#include <algorithm>
#include <span>

#include "backends/cuda/lstm_cell.cuh"

namespace fulcrum::backends::cuda {
namespace lstm {
namespace {

template <int kRows, int kBatch>
fulcrum_status enqueue_rows(const Cell& cell, bool aligned, void* stream, int64_t count) {
  const bool whole = aligned && cell.inputs % (4 * kChains) == 0 && cell.hidden % (4 * kChains) == 0;
  const int64_t groups = streaming::divide_up(cell.batch, kRows);
  // Warps that share rows and warps that share a unit find each other's operands in the L1 cache.
  const int row_warps = groups >= 4 ? 4 : groups >= 2 ? 2 : 1;
  const int64_t unit_blocks = streaming::divide_up(cell.hidden, kCtaWarps / row_warps);
  const streaming::Launch shape{unit_blocks * streaming::divide_up(groups, row_warps), kCtaWarps * kWarp,
                                streaming::can_follow(nullptr) != 0};
  return streaming::launch(whole ? lstm_cell_rows<true, kRows, kBatch> : lstm_cell_rows<false, kRows, kBatch>,
                           shape, stream, count, cell, row_warps, unit_blocks);
}

/// Up to two CTAs on a multiprocessor; what needs more memory goes without.
constexpr int kStageBytes = 96 * 1024;

template <bool kAligned, int kRows>
fulcrum_status enqueue_staged(const Cell& cell, void* stream, int64_t count) {
  using S = Stage<kRows>;
  if (S::bytes(cell) > kStageBytes)
    return enqueue_rows < kRows, kRows == 4 ? 3 : 6 > (cell, kAligned, stream, count);
  const auto kernel = lstm_cell_staged<kAligned, kRows>;
  static const fulcrum_status allowed = streaming::allow_shared<kStageBytes>(kernel);
  FULCRUM_STATUS(allowed);
  const int64_t unit_blocks = streaming::divide_up(cell.hidden, S::kUnits);
  const streaming::Launch shape{.ctas = unit_blocks * streaming::divide_up(cell.batch, S::kBatchRows),
                                .threads = kCtaWarps * kWarp,
                                .programmatic = streaming::can_follow(nullptr) != 0,
                                .shared_bytes = static_cast<size_t>(S::bytes(cell))};
  return streaming::launch(kernel, shape, stream, count, cell, unit_blocks);
}

template <bool kAligned, int kThreadRows>
fulcrum_status enqueue_tiles(const Cell& cell, void* stream, int64_t count) {
  using T = Tile<kThreadRows>;
  const auto kernel = lstm_cell_tiles<kAligned, kThreadRows>;
  static const fulcrum_status allowed = streaming::allow_shared<T::kBytes>(kernel);
  FULCRUM_STATUS(allowed);
  const int64_t unit_blocks = streaming::divide_up(cell.hidden, T::kUnits);
  const streaming::Launch shape{.ctas = unit_blocks * streaming::divide_up(cell.batch, T::kRows),
                                .threads = kCtaWarps * kWarp,
                                .programmatic = streaming::can_follow(nullptr) != 0,
                                .shared_bytes = T::kBytes};
  return streaming::launch(kernel, shape, stream, count, cell, unit_blocks);
}

bool has_room_for_tiles() { return device().shared_bytes_per_block >= Tile<8>::kBytes; }

int64_t tiles_of(const Cell& cell, int64_t rows) {
  return streaming::divide_up(cell.hidden, 8) * streaming::divide_up(cell.batch, rows);
}
/// Tiles of 64 rows read less than those of 32, which are more.
bool takes_large_tiles(const Cell& cell) {
  return cell.batch > 32 && 4 * tiles_of(cell, 64) >= 3 * device().sms;
}

/// Tiles where they fill most of the device; else the fewest rows a warp that still leave each SM a CTA or two.
Form form_for(const Cell& cell) {
  const int64_t sms = device().sms, warps = 12 * sms;
  if (has_room_for_tiles() && cell.batch >= 24 && 4 * tiles_of(cell, 32) >= 3 * sms) return Form::tiled;
  if (cell.batch == 1) return Form::rows1;
  if (cell.hidden * streaming::divide_up(cell.batch, 2) <= warps) return Form::rows2;
  return cell.hidden * streaming::divide_up(cell.batch, 4) <= warps ? Form::rows4 : Form::rows8;
}

}  // namespace

fulcrum_status enqueue_cell(const Cell& cell, Form form, void* stream, int64_t count) {
  if (cell.batch == 0) return done();
  const bool aligned = has_quads(cell);
  switch (form == Form::best ? form_for(cell) : form) {
    case Form::rows1:
      return enqueue_rows<1, 8>(cell, aligned, stream, count);
    case Form::rows2:
      return enqueue_rows<2, 6>(cell, aligned, stream, count);
    case Form::rows4:
      return enqueue_rows<4, 3>(cell, aligned, stream, count);
    case Form::rows8:
      return enqueue_rows<8, 2>(cell, aligned, stream, count);
    case Form::staged2:
      return aligned ? enqueue_staged<true, 2>(cell, stream, count)
                     : enqueue_staged<false, 2>(cell, stream, count);
    case Form::staged4:
      return aligned ? enqueue_staged<true, 4>(cell, stream, count)
                     : enqueue_staged<false, 4>(cell, stream, count);
    default:
      break;
  }
  if (takes_large_tiles(cell)) {
    return aligned ? enqueue_tiles<true, 8>(cell, stream, count)
                   : enqueue_tiles<false, 8>(cell, stream, count);
  }
  return aligned ? enqueue_tiles<true, 4>(cell, stream, count) : enqueue_tiles<false, 4>(cell, stream, count);
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
fulcrum_kernel make(const char* variant) {
  return fulcrum_kernel{.variant = variant, .level = 1, .isa = streaming::isa, .run = run<kForm>};
}

}  // namespace

std::span<const fulcrum_kernel> lstm_cell() {
  using lstm::Form;
  static const fulcrum_kernel kernels[] = {make<Form::best>("default"),
                                           make<Form::rows2>("rows2"),
                                           make<Form::rows4>("rows4"),
                                           make<Form::rows8>("rows8"),
                                           make<Form::staged2>("staged2"),
                                           make<Form::staged4>("staged4"),
                                           fulcrum_kernel{.variant = "tiled",
                                                          .level = 1,
                                                          .isa = streaming::isa,
                                                          .supports = has_room_for_tiles,
                                                          .run = run<Form::tiled>}};
  return kernels;
}

}  // namespace kernels
}  // namespace fulcrum::backends::cuda
