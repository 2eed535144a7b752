// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// More than 2^31 elements on the device: data is made there, results are read around the places where a 32-bit index
// breaks, and every expected value follows from a handful of elements that differ from the rest.
#include <cmath>
#include <iterator>

#include "conformance/device.h"

namespace fulcrum::test {
namespace {

constexpr std::int64_t kCount = (std::int64_t{1} << 31) + 17;
/// Ends, both sides of 2^30 and 2^31 and of 2^31 bytes, and somewhere.
constexpr std::int64_t kPlaces[] = {0,
                                    1,
                                    (std::int64_t{1} << 29) - 1,
                                    std::int64_t{1} << 29,
                                    (std::int64_t{1} << 30) - 1,
                                    std::int64_t{1} << 30,
                                    1'234'567'891,
                                    (std::int64_t{1} << 31) - 1,
                                    std::int64_t{1} << 31,
                                    kCount - 1};

class DeviceHuge : public ::testing::TestWithParam<backends::Kernel> {
 protected:
  const backends::Kernel& kernel() const { return GetParam(); }
  const fulcrum_backend& table() const { return kernel().backend().table(); }

  /// Dims and scalars; the caller sets pointers (vec_add: a, b, len, out).
  Args args_for(std::string_view shape) const {
    const ops::Op& op = op_of(kernel().op());
    const auto args = ops::resolve(op, *ops::complete(op, shape_of(shape)));
    FULCRUM_ASSERT(args.ok());
    return *args;
  }
  std::unique_ptr<DeviceBuffer> buffer(std::int64_t count, int byte) const {
    auto made = std::make_unique<DeviceBuffer>(table(), static_cast<std::size_t>(count) * sizeof(float));
    if (!made->ok()) return nullptr;
    made->fill(byte);
    return made;
  }
  static void put(const DeviceBuffer& buffer, std::int64_t place, float value) {
    buffer.put(place, std::span(&value, 1));
  }
  static float get(const DeviceBuffer& buffer, std::int64_t place) { return buffer.get(place, 1).front(); }
  std::string shape() const { return fmt::format("n={}", kCount); }
};

#define SKIP_WITHOUT_MEMORY(buffer) \
  if (!(buffer)) GTEST_SKIP() << "SKIPPED: the device has no room for " << kCount << " floats"

std::string huge_name_of(const ::testing::TestParamInfo<backends::Kernel>& info) {
  return test_name(info.param);
}
bool is_f32(const fulcrum_kernel& kernel) { return !kernel.dtype || !strcmp(kernel.dtype, "f32"); }

TEST(DeviceHugeCalls, NeedADevice) {
  if (device_backends().empty()) {
    GTEST_SKIP() << "SKIPPED: no GPU backend is available here; `fulcrum doctor` says why";
  }
}

#define FULCRUM_HUGE(suite, which)                                                            \
  class suite : public DeviceHuge {};                                                         \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(suite);                                       \
  INSTANTIATE_TEST_SUITE_P(                                                                   \
      Past31Bits, suite,                                                                      \
      ::testing::ValuesIn(device_kernels([](const ops::Op& op, const fulcrum_kernel& entry) { \
        return op.name == which && is_f32(entry);                                             \
      })),                                                                                    \
      huge_name_of)

FULCRUM_HUGE(HugeAdd, "vec_add");
FULCRUM_HUGE(HugeRelu, "relu");
FULCRUM_HUGE(HugeDot, "dot");
FULCRUM_HUGE(HugeSoftmax, "softmax");

TEST_P(HugeAdd, AddsPastTwoToThe31) {
  const auto a = buffer(kCount, 0), b = buffer(kCount, 0), out = buffer(kCount, 0xFF);
  SKIP_WITHOUT_MEMORY(a && b && out);
  float value = 1;
  for (const std::int64_t place : kPlaces) {
    put(*a, place, value);
    put(*b, place, 0.5F);
    value += 1;
  }
  Args args = args_for(shape());
  args.ptr[0] = a->data();
  args.ptr[1] = b->data();
  args.ptr[3] = out->data();
  ASSERT_NO_FATAL_FAILURE(run_on_device(kernel(), args));
  value = 1;
  for (const std::int64_t place : kPlaces) {
    EXPECT_EQ(get(*out, place), value + 0.5F) << place;
    value += 1;
  }
  EXPECT_EQ(get(*out, kCount - 2), 0) << "an element of zeros";
}

TEST_P(HugeRelu, KeepsPastTwoToThe31) {
  const auto x = buffer(kCount, 0), out = buffer(kCount, 0xFF);
  SKIP_WITHOUT_MEMORY(x && out);
  float value = 3;
  for (const std::int64_t place : kPlaces) {
    put(*x, place, value);
    value = -value - 1;
  }
  Args args = args_for(shape());
  args.ptr[0] = x->data();
  args.ptr[1] = out->data();
  ASSERT_NO_FATAL_FAILURE(run_on_device(kernel(), args));
  value = 3;
  for (const std::int64_t place : kPlaces) {
    EXPECT_EQ(get(*out, place), std::max(value, 0.0F)) << place;
    value = -value - 1;
  }
  EXPECT_EQ(get(*out, kCount - 2), 0) << "an element of zeros";
}

/// Powers of two at the places: each one that is missed or counted twice changes the sum, which is exact.
TEST_P(HugeDot, SumsPastTwoToThe31) {
  const auto a = buffer(kCount, 0), b = buffer(kCount, 0), out = buffer(1, 0xFF);
  SKIP_WITHOUT_MEMORY(a && b && out);
  float value = 1, sum = 0;
  for (const std::int64_t place : kPlaces) {
    put(*a, place, value);
    put(*b, place, 3);
    sum += 3 * value;
    value *= 4;
  }
  ASSERT_LT(sum, 0x1p24F);
  Args args = args_for(shape());
  args.ptr[0] = a->data();
  args.ptr[1] = b->data();
  args.ptr[2] = out->data();
  ASSERT_NO_FATAL_FAILURE(run_on_device(kernel(), args));
  EXPECT_EQ(get(*out, 0), sum);
}

/// Zeros, and a 20 at each place: exp(20) is a fifth of all the ones, so that a missed place shows in every output.
TEST_P(HugeSoftmax, NormalisesPastTwoToThe31) {
  Args args = args_for(shape());
  if (!kernel().supports(args)) GTEST_SKIP() << "a variant for shorter rows";
  const auto x = buffer(kCount, 0), out = buffer(kCount, 0xFF);
  SKIP_WITHOUT_MEMORY(x && out);
  for (const std::int64_t place : kPlaces) put(*x, place, 20);
  args.ptr[0] = x->data();
  args.ptr[1] = out->data();
  ASSERT_NO_FATAL_FAILURE(run_on_device(kernel(), args));
  const auto places = static_cast<double>(std::size(kPlaces));
  const double sum = places + (static_cast<double>(kCount) - places) * std::exp(-20.0);
  constexpr double kTolerance = 1e-5;
  for (const std::int64_t place : kPlaces) EXPECT_NEAR(get(*out, place) * sum, 1, kTolerance) << place;
  const double rest = std::exp(-20.0) / sum;
  for (const std::int64_t place : {kCount - 2, kCount / 2, std::int64_t{7}}) {
    EXPECT_NEAR(get(*out, place) / rest, 1, kTolerance) << place;
  }
}

}  // namespace
}  // namespace fulcrum::test
