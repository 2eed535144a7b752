// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// For small calls the wait costs as much as the work: the kernel works on mapped memory, a flag follows its results,
// and the host spins on the flag instead of asking the driver. Six flavours are timed by open(): the flag raised by the
// call's own kernel where that can do it, by the stream, or by a kernel behind it, each recorded or not.
//
// Order: the host clears the flag before the launch, whose doorbell is ordered after earlier stores; the device writes
// it once per launch, after the results (streaming.cuh, flag.cu, flag.cpp); the host's acquire load that sees 1
// therefore sees the results. No write of an earlier launch can be under way when the flag is cleared: that launch's
// only write was seen.
#include "backends/cuda/trips/flag.h"
#include "backends/cuda/trips/handles.h"
#include "backends/cuda/trips/host_side.h"
#include "backends/cuda/trips/race.h"
#include "backends/cuda/trips/station.h"
#include "backends/cuda/trips/trip.h"

namespace fulcrum::backends::cuda::trips {
namespace {

/// After this the host stops spinning and waits for the stream, which also tells of errors.
constexpr std::chrono::milliseconds kSpinLimit{50};

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// True when the flag was raised in time.
bool spin(const std::uint32_t* flag) {
  const auto begin = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < 256; ++i) {
      if (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != 0) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() - begin < kSpinLimit);
  return false;
}

class LatencyTrip : public Trip {
 public:
  ~LatencyTrip() override {
    if (!flag_) return;
    if (stream_) cudaStreamSynchronize(stream_);  // the flag may still be written
    give_pinned(flag_memory_);
  }

  fulcrum_status open(const Cargo& cargo) override {
    calls_ = cargo.calls;
    FULCRUM_STATUS(host_.open(cargo));
    fulcrum_args args = cargo.args;
    for (std::size_t i = 0; i < cargo.buffers.size(); ++i) place(args, cargo.buffers[i], host_.device(i));
    FULCRUM_STATUS(station_.open(cargo.kernel, args));
    FULCRUM_STATUS(take_pinned(64, &flag_memory_));
    flag_ = static_cast<std::uint32_t*>(flag_memory_);
    void* mapped = nullptr;
    FULCRUM_CUDA(cudaHostGetDevicePointer(&mapped, flag_memory_, 0));
    device_flag_ = static_cast<std::uint32_t*>(mapped);
    FULCRUM_STATUS(tickets_.take(sizeof(std::uint32_t)));
    FULCRUM_STATUS(stream_.open());
    FULCRUM_CUDA(cudaMemsetAsync(tickets_.as<void>(), 0, sizeof(std::uint32_t), stream_));
    host_.load();
    // Both forms once: the first launch loads a kernel, which a recorded one should not have to.
    FULCRUM_STATUS(station_.enqueue(stream_, 1));
    raises_ = enqueue_with_request().code == FULCRUM_OK;
    FULCRUM_STATUS(stream_.wait());
    return choose();
  }

  fulcrum_status once() override { return once(chosen_); }

  std::string detail() const override {
    static constexpr const char* kNames[] = {"call", "stream", "kernel"};
    return std::string("latency, flag by ") + kNames[static_cast<int>(kFlavours[chosen_].raiser)] +
           (kFlavours[chosen_].recorded ? ", recorded" : "") + (host_.staged() ? ", operands staged" : "");
  }

 private:
  enum class Raiser { call, stream, kernel };
  struct Flavour {
    Raiser raiser;
    bool recorded;
  };
  static constexpr int kCount = 6;
  static constexpr Flavour kFlavours[kCount] = {{Raiser::call, true},   {Raiser::call, false},
                                                {Raiser::stream, true}, {Raiser::stream, false},
                                                {Raiser::kernel, true}, {Raiser::kernel, false}};

  fulcrum_status enqueue(int flavour) {
    const Raiser raiser = kFlavours[flavour].raiser;
    if (raiser == Raiser::call) return enqueue_with_request();
    FULCRUM_STATUS(station_.enqueue(stream_, calls_));
    return raiser == Raiser::stream ? signal_by_stream(stream_, device_flag_)
                                    : signal_by_kernel(stream_, device_flag_);
  }

  /// The call raises the flag itself, or nobody does.
  fulcrum_status enqueue_with_request() {
    requested_signal() = Signal{device_flag_, tickets_.as<std::uint32_t>()};
    const fulcrum_status enqueued = station_.enqueue(stream_, calls_);
    const bool taken = take_signal().flag == nullptr;
    FULCRUM_STATUS(enqueued);
    return taken ? done() : failed(FULCRUM_UNSUPPORTED, "this kernel does not raise flags");
  }

  fulcrum_status choose() {
    bool usable[kCount] = {};
    for (int i = 0; i < kCount; ++i) {
      if (kFlavours[i].raiser == Raiser::call && !raises_) continue;
      usable[i] = !kFlavours[i].recorded ||
                  recordings_[i].record(stream_, [&] { return enqueue(i); }).code == FULCRUM_OK;
    }
    fulcrum_status last = done();
    chosen_ = race(kCount, RaceRules{},
                   [&](int i) { return usable[i] ? seconds_of([&] { return last = once(i); }) : -1.0; });
    if (chosen_ >= 0) return done();
    chosen_ = 0;
    return last.code != FULCRUM_OK ? last
                                   : failed(FULCRUM_DEVICE_ERROR, "no way to signal the end of a trip works");
  }

  fulcrum_status once(int flavour) {
    host_.load();
    __atomic_store_n(flag_, 0u, __ATOMIC_SEQ_CST);
    FULCRUM_STATUS(kFlavours[flavour].recorded ? recordings_[flavour].launch(stream_) : enqueue(flavour));
    if (!spin(flag_)) FULCRUM_STATUS(stream_.wait());
    host_.store();
    return done();
  }

  std::int64_t calls_ = 1;
  int chosen_ = 0;
  bool raises_ = false;  // the call's kernel raises the flag itself
  void* flag_memory_ = nullptr;
  std::uint32_t* flag_ = nullptr;         // as the host sees it
  std::uint32_t* device_flag_ = nullptr;  // as the device does
  HostSide host_;
  Station station_;
  Scratch tickets_;  // for calls that raise the flag themselves
  Recording recordings_[kCount];
  Stream stream_;
};

}  // namespace

std::unique_ptr<Trip> make_latency() { return std::make_unique<LatencyTrip>(); }

}  // namespace fulcrum::backends::cuda::trips
