// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The CUDA module on a device: memory, pools, streams, marks, recorded batches, the device's state.
#include <fulcrum/backends.h>
#include <fulcrum/backends/device.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/on_device.h"

namespace fulcrum::backends {
namespace {

constexpr std::size_t kTebibyte = std::size_t{1} << 40;

class CudaOnADevice : public OnDevice {
 protected:
  const fulcrum_backend& table() const { return backend_->table(); }
  Json pool(const char* name) const { return device_state(*backend_).at(name); }
};

void expect_ok(const fulcrum_status& status) {
  EXPECT_EQ(status.code, FULCRUM_OK) << (status.message ? status.message : "");
}

/// Memory of the module while it lives.
class Memory {
 public:
  Memory(const fulcrum_backend& table, int kind, std::size_t bytes) : table_(table), kind_(kind) {
    expect_ok(table.allocate(kind, bytes, &pointer_));
  }
  Memory(const Memory&) = delete;
  ~Memory() { table_.release(kind_, pointer_); }
  void* get() const { return pointer_; }

 private:
  const fulcrum_backend& table_;
  int kind_;
  void* pointer_ = nullptr;
};

/// An op's call on the device, with the host's problem behind it.
struct Prepared {
  ops::Problem problem;
  DeviceCall call;
};

Result<Prepared> prepare(const std::string& op_name, const std::string& shape_text, int sets) {
  FULCRUM_TRY(const ops::Op* op, ops::find(op_name));
  FULCRUM_TRY(const Shape shape, parse_shape(shape_text));
  FULCRUM_TRY(const std::vector<Kernel> found, kernels(op_name, "cuda"));
  const auto plain = std::find_if(found.begin(), found.end(), [](const Kernel& kernel) {
    return kernel.precision() == "fp32" && kernel.dtype() == "f32";
  });
  if (plain == found.end()) return Error{Code::not_found, "no fp32 kernel of " + op_name, ""};
  FULCRUM_TRY(ops::Problem problem, ops::Problem::make(*op, shape));
  FULCRUM_TRY(DeviceCall call, DeviceCall::make(*plain, problem.args(), sets));
  FULCRUM_CHECK(call.upload());
  return Prepared{std::move(problem), std::move(call)};
}

TEST_F(CudaOnADevice, EveryKindOfMemoryKeepsBytesOnAWayThroughAllOfThem) {
  constexpr std::size_t kBytes = (1 << 20) + 3;
  std::vector<unsigned char> sent(kBytes), back(kBytes, 0);
  for (std::size_t i = 0; i < kBytes; ++i) sent[i] = static_cast<unsigned char>(i * 31 + i / 251);
  const void* from = sent.data();
  std::vector<std::unique_ptr<Memory>> stations;
  for (const int kind : {FULCRUM_MEMORY_DEVICE, FULCRUM_MEMORY_PINNED, FULCRUM_MEMORY_MANAGED,
                         FULCRUM_MEMORY_HOST, FULCRUM_MEMORY_DEVICE}) {
    stations.push_back(std::make_unique<Memory>(table(), kind, kBytes));
    ASSERT_NE(stations.back()->get(), nullptr) << kind;
    expect_ok(table().copy(stations.back()->get(), from, kBytes, nullptr));
    expect_ok(table().stream_wait(nullptr));
    from = stations.back()->get();
  }
  expect_ok(table().copy(back.data(), from, kBytes, nullptr));
  expect_ok(table().stream_wait(nullptr));
  EXPECT_EQ(sent, back);
}

TEST_F(CudaOnADevice, FillSetsEveryByteAndNoOther) {
  constexpr std::size_t kBytes = 4097;
  const Memory memory(table(), FULCRUM_MEMORY_DEVICE, kBytes + 1);
  std::vector<unsigned char> seen(kBytes + 1);
  expect_ok(table().fill(memory.get(), 0x11, kBytes + 1, nullptr));
  expect_ok(table().fill(memory.get(), 0xA7, kBytes, nullptr));
  expect_ok(table().copy(seen.data(), memory.get(), kBytes + 1, nullptr));
  expect_ok(table().stream_wait(nullptr));
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 0xA7), static_cast<std::ptrdiff_t>(kBytes));
  EXPECT_EQ(seen.back(), 0x11);
}

TEST_F(CudaOnADevice, OutOfMemoryIsAnErrorValueAndWorkGoesOn) {
  for (const int kind : {FULCRUM_MEMORY_DEVICE, FULCRUM_MEMORY_PINNED}) {
    void* pointer = this;
    const fulcrum_status status = table().allocate(kind, 64 * kTebibyte, &pointer);
    EXPECT_EQ(status.code, FULCRUM_OUT_OF_MEMORY) << kind;
    EXPECT_NE(std::strstr(status.message, "MiB"), nullptr) << status.message;
    EXPECT_EQ(pointer, nullptr);
  }
  void* pointer = this;
  EXPECT_EQ(table().allocate(FULCRUM_MEMORY_DEVICE, kTebibyte, &pointer).code, FULCRUM_OUT_OF_MEMORY);
  auto after = prepare("vec_add", "n=10007", 1);
  ASSERT_TRUE(after.ok()) << after.error().message;
  ASSERT_TRUE(after->call.run().ok());
  ASSERT_TRUE(after->call.download().ok());
  const Oracle oracle = after->problem.check();
  EXPECT_TRUE(oracle.passed) << oracle.detail;
}

TEST_F(CudaOnADevice, AWarmCallAsksTheDriverForNoMemory) {
  const auto once = [] {
    auto prepared = prepare("softmax", "rows=64,n=1000", 2);
    ASSERT_TRUE(prepared.ok()) << prepared.error().message;
    ASSERT_TRUE(prepared->call.run(3).ok());
  };
  once();
  const Json before = pool("device_pool");
  for (int i = 0; i < 5; ++i) once();
  const Json after = pool("device_pool");
  EXPECT_EQ(before["source_calls"], after["source_calls"]);
  EXPECT_EQ(before["misses"], after["misses"]);
  EXPECT_GT(after["hits"].get<std::int64_t>(), before["hits"].get<std::int64_t>());
  EXPECT_EQ(before["in_use_bytes"], after["in_use_bytes"]) << "something was not given back";
  EXPECT_EQ(after["strays"], 0);
}

TEST_F(CudaOnADevice, PinnedMemoryComesFromItsPoolToo) {
  { const Memory first(table(), FULCRUM_MEMORY_PINNED, 100000); }
  const Json before = pool("pinned_pool");
  { const Memory second(table(), FULCRUM_MEMORY_PINNED, 100000); }
  const Json after = pool("pinned_pool");
  EXPECT_EQ(before["source_calls"], after["source_calls"]);
  EXPECT_EQ(after["hits"].get<std::int64_t>(), before["hits"].get<std::int64_t>() + 1);
}

class CudaReplays : public CudaOnADevice,
                    public ::testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(CudaReplays, AThousandAreTheSameBits) {
  const auto& [op, shape] = GetParam();
  auto prepared = prepare(op, shape, 2);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  auto replay = prepared->call.record(4);
  ASSERT_TRUE(replay.ok()) << replay.error().message;
  // Outputs are the last pointers of an op, and these ops have one.
  const std::span<std::byte> result = prepared->problem.buffer(prepared->problem.op().pointers() - 1);
  ASSERT_FALSE(result.empty());
  std::vector<std::byte> first;
  for (int i = 0; i < 1000; ++i) {
    const auto seconds = replay->run();
    ASSERT_TRUE(seconds.ok()) << i << ": " << seconds.error().message;
    const Status back = prepared->call.download(i % 2);
    ASSERT_TRUE(back.ok()) << i << ": " << back.error().message;
    if (first.empty()) {
      const Oracle oracle = prepared->problem.check();
      ASSERT_TRUE(oracle.passed) << oracle.detail;
      first.assign(result.begin(), result.end());
    }
    ASSERT_EQ(std::memcmp(first.data(), result.data(), first.size()), 0) << "replay " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, CudaReplays,
                         ::testing::Values(std::pair{"vec_add", "n=10007"},
                                           std::pair{"softmax", "rows=33,n=1000"},
                                           std::pair{"softmax", "rows=2048,n=1024"},
                                           std::pair{"dot", "n=5000001"},
                                           std::pair{"softmax", "rows=1,n=300001"}),
                         [](const auto& info) {
                           std::string name = std::string(info.param.first) + "_" + info.param.second;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return c == '=' || c == ','; }, '_');
                           return name;
                         });

fulcrum_status refuses(const fulcrum_args*, void*, std::int64_t) {
  return fulcrum_status{FULCRUM_INVALID_ARGUMENT, "refused by the test"};
}

/// A kernel may not wait: a recording cannot contain it.
fulcrum_status waits(const fulcrum_args* args, void* stream, std::int64_t) {
  return static_cast<const fulcrum_backend*>(args->prepared)->stream_wait(stream);
}

TEST_F(CudaOnADevice, AKernelThatCannotBeRecordedIsAnErrorAndTheNextRecordingWorks) {
  fulcrum_args args{};
  args.prepared = &table();
  void* graph = this;
  fulcrum_kernel kernel{.op = "relu", .variant = "test", .run = refuses};
  const fulcrum_status refused = table().graph_open(&kernel, &args, 1, 5, &graph);
  EXPECT_EQ(refused.code, FULCRUM_INVALID_ARGUMENT);
  EXPECT_STREQ(refused.message, "refused by the test");
  EXPECT_EQ(graph, nullptr);
  kernel.run = waits;
  EXPECT_EQ(table().graph_open(&kernel, &args, 1, 5, &graph).code, FULCRUM_DEVICE_ERROR);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(table().graph_open(&kernel, &args, 1, 0, &graph).code, FULCRUM_INVALID_ARGUMENT);

  auto prepared = prepare("relu", "n=1000", 1);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  auto replay = prepared->call.record(2);
  ASSERT_TRUE(replay.ok()) << replay.error().message;
  EXPECT_TRUE(replay->run().ok());
  ASSERT_TRUE(prepared->call.download().ok());
  EXPECT_TRUE(prepared->problem.check().passed);
}

TEST_F(CudaOnADevice, MarksOnAStreamSpanTheWorkBetweenThem) {
  void *stream = nullptr, *begin = nullptr, *end = nullptr;
  expect_ok(table().stream_open(&stream));
  expect_ok(table().mark_open(&begin));
  expect_ok(table().mark_open(&end));
  {
    const Memory memory(table(), FULCRUM_MEMORY_DEVICE, 64 << 20);
    double seconds = -1;
    EXPECT_NE(table().mark_seconds(begin, end, &seconds).code, FULCRUM_OK) << "neither was recorded";
    expect_ok(table().mark_record(begin, stream));
    expect_ok(table().fill(memory.get(), 1, 64 << 20, stream));
    expect_ok(table().mark_record(end, stream));
    expect_ok(table().mark_seconds(begin, end, &seconds));
    EXPECT_TRUE(std::isfinite(seconds));
    EXPECT_GE(seconds, 0);
    expect_ok(table().stream_wait(stream));
  }
  table().mark_close(begin);
  table().mark_close(end);
  table().stream_close(stream);
}

TEST_F(CudaOnADevice, StateAndDescriptionSayWhatTheDeviceIsAndDoes) {
  const Json facts = backend_->describe();
  EXPECT_GT(facts.at("sms").get<int>(), 0);
  EXPECT_GT(facts.at("memory_bytes").get<std::int64_t>(), 0);
  EXPECT_GE(std::stod(facts.at("compute_capability").get<std::string>()), 8.0);
  for (const char* library : {"cublasLt", "cudnn", "cupti", "nvml"}) {
    const Json& entry = facts.at("libraries").at(library);
    EXPECT_NE(entry.contains("path"), entry.contains("why_not")) << library << ": " << entry.dump();
    EXPECT_EQ(entry.contains("why_not"), entry.contains("advice")) << library;
  }
  EXPECT_EQ(facts["libraries"]["cupti"]["loaded"], false)
      << "a process that measures bare calls stays without it";
  const Json state = device_state(*backend_);
  EXPECT_TRUE(state.contains("device_pool")) << state.dump();
  if (!facts["libraries"]["nvml"]["loaded"].get<bool>()) GTEST_SKIP() << "SKIPPED: no NVML here";
  EXPECT_GT(state.at("sm_hz").get<double>(), 1e8);
  EXPECT_GE(state.at("max_sm_hz").get<double>(), 1e8);
  EXPECT_GT(state.at("temperature_c").get<double>(), 0);
  EXPECT_GE(state.at("other_processes").get<std::int64_t>(), 0);
  EXPECT_FALSE(state.at("driver").get<std::string>().empty());
}

/// In a process of its own: the module looks once.
TEST_F(CudaOnADevice, AnEmptyListOfVisibleDevicesIsTheReasonThatDoctorGives) {
  if (!std::filesystem::exists(FULCRUM_PROGRAM)) GTEST_SKIP() << "SKIPPED: the program was not built";
  ProcessOptions options;
  options.environment = {{"CUDA_VISIBLE_DEVICES", ""}};
  const auto doctor = run_process({FULCRUM_PROGRAM, "doctor", "--json", "-"}, options);
  ASSERT_TRUE(doctor.ok()) << doctor.error().message;
  EXPECT_EQ(doctor->exit_code, 0) << doctor->standard_error;
  EXPECT_NE(doctor->standard_output.find("CUDA_VISIBLE_DEVICES is set and empty"), std::string::npos)
      << doctor->standard_output;
  const auto ops = run_process({FULCRUM_PROGRAM, "ops"}, options);
  ASSERT_TRUE(ops.ok()) << ops.error().message;
  EXPECT_EQ(ops->exit_code, 0) << ops->standard_error;
}

}  // namespace
}  // namespace fulcrum::backends
