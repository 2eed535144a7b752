// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// From a range's name to the tiles that the op's kernel was cut into: the tile that explains the blocks it launched.
#include "diagnose/op_shape.h"

#include <algorithm>
#include <cmath>

namespace fulcrum::diagnose {
namespace {

constexpr double kLeastTile = 16;  // rows of a tensor-core instruction

double number(const Shape& shape, std::string_view name, double fallback) {
  const Shape::Value* value = shape.find(name);
  if (value == nullptr) return fallback;
  if (const auto* integer = std::get_if<std::int64_t>(value)) return double(*integer);
  if (const auto* real = std::get_if<double>(value)) return *real;
  return fallback;
}

// The largest power of two that cuts `size` into at least `parts`.
double tile_for(double size, double parts) {
  double tile = kLeastTile;
  while (std::ceil(size / (2 * tile)) >= parts) tile *= 2;
  return std::min(tile, std::max(kLeastTile, size));
}

// B x H queries tiles side by side, and the keys in parts when there are more blocks than that.
std::vector<model::TiledDim> attention_dims(const Shape& shape, double blocks) {
  const double pairs = number(shape, "B", 1) * number(shape, "H", 1);
  const double queries = number(shape, "Sq", 1), keys = number(shape, "Skv", queries);
  const double tile = tile_for(queries, std::max(1.0, std::floor(blocks / pairs)));
  const double splits = std::max(1.0, std::floor(blocks / (pairs * std::ceil(queries / tile))));
  return {
      {"BH", pairs, 1, 1, 0}, {"Sq", queries, tile, kLeastTile, 0}, {"Skv", keys, tile, kLeastTile, splits}};
}

std::vector<model::TiledDim> product_dims(const Shape& shape, double blocks) {
  const double batch = number(shape, "B", 1), rows = number(shape, "M", 1), columns = number(shape, "N", 1);
  double tile = kLeastTile;
  while (batch * std::ceil(rows / (2 * tile)) * std::ceil(columns / (2 * tile)) >= blocks) tile *= 2;
  const double tiles = batch * std::ceil(rows / tile) * std::ceil(columns / tile);
  const double splits = std::max(1.0, std::floor(blocks / tiles));
  return {{"B", batch, 1, 1, 0},
          {"M", rows, tile, kLeastTile, 0},
          {"N", columns, tile, kLeastTile, 0},
          {"K", number(shape, "K", 1), tile, kLeastTile, splits}};
}

// When the host launched it: a kernel may begin long after its range has ended. Without calls, when it began.
std::int64_t launched_ns(const GpuTrace& trace, const GpuTrace::Op& op) {
  const std::uint32_t process = op.stream < trace.streams.size() ? trace.streams[op.stream].process : 0;
  for (const GpuTrace::Call& call : trace.calls) {
    const bool same_process =
        call.thread < trace.threads.size() && trace.threads[call.thread].process == process;
    if (call.correlation == op.correlation && same_process) return call.begin_ns;
  }
  return op.begin_ns;
}

}  // namespace

std::optional<NamedOp> op_of(const Facts& facts, const Timeline::Kernel& kernel) {
  if (kernel.ops.empty() || kernel.ops.front() >= facts.trace.ops.size()) return std::nullopt;
  const std::int64_t begin_ns = launched_ns(facts.trace, facts.trace.ops[kernel.ops.front()]);
  for (const GpuTrace::Range& range : facts.trace.ranges) {
    const bool inside = range.begin_ns <= begin_ns && begin_ns < range.end_ns;
    if (!inside || !range.name.starts_with(kOpRange)) continue;
    const std::string_view text = std::string_view(range.name).substr(kOpRange.size());
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) continue;
    Result<Shape> shape = parse_shape(text.substr(space + 1));
    if (shape.ok()) return NamedOp{std::string(text.substr(0, space)), std::move(shape.value())};
  }
  return std::nullopt;
}

std::optional<model::Occupancy> tile_choices(const NamedOp& op, double blocks, int sms, int blocks_per_sm) {
  std::vector<model::TiledDim> dims;
  if (op.name == "attention") {
    dims = attention_dims(op.shape, blocks);
  } else if (op.name == "matmul" || op.name == "batched_matmul") {
    dims = product_dims(op.shape, blocks);
  } else {
    return std::nullopt;
  }
  GpuCeilings gpu;
  gpu.sms = sms;
  return model::occupancy(dims, gpu, std::max(1, blocks_per_sm));
}

}  // namespace fulcrum::diagnose
