// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of the backends with memory of their own, and plain buffers there for tests that need odd addresses.
#pragma once

#include <fulcrum/backends/device.h>

#include <map>

#include "conformance/shapes.h"
#include "support/instances.h"

namespace fulcrum::test {

inline std::vector<const backends::Backend*> device_backends() {
  std::vector<const backends::Backend*> result;
  for (const backends::Backend* backend : backends::all()) {
    if (backend->kind() == "gpu" && backend->available() && backends::has_memory(*backend))
      result.push_back(backend);
  }
  return result;
}

using Wanted = bool (*)(const ops::Op&, const fulcrum_kernel&);

/// Kernels of every op on every device, those that `wanted` takes.
inline std::vector<backends::Kernel> device_kernels(Wanted wanted) {
  std::vector<backends::Kernel> result;
  for (const backends::Backend* backend : device_backends()) {
    for (const ops::Op* op : ops::all()) {
      if (!op->reference && !op->verify) continue;
      const auto kernels = backends::kernels(op->name, backend->name());
      if (!kernels.ok()) continue;
      for (const backends::Kernel& kernel : *kernels) {
        if (wanted(*op, kernel.entry())) result.push_back(kernel);
      }
    }
  }
  return result;
}

/// The edges of an op in the type that a kernel takes.
inline std::vector<Shape> shapes_for(const backends::Kernel& kernel) {
  static std::map<std::string, std::vector<Shape>> known;
  auto& edges = known[std::string(kernel.op())];
  if (edges.empty()) edges = edge_shapes(op_of(kernel.op()));
  const auto dtype = parse_enum<DType>("dtype", kernel.dtype());
  FULCRUM_ASSERT(dtype.ok());
  std::vector<Shape> result = edges;
  for (Shape& shape : result) shape.dtype = *dtype;
  return result;
}

/// Memory of a device while it lives.
class DeviceBuffer {
 public:
  DeviceBuffer(const fulcrum_backend& table, std::size_t bytes) : table_(table), bytes_(bytes) {
    status_ = table.allocate(FULCRUM_MEMORY_DEVICE, bytes, &pointer_);
    if (status_.code != FULCRUM_OK) pointer_ = nullptr;
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() {
    if (pointer_) table_.release(FULCRUM_MEMORY_DEVICE, pointer_);
  }
  bool ok() const { return pointer_ != nullptr; }
  std::byte* data() const { return static_cast<std::byte*>(pointer_); }
  float* floats() const { return static_cast<float*>(pointer_); }

  void fill(int byte) const {
    ASSERT_EQ(table_.fill(pointer_, byte, bytes_, nullptr).code, FULCRUM_OK);
    ASSERT_EQ(table_.stream_wait(nullptr).code, FULCRUM_OK);
  }
  /// To and from `index`, counted in floats.
  void put(std::int64_t index, std::span<const float> values) const {
    ASSERT_EQ(table_.copy(floats() + index, values.data(), values.size_bytes(), nullptr).code, FULCRUM_OK);
    ASSERT_EQ(table_.stream_wait(nullptr).code, FULCRUM_OK);
  }
  std::vector<float> get(std::int64_t index, std::int64_t count) const {
    std::vector<float> values(static_cast<std::size_t>(count));
    EXPECT_EQ(table_.copy(values.data(), floats() + index, values.size() * sizeof(float), nullptr).code,
              FULCRUM_OK);
    EXPECT_EQ(table_.stream_wait(nullptr).code, FULCRUM_OK);
    return values;
  }

 private:
  const fulcrum_backend& table_;
  std::size_t bytes_;
  void* pointer_ = nullptr;
  fulcrum_status status_{};
};

/// One call on pointers of the device, with a plan made for it; finished when it returns.
inline void run_on_device(const backends::Kernel& kernel, Args args) {
  const fulcrum_kernel& entry = kernel.entry();
  args.plan = nullptr;
  if (entry.plan) {
    const fulcrum_status status = entry.plan(&entry, &args, &args.plan);
    ASSERT_EQ(status.code, FULCRUM_OK) << (status.message ? status.message : "");
  }
  const fulcrum_status status = entry.run(&args, nullptr, 1);
  const fulcrum_status waited = kernel.backend().table().stream_wait(nullptr);
  if (entry.drop && args.plan) entry.drop(args.plan);
  ASSERT_EQ(status.code, FULCRUM_OK) << (status.message ? status.message : "");
  ASSERT_EQ(waited.code, FULCRUM_OK) << (waited.message ? waited.message : "");
}

}  // namespace fulcrum::test
