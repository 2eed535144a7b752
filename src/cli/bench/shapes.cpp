// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/shapes.h"

#include <fmt/format.h>
#include <fulcrum/machine.h>

#include <algorithm>
#include <cmath>

namespace fulcrum::cli {
namespace {

/// Bytes of all buffers of one call; the problem keeps a second copy of its inputs.
double bytes_of(const ops::Op& op, const Args& args) {
  double bytes = 0;
  int pointer = 0;
  for (const ops::Slot& slot : op.slots) {
    const bool is_pointer = slot.kind == ops::SlotKind::in || slot.kind == ops::SlotKind::out ||
                            slot.kind == ops::SlotKind::inout;
    if (!is_pointer) continue;
    bytes +=
        static_cast<double>(op.extent(args, pointer++)) * static_cast<double>(fulcrum::bytes_of(slot.dtype));
  }
  return bytes;
}

/// Bytes behind one of the op's own sizes; 0 when it cannot be told.
double bytes_of_size(const ops::Op& op, std::string_view text) {
  const auto given = parse_shape(text);
  if (!given.ok()) return 0;
  const auto shape = ops::complete(op, *given);
  if (!shape.ok()) return 0;
  const auto args = ops::resolve(op, *shape);
  return args.ok() ? bytes_of(op, *args) : 0;
}

/// The standard size nearest to a mebibyte: large enough for overheads to vanish, small enough for a core's cache.
std::string middle_size(const ops::Op& op) {
  std::string best;
  double best_distance = INFINITY;
  for (const std::string_view size : op.default_sizes) {
    const double distance = std::fabs(std::log(bytes_of_size(op, size) / 0x1p20));
    if (distance < best_distance) {
      best_distance = distance;
      best = size;
    }
  }
  return best;
}

/// Sizes that give the same arguments as the smallest one, up to what is measured in seconds rather than minutes.
std::vector<std::string> scaling_sizes(const ops::Op& op) {
  constexpr double kMostBytes = 0x1p28;
  const auto keys = [](std::string_view text) {
    std::vector<std::string> names;
    if (const auto shape = parse_shape(text); shape.ok()) {
      for (const auto& [name, value] : shape->fields) names.push_back(name);
    }
    return names;
  };
  std::vector<std::string> sizes;
  for (const std::string_view size : op.default_sizes) {
    if (keys(size) == keys(op.default_sizes[0]) && bytes_of_size(op, size) <= kMostBytes)
      sizes.emplace_back(size);
  }
  return sizes;
}

}  // namespace

Result<Shape> checked_shape(const ops::Op& op, std::string_view text) {
  FULCRUM_TRY(const Shape given, parse_shape(text));
  FULCRUM_TRY(const Shape shape, ops::complete(op, given));
  FULCRUM_TRY(const Args args, ops::resolve(op, shape));
  for (const ops::Slot& slot : op.slots) {
    if (slot.kind != ops::SlotKind::dim || shape.dim(slot.name) > 0) continue;
    return Error{
        Code::usage,
        fmt::format("{} with {}={} has nothing to measure", op.name, slot.name, shape.dim(slot.name)),
        "give a size of at least 1"};
  }
  const double memory_bytes = static_cast<double>(machine::discover_cpu().memory_bytes);
  const double needed_bytes = 2 * bytes_of(op, args);
  if (memory_bytes > 0 && needed_bytes > memory_bytes) {
    return Error{Code::environment,
                 fmt::format("{} with {} needs {}, and this machine has {}", op.name, shape.text(),
                             human_bytes(needed_bytes), human_bytes(memory_bytes)),
                 "give a smaller shape"};
  }
  return shape;
}

Result<std::vector<Shape>> chosen_shapes(const Options& options, const ops::Op& op) {
  std::vector<std::string> texts = options.list("shape");
  if (options.has("scaling") && texts.empty()) texts = scaling_sizes(op);
  if (texts.empty() && !op.default_sizes.empty()) texts.push_back(middle_size(op));
  if (texts.empty()) {
    return Error{Code::usage, fmt::format("{} has no standard size", op.name), "give one with --shape"};
  }
  if (options.has("scaling") && texts.size() < 2) {
    return Error{Code::usage, "--scaling needs more than one size",
                 "repeat --shape, or leave it away for the standard sizes"};
  }
  std::vector<Shape> shapes;
  for (const std::string& text : texts) {
    FULCRUM_TRY(Shape shape, checked_shape(op, text));
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(std::move(shape));
  }
  return shapes;
}

}  // namespace fulcrum::cli
