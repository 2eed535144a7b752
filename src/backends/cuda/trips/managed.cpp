// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Operands in unified memory. A trip is what a program does that keeps its data there: the host writes the inputs (here:
// from the caller's buffers), the kernel runs, the host reads the results (into the caller's). Pages lie where their
// last user left them, so every trip moves them, by fault or by prefetch; the host's writing and reading is part of it.
#include "backends/cuda/activities.h"
#include "backends/cuda/trips/handles.h"
#include "backends/cuda/trips/race.h"
#include "backends/cuda/trips/station.h"
#include "backends/cuda/trips/trip.h"

#include <cstring>
#include <iterator>

namespace fulcrum::backends::cuda::trips {
namespace {

cudaError_t prefetch(void* memory, std::size_t bytes, cudaMemLocation to, cudaStream_t stream) {
#if CUDART_VERSION >= 13000
  return cudaMemPrefetchAsync(memory, bytes, to, 0, stream);
#else
  return cudaMemPrefetchAsync_v2(memory, bytes, to, 0, stream);
#endif
}

/// The same for pages whose contents nobody will read: they change their place without being copied.
cudaError_t prefetch_empty(void* memory, std::size_t bytes, cudaMemLocation to, cudaStream_t stream) {
#if CUDART_VERSION >= 13000
  std::size_t first = 0;
  return cudaMemDiscardAndPrefetchBatchAsync(&memory, &bytes, 1, &to, &first, 1, 0, stream);
#else
  return prefetch(memory, bytes, to, stream);
#endif
}

/// What becomes of the inputs' pages behind the kernel: they stay on the device, so that the host's next write faults
/// them back; they are prefetched back; they come back empty, and results' pages go to the device empty.
enum class Prefetch { none, inputs_stay, inputs_back, inputs_back_empty };
constexpr Prefetch kRaced[] = {Prefetch::inputs_stay, Prefetch::inputs_back, Prefetch::inputs_back_empty};

constexpr std::size_t kLargePage = 2 << 20;

class ManagedTrip : public Trip {
 public:
  explicit ManagedTrip(bool prefetched) : prefetch_(prefetched ? Prefetch::inputs_stay : Prefetch::none) {}
  ~ManagedTrip() override {
    if (stream_) cudaStreamSynchronize(stream_);
    for (char* memory : memory_) cudaFree(memory);
  }

  fulcrum_status open(const Cargo& cargo) override {
    cargo_ = cargo;
    int concurrent = 0;
    FULCRUM_CUDA(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, device().ordinal));
    if (!concurrent)
      return failed(FULCRUM_UNSUPPORTED, "this device moves no pages of unified memory on demand");
    std::size_t free_bytes = 0, total_bytes = 0;
    FULCRUM_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    if (static_cast<std::size_t>(cargo_.bytes()) > free_bytes / 2) {
      return failed(FULCRUM_OUT_OF_MEMORY,
                    "the operands need more than half of the device's free memory, beyond which "
                    "pages of unified memory would be moved back and forth within one call");
    }
    watch_migrations();
    here_.type = cudaMemLocationTypeHost;
    there_.type = cudaMemLocationTypeDevice;
    there_.id = device().ordinal;
    fulcrum_args args = cargo_.args;
    for (const Buffer& buffer : cargo_.buffers) {
      void* memory = nullptr;
      // Whole large pages, so that no page holds two buffers: giving up the contents of one must not touch another.
      const std::size_t bytes = (static_cast<std::size_t>(buffer.bytes) / kLargePage + 1) * kLargePage;
      FULCRUM_CUDA(cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal));
      memory_.push_back(static_cast<char*>(memory));
      place(args, buffer, memory);
    }
    FULCRUM_STATUS(station_.open(cargo_.kernel, args));
    FULCRUM_STATUS(stream_.open());
    return prefetch_ == Prefetch::none ? done() : choose();
  }

  fulcrum_status once() override {
    each(true, [](char* memory, const Buffer& buffer) {
      std::memcpy(memory, buffer.host, static_cast<std::size_t>(buffer.bytes));
    });
    FULCRUM_STATUS(enqueue());
    FULCRUM_STATUS(stream_.wait());
    each(false, [](char* memory, const Buffer& buffer) {
      std::memcpy(buffer.host, memory, static_cast<std::size_t>(buffer.bytes));
    });
    return done();
  }

  std::string detail() const override { return names(prefetch_); }

 private:
  /// Every buffer that goes in, or that comes out.
  template <class Visit>
  void each(bool in, Visit&& visit) {
    const HostTouch touch;
    for (std::size_t i = 0; i < cargo_.buffers.size(); ++i) {
      if (in ? cargo_.buffers[i].in : cargo_.buffers[i].out) visit(memory_[i], cargo_.buffers[i]);
    }
  }

  fulcrum_status enqueue() {
    // Results' pages go to the device too: the kernel would fault on them otherwise.
    FULCRUM_STATUS(move(
        there_, [](const Buffer&) { return true; }, [](const Buffer& b) { return !b.in; }));
    FULCRUM_STATUS(station_.enqueue(stream_, cargo_.calls));
    return move(
        here_, [&](const Buffer& b) { return b.out || prefetch_ != Prefetch::inputs_stay; },
        [](const Buffer& b) { return !b.out; });
  }

  /// Moves the pages of the buffers that `which` names; `unread` says whose contents nobody needs any more.
  template <class Which, class Unread>
  fulcrum_status move(const cudaMemLocation& to, Which&& which, Unread&& unread) {
    if (prefetch_ == Prefetch::none) return done();
    for (std::size_t i = 0; i < cargo_.buffers.size(); ++i) {
      const Buffer& buffer = cargo_.buffers[i];
      if (buffer.bytes == 0 || !which(buffer)) continue;
      const bool empty = prefetch_ == Prefetch::inputs_back_empty && unread(buffer);
      FULCRUM_CUDA((empty ? prefetch_empty : prefetch)(memory_[i], static_cast<std::size_t>(buffer.bytes), to,
                                                       stream_));
    }
    return done();
  }

  fulcrum_status choose() {
    fulcrum_status last = done();
    const int winner = race(static_cast<int>(std::size(kRaced)), RaceRules{.rounds = 3}, [&](int i) {
      prefetch_ = kRaced[i];
      return seconds_of([&] { return last = once(); });
    });
    if (winner < 0) return last;
    prefetch_ = kRaced[winner];
    return stream_.wait();
  }

  static std::string names(Prefetch prefetch) {
    switch (prefetch) {
      case Prefetch::none:
        return "managed, pages by fault";
      case Prefetch::inputs_stay:
        return "managed_prefetch";
      case Prefetch::inputs_back:
        return "managed_prefetch, inputs too on the way back";
      case Prefetch::inputs_back_empty:
        return "managed_prefetch, inputs back without their contents";
    }
    return "";
  }

  Prefetch prefetch_;
  Cargo cargo_;
  cudaMemLocation here_{}, there_{};
  std::vector<char*> memory_;
  Station station_;
  Stream stream_;
};

}  // namespace

std::unique_ptr<Trip> make_managed() { return std::make_unique<ManagedTrip>(false); }
std::unique_ptr<Trip> make_managed_prefetch() { return std::make_unique<ManagedTrip>(true); }

}  // namespace fulcrum::backends::cuda::trips
