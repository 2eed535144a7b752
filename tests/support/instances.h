// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Every way to run an op on this machine, and how to run one on given inputs.
#pragma once

#include <fmt/format.h>
#include <fulcrum/backends/dtypes.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace fulcrum::test {

/// Runs the SIMD kernels on one instruction set while it lives.
class ForcedIsa {
 public:
  explicit ForcedIsa(const std::string& isa) {
    const Status status = isa.empty() ? Status{} : backends::force_isa(isa);
    EXPECT_TRUE(status.ok()) << isa;
  }
  ~ForcedIsa() { (void)backends::force_isa(""); }
  ForcedIsa(const ForcedIsa&) = delete;
  ForcedIsa& operator=(const ForcedIsa&) = delete;
};

/// Kernels of an op on host backends.
inline std::vector<backends::Kernel> host_kernels(std::string_view op) {
  auto kernels = backends::kernels(op);
  EXPECT_TRUE(kernels.ok());
  std::erase_if(*kernels, [](const backends::Kernel& kernel) {
    return kernel.backend().kind() != "cpu" || kernel.backend().name() == "peers";
  });
  return *kernels;
}

/// The instruction sets a kernel follows; one empty name when it has its own.
inline std::vector<std::string> isas_of(const backends::Kernel& kernel) {
  std::vector<std::string> result;
  for (const std::string& isa : backends::isas()) {
    const ForcedIsa forced(isa);
    if (kernel.isa() == isa) result.push_back(isa);
  }
  return result.empty() ? std::vector<std::string>{""} : result;
}

/// "relu_simd_default", for the name of a test.
inline std::string test_name(const backends::Kernel& kernel) {
  std::string text = kernel.name();
  if (kernel.precision() != "fp32") text += fmt::format("_{}", kernel.precision());
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return text;
}

inline const ops::Op& op_of(std::string_view name) {
  const auto op = ops::find(name);
  FULCRUM_ASSERT(op.ok());
  return **op;
}

inline Shape shape_of(std::string_view text) {
  const auto shape = parse_shape(text);
  FULCRUM_ASSERT(shape.ok());
  return *shape;
}

/// With the plan for any data where `for_any`; none where the kernel has no such plan for the shape.
inline Result<std::optional<backends::Call>> make_call(const backends::Kernel& kernel, const Args& args,
                                                       bool for_any) {
  if (for_any) return backends::Call::make_for_any(kernel, args);
  FULCRUM_TRY(backends::Call call, backends::Call::make(kernel, args));
  return std::optional<backends::Call>(std::move(call));
}

/// One call on the problem's arguments; false when the kernel does not support the shape or its type.
inline bool run(const backends::Kernel& kernel, ops::Problem& problem, std::int64_t count = 1,
                bool for_any = false) {
  if (!backends::takes_dtype(kernel, problem.op(), problem.shape().dtype)) return false;
  auto call = make_call(kernel, problem.args(), for_any);
  if (!call.ok()) {
    EXPECT_EQ(call.error().code, Code::unsupported) << call.error().message;
    return false;
  }
  if (!*call) return false;
  const fulcrum_status status = (*call)->run(count);
  EXPECT_EQ(status.code, FULCRUM_OK) << (status.message ? status.message : "");
  return true;
}

inline std::span<float> floats(ops::Problem& problem, int slot) {
  const auto bytes = problem.buffer(slot);
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

inline void set(ops::Problem& problem, int slot, const std::vector<float>& values) {
  const auto target = floats(problem, slot);
  ASSERT_EQ(target.size(), values.size());
  std::copy(values.begin(), values.end(), target.begin());
}

/// Bytes of all outputs, one slot after the other.
inline std::vector<std::byte> output_bytes(ops::Problem& problem) {
  std::vector<std::byte> result;
  int pointer = 0;
  for (const ops::Slot& slot : problem.op().slots) {
    if (slot.kind != ops::SlotKind::in && slot.kind != ops::SlotKind::out &&
        slot.kind != ops::SlotKind::inout)
      continue;
    const auto bytes = problem.buffer(pointer++);
    if (slot.kind != ops::SlotKind::in) result.insert(result.end(), bytes.begin(), bytes.end());
  }
  return result;
}

}  // namespace fulcrum::test
