// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Every op on every backend, variant and instruction set of this machine, at every edge, with NaN and Inf among the
// inputs, against the fp64 reference. A new op, kernel or instruction set is covered without a line here.
#include <map>
#include <set>

#include "conformance/shapes.h"
#include "support/instances.h"

namespace fulcrum::test {
namespace {

using Special = ops::Problem::Special;
constexpr Special kSpecials[] = {Special::none, Special::nan, Special::infinity, Special::mixed};

using Wanted = bool (*)(const ops::Op&, const fulcrum_kernel&);

std::vector<backends::Kernel> kernels_where(Wanted wanted) {
  std::vector<backends::Kernel> result;
  for (const ops::Op* op : ops::all()) {
    if (!op->reference && !op->verify) continue;
    for (const backends::Kernel& kernel : host_kernels(op->name)) {
      if (wanted(*op, kernel.entry())) result.push_back(kernel);
    }
  }
  return result;
}

const std::vector<Shape>& shapes(const ops::Op& op) {
  static std::map<std::string_view, std::vector<Shape>> known;
  auto& result = known[op.name];
  if (result.empty()) result = edge_shapes(op);
  return result;
}

/// The same, in the type that a kernel takes.
const std::vector<Shape>& shapes(const ops::Op& op, const backends::Kernel& kernel) {
  static std::map<std::string, std::vector<Shape>> known;
  if (op.dtypes.empty()) return shapes(op);
  auto& result = known[fmt::format("{} {}", op.name, kernel.dtype())];
  if (!result.empty()) return result;
  result = shapes(op);
  const auto dtype = backends::dtype_of(kernel);
  FULCRUM_ASSERT(dtype.ok());
  for (Shape& shape : result) shape.dtype = *dtype;
  return result;
}

std::string where(const ops::Problem& problem, Special special) {
  return fmt::format("{} with {} special={}", problem.op().name, problem.shape().text(),
                     static_cast<int>(special));
}

/// A kernel of this machine; tests run it on each instruction set it follows.
class KernelTest : public ::testing::TestWithParam<backends::Kernel> {
 protected:
  const backends::Kernel& kernel() const { return GetParam(); }
  const ops::Op& op() const { return op_of(kernel().op()); }
  const std::vector<Shape>& edges() const { return shapes(op(), kernel()); }

  template <class Body>
  void on_each_isa(const Body& body) {
    for (const std::string& isa : isas_of(kernel())) {
      SCOPED_TRACE(isa);
      const ForcedIsa forced(isa);
      ASSERT_NO_FATAL_FAILURE(body());
    }
  }

  /// Runs and checks all shapes with all specials; stops at the first failure.
  void check_all_shapes(const ops::Problem::Options& base) {
    std::int64_t ran = 0;
    for (const Shape& shape : edges()) {
      for (const Special special : kSpecials) {
        ops::Problem::Options options = base;
        options.special = special;
        auto problem = ops::Problem::make(op(), shape, options);
        ASSERT_TRUE(problem.ok()) << problem.error().message;
        if (!run(kernel(), *problem, 1, for_any_)) break;
        ++ran;
        const Oracle oracle = problem->check();
        ASSERT_TRUE(oracle.passed) << where(*problem, special) << ": " << oracle.detail;
      }
    }
    EXPECT_GT(ran, 0) << "no shape was supported";
  }

  /// The bits of another kernel on the same problems.
  void expect_bits_of(const backends::Kernel& other) {
    for (const Shape& shape : edges()) {
      auto problem = ops::Problem::make(op(), shape);
      ASSERT_TRUE(problem.ok());
      if (!run(kernel(), *problem, 1, for_any_)) continue;
      const auto bits = output_bytes(*problem);
      problem->reset();
      if (!run(other, *problem, 1, for_any_)) continue;
      ASSERT_EQ(bits, output_bytes(*problem))
          << "unlike " << other.name() << ": " << where(*problem, Special::none);
    }
  }

  bool for_any_ = false;  // run by the plan for any data
};

std::string name_of(const ::testing::TestParamInfo<backends::Kernel>& info) { return test_name(info.param); }

class Conformance : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(
    All, Conformance,
    ::testing::ValuesIn(kernels_where([](const ops::Op&, const fulcrum_kernel&) { return true; })), name_of);

TEST_P(Conformance, MatchesTheReferenceAtEveryEdge) {
  on_each_isa([&] { check_all_shapes({}); });
}

TEST_P(Conformance, GivesTheSameBitsOnEveryRunAndInABatch) {
  on_each_isa([&] {
    for (const Shape& shape : edges()) {
      auto problem = ops::Problem::make(op(), shape);
      ASSERT_TRUE(problem.ok());
      if (!run(kernel(), *problem)) continue;
      const auto first = output_bytes(*problem);
      problem->reset();
      run(kernel(), *problem, 3);
      ASSERT_EQ(first, output_bytes(*problem)) << where(*problem, Special::none);
    }
  });
}

TEST_P(Conformance, AnErrorWritesNoByte) {
  const auto is_plain = [&](const Shape& shape) {
    const Args args = *ops::resolve(op(), shape);
    return op().extent(args, 0) > 8 && !(op().list_lengths && op().list_lengths(args) >= 0);
  };
  const auto shape = std::find_if(edges().begin(), edges().end(), is_plain);
  ASSERT_NE(shape, edges().end());
  auto problem = ops::Problem::make(op(), *shape);
  ASSERT_TRUE(problem.ok());
  const auto untouched = output_bytes(*problem);
  const auto expect_refused = [&](const Args& args, std::string_view what) {
    const auto call = backends::Call::make(kernel(), args);
    EXPECT_FALSE(call.ok()) << what;
    EXPECT_EQ(untouched, output_bytes(*problem)) << what;
  };
  Args args = problem->args();
  args.dim[0] = -1;
  expect_refused(args, "a negative size");
  args = problem->args();
  args.ptr[0] = nullptr;
  expect_refused(args, "a null pointer");
  if (op().pointers() == 1) return;
  args = problem->args();
  args.ptr[op().pointers() - 1] = static_cast<std::byte*>(args.ptr[0]) + sizeof(float);
  expect_refused(args, "an output that overlaps an input in part");
}

class ForAnyData : public KernelTest {
 protected:
  ForAnyData() { for_any_ = true; }
};
INSTANTIATE_TEST_SUITE_P(Some, ForAnyData,
                         ::testing::ValuesIn(kernels_where([](const ops::Op&, const fulcrum_kernel& kernel) {
                           return kernel.plan_for_any != nullptr;
                         })),
                         name_of);

TEST_P(ForAnyData, MatchesTheReferenceAtEveryEdge) {
  on_each_isa([&] { check_all_shapes({}); });
}

TEST_P(ForAnyData, ThreadsGiveTheBitsOfOne) {
  on_each_isa([&] { expect_bits_of(*backends::kernel(kernel().op(), "simd")); });
}

TEST_P(ForAnyData, APlanServesDataThatChangedBehindIt) {
  on_each_isa([&] {
    for (const Shape& shape : edges()) {
      auto first = ops::Problem::make(op(), shape), second = ops::Problem::make(op(), shape, {.seed = 7});
      ASSERT_TRUE(first.ok() && second.ok());
      auto call = backends::Call::make_for_any(kernel(), first->args());
      ASSERT_TRUE(call.ok()) << call.error().message;
      if (!*call) continue;
      ASSERT_EQ((*call)->run().code, FULCRUM_OK);
      ASSERT_TRUE(run(kernel(), *second, 1, true));
      for (int slot = 0; slot < op().pointers(); ++slot) {
        const auto from = second->buffer(slot), to = first->buffer(slot);
        std::copy(from.begin(), from.end(), to.begin());
      }
      first->adopt_inputs();
      first->reset();
      ASSERT_EQ((*call)->run().code, FULCRUM_OK);
      ASSERT_EQ(output_bytes(*first), output_bytes(*second)) << where(*first, Special::none);
    }
  });
}

class InPlace : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(ElementWise, InPlace,
                         ::testing::ValuesIn(kernels_where([](const ops::Op& op, const fulcrum_kernel&) {
                           return op.in_place;
                         })),
                         name_of);

TEST_P(InPlace, WritesOverItsInput) {
  on_each_isa([&] { check_all_shapes({.in_place = true}); });
}

TEST_P(InPlace, AnElementHasTheSameBitsWhereverItStands) {
  constexpr std::int64_t kSize = 1000;
  on_each_isa([&] {
    Shape shape;
    for (const ops::Slot& slot : op().slots) {
      if (slot.kind == ops::SlotKind::dim && !slot.optional) shape.set(slot.name, kSize);
    }
    auto problem = ops::Problem::make(op(), shape);
    ASSERT_TRUE(problem.ok());
    ASSERT_TRUE(run(kernel(), *problem));
    const auto whole = output_bytes(*problem);
    for (const std::int64_t shift : {1, 2, 3, 5, 13, 31, 100, 999}) {
      problem->reset();
      Args args = problem->args();
      for (int p = 0; p < op().pointers(); ++p) {
        if (args.ptr[p]) args.ptr[p] = static_cast<float*>(args.ptr[p]) + shift;
      }
      args.dim[0] = kSize - shift;
      auto call = backends::Call::make(kernel(), args);
      ASSERT_TRUE(call.ok()) << call.error().message;
      ASSERT_EQ(call->run().code, FULCRUM_OK);
      const auto tail = output_bytes(*problem);
      const auto skipped = shift * static_cast<std::int64_t>(sizeof(float));
      ASSERT_TRUE(std::equal(whole.begin() + skipped, whole.end(), tail.begin() + skipped))
          << "moved by " << shift;
    }
  });
}

class OptionalInputs : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Some, OptionalInputs,
                         ::testing::ValuesIn(kernels_where([](const ops::Op& op, const fulcrum_kernel&) {
                           return std::any_of(op.slots.begin(), op.slots.end(), [](const ops::Slot& slot) {
                             return slot.kind == ops::SlotKind::in && slot.optional &&
                                    slot.dtype == DType::f32;
                           });
                         })),
                         name_of);

TEST_P(OptionalInputs, AreUsedWhenTheyAreThere) {
  on_each_isa([&] { check_all_shapes({.optional_inputs = true}); });
}

/// Runs the pieces of every phase in ranges of `step`, last range first.
void run_in_pieces(const ops::Op& op, const backends::Kernel& kernel, const Args& args, std::int64_t step) {
  const std::int64_t bytes = op.split.scratch_bytes ? op.split.scratch_bytes(args) : 0;
  std::vector<double> scratch(static_cast<std::size_t>(bytes) / sizeof(double) + 1);
  for (int phase = 0; phase < op.split.phase_count(args); ++phase) {
    const std::int64_t pieces = op.split.pieces(args, phase);
    for (std::int64_t last = pieces; last > 0; last -= step) {
      kernel.entry().partial(&args, phase, std::max<std::int64_t>(last - step, 0), last, scratch.data());
    }
    if (op.split.combine) op.split.combine(args, phase, scratch.data());
  }
}

class Splitting : public KernelTest {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Splitting);
INSTANTIATE_TEST_SUITE_P(Splittable, Splitting,
                         ::testing::ValuesIn(kernels_where([](const ops::Op& op,
                                                              const fulcrum_kernel& kernel) {
                           return kernel.partial != nullptr && op.split.phases > 0;
                         })),
                         name_of);

TEST_P(Splitting, DoesNotChangeBits) {
  on_each_isa([&] {
    for (const Shape& shape : edges()) {
      auto problem = ops::Problem::make(op(), shape, {.optional_inputs = true});
      ASSERT_TRUE(problem.ok());
      auto call = backends::Call::make(kernel(), problem->args());
      if (!call.ok()) continue;
      ASSERT_EQ(call->run().code, FULCRUM_OK);
      const auto whole = output_bytes(*problem);
      for (const std::int64_t step : {1, 3, 64}) {
        problem->reset();
        run_in_pieces(op(), kernel(), call->args(), step);
        ASSERT_EQ(whole, output_bytes(*problem))
            << where(*problem, Special::none) << " in ranges of " << step;
      }
    }
  });
}

class Threads : public KernelTest {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Threads);
INSTANTIATE_TEST_SUITE_P(All, Threads, ::testing::ValuesIn([] {
                           std::vector<backends::Kernel> kernels;
                           for (const ops::Op* op : ops::all()) {
                             if (!op->reference && !op->verify) continue;
                             for (const backends::Kernel& kernel : host_kernels(op->name)) {
                               if (kernel.backend().name() == "threads") kernels.push_back(kernel);
                             }
                           }
                           return kernels;
                         }()),
                         name_of);

TEST_P(Threads, GiveTheBitsOfOneThread) {
  auto serial = backends::kernel(kernel().op(), "simd", kernel().variant());
  if (!serial.ok()) serial = backends::kernel(kernel().op(), "simd");  // t2, t4, ...
  ASSERT_TRUE(serial.ok()) << serial.error().message;
  on_each_isa([&] { expect_bits_of(*serial); });
}

class SameBits : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Promised, SameBits,
                         ::testing::ValuesIn(kernels_where([](const ops::Op&, const fulcrum_kernel& kernel) {
                           return kernel.level >= 2;
                         })),
                         name_of);

TEST_P(SameBits, OnEveryBackendAsOnTheScalarOne) {
  const auto plain = backends::kernels(kernel().op(), "scalar");
  if (!plain.ok()) GTEST_SKIP() << "the scalar backend has no such kernel";
  const auto same_type = std::find_if(plain->begin(), plain->end(), [&](const backends::Kernel& other) {
    return other.dtype() == kernel().dtype();
  });
  ASSERT_NE(same_type, plain->end()) << "no scalar kernel of this type";
  on_each_isa([&] { expect_bits_of(*same_type); });
}

TEST(ConformanceCoverage, EightBitPixelsRunOnEveryHostBackend) {
  std::set<std::string_view> backends;
  for (const backends::Kernel& kernel : host_kernels("pixel_entropy")) {
    if (kernel.dtype() == "u8") backends.insert(kernel.backend().name());
  }
  EXPECT_EQ(backends, (std::set<std::string_view>{"scalar", "simd", "threads"}));
}

TEST(ConformanceCoverage, EveryOpThatRunsSomewhereRunsOnTheScalarBackend) {
  for (const ops::Op* op : ops::all()) {
    if (op->is_probe() || host_kernels(op->name).empty()) continue;
    EXPECT_TRUE(backends::kernel(op->name, "scalar").ok()) << op->name;
  }
}

/// The number of an op's first output among its pointer slots: those after it have a size of their own or the same.
int first_output(const ops::Op& op) {
  int pointer = 0;
  for (const ops::Slot& slot : op.slots) {
    if (slot.kind == ops::SlotKind::out || slot.kind == ops::SlotKind::inout) break;
    pointer += slot.kind == ops::SlotKind::in;
  }
  return pointer;
}

TEST(ConformanceCoverage, EdgesIncludeEmptySingleAndOddShapesOfEveryOp) {
  for (const ops::Op* op : ops::all()) {
    if ((!op->reference && !op->verify) || op->is_probe()) continue;
    std::int64_t empty = 0, single = 0, odd = 0;
    for (const Shape& shape : shapes(*op)) {
      const std::int64_t count = op->extent(*ops::resolve(*op, shape), first_output(*op));
      empty += count == 0;
      single += count == 1;
      odd += count > 1 && count % 2 == 1;
    }
    const bool one_output = op->name == "dot";
    EXPECT_TRUE(empty > 0 || one_output) << op->name;
    EXPECT_GT(single, 0) << op->name;
    EXPECT_TRUE(odd > 0 || one_output) << op->name;
  }
}

}  // namespace
}  // namespace fulcrum::test
