// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Operands in unified memory. A trip is what a program does that keeps its data there: the host writes the inputs (here:
// from the caller's buffers), the kernel runs, the host reads the results (into the caller's). Pages lie where their
// last user left them, so every trip moves them, by fault or by prefetch; the host's writing and reading is part of it.
#include "backends/cuda/trips/handles.h"
#include "backends/cuda/trips/station.h"
#include "backends/cuda/trips/trip.h"

#include <cstring>

namespace fulcrum::backends::cuda::trips {
namespace {

#if CUDART_VERSION >= 13000
cudaError_t prefetch(void* memory, std::size_t bytes, cudaMemLocation to, cudaStream_t stream) {
  return cudaMemPrefetchAsync(memory, bytes, to, 0, stream);
}
cudaError_t read_mostly(void* memory, std::size_t bytes, cudaMemLocation where) {
  return cudaMemAdvise(memory, bytes, cudaMemAdviseSetReadMostly, where);
}
#else
cudaError_t prefetch(void* memory, std::size_t bytes, cudaMemLocation to, cudaStream_t stream) {
  return cudaMemPrefetchAsync_v2(memory, bytes, to, 0, stream);
}
cudaError_t read_mostly(void* memory, std::size_t bytes, cudaMemLocation where) {
  return cudaMemAdvise_v2(memory, bytes, cudaMemAdviseSetReadMostly, where);
}
#endif

class ManagedTrip : public Trip {
 public:
  explicit ManagedTrip(bool prefetched) : prefetched_(prefetched) {}
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
    here_.type = cudaMemLocationTypeHost;
    there_.type = cudaMemLocationTypeDevice;
    there_.id = device().ordinal;
    fulcrum_args args = cargo_.args;
    for (const Buffer& buffer : cargo_.buffers) {
      void* memory = nullptr;
      const std::size_t bytes = static_cast<std::size_t>(buffer.bytes > 0 ? buffer.bytes : 1);
      FULCRUM_CUDA(cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal));
      memory_.push_back(static_cast<char*>(memory));
      place(args, buffer, memory);
      // Inputs are then copied to the device, and the host's next write discards the copy instead of fetching it back.
      if (prefetched_ && !buffer.out) FULCRUM_CUDA(read_mostly(memory, bytes, there_));
    }
    FULCRUM_STATUS(station_.open(cargo_.kernel, args));
    return stream_.open();
  }

  fulcrum_status once() override {
    each(true, [](char* memory, const Buffer& buffer) {
      std::memcpy(memory, buffer.host, static_cast<std::size_t>(buffer.bytes));
    });
    if (prefetched_) FULCRUM_STATUS(move(there_, true));
    FULCRUM_STATUS(station_.enqueue(stream_, cargo_.calls));
    if (prefetched_) FULCRUM_STATUS(move(here_, false));
    FULCRUM_STATUS(stream_.wait());
    each(false, [](char* memory, const Buffer& buffer) {
      std::memcpy(buffer.host, memory, static_cast<std::size_t>(buffer.bytes));
    });
    return done();
  }

  std::string detail() const override { return prefetched_ ? "managed_prefetch" : "managed, pages by fault"; }

 private:
  /// Every buffer that goes in, or that comes out.
  template <class Visit>
  void each(bool in, Visit&& visit) {
    for (std::size_t i = 0; i < cargo_.buffers.size(); ++i) {
      if (in ? cargo_.buffers[i].in : cargo_.buffers[i].out) visit(memory_[i], cargo_.buffers[i]);
    }
  }

  /// Results' pages go to the device too, on the way in: the kernel would fault on them otherwise.
  fulcrum_status move(const cudaMemLocation& to, bool all) {
    for (std::size_t i = 0; i < cargo_.buffers.size(); ++i) {
      const Buffer& buffer = cargo_.buffers[i];
      if (buffer.bytes == 0 || !(all || buffer.out)) continue;
      FULCRUM_CUDA(prefetch(memory_[i], static_cast<std::size_t>(buffer.bytes), to, stream_));
    }
    return done();
  }

  bool prefetched_;
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
