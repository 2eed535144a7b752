// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory for calls that are only timed: one block, made and touched once, in which the operands of one call after the
// other lie, with inputs that look like the op's own but cost no more than a copy.
#pragma once

#include <fulcrum/ops.h>

#include <memory>

namespace fulcrum::executor {

/// Gives a block back to whoever made it.
struct FreeBlock {
  const fulcrum_backend* device = nullptr;  // null: plain memory
  void operator()(std::byte* block) const;
};

class Workbench {
 public:
  /// `device`: the block is page-locked by it, as buffers are; null, or when it cannot: plain memory.
  explicit Workbench(std::int64_t bytes, const fulcrum_backend* device = nullptr);
  /// Pointers into the block for every slot that a call must have. Error: it does not fit, or its operands cannot be made
  /// without preparation.
  Result<Args> bind(const ops::Op& op, Args args, DType dtype);
  std::int64_t bytes() const { return bytes_; }
  /// Of the operands of one call, as bind() lays them out.
  static std::int64_t bytes_of_call(const ops::Op& op, const Args& args, DType dtype);

 private:
  std::int64_t bytes_;
  using Block = std::unique_ptr<std::byte[], FreeBlock>;
  Block block_;
  std::shared_ptr<const void> prepared_;
};

}  // namespace fulcrum::executor
