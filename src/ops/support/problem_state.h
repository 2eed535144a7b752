// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a Problem holds: buffers by pointer slot, the arguments a kernel gets, and those the reference reads (which
// see inputs as they were before an in-place call wrote over them).
#pragma once

#include <fulcrum/ops.h>

#include "ops/support/guarded_buffer.h"

namespace fulcrum::ops {

struct Problem::State {
  const Op* op = nullptr;
  Shape shape;
  Options options;
  Args args{};
  Args truth_args{};
  std::shared_ptr<const void> prepared;

  struct Pointer {
    const Slot* slot = nullptr;
    DType dtype = DType::f32;  // of the elements: the slot's or the shape's
    GuardedBuffer buffer;
    std::vector<std::byte> pristine;  // a copy of data that calls overwrite
    std::vector<void*> table;         // list form: one pointer a vector
    std::vector<void*> truth_table;
    std::vector<float>
        widened;             // what the reference reads in place of an input of the shape's 16- or 8-bit type
    std::uint64_t hash = 0;  // of an input that calls must not change
    int shares = -1;         // in place: the pointer slot whose buffer this output writes to

    bool is_output() const { return slot->kind != SlotKind::in; }
    bool holds_levels() const {
      return slot->follows_dtype && dtype == DType::u8 && slot->kind != SlotKind::out && !buffer.empty();
    }
  };
  std::vector<Pointer> pointers;  // one a pointer slot
  bool drawn = true;              // inputs are those of the fills, not the caller's

  Status allocate();
  void draw();
  void fill_inputs();
  void bind();
  void widen();
  void remember();
  Status prepare();
};

}  // namespace fulcrum::ops
