// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Shapes at which kernels break, derived from an op's slots alone: an op gets them without a line of its own.
#pragma once

#include <fulcrum/ops.h>

#include <set>

namespace fulcrum::test {

/// Around vector widths, tiles and chunks; for the one size of an op that has one.
inline const std::vector<std::int64_t>& long_edges() {
  static const std::vector<std::int64_t> edges = {
      0,  1,  2,  3,   4,   5,   7,    8,    9,    15,   16,   17,   31,   32,    33,
      63, 64, 65, 127, 128, 129, 1000, 4095, 4096, 4097, 8191, 8192, 8193, 12289, 100003};
  return edges;
}

/// For each size of an op that has several, the others staying small.
inline const std::vector<std::int64_t>& short_edges() {
  static const std::vector<std::int64_t> edges = {0,  1,  2,  3,  4,  5,  7,  8,   9,   15,  16,
                                                  17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 300};
  return edges;
}

/// For sizes that have a default: rows, batches.
inline const std::vector<std::int64_t>& default_edges() {
  static const std::vector<std::int64_t> edges = {0, 1, 2, 3, 17};
  return edges;
}

class ShapeBuilder {
 public:
  explicit ShapeBuilder(const ops::Op& op) : op_(op) {
    for (const ops::Slot& slot : op.slots) {
      if (slot.kind == ops::SlotKind::dim) (slot.optional ? extra_ : required_).push_back(&slot);
      if (slot.kind == ops::SlotKind::choice) choices_.push_back(&slot);
    }
  }

  std::vector<Shape> build() {
    const auto& edges = required_.size() <= 1 ? long_edges() : short_edges();
    // 6, 11, 16, ...: no size is a multiple of a vector, and no two are the same.
    for (std::size_t d = 0; d < required_.size(); ++d) {
      for (const std::int64_t edge : edges) {
        Shape shape = base();
        shape.set(required_[d]->name, edge);
        add(shape);
      }
    }
    if (required_.size() > 1) {
      for (const std::int64_t all : {0, 1, 31, 64, 97, 130}) {
        Shape shape = base();
        for (const ops::Slot* slot : required_) shape.set(slot->name, std::int64_t{all});
        add(shape);
      }
      Shape shape = base();  // deeper than any block of the innermost size
      shape.set(required_.back()->name, std::int64_t{4099});
      add(shape);
    }
    for (const ops::Slot* slot : extra_) {
      for (const std::int64_t edge : default_edges()) {
        for (const std::int64_t size : {0, 1, 33, 100}) {
          Shape shape = base();
          shape.set(slot->name, edge);
          for (const ops::Slot* other : required_) shape.set(other->name, std::int64_t{size});
          add(shape);
        }
      }
    }
    with_choices();
    for (const std::string_view text : op_.edge_shapes) {
      const auto shape = parse_shape(text);
      FULCRUM_ASSERT(shape.ok() && ops::resolve(op_, *shape).ok());  // an op's own edges must be valid
      add(*shape);
    }
    return shapes_;
  }

 private:
  Shape base() const {
    Shape shape;
    std::int64_t size = 6;
    for (const ops::Slot* slot : required_) {
      shape.set(slot->name, required_.size() == 1 ? std::int64_t{100} : size);
      size += 5;
    }
    return shape;
  }

  /// Elements of all buffers. Edges are about remainders, not about size, and each is run hundreds of times.
  static constexpr std::int64_t kLargestProblem = 1'000'000;

  bool is_small(const Args& args) const {
    std::int64_t elements = 0;
    for (int slot = 0; slot < op_.pointers(); ++slot) elements += op_.extent(args, slot);
    return elements <= kLargestProblem;
  }

  /// Shapes an op's own rules refuse are not edges.
  void add(const Shape& shape) {
    const auto args = ops::resolve(op_, shape);
    if (!args.ok() || !is_small(*args)) return;
    const Shape full = *ops::complete(op_, shape);
    if (seen_.insert(full.text()).second) shapes_.push_back(full);
  }

  void with_choices() {
    const std::vector<Shape> plain = shapes_;
    for (const ops::Slot* slot : choices_) {
      for (std::size_t c = 1; c < slot->choices.size(); ++c) {
        for (Shape shape : plain) {
          shape.set(slot->name, std::string(slot->choices[c]));
          add(shape);
        }
      }
    }
  }

  const ops::Op& op_;
  std::vector<const ops::Slot*> required_, extra_, choices_;
  std::vector<Shape> shapes_;
  std::set<std::string> seen_;
};

inline std::vector<Shape> edge_shapes(const ops::Op& op) { return ShapeBuilder(op).build(); }

}  // namespace fulcrum::test
