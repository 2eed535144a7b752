// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of a backend with memory of its own, in every regime: the device is the fake one, on a clock of the test's.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/modules.h"
#include "measure/bound.h"
#include "measure/ledger.h"
#include "support/fake_clock.h"
#include "support/fake_gpu.h"

namespace fulcrum::measure {
namespace {

using testing::FakeClock;

constexpr const char* kModule = FULCRUM_TEST_MODULE_DIR "/gpu/libfulcrum_fakegpu.so";

class Device : public ::testing::Test {
 protected:
  void SetUp() override {
    table_ = backends::load_module(kModule);
    ASSERT_STREQ(table_->name, "fakegpu");
    backend_.emplace(table_);
    void* library = dlopen(kModule, RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(library, nullptr);
    control_ = reinterpret_cast<FakeGpuControlFunction>(dlsym(library, FAKE_GPU_CONTROL))();
    saved_ = *control_;
    now_ = 5000;
    control_->now = &now_;
    clock_ = Clock{.now = [this] { return now_; }, .resolution_seconds = 1e-9};
    config_.clock = &clock_;
    config_.regime = Regime::roundtrip;
  }
  void TearDown() override {
    saved_.now = nullptr;
    if (control_) *control_ = saved_;
  }

  backends::Kernel kernel(std::string_view op, std::string_view variant = "default") {
    for (const fulcrum_kernel& entry : backend_->kernels()) {
      if (entry.op == op && entry.variant == variant) return backends::Kernel(&*backend_, &entry);
    }
    ADD_FAILURE() << "no such kernel";
    return backends::Kernel(&*backend_, nullptr);
  }
  ops::Problem problem(const char* op, const char* shape) {
    return std::move(*ops::Problem::make(**ops::find(op), *parse_shape(shape)));
  }
  Result<Measurement> measure(const char* op = "vec_add", const char* shape = "n=1000") {
    ops::Problem p = problem(op, shape);
    return run(kernel(op), p, config_);
  }

  const fulcrum_backend* table_ = nullptr;
  std::optional<backends::Backend> backend_;
  FakeGpuControl* control_ = nullptr;
  FakeGpuControl saved_{};
  double now_ = 0;
  Clock clock_;
  Config config_;
};

bool has_flag(const Measurement& m, std::string_view flag) {
  return std::find(m.flags.begin(), m.flags.end(), flag) != m.flags.end();
}

// Launches of h2d, kernel and d2h (1 us each); the copy in starts 1 us after its own launch and all is one queue.
constexpr double kTripSeconds = 1e-6 + 1e-6 + 2e-6 + 6e-6 + 2e-6 + 2e-6;

TEST_F(Device, ARoundTripTakesWhatItsTimelineSays) {
  const auto m = measure();
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_NEAR(m->seconds.median, kTripSeconds, 1e-10);
  EXPECT_EQ(m->path, "auto");
  EXPECT_EQ(m->detail, "copy") << "what auto chose";
  EXPECT_EQ(m->row(),
            "vec_add/fakegpu/default/n:1000/B:1/layout:packed/regime:roundtrip/path:auto/cache:warm");
  EXPECT_TRUE(m->oracle.passed);
  EXPECT_FALSE(m->device_seconds.has_value());
  ASSERT_TRUE(m->environment.gpu.has_value());
  EXPECT_DOUBLE_EQ(m->environment.gpu->temperature_c, 41);
  EXPECT_FALSE(has_flag(*m, "cache_unverified")) << "a trip claims nothing about caches of the device";
}

TEST_F(Device, APathIsPartOfTheRowAndAnUnknownOneAnError) {
  config_.path = "latency";
  const auto m = measure("relu");
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_EQ(m->path, "latency");
  EXPECT_NEAR(m->seconds.median, 1e-6 + 1e-6 + 6e-6 + 2e-6, 1e-10);
  config_.path = "teleport";
  EXPECT_EQ(measure().error().code, Code::not_found);
  config_.path = "managed";
  EXPECT_EQ(measure().error().code, Code::usage) << "that path belongs to another regime";
}

TEST_F(Device, ManagedMemoryMigratesInsteadOfCopying) {
  config_.regime = Regime::managed;
  const auto m = measure();
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_EQ(m->path, "managed");
  EXPECT_NEAR(m->seconds.median, kTripSeconds + 2e-6, 1e-10);
  config_.path = "managed_prefetch";
  EXPECT_EQ(measure()->path, "managed_prefetch");
}

TEST_F(Device, ReuseIsTimedPerCall) {
  config_.regime = Regime::reuse;
  config_.reuse = 16;
  const auto m = measure();
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_NEAR(m->seconds.median, (kTripSeconds + 15 * 6e-6) / 16, 1e-10);
  EXPECT_EQ(m->reuse, 16);
  EXPECT_EQ(m->calls_per_sample % 16, 0);
  EXPECT_NE(m->row().find("/regime:reuse=16/path:auto/"), std::string::npos) << m->row();
}

// The first way in, a kernel a call (the longest of the three), the last way out.
double overlapped_seconds(std::int64_t calls) {
  return (4e-6 + 6e-6 * static_cast<double>(calls) + 2e-6 + 2e-6) / static_cast<double>(calls);
}

TEST_F(Device, OverlappedCallsTakeAsLongAsTheLongestOfTheirParts) {
  config_.regime = Regime::overlapped;
  const auto m = measure();
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_GE(m->calls_per_sample, kOverlappedCalls);
  EXPECT_NEAR(m->seconds.median, overlapped_seconds(m->calls_per_sample), 1e-10);
  EXPECT_EQ(m->path, "overlapped");
  EXPECT_EQ(m->detail, "overlapped; one call alone 14.0 us")
      << "4 to bring, 6 to work, 2 to fetch, 2 to wake";
  EXPECT_NE(m->row().find("/regime:overlapped/path:overlapped/"), std::string::npos) << m->row();

  control_->seconds[FULCRUM_ACTIVITY_KERNEL] = 5e-3;
  const auto longer = measure();
  ASSERT_TRUE(longer.ok()) << longer.error().message;
  EXPECT_EQ(longer->calls_per_sample, kOverlappedCalls) << "calls that the clock could time one by one";
}

TEST_F(Device, CallsThatNeedEachOtherDoNotOverlap) {
  config_.regime = Regime::overlapped;
  ops::Problem::Options in_place;
  in_place.in_place = true;
  ops::Problem p = std::move(*ops::Problem::make(**ops::find("relu"), *parse_shape("n=1000"), in_place));
  EXPECT_EQ(run(kernel("relu"), p, config_).error().code, Code::unsupported);
  config_.cache = Cache::cold;
  EXPECT_EQ(measure().error().code, Code::unsupported) << "the second call would find the memory warm";
  config_.cache = Cache::warm;
  config_.path = "copy";
  EXPECT_EQ(measure().error().code, Code::usage) << "that path belongs to another regime";
}

TEST_F(Device, ABatchOfCallsOnDifferentMemoryIsOneTrip) {
  constexpr std::int64_t kLength = 100;
  constexpr std::size_t kCalls = 5;
  std::vector<std::vector<float>> in(kCalls), out(kCalls);
  std::vector<float> shared(kLength, 0.5F);
  std::vector<Args> calls;
  for (std::size_t i = 0; i < kCalls; ++i) {
    in[i].assign(kLength, static_cast<float>(i));
    out[i].assign(kLength, -1);
    Args args = *ops::resolve(**ops::find("vec_add"), *parse_shape("n=100"));
    args.ptr[0] = in[i].data();
    args.ptr[1] = shared.data();
    args.ptr[3] = out[i].data();
    calls.push_back(args);
  }
  auto trip = backends::Trip::make_batch(kernel("vec_add"), calls);
  ASSERT_TRUE(trip.ok()) << trip.error().message;
  EXPECT_EQ(trip->detail(), "overlapped, 5 calls");
  ASSERT_TRUE(trip->run().ok());
  for (std::size_t i = 0; i < kCalls; ++i)
    EXPECT_EQ(out[i], std::vector<float>(kLength, static_cast<float>(i) + 0.5F)) << i;
  EXPECT_EQ(backends::Trip::make_batch(kernel("vec_add"), {}).error().code, Code::usage);
  EXPECT_EQ(backends::Trip::make_batch(kernel("vec_add"), calls, "teleport").error().code, Code::not_found);
  calls[2].ptr[0] = nullptr;
  EXPECT_FALSE(backends::Trip::make_batch(kernel("vec_add"), calls).ok()) << "every call is checked";
}

TEST(Paths, BelongToOneRegimeOrToThoseOfSingleTrips) {
  using backends::path_serves;
  for (const Regime regime : {Regime::roundtrip, Regime::reuse, Regime::first_call}) {
    EXPECT_TRUE(path_serves("copy", regime));
    EXPECT_FALSE(path_serves("managed_prefetch", regime));
    EXPECT_FALSE(path_serves("overlapped", regime));
  }
  EXPECT_TRUE(path_serves("managed_prefetch", Regime::managed));
  EXPECT_TRUE(path_serves("overlapped", Regime::overlapped));
  EXPECT_FALSE(path_serves("overlapped", Regime::managed));
  EXPECT_FALSE(path_serves("copy", Regime::overlapped));
}

TEST_F(Device, ResidentTimesSingleCallsAndTheDeviceAloneBesideThem) {
  config_.regime = Regime::resident;
  const auto m = measure();
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_NEAR(m->seconds.median, 1e-6 + 1e-6 + 6e-6 + 2e-6, 1e-10);
  ASSERT_TRUE(m->device_seconds.has_value());
  EXPECT_GE(m->device_calls, 20);
  EXPECT_EQ(m->device_sets, 1);
  // One launch and one start a batch of calls of 6 us.
  const double calls = static_cast<double>(m->device_calls);
  EXPECT_NEAR(m->device_seconds->median, (6e-6 * calls + 2e-6) / calls, 1e-10);
  EXPECT_TRUE(m->path.empty());
}

TEST_F(Device, BatchesThatWereHeldUpDoNotMakeThemShort) {
  config_.regime = Regime::resident;
  config_.budget_seconds = 0.2;
  config_.warmup_seconds = 1e-3;  // ends with the first that was held up
  control_->held_seconds = 5e-3;
  const auto m = measure();
  ASSERT_TRUE(m.ok()) << m.error().message;
  ASSERT_TRUE(m->device_seconds.has_value());
  EXPECT_GE(m->device_calls, 20);
}

TEST_F(Device, AKernelIsHeldAgainstThePeakOfTheUnitItsInstructionSetNames) {
  Machine machine;
  machine.gpus.emplace_back();
  machine.gpus[0].flops["fp32"] = {.value = 1e6};  // 1000 additions in 6 us are 0.17 GFLOP/s
  machine.gpus[0].flops["fp16"] = {.value = 1e9};
  config_.machine = &machine;
  config_.regime = Regime::resident;
  fulcrum_kernel entry = kernel("vec_add").entry();
  const auto flagged = [&] {
    ops::Problem p = problem("vec_add", "n=1000");
    const auto m = run(backends::Kernel(&*backend_, &entry), p, config_);
    EXPECT_TRUE(m.ok());
    return m.ok() && has_flag(*m, "impossible_rate");
  };
  entry.isa = [] { return "sm_90"; };
  EXPECT_TRUE(flagged());
  entry.isa = [] { return "sm_90+fp16"; };
  EXPECT_FALSE(flagged());
  entry.flop_factor = 10;
  EXPECT_TRUE(flagged()) << "operations that are done count, not those of the definition";
}

TEST_F(Device, ABatchTooShortForTheDevicesClockHasNoDeviceTime) {
  config_.regime = Regime::resident;
  control_->seconds[FULCRUM_ACTIVITY_KERNEL] = 1e-10;
  const auto m = measure();
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_FALSE(m->device_seconds.has_value());
  EXPECT_TRUE(has_flag(*m, "short_replay"));
}

TEST_F(Device, ColdRowsRotateThroughSetsPastTwiceL2) {
  config_.regime = Regime::resident;
  config_.cache = Cache::cold;
  const auto m = measure("vec_add", "n=1000");  // 12,000 bytes a set, 65,536 of L2
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_EQ(m->device_sets, 12);
  EXPECT_EQ(m->device_calls % 12, 0);
  EXPECT_FALSE(has_flag(*m, "few_sets"));
  EXPECT_TRUE(has_flag(*m, "cache_unverified")) << "no profile to prove it with";
}

TEST(Rotation, LeavesL2OrSaysThatItCannot) {
  EXPECT_EQ(rotation_for(12'000'000, {62'914'560, 0}).sets, 12);
  EXPECT_TRUE(rotation_for(12'000'000, {62'914'560, 0}).enough);
  EXPECT_FALSE(rotation_for(12, {62'914'560, 0}).enough) << "too many sets";
  EXPECT_FALSE(rotation_for(1000, {100'000, 6500}).enough) << "too little memory";
  EXPECT_EQ(rotation_for(1000, {100'000, 6500}).sets, 2);
  EXPECT_FALSE(rotation_for(1000, {}).enough) << "nothing known of the device";
}

TEST_F(Device, AWarmSetLargerThanHalfOfL2IsStreaming) {
  config_.regime = Regime::resident;
  EXPECT_TRUE(has_flag(*measure("vec_add", "n=4000"), "streaming"));
  EXPECT_FALSE(has_flag(*measure("vec_add", "n=1000"), "streaming"));
}

TEST_F(Device, AWrongKernelHasNoTimeInAnyRegime) {
  for (const Regime regime :
       {Regime::roundtrip, Regime::resident, Regime::managed, Regime::reuse, Regime::overlapped}) {
    config_.regime = regime;
    ops::Problem p = problem("relu", "n=1000");
    const auto m = run(kernel("relu", "wrong"), p, config_);
    ASSERT_FALSE(m.ok());
    EXPECT_EQ(m.error().code, Code::wrong_result);
  }
}

TEST_F(Device, EachKindOfBackendHasItsRegimes) {
  config_.regime = Regime::host;
  EXPECT_EQ(measure().error().code, Code::unsupported);
  EXPECT_NE(measure().error().message.find("runs on a device"), std::string::npos);
  config_.regime = Regime::first_call;
  EXPECT_EQ(measure().error().code, Code::unsupported);
  config_.regime = Regime::resident;
  ops::Problem p = problem("vec_add", "n=1000");
  const auto scalar = run(*backends::kernel("vec_add", "scalar"), p, config_);
  EXPECT_EQ(scalar.error().code, Code::unsupported);
  EXPECT_NE(scalar.error().message.find("runs on the host"), std::string::npos);
}

TEST_F(Device, AThrottledOrSharedDeviceIsFlagged) {
  control_->state = R"({"sm_hz": 1e9, "throttle_reasons": 4, "other_processes": 2})";
  const auto m = measure();
  ASSERT_TRUE(m.ok());
  EXPECT_TRUE(has_flag(*m, "throttled"));
  EXPECT_TRUE(has_flag(*m, "shared_device"));
  control_->state = R"({"sm_hz": 1e9, "throttle_reasons": 1, "other_processes": 0})";
  EXPECT_FALSE(has_flag(*measure(), "throttled")) << "idle is no complaint";
}

TEST_F(Device, ComparesADeviceWithTheHostEachInItsOwnRegime) {
  ops::Problem p = problem("vec_add", "n=1000");
  static double* host_now;
  host_now = &now_;
  const fulcrum_kernel entry{
      .op = "vec_add", .variant = "known", .run = [](const fulcrum_args* a, void*, std::int64_t count) {
        for (std::int64_t i = 0; i < a->dim[0]; ++i)
          a->out<float>(3)[i] = a->in<float>(0)[i] + a->in<float>(1)[i];
        *host_now += 7e-6 * static_cast<double>(count);
        return fulcrum_status{FULCRUM_OK, nullptr};
      }};
  const fulcrum_backend table{.abi_version = FULCRUM_ABI_VERSION, .name = "known", .kind = "cpu"};
  const backends::Backend host(&table);
  const backends::Kernel cpu(&host, &entry);
  const auto trip = compare(kernel("vec_add"), cpu, p, config_);
  ASSERT_TRUE(trip.ok()) << trip.error().message;
  EXPECT_NEAR(trip->speedup, 7e-6 / kTripSeconds, 1e-6);
  EXPECT_EQ(trip->regime, Regime::roundtrip);

  config_.regime = Regime::reuse;
  config_.reuse = 8;
  const auto reuse = compare(kernel("vec_add"), cpu, p, config_);
  ASSERT_TRUE(reuse.ok()) << reuse.error().message;
  EXPECT_NEAR(reuse->speedup, 8 * 7e-6 / (kTripSeconds + 7 * 6e-6), 1e-6) << "as many calls on either side";

  config_.regime = Regime::overlapped;
  const auto batch = compare(kernel("vec_add"), cpu, p, config_);
  ASSERT_TRUE(batch.ok()) << batch.error().message;
  EXPECT_GE(batch->speedup, 7e-6 / overlapped_seconds(kOverlappedCalls) - 1e-6);
  EXPECT_LE(batch->speedup, 7e-6 / 6e-6);

  config_.regime = Regime::host;
  EXPECT_FALSE(compare(kernel("vec_add"), cpu, p, config_).ok());
}

// The ledger on the fake timeline.

class DeviceLedger : public Device {
 protected:
  Ledger ledger() {
    config_.instrumented = true;
    const auto m = measure();
    EXPECT_TRUE(m.ok()) << m.error().message;
    EXPECT_TRUE(m->ledger.has_value());
    return m.ok() && m->ledger ? *m->ledger : Ledger{};
  }
};

TEST_F(DeviceLedger, BarePassesNeverStartTheTracing) {
  const long long before = control_->activity_starts;
  ASSERT_TRUE(measure().ok());
  EXPECT_EQ(control_->activity_starts, before);
  ledger();
  EXPECT_EQ(control_->activity_starts, before + 1);
}

TEST_F(DeviceLedger, ExplainsTheWholeTrip) {
  const Ledger seen = ledger();
  EXPECT_NEAR(seen.end_to_end_instrumented, kTripSeconds, 1e-10);
  EXPECT_NEAR(seen.unattributed, 0, 1e-10);
  EXPECT_NEAR(seen.kernel, 6e-6, 1e-10);
  EXPECT_NEAR(seen.h2d, 2e-6, 1e-10);
  EXPECT_NEAR(seen.d2h, 2e-6, 1e-10);
  EXPECT_NEAR(seen.sync, 2e-6, 1e-10);
  EXPECT_NEAR(seen.launch, 1e-6, 1e-10) << "the others are enqueued while the first waits for the device";
  EXPECT_NEAR(seen.queue, 1e-6, 1e-10);
}

TEST_F(DeviceLedger, InjectedDelaysLandInTheirPhaseAndMoveNoOther) {
  struct Injected {
    const char* phase;
    double* delay;
  };
  double* seconds = control_->seconds;
  const Injected cases[] = {
      {"alloc", &seconds[FULCRUM_ACTIVITY_ALLOC]}, {"pin", &seconds[FULCRUM_ACTIVITY_PIN]},
      {"free", &seconds[FULCRUM_ACTIVITY_FREE]},   {"h2d", &seconds[FULCRUM_ACTIVITY_H2D]},
      {"d2h", &seconds[FULCRUM_ACTIVITY_D2H]},     {"kernel", &seconds[FULCRUM_ACTIVITY_KERNEL]},
      {"queue", &control_->queue_seconds},         {"sync", &control_->wake_seconds},
      {"unattributed", &control_->gap_seconds}};
  const Ledger before = ledger();
  constexpr double kDelay = 50e-6;
  for (const Injected& injected : cases) {
    *injected.delay += kDelay;
    const Ledger after = ledger();
    *injected.delay -= kDelay;
    for (const Phase& phase : phases()) {
      const double moved = after.*phase.seconds - before.*phase.seconds;
      EXPECT_NEAR(moved, phase.name == injected.phase ? kDelay : 0, 2e-6)
          << injected.phase << " moved " << phase.name;
    }
  }
}

TEST_F(DeviceLedger, ReuseIsToldPerCall) {
  config_.regime = Regime::reuse;
  config_.reuse = 4;
  const Ledger seen = ledger();
  EXPECT_NEAR(seen.kernel, 6e-6, 1e-10);
  EXPECT_NEAR(seen.h2d, 0.5e-6, 1e-10);
  EXPECT_NEAR(seen.end_to_end_instrumented, (kTripSeconds + 3 * 6e-6) / 4, 1e-10);
}

TEST_F(DeviceLedger, OverlappedBatchesAreToldPerCallWithWhatWentOnAtOnce) {
  config_.regime = Regime::overlapped;
  const Ledger seen = ledger();
  EXPECT_NEAR(seen.end_to_end_instrumented, overlapped_seconds(kOverlappedCalls), 1e-10);
  EXPECT_NEAR(seen.kernel, 6e-6, 1e-10);
  EXPECT_NEAR(seen.busy.at("h2d"), 2e-6, 1e-10);
  EXPECT_NEAR(seen.busy.at("d2h"), 2e-6, 1e-10);
  EXPECT_LT(seen.h2d, 0.1e-6) << "hidden behind kernels but for the first";
  EXPECT_NEAR(seen.unattributed, 0, 1e-10);
}

TEST_F(DeviceLedger, CpuKernelsHaveNone) {
  config_.instrumented = true;
  config_.regime = Regime::host;
  ops::Problem p = problem("vec_add", "n=1000");
  EXPECT_EQ(run(*backends::kernel("vec_add", "scalar"), p, config_).error().code, Code::unsupported);
}

// What a GPU and its link allow.

GpuCeilings gpu() {
  GpuCeilings gpu;
  gpu.l2_bytes = 60'000'000;
  gpu.rates["hbm_read"] = {.value = 4.5e12};
  gpu.rates["hbm_copy"] = {.value = 4.3e12};
  gpu.rates["l2_read"] = {.value = 9e12};
  gpu.flops["fp32"] = {.value = 60e12};
  gpu.link["pinned_h2d"] = {{4'000'000, {.value = 80e-6}}};
  gpu.link["pinned_d2h"] = {{4'000'000, {.value = 80e-6}}};
  return gpu;
}

TEST(DevicePhysics, ColdRowsAreBoundByMemory) {
  const Work copy{.read_bytes = 4.3e8, .write_bytes = 4.3e8};
  const Physics right = device_physics(copy, 2e-4, Cache::cold, "fp32", 860'000'000, gpu());
  EXPECT_TRUE(right.violation.empty());
  ASSERT_TRUE(right.ceiling.has_value());
  EXPECT_EQ(right.ceiling->level, "HBM");
  EXPECT_NEAR(right.ceiling->fraction, 1, 1e-9);
  EXPECT_TRUE(device_physics(copy, 1.5e-4, Cache::cold, "fp32", 0, gpu()).unverified)
      << "possible only if outputs were still in L2";
  EXPECT_FALSE(device_physics(copy, 5e-5, Cache::cold, "fp32", 0, gpu()).violation.empty());
}

TEST(DevicePhysics, SmallWarmSetsMayRunFromL2) {
  const Work read{.read_bytes = 1e7};
  const Physics warm = device_physics(read, 1.2e-6, Cache::warm, "fp32", 10'000'000, gpu());
  EXPECT_TRUE(warm.violation.empty());
  EXPECT_EQ(warm.ceiling->level, "L2");
  EXPECT_FALSE(device_physics(read, 1.2e-6, Cache::cold, "fp32", 10'000'000, gpu()).violation.empty());
  EXPECT_FALSE(device_physics(read, 0.9e-6, Cache::warm, "fp32", 10'000'000, gpu()).violation.empty());
}

TEST(DevicePhysics, ArithmeticIsBoundByThePeakOfItsPrecision) {
  const Work work{.flops = 1e12, .read_bytes = 1e6};
  EXPECT_FALSE(device_physics(work, 1e-2, Cache::warm, "fp32", 0, gpu()).violation.empty());
  EXPECT_TRUE(device_physics(work, 1e-2, Cache::warm, "fp16", 0, gpu()).violation.empty()) << "no such peak";
  EXPECT_EQ(device_physics(work, 2e-2, Cache::warm, "fp32", 0, gpu()).ceiling->bound, "compute");
}

TEST(DevicePhysics, TripsAreBoundByTheSlowerDirectionOfTheLink) {
  const Work work{.read_bytes = 8e6, .write_bytes = 4e6, .link_in_bytes = 8e6, .link_out_bytes = 4e6};
  const Physics physics = link_physics(work, 200e-6, gpu());
  EXPECT_TRUE(physics.violation.empty());
  EXPECT_EQ(physics.ceiling->level, "link");
  EXPECT_NEAR(physics.ceiling->fraction, 0.8, 1e-9);
  EXPECT_FALSE(link_physics(work, 100e-6, gpu()).violation.empty());
  EXPECT_FALSE(link_physics(work, 100e-6, GpuCeilings{}).ceiling.has_value()) << "nothing was measured";
}

}  // namespace
}  // namespace fulcrum::measure
