// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Every unary op against its fp64 reference: all 2^32 floats on the best instruction set, every 509th on the others and
// on the scalar backend. The largest error of each is printed and recorded.
#include <bit>
#include <mutex>

#include "support/instances.h"

namespace fulcrum::test {
namespace {

constexpr std::int64_t kBatch = 4096;

bool is_unary(const ops::Op& op) {
  int inputs = 0, outputs = 0, sizes = 0;
  for (const ops::Slot& slot : op.slots) {
    inputs += slot.kind == ops::SlotKind::in && slot.dtype == DType::f32;
    outputs += slot.kind == ops::SlotKind::out && slot.dtype == DType::f32;
    sizes += slot.kind == ops::SlotKind::dim;
  }
  return op.category == "streaming" && op.reference && inputs == 1 && outputs == 1 && sizes == 1;
}

/// One op on one instruction set; an empty one: the scalar backend.
struct Case {
  const ops::Op* op;
  std::string isa;
  std::uint64_t step;  // from one float's bits to the next
};

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const ops::Op* op : ops::all()) {
    if (!is_unary(*op)) continue;
    for (const std::string& isa : backends::isas()) {
      result.push_back({op, isa, isa == backends::isas().front() ? 1U : 509U});
    }
    result.push_back({op, "", 509});
  }
  return result;
}

/// The largest errors of a sweep.
struct Worst {
  double bound_ulps = 0;  // what the op allows, but for its floor near 0
  double ulps = 0;        // where that bound counts
  double share = 0;       // of the allowed error
  float at = 0, got = 0;
  std::int64_t compared = 0;

  void add(float x, float y, const ops::Truth& truth) {
    ++compared;
    double error = std::abs(y - truth.value);
    if (std::isnan(truth.value) || std::isnan(y)) {
      error = std::isnan(truth.value) && std::isnan(y) ? 0 : INFINITY;
    } else if (std::isinf(y) || std::isinf(truth.value)) {
      error = static_cast<float>(truth.value) == y ? 0 : INFINITY;
    }
    if (error == 0) return;
    const double ulp = ops::ulp_of(truth.value);
    if (truth.allowed <= bound_ulps * ulp) ulps = std::max(ulps, error / ulp);
    const double part = truth.allowed > 0 ? error / truth.allowed : INFINITY;
    if (part <= share) return;
    share = part;
    at = x;
    got = y;
  }

  void add(const Worst& other) {
    compared += other.compared;
    ulps = std::max(ulps, other.ulps);
    if (other.share <= share) return;
    share = other.share;
    at = other.at;
    got = other.got;
  }
};

struct Sweep {
  const Case& what;
  backends::Kernel kernel;
  std::mutex mutex;
  Worst worst;
};

/// What the op allows where the result is near 1.
double bound_ulps(const ops::Op& op, Args args) {
  float one = 1;
  args.ptr[0] = &one;
  const std::int64_t index = 0;
  ops::Truth truth;
  op.reference(args, 1, {&index, 1}, &truth);
  return truth.allowed / ops::ulp_of(truth.value);
}

void check_batches(void* context, std::int64_t begin, std::int64_t end) {
  Sweep& sweep = *static_cast<Sweep*>(context);
  std::vector<float> x(kBatch), y(kBatch);
  std::vector<std::int64_t> index(kBatch);
  std::vector<ops::Truth> truth(kBatch);
  for (std::int64_t i = 0; i < kBatch; ++i) index[static_cast<std::size_t>(i)] = i;
  Shape shape;
  shape.set("n", kBatch);
  Args args = *ops::resolve(*sweep.what.op, shape);
  args.ptr[0] = x.data();
  args.ptr[1] = y.data();
  auto call = backends::Call::make(sweep.kernel, args);
  FULCRUM_ASSERT(call.ok());
  Worst worst{.bound_ulps = bound_ulps(*sweep.what.op, args)};
  for (std::int64_t batch = begin; batch < end; ++batch) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::uint64_t number = static_cast<std::uint64_t>(batch * kBatch) + i;
      x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(number * sweep.what.step));
    }
    FULCRUM_ASSERT(call->run().code == FULCRUM_OK);
    sweep.what.op->reference(args, 1, index, truth.data());
    for (std::size_t i = 0; i < x.size(); ++i) worst.add(x[i], y[i], truth[i]);
  }
  const std::lock_guard lock(sweep.mutex);
  sweep.worst.add(worst);
}

class EveryFloat : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(UnaryOps, EveryFloat, ::testing::ValuesIn(cases()), [](const auto& info) {
  return fmt::format("{}_{}", info.param.op->name, info.param.isa.empty() ? "plain" : info.param.isa);
});

TEST_P(EveryFloat, IsWithinTheToleranceOfTheOp) {
  const Case& what = GetParam();
  const ForcedIsa forced(what.isa);
  const auto kernel = backends::kernel(what.op->name, what.isa.empty() ? "scalar" : "simd");
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  Sweep sweep{what, *kernel, {}, {}};
  const auto count = static_cast<std::int64_t>((1ULL << 32) / what.step);
  backends::parallel(count / kBatch, backends::usable_threads(), check_batches, &sweep);
  const std::string ulps = fmt::format("{:.3f}", sweep.worst.ulps);
  fmt::print("{} {} {}: {} ulp at worst over {} floats\n", what.op->name, kernel->backend().name(),
             kernel->isa(), ulps, sweep.worst.compared);
  RecordProperty("max_ulp", ulps);
  EXPECT_LE(sweep.worst.share, 1) << "at " << sweep.worst.at << " gives " << sweep.worst.got;
  EXPECT_GE(sweep.worst.compared, count - kBatch);
}

}  // namespace
}  // namespace fulcrum::test
