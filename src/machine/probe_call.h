// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One probe kernel on one or on all threads, with arguments that can be changed between calls.
#pragma once

#include <fulcrum/machine.h>

namespace fulcrum::machine {

class ProbeCall {
 public:
  /// The kernel of `backend`, checked on a small problem with each of the instruction sets; the last one stays forced.
  /// `threads` above 1: contiguous slices of its pieces.
  static Result<std::shared_ptr<ProbeCall>> make(std::string_view op, std::string_view backend,
                                                 std::string_view variant, int threads,
                                                 const std::vector<std::string>& isas = {});

  /// Arguments for n elements, defaults filled in, pointers null.
  Result<Args> arguments(std::int64_t n) const;
  void run(const Args& args);
  const ops::Op& op() const { return *op_; }

 private:
  ProbeCall(const ops::Op* op, const fulcrum_kernel* kernel, int threads)
      : op_(op), kernel_(kernel), threads_(threads) {}
  Status check(const std::string& name);

  const ops::Op* op_;
  const fulcrum_kernel* kernel_;
  int threads_;
  std::vector<std::byte> scratch_ = {};
};

/// "1 thread", "16 threads".
std::string count_of_threads(int threads);

}  // namespace fulcrum::machine
