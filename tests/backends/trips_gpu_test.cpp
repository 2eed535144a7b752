// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Round trips on a device: every path brings back the right results, every time, from any memory of the host, and makes
// nothing after its first trip.
#include <fmt/format.h>
#include <fulcrum/backends/device.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "support/on_device.h"

namespace fulcrum::backends {
namespace {

using Bytes = std::vector<std::byte>;

class Trips : public OnDevice {
 protected:
  /// The first fp32 kernel of an op.
  static Result<Kernel> kernel_of(const std::string& op) {
    FULCRUM_TRY(const std::vector<Kernel> known, kernels(op, "cuda"));
    for (const Kernel& kernel : known) {
      if (kernel.precision() == "fp32" && kernel.dtype() == "f32") return kernel;
    }
    return Error{Code::not_found, "no fp32 kernel of " + op, ""};
  }

  static ops::Problem problem_of(const std::string& op, const std::string& shape, bool in_place = false) {
    ops::Problem::Options options;
    options.in_place = in_place;
    auto problem = ops::Problem::make(**ops::find(op), *parse_shape(shape), options);
    EXPECT_TRUE(problem.ok()) << op << " " << shape;
    return std::move(*problem);
  }

  /// A trip, or nothing when the path says that it does not serve this call.
  static std::optional<Trip> open(const Kernel& kernel, const ops::Problem& problem, const std::string& path,
                                  int calls = 1) {
    auto trip = Trip::make(kernel, problem.args(), path, calls);
    if (trip.ok()) return std::move(*trip);
    EXPECT_EQ(trip.error().code, Code::unsupported)
        << kernel.op() << " " << path << ": " << trip.error().message;
    return std::nullopt;
  }

  static Bytes outputs_of(ops::Problem& problem) {
    Bytes bytes;
    int slot = 0;
    for (const ops::Slot& described : problem.op().slots) {
      if (described.kind > ops::SlotKind::inout) continue;
      if (described.kind != ops::SlotKind::in && problem.args().ptr[slot]) {
        const auto buffer = problem.buffer(slot);
        bytes.insert(bytes.end(), buffer.begin(), buffer.end());
      }
      ++slot;
    }
    return bytes;
  }

  /// Results are right: the same bytes as ones checked before, or checked now.
  static void expect_right(ops::Problem& problem, Bytes& known, const std::string& what) {
    const Bytes bytes = outputs_of(problem);
    if (!known.empty() && bytes == known) return;
    const Oracle oracle = problem.check();
    EXPECT_TRUE(oracle.passed) << what << ": " << oracle.detail;
    if (oracle.passed && known.empty()) known = bytes;
  }

  /// Every path once at a shape; the number of paths that served it.
  int check_paths(const std::string& op, const std::string& shape, bool in_place) {
    const auto kernel = kernel_of(op);
    if (!kernel.ok()) return -1;
    ops::Problem problem = problem_of(op, shape, in_place);
    Bytes known;
    int served = 0;
    for (const std::string& path : trip_paths(*backend_)) {
      problem.reset();
      const Bytes before = in_place ? outputs_of(problem) : Bytes{};
      auto trip = open(*kernel, problem, path);
      if (!trip) continue;
      if (in_place) {
        EXPECT_EQ(outputs_of(problem), before) << path << ": open() changed an operand";
      }
      problem.reset();
      const Status ran = trip->run();
      EXPECT_TRUE(ran.ok()) << op << " " << shape << " " << path << ": "
                            << (ran.ok() ? "" : ran.error().message);
      expect_right(problem, known, fmt::format("{} {} {} ({})", op, shape, path, trip->detail()));
      ++served;
    }
    return served;
  }
};

struct Carried {
  const char* op;
  const char* shapes[3];
  int paths;  // that serve it at least: dot cannot be cut, so there is no duplex
};
constexpr Carried kCarried[] = {
    {"vec_add", {"n=1", "n=1000", "n=1000003"}, 10},
    {"relu", {"n=1", "n=1000", "n=1000003"}, 10},
    {"dot", {"n=1", "n=1000", "n=1000003"}, 9},
    {"softmax", {"rows=1,n=1", "rows=10,n=100", "rows=1009,n=991"}, 10},
    {"matmul", {"M=1,N=1,K=1", "M=40,N=25,K=33", "M=1009,N=991,K=61"}, 10},
};

TEST_F(Trips, BringBackTheRightResultsByEveryPath) {
  int ops_served = 0;
  for (const Carried& one : kCarried) {
    for (const char* shape : one.shapes) {
      const int served = check_paths(one.op, shape, false);
      if (served < 0) break;  // the library behind the op's kernels is missing here
      EXPECT_GE(served, one.paths) << one.op << " " << shape;
      ++ops_served;
    }
  }
  EXPECT_GE(ops_served, 3 * 4) << "only matmul may need a library";
}

TEST_F(Trips, UpdateInPlaceByEveryPathAndOpenLeavesTheOperandAlone) {
  for (const char* shape : {"n=1", "n=1000", "n=1000003"}) {
    EXPECT_EQ(check_paths("relu", shape, true), 9) << shape << ": all but overlapped";
  }
}

TEST_F(Trips, BringBackTheSameBitsAHundredTimes) {
  for (const Carried& one : kCarried) {
    const auto kernel = kernel_of(one.op);
    if (!kernel.ok()) continue;
    ops::Problem problem = problem_of(one.op, one.shapes[1]);
    for (const std::string& path : trip_paths(*backend_)) {
      auto trip = open(*kernel, problem, path);
      if (!trip) continue;
      Bytes first;
      for (int i = 0; i < 100; ++i) {
        problem.reset();
        ASSERT_TRUE(trip->run().ok()) << one.op << " " << path;
        if (i == 0) first = outputs_of(problem);
        ASSERT_EQ(outputs_of(problem), first) << one.op << " " << path << ", trip " << i;
      }
      const Oracle oracle = problem.check();
      EXPECT_TRUE(oracle.passed) << one.op << " " << path << ": " << oracle.detail;
    }
  }
}

TEST_F(Trips, CarryWhatTheHostWroteLast) {
  const auto kernel = kernel_of("vec_add");
  ASSERT_TRUE(kernel.ok());
  for (const char* shape : {"n=1000", "n=1000003"}) {
    for (const std::string& path : trip_paths(*backend_)) {
      ops::Problem problem = problem_of("vec_add", shape);
      auto trip = open(*kernel, problem, path);
      ASSERT_TRUE(trip) << path;
      ASSERT_TRUE(trip->run().ok());
      auto* a = reinterpret_cast<float*>(problem.buffer(0).data());
      for (std::size_t i = 0; i < problem.buffer(0).size() / sizeof(float); ++i) a[i] += 1;
      problem.adopt_inputs();
      problem.reset();
      ASSERT_TRUE(trip->run(2).ok());
      const Oracle oracle = problem.check();
      EXPECT_TRUE(oracle.passed) << shape << " " << path << " (" << trip->detail() << "): " << oracle.detail;
    }
  }
}

TEST_F(Trips, ReuseWhatIsOnTheDeviceForSeveralCalls) {
  const auto kernel = kernel_of("vec_add");
  ASSERT_TRUE(kernel.ok());
  for (const char* shape : {"n=1000", "n=1000003"}) {
    ops::Problem problem = problem_of("vec_add", shape);
    Bytes known;
    for (const std::string& path : trip_paths(*backend_)) {
      auto trip = open(*kernel, problem, path, 5);
      ASSERT_TRUE(trip) << path;
      problem.reset();
      ASSERT_TRUE(trip->run().ok());
      expect_right(problem, known, path);
    }
  }
}

/// out = a + b in memory of the test's own: odd addresses, operands that share pages.
void add_in(const Kernel& kernel, float* memory, std::int64_t n, const std::string& path) {
  Args args{};
  float* const a = memory + 1;
  float* const b = a + n;
  float* const out = b + n;
  for (std::int64_t i = 0; i < n; ++i) {
    a[i] = static_cast<float>(i % 1000);
    b[i] = 0.5f;
    out[i] = -1;
  }
  out[n] = memory[0] = 77;
  args.ptr[0] = a;
  args.ptr[1] = b;
  args.ptr[3] = out;  // slot 2 is `len`, which only lists have
  args.dim[0] = n;
  args.dim[1] = 1;
  auto trip = Trip::make(kernel, args, path);
  ASSERT_TRUE(trip.ok()) << path << ": " << trip.error().message;
  std::fill(out, out + n, -1.0f);
  ASSERT_TRUE(trip->run(2).ok()) << path;
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < n; ++i) wrong += out[i] != static_cast<float>(i % 1000) + 0.5f;
  EXPECT_EQ(wrong, 0) << path << " (" << trip->detail() << ")";
  EXPECT_EQ(memory[0], 77) << path;
  EXPECT_EQ(out[n], 77) << path;
}

TEST_F(Trips, TakeOperandsThatSharePagesAndPageLockedMemory) {
  const auto kernel = kernel_of("vec_add");
  ASSERT_TRUE(kernel.ok());
  for (const std::int64_t n : {5, 500, 300'007}) {
    const std::size_t floats = static_cast<std::size_t>(3 * n + 2);
    std::vector<float> pageable(floats);
    void* pinned = nullptr;
    ASSERT_EQ(backend_->table().allocate(FULCRUM_MEMORY_PINNED, floats * sizeof(float), &pinned).code,
              FULCRUM_OK);
    for (const std::string& path : trip_paths(*backend_)) {
      add_in(*kernel, pageable.data(), n, path);
      add_in(*kernel, static_cast<float*>(pinned), n, path);
    }
    backend_->table().release(FULCRUM_MEMORY_PINNED, pinned);
  }
}

/// Every trip has other inputs, so that results of the one before, or none at all, are seen.
TEST_F(Trips, RaiseNoFlagBeforeTheResultsAreThere) {
  const auto kernel = kernel_of("vec_add");
  ASSERT_TRUE(kernel.ok());
  for (const std::size_t n : {1, 3, 1024, 1027, 5000, 100'003}) {
    std::vector<float> a(n), b(n, 0.5f), out(n);
    Args args{};
    args.ptr[0] = a.data();
    args.ptr[1] = b.data();
    args.ptr[3] = out.data();
    args.dim[0] = static_cast<std::int64_t>(n);
    args.dim[1] = 1;
    auto trip = Trip::make(*kernel, args, "latency");
    ASSERT_TRUE(trip.ok()) << trip.error().message;
    for (int i = 1; i <= (n > 10'000 ? 100 : 2000); ++i) {
      std::fill(a.begin(), a.end(), static_cast<float>(i));
      ASSERT_TRUE(trip->run().ok());
      const auto wrong = std::count_if(out.begin(), out.end(), [i](float x) { return x != i + 0.5f; });
      ASSERT_EQ(wrong, 0) << "n=" << n << ", trip " << i << " (" << trip->detail() << ")";
    }
  }
}

TEST_F(Trips, StayOpenWhenAnotherOnTheSameOperandsCloses) {
  const auto kernel = kernel_of("vec_add");
  ASSERT_TRUE(kernel.ok());
  ops::Problem problem = problem_of("vec_add", "n=100003");
  for (const char* path : {"copy", "graph", "mapped", "latency", "duplex", "overlapped"}) {
    auto first = open(*kernel, problem, "copy");
    auto second = open(*kernel, problem, path);
    ASSERT_TRUE(first && second);
    first.reset();
    problem.reset();
    ASSERT_TRUE(second->run().ok()) << path;
    const Oracle oracle = problem.check();
    EXPECT_TRUE(oracle.passed) << path << ": " << oracle.detail;
  }
}

/// The path by itself and with each manner by name.
constexpr const char* kOverlapped[] = {"overlapped",
                                       "overlapped:lanes",
                                       "overlapped:lanes, batched",
                                       "overlapped:lanes, recorded",
                                       "overlapped:ring",
                                       "overlapped:ring, batched",
                                       "overlapped:mapped",
                                       "overlapped:mapped, recorded"};

TEST_F(Trips, OverlapManyCallsInEveryMannerAndBringBackTheLastOnesToo) {
  for (const Carried& one : kCarried) {
    const auto kernel = kernel_of(one.op);
    if (!kernel.ok()) continue;
    for (const char* shape : one.shapes) {
      ops::Problem problem = problem_of(one.op, shape);
      Bytes known;
      int served = 0;
      for (const char* path : kOverlapped) {
        auto trip = open(*kernel, problem, path);
        served += trip.has_value();
        for (const std::int64_t count : {1, 2, 7, 77}) {
          if (!trip) break;
          problem.reset();
          ASSERT_TRUE(trip->run(count).ok()) << one.op << " " << shape << " " << path << " " << count;
          expect_right(problem, known, fmt::format("{} {} {} ({})", one.op, shape, count, trip->detail()));
        }
      }
      EXPECT_GE(served, 3) << one.op << " " << shape << ": both plain manners and the choice";
    }
  }
  EXPECT_FALSE(Trip::make(*kernel_of("relu"), problem_of("relu", "n=5").args(), "overlapped:sideways").ok());
  EXPECT_FALSE(Trip::make(*kernel_of("relu"), problem_of("relu", "n=5").args(), "copy:lanes").ok());
}

/// out[i] = in[i] + addend, each call on memory of its own but for the addend where it is shared.
struct Requests {
  std::vector<std::vector<float>> in, addend, out;
  std::vector<Args> calls;

  Requests(std::size_t n, std::size_t count, bool shared)
      : in(count), addend(shared ? 1 : count), out(count), calls(count) {
    for (auto& values : addend) values.assign(n, 0);
    for (std::size_t i = 0; i < count; ++i) {
      in[i].assign(n, static_cast<float>(i));
      out[i].assign(n, -1);
      calls[i].ptr[0] = in[i].data();
      calls[i].ptr[1] = addend[shared ? 0 : i].data();
      calls[i].ptr[3] = out[i].data();
      calls[i].dim[0] = static_cast<std::int64_t>(n);
      calls[i].dim[1] = 1;
    }
  }
  /// Results of calls that are not those of adding `value`, which is what the host wrote last.
  std::int64_t wrong(float value) const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const float right = static_cast<float>(i) + value;
      sum += std::count_if(out[i].begin(), out[i].end(), [&](float x) { return x != right; });
    }
    return sum;
  }
};

TEST_F(Trips, RunABatchOfCallsOnDifferentMemoryInEveryManner) {
  const auto kernel = kernel_of("vec_add");
  ASSERT_TRUE(kernel.ok());
  for (const char* path : kOverlapped) {
    for (const std::size_t n : {1000, 100'003}) {
      for (const std::size_t count : {1, 3, 37, 70}) {
        for (const bool shared : {false, true}) {
          Requests requests(n, count, shared);
          auto trip = Trip::make_batch(*kernel, requests.calls, path);
          if (!trip.ok() && trip.error().code == Code::unsupported) continue;
          ASSERT_TRUE(trip.ok()) << trip.error().message;
          for (int run = 1; run <= 3; ++run) {
            for (auto& values : requests.addend)
              std::fill(values.begin(), values.end(), static_cast<float>(run));
            ASSERT_TRUE(trip->run(run).ok());
            ASSERT_EQ(requests.wrong(static_cast<float>(run)), 0)
                << "n=" << n << ", " << count << " calls (" << trip->detail() << ")";
          }
          EXPECT_EQ(trip->detail().find("1 shared") != std::string::npos, shared && count > 1);
        }
      }
    }
  }
  Requests requests(1000, 3, false);
  requests.calls[1].ptr[0] = requests.out[0].data();
  EXPECT_EQ(Trip::make_batch(*kernel, requests.calls).error().code, Code::invalid_argument)
      << "the second needs the first one's result";
}

TEST_F(Trips, SayWhatTheyChose) {
  const auto kernel = kernel_of("vec_add");
  ASSERT_TRUE(kernel.ok());
  ops::Problem problem = problem_of("vec_add", "n=1000");
  for (const std::string& path : trip_paths(*backend_)) {
    const auto trip = open(*kernel, problem, path);
    ASSERT_TRUE(trip) << path;
    if (path == "auto") {
      EXPECT_FALSE(trip->detail().empty());
    } else {
      EXPECT_EQ(trip->detail().rfind(path, 0), 0u) << trip->detail();
    }
  }
}

TEST_F(Trips, PassACallThroughThatTheDeviceCannotHold) {
  const auto kernel = kernel_of("vec_add");
  ASSERT_TRUE(kernel.ok());
  ops::Problem problem = problem_of("vec_add", "n=33554432");  // 384 MiB of operands
  {
    auto warm = open(*kernel, problem, "copy");  // kernels are loaded while there is room
    ASSERT_TRUE(warm && warm->run().ok());
  }
  const fulcrum_backend& table = backend_->table();
  std::vector<void*> hog;
  for (std::size_t bytes = std::size_t{8} << 30; bytes >= (std::size_t{256} << 20);) {
    void* memory = nullptr;
    if (table.allocate(FULCRUM_MEMORY_DEVICE, bytes, &memory).code == FULCRUM_OK) {
      hog.push_back(memory);
    } else {
      bytes /= 2;
    }
  }
  for (const char* path : {"auto", "copy", "graph", "duplex"}) {
    auto trip = open(*kernel, problem, path);
    if (!trip) break;
    problem.reset();
    EXPECT_TRUE(trip->run().ok()) << path;
    const Oracle oracle = problem.check();
    EXPECT_TRUE(oracle.passed) << path << " (" << trip->detail() << "): " << oracle.detail;
    if (std::string_view(path) != "auto") {  // which may find that no memory of the device is needed at all
      EXPECT_NE(trip->detail().find("cut into"), std::string::npos) << path << ": " << trip->detail();
    }
  }
  for (void* memory : hog) table.release(FULCRUM_MEMORY_DEVICE, memory);
}

/// The host's faults are part of a migration: what it does before the launch is one, with every transfer in it, and so
/// is what it does after the wait.
TEST_F(Trips, ZCountTheHostsTouchingOfPagesAsMigration) {
  const Status started = activity_start(*backend_);
  if (!started.ok()) GTEST_SKIP() << "SKIPPED: no tracing here: " << started.error().message;
  const auto kernel = kernel_of("vec_add");
  ASSERT_TRUE(kernel.ok());
  ops::Problem problem = problem_of("vec_add", "n=3000017");
  for (const char* path : {"managed", "managed_prefetch"}) {
    auto trip = open(*kernel, problem, path);
    if (!trip) continue;
    ASSERT_TRUE(trip->run().ok());
    ASSERT_TRUE(activity_take(*backend_).ok());
    ASSERT_TRUE(trip->run().ok());
    const auto seen = activity_take(*backend_);
    ASSERT_TRUE(seen.ok());
    double launched = 1e300, waited = 0;
    for (const fulcrum_activity& activity : *seen) {
      if (activity.kind == FULCRUM_ACTIVITY_LAUNCH) launched = std::min(launched, activity.begin_seconds);
      if (activity.kind == FULCRUM_ACTIVITY_SYNC) waited = std::max(waited, activity.end_seconds);
    }
    int before = 0, after = 0;
    double before_end = 0, after_end = 0;
    for (const fulcrum_activity& activity : *seen) {  // in the order of their begins
      if (activity.kind != FULCRUM_ACTIVITY_MIGRATE) continue;
      if (activity.end_seconds <= launched) {
        before += activity.begin_seconds > before_end;
        before_end = std::max(before_end, activity.end_seconds);
      } else if (activity.begin_seconds >= waited) {
        after += activity.begin_seconds > after_end;
        after_end = std::max(after_end, activity.end_seconds);
      }
    }
    EXPECT_EQ(before, 1) << path << " (" << trip->detail() << ")";
    EXPECT_EQ(after, 1) << path << " (" << trip->detail() << ")";
  }
  activity_stop(*backend_);
}

/// The last test, because the tracing library stays once it is loaded.
TEST_F(Trips, ZMakeNothingAfterTheirFirst) {
  const Status started = activity_start(*backend_);
  if (!started.ok()) GTEST_SKIP() << "SKIPPED: no tracing here: " << started.error().message;
  const auto kernel = kernel_of("vec_add");
  ASSERT_TRUE(kernel.ok());
  for (const char* shape : {"n=1000", "n=1000003"}) {
    ops::Problem problem = problem_of("vec_add", shape);
    for (const std::string& path : trip_paths(*backend_)) {
      auto trip = open(*kernel, problem, path);
      ASSERT_TRUE(trip) << path;
      ASSERT_TRUE(trip->run().ok());
      ASSERT_TRUE(activity_take(*backend_).ok());
      ASSERT_TRUE(trip->run(10).ok());
      const auto seen = activity_take(*backend_);
      ASSERT_TRUE(seen.ok());
      int launches = 0, made = 0;
      for (const fulcrum_activity& activity : *seen) {
        launches += activity.kind == FULCRUM_ACTIVITY_LAUNCH;
        made += activity.kind <= FULCRUM_ACTIVITY_FREE;
      }
      EXPECT_GE(launches, 10) << path << ": the tracer saw nothing";
      EXPECT_EQ(made, 0) << path << " (" << trip->detail() << ") " << shape;
    }
  }
  activity_stop(*backend_);
}

}  // namespace
}  // namespace fulcrum::backends
