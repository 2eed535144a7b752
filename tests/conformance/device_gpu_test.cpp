// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Every kernel of every device at every edge, with NaN and Inf among the inputs, against the fp64 reference: results,
// guard bytes, untouched inputs, same bits on every run, in batches, in place, at odd addresses and in replays.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "conformance/device.h"

namespace fulcrum::test {
namespace {

using Special = ops::Problem::Special;
constexpr Special kSpecials[] = {Special::none, Special::nan, Special::infinity, Special::mixed};

std::string where(const ops::Problem& problem, Special special) {
  return fmt::format("{} with {} special={}", problem.op().name, problem.shape().text(),
                     static_cast<int>(special));
}

class DeviceTest : public ::testing::TestWithParam<backends::Kernel> {
 protected:
  const backends::Kernel& kernel() const { return GetParam(); }
  const ops::Op& op() const { return op_of(kernel().op()); }

  /// A problem on the device; nothing when the kernel does not take the shape.
  std::optional<backends::DeviceCall> place(const ops::Problem& problem) const {
    auto call = backends::DeviceCall::make(kernel(), problem.args());
    if (call.ok()) return std::move(*call);
    EXPECT_EQ(call.error().code, Code::unsupported)
        << where(problem, Special::none) << ": " << call.error().message;
    return std::nullopt;
  }

  /// Bytes of the outputs after `count` calls on fresh operands.
  void outputs_after(backends::DeviceCall& call, ops::Problem& problem, std::int64_t count,
                     std::vector<std::byte>& bytes) const {
    problem.reset();
    ASSERT_TRUE(call.upload().ok());
    const Status ran = call.run(count);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    const Status back = call.download();
    ASSERT_TRUE(back.ok()) << where(problem, Special::none) << ": " << back.error().message;
    bytes = output_bytes(problem);
  }

  /// Runs and checks all shapes with all specials; stops at the first failure.
  void check_all_shapes(const ops::Problem::Options& base) const {
    check_shapes(shapes_for(kernel()), kSpecials, base);
  }

  void check_shapes(const std::vector<Shape>& shapes, std::span<const Special> specials,
                    const ops::Problem::Options& base) const {
    std::int64_t ran = 0;
    double worst = 0;
    for (const Shape& shape : shapes) {
      for (const Special special : specials) {
        ops::Problem::Options options = base;
        options.special = special;
        auto problem = ops::Problem::make(op(), shape, options);
        ASSERT_TRUE(problem.ok()) << shape.text() << ": " << problem.error().message;
        auto call = place(*problem);
        if (!call) break;
        ASSERT_TRUE(call->upload().ok());
        const Status status = call->run();
        ASSERT_TRUE(status.ok()) << where(*problem, special) << ": " << status.error().message;
        const Status back = call->download();
        ASSERT_TRUE(back.ok()) << where(*problem, special) << ": " << back.error().message;
        const Oracle oracle = problem->check(kernel().precision());
        ASSERT_TRUE(oracle.passed) << where(*problem, special) << ": " << oracle.detail;
        worst = std::max(worst, oracle.max_error_share);
        ++ran;
      }
    }
    EXPECT_GT(ran, 0) << "no shape was supported";
    std::cout << fmt::format("  {} {}: {} problems, worst error {:.2f} of what is allowed\n", kernel().name(),
                             kernel().precision(), ran, worst);
  }
};

std::string name_of(const ::testing::TestParamInfo<backends::Kernel>& info) { return test_name(info.param); }
bool any(const ops::Op&, const fulcrum_kernel&) { return true; }

TEST(Device, IsThere) {
  if (device_backends().empty()) {
    GTEST_SKIP() << "SKIPPED: no GPU backend is available here; `fulcrum doctor` says why";
  }
  EXPECT_FALSE(device_kernels(any).empty());
}

class DeviceConformance : public DeviceTest {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceConformance);
INSTANTIATE_TEST_SUITE_P(All, DeviceConformance, ::testing::ValuesIn(device_kernels(any)), name_of);

TEST_P(DeviceConformance, MatchesTheReferenceAtEveryEdge) { check_all_shapes({}); }

/// For tools that make every access a hundred times slower.
TEST_P(DeviceConformance, MatchesTheReferenceAtAFewEdges) {
  const std::vector<Shape> all = shapes_for(kernel());
  std::vector<Shape> few;
  for (std::size_t i = 1; i <= 8; ++i) few.push_back(all[i * (all.size() - 1) / 8]);
  constexpr Special kPlain[] = {Special::none};
  check_shapes(few, kPlain, {.optional_inputs = true});
}

TEST_P(DeviceConformance, GivesTheSameBitsOnEveryRunAndInABatch) {
  for (const Shape& shape : shapes_for(kernel())) {
    auto problem = ops::Problem::make(op(), shape);
    ASSERT_TRUE(problem.ok());
    auto call = place(*problem);
    if (!call) continue;
    std::vector<std::byte> first, again, batch;
    ASSERT_NO_FATAL_FAILURE(outputs_after(*call, *problem, 1, first));
    ASSERT_NO_FATAL_FAILURE(outputs_after(*call, *problem, 1, again));
    ASSERT_EQ(first, again) << "a second run: " << where(*problem, Special::none);
    ASSERT_NO_FATAL_FAILURE(outputs_after(*call, *problem, 3, batch));
    ASSERT_EQ(first, batch) << "a batch: " << where(*problem, Special::none);
  }
}

/// The standard size nearest to half a mebibyte: more than one block of threads, and cheap to compare often.
Shape replay_shape(const backends::Kernel& kernel) {
  const ops::Op& op = op_of(kernel.op());
  Shape best = shapes_for(kernel).back();
  double best_distance = INFINITY;
  for (const std::string_view text : op.default_sizes) {
    const auto given = parse_shape(text);
    if (!given.ok()) continue;
    Shape shape = *given;
    shape.dtype = best.dtype;
    const auto complete = ops::complete(op, shape);
    const auto args = complete.ok() ? ops::resolve(op, *complete) : Result<Args>(Error{});
    if (!args.ok() || !kernel.supports(*args)) continue;
    double elements = 0;
    for (int p = 0; p < op.pointers(); ++p) elements += static_cast<double>(op.extent(*args, p));
    const double distance = std::fabs(std::log((elements + 1) / 0x1p17));
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = *complete;
  }
  return best;
}

TEST_P(DeviceConformance, AThousandReplaysGiveTheSameBits) {
  constexpr int kReplays = 1000;
  const bool changes_inputs = std::any_of(op().slots.begin(), op().slots.end(), [](const ops::Slot& slot) {
    return slot.kind == ops::SlotKind::inout;
  });
  const int refresh = changes_inputs ? 1 : 50;
  auto problem = ops::Problem::make(op(), replay_shape(kernel()));
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  auto call = place(*problem);
  if (!call) GTEST_SKIP() << "the kernel takes none of the op's sizes";
  std::vector<std::byte> plain;
  ASSERT_NO_FATAL_FAILURE(outputs_after(*call, *problem, 1, plain));
  ASSERT_TRUE(problem->check(kernel().precision()).passed);
  auto replay = call->record(1);
  ASSERT_TRUE(replay.ok()) << replay.error().message;
  for (int i = 0; i < kReplays; ++i) {
    if (i % refresh == 0) {  // outputs are poison again: a replay that writes nothing is seen
      problem->reset();
      ASSERT_TRUE(call->upload().ok());
    }
    const auto seconds = replay->run();
    ASSERT_TRUE(seconds.ok()) << seconds.error().message;
    const Status back = call->download();
    ASSERT_TRUE(back.ok()) << back.error().message;
    ASSERT_EQ(plain, output_bytes(*problem)) << "replay " << i << ": " << where(*problem, Special::none);
  }
}

TEST_P(DeviceConformance, HostDataTravelsByEveryPath) {
  const std::vector<std::string> paths = backends::trip_paths(kernel().backend());
  if (paths.empty()) GTEST_SKIP() << "the backend makes no round trips";
  std::vector<Shape> shapes = {replay_shape(kernel())};
  const std::vector<Shape> edges = shapes_for(kernel());
  shapes.insert(shapes.end(), {edges[edges.size() / 3], edges[edges.size() / 2], edges.back()});
  std::int64_t ran = 0;
  for (const Shape& shape : shapes) {
    for (const std::string& path : paths) {
      auto problem = ops::Problem::make(op(), shape);
      ASSERT_TRUE(problem.ok());
      auto trip = backends::Trip::make(kernel(), problem->args(), path);
      if (!trip.ok()) {
        EXPECT_EQ(trip.error().code, Code::unsupported) << path << ": " << trip.error().message;
        continue;
      }
      for (const std::int64_t count : {1, 2}) {
        problem->reset();
        const Status status = trip->run(count);
        ASSERT_TRUE(status.ok()) << path << ": " << status.error().message;
        const Oracle oracle = problem->check(kernel().precision());
        ASSERT_TRUE(oracle.passed) << path << ", " << where(*problem, Special::none) << ": " << oracle.detail;
      }
      ++ran;
    }
  }
  EXPECT_GT(ran, 0);
}

class DeviceInPlace : public DeviceTest {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceInPlace);
INSTANTIATE_TEST_SUITE_P(ElementWise, DeviceInPlace,
                         ::testing::ValuesIn(device_kernels([](const ops::Op& op, const fulcrum_kernel&) {
                           return op.in_place;
                         })),
                         name_of);

TEST_P(DeviceInPlace, WritesOverItsInput) { check_all_shapes({.in_place = true}); }

class DevicePositions : public DeviceTest {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DevicePositions);
INSTANTIATE_TEST_SUITE_P(
    ElementWise, DevicePositions,
    ::testing::ValuesIn(device_kernels([](const ops::Op& op, const fulcrum_kernel& kernel) {
      return op.in_place && kernel.level >= 1 && (!kernel.dtype || !strcmp(kernel.dtype, "f32"));
    })),
    name_of);

TEST_P(DevicePositions, AnElementHasTheSameBitsWhereverItStands) {
  constexpr std::int64_t kSize = 5000;
  constexpr std::int64_t kSpare = 64;  // floats past the end that must stay poison
  Shape shape;
  for (const ops::Slot& slot : op().slots) {
    if (slot.kind == ops::SlotKind::dim && !slot.optional) shape.set(slot.name, kSize);
  }
  auto problem = ops::Problem::make(op(), shape);
  ASSERT_TRUE(problem.ok());
  auto call = place(*problem);
  ASSERT_TRUE(call);
  std::vector<std::byte> whole_bytes;
  ASSERT_NO_FATAL_FAILURE(outputs_after(*call, *problem, 1, whole_bytes));
  std::vector<float> whole(kSize);
  std::memcpy(whole.data(), whole_bytes.data(), whole_bytes.size());

  const fulcrum_backend& table = kernel().backend().table();
  const int output = op().pointers() - 1;
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  for (int p = 0; p < op().pointers(); ++p) {
    buffers.push_back(std::make_unique<DeviceBuffer>(table, (kSize + kSpare) * sizeof(float)));
    ASSERT_TRUE(buffers.back()->ok());
    if (p < output && problem->args().ptr[p]) buffers[p]->put(0, floats(*problem, p));
  }
  // Every pointer moved alike, and the output moved alone: vectors of 16 bytes fit neither or only one side.
  for (const std::int64_t shift : {1, 2, 3, 5, 13, 31, 100, 4999}) {
    for (const std::int64_t out_shift : {shift, std::int64_t{0}, std::int64_t{1}}) {
      SCOPED_TRACE(fmt::format("inputs moved by {}, the output by {}", shift, out_shift));
      buffers[output]->fill(0xFF);
      Args args = problem->args();
      for (int p = 0; p < op().pointers(); ++p) {
        if (args.ptr[p]) args.ptr[p] = buffers[p]->floats() + (p == output ? out_shift : shift);
      }
      const std::int64_t count = kSize - shift;
      args.dim[0] = count;
      ASSERT_NO_FATAL_FAILURE(run_on_device(kernel(), args));
      const std::vector<float> got = buffers[output]->get(0, kSize + kSpare);
      ASSERT_EQ(std::memcmp(got.data() + out_shift, whole.data() + shift, count * sizeof(float)), 0);
      std::vector<float> poison(got.size());
      std::memset(poison.data(), 0xFF, poison.size() * sizeof(float));
      ASSERT_EQ(std::memcmp(got.data(), poison.data(), out_shift * sizeof(float)), 0) << "before the output";
      ASSERT_EQ(std::memcmp(got.data() + out_shift + count, poison.data(),
                            (got.size() - static_cast<std::size_t>(out_shift + count)) * sizeof(float)),
                0)
          << "after the output";
    }
  }
}

class DeviceOptionalInputs : public DeviceTest {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceOptionalInputs);
INSTANTIATE_TEST_SUITE_P(Some, DeviceOptionalInputs,
                         ::testing::ValuesIn(device_kernels([](const ops::Op& op, const fulcrum_kernel&) {
                           return std::any_of(op.slots.begin(), op.slots.end(), [](const ops::Slot& slot) {
                             return slot.kind == ops::SlotKind::in && slot.optional &&
                                    slot.dtype == DType::f32;
                           });
                         })),
                         name_of);

TEST_P(DeviceOptionalInputs, AreUsedWhenTheyAreThere) { check_all_shapes({.optional_inputs = true}); }

class DeviceSameBits : public DeviceTest {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceSameBits);
INSTANTIATE_TEST_SUITE_P(Promised, DeviceSameBits,
                         ::testing::ValuesIn(device_kernels([](const ops::Op&, const fulcrum_kernel& kernel) {
                           return kernel.level >= 2;
                         })),
                         name_of);

TEST_P(DeviceSameBits, OnTheDeviceAsOnTheScalarBackend) {
  const auto all_plain = backends::kernels(kernel().op(), "scalar");
  ASSERT_TRUE(all_plain.ok()) << all_plain.error().message;
  const auto plain = std::find_if(all_plain->begin(), all_plain->end(), [&](const backends::Kernel& other) {
    return other.dtype() == kernel().dtype();
  });
  ASSERT_NE(plain, all_plain->end()) << "no scalar kernel of this type";
  std::int64_t compared = 0;
  for (const Shape& shape : shapes_for(kernel())) {
    auto problem = ops::Problem::make(op(), shape);
    ASSERT_TRUE(problem.ok());
    auto call = place(*problem);
    if (!call) continue;
    std::vector<std::byte> bits;
    ASSERT_NO_FATAL_FAILURE(outputs_after(*call, *problem, 1, bits));
    problem->reset();
    if (!run(*plain, *problem)) continue;
    ASSERT_EQ(bits, output_bytes(*problem)) << where(*problem, Special::none);
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace fulcrum::test
