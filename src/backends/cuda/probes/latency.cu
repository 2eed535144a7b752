// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What it costs to start work, to wait for it and to get memory. Times of the host's clock, per call, unless said
// otherwise. Small costs come as differences of a long and a short run, each the shortest of a few.
#include <cooperative_groups.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "backends/cuda/probes/probe.h"
#include "backends/cuda/recording.h"

namespace fulcrum::backends::cuda::probes {
namespace {

constexpr std::size_t kMemoryBytes = std::size_t{4} << 20;

__global__ void nothing() {}

fulcrum_status launch_nothing(cudaStream_t stream) {
  nothing<<<1, 32, 0, stream>>>();
  return launched("an empty kernel");
}

/// The host's seconds of one of `times` steps, each of which has finished when it returns.
template <class Step>
fulcrum_status time_steps(int times, double* seconds, const Step& step) {
  const double begin = host_now();
  for (int i = 0; i < times; ++i) FULCRUM_STATUS(step());
  *seconds = (host_now() - begin) / times;
  return done();
}

/// The shortest of a few steps by the host's clock.
template <class Step>
fulcrum_status shortest(int times, double* seconds, const Step& step) {
  for (int i = 0; i < times; ++i) {
    double one = 0;
    FULCRUM_STATUS(time_steps(1, &one, step));
    if (i == 0 || one < *seconds) *seconds = one;
  }
  return done();
}

class EmptyLaunch : public Window {
 public:
  fulcrum_status open(const fulcrum_probe&) override {
    double ignored = 0;
    return run(&ignored);
  }
  fulcrum_status run(double* seconds) override {
    constexpr int kBatch = 1000;  // fewer than a stream takes before launches wait for the device
    const cudaStream_t stream = stream_of(nullptr);
    FULCRUM_STATUS(time_steps(kBatch, seconds, [&] { return launch_nothing(stream); }));
    FULCRUM_CUDA(cudaStreamSynchronize(stream));
    return done();
  }
};

class LaunchSync : public Window {
 public:
  fulcrum_status open(const fulcrum_probe&) override {
    double ignored = 0;
    return run(&ignored);
  }
  fulcrum_status run(double* seconds) override {
    const cudaStream_t stream = stream_of(nullptr);
    return time_steps(100, seconds, [&] {
      FULCRUM_STATUS(launch_nothing(stream));
      FULCRUM_CUDA(cudaStreamSynchronize(stream));
      return done();
    });
  }
};

/// A recorded chain of empty kernels.
class Chain {
 public:
  Chain() = default;
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;
  ~Chain() {
    if (graph_) cudaGraphExecDestroy(graph_);
  }
  fulcrum_status open(int nodes) {
    cudaStream_t stream = nullptr;
    FULCRUM_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    const fulcrum_status recorded = record(
        stream, "recording empty kernels",
        [&] {
          for (int i = 0; i < nodes; ++i) nothing<<<1, 32, 0, stream>>>();
          return launched("an empty kernel");
        },
        &graph_);
    cudaStreamDestroy(stream);
    FULCRUM_STATUS(recorded);
    return run();
  }
  fulcrum_status run() const {
    FULCRUM_CUDA(cudaGraphLaunch(graph_, stream_of(nullptr)));
    FULCRUM_CUDA(cudaStreamSynchronize(stream_of(nullptr)));
    return done();
  }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

class GraphSync : public Window {
 public:
  fulcrum_status open(const fulcrum_probe&) override { return chain_.open(1); }
  fulcrum_status run(double* seconds) override {
    return time_steps(100, seconds, [&] { return chain_.run(); });
  }

 private:
  Chain chain_;
};

class GraphNode : public Window {
 public:
  fulcrum_status open(const fulcrum_probe&) override {
    FULCRUM_STATUS(short_.open(1));
    return long_.open(kNodes + 1);
  }
  fulcrum_status run(double* seconds) override {
    double one = 0, all = 0;
    FULCRUM_STATUS(shortest(10, &one, [&] { return short_.run(); }));
    FULCRUM_STATUS(shortest(10, &all, [&] { return long_.run(); }));
    *seconds = (all - one) / kNodes;
    return done();
  }

 private:
  static constexpr int kNodes = 100;
  Chain short_, long_;
};

/// The step of the device's clock: the smallest difference between the distances of neighbouring marks.
class EventResolution : public Window {
 public:
  ~EventResolution() override {
    for (const cudaEvent_t event : events_) {
      if (event) cudaEventDestroy(event);
    }
  }
  fulcrum_status open(const fulcrum_probe&) override {
    for (cudaEvent_t& event : events_) FULCRUM_CUDA(cudaEventCreate(&event));
    return done();
  }
  fulcrum_status run(double* seconds) override {
    const cudaStream_t stream = stream_of(nullptr);
    for (const cudaEvent_t event : events_) {
      FULCRUM_CUDA(cudaEventRecord(event, stream));
      FULCRUM_STATUS(launch_nothing(stream));
    }
    FULCRUM_CUDA(cudaStreamSynchronize(stream));
    double distances[kEvents - 1];
    for (int i = 0; i + 1 < kEvents; ++i) {
      float milliseconds = 0;
      FULCRUM_CUDA(cudaEventElapsedTime(&milliseconds, events_[i], events_[i + 1]));
      distances[i] = 1e-3 * static_cast<double>(milliseconds);
    }
    std::sort(std::begin(distances), std::end(distances));
    constexpr double kRounding = 1e-10;  // of a float that counts milliseconds
    *seconds = distances[0];             // all equal: no finer than that
    for (int i = 0; i + 2 < kEvents; ++i) {
      const double step = distances[i + 1] - distances[i];
      if (step > kRounding && (step < *seconds || *seconds <= 0)) *seconds = step;
    }
    return done();
  }

 private:
  static constexpr int kEvents = 64;
  cudaEvent_t events_[kEvents] = {};
};

enum class Memory { device, device_async, pinned, registered };

template <Memory kMemory>
class TakeAndGive : public Window {
 public:
  ~TakeAndGive() override { std::free(host_); }
  fulcrum_status open(const fulcrum_probe&) override {
    if constexpr (kMemory == Memory::registered) {
      host_ = std::aligned_alloc(4096, kMemoryBytes);
      if (!host_) return failed(FULCRUM_OUT_OF_MEMORY, "no host memory for a probe");
      std::memset(host_, 0x5A, kMemoryBytes);
    }
    return step();
  }
  fulcrum_status run(double* seconds) override {
    constexpr int kTimes = kMemory == Memory::pinned ? 2 : kMemory == Memory::registered ? 4 : 20;
    return time_steps(kTimes, seconds, [&] { return step(); });
  }

 private:
  fulcrum_status step() {
    void* memory = host_;
    const cudaStream_t stream = stream_of(nullptr);
    if constexpr (kMemory == Memory::device) {
      FULCRUM_CUDA(cudaMalloc(&memory, kMemoryBytes));
      FULCRUM_CUDA(cudaFree(memory));
    } else if constexpr (kMemory == Memory::device_async) {
      FULCRUM_CUDA(cudaMallocAsync(&memory, kMemoryBytes, stream));
      FULCRUM_CUDA(cudaFreeAsync(memory, stream));
      FULCRUM_CUDA(cudaStreamSynchronize(stream));
    } else if constexpr (kMemory == Memory::pinned) {
      FULCRUM_CUDA(cudaMallocHost(&memory, kMemoryBytes));
      FULCRUM_CUDA(cudaFreeHost(memory));
    } else {
      FULCRUM_CUDA(cudaHostRegister(memory, kMemoryBytes, cudaHostRegisterDefault));
      FULCRUM_CUDA(cudaHostUnregister(memory));
    }
    return done();
  }

  void* host_ = nullptr;
};

__global__ void barriers(int count) {
  const auto grid = cooperative_groups::this_grid();
  for (int i = 0; i < count; ++i) grid.sync();
}

/// One CTA of 512 threads an SM, all of which meet.
class GridBarrier : public Window {
 public:
  fulcrum_status open(const fulcrum_probe&) override {
    if (!device().cooperative) return failed(FULCRUM_UNSUPPORTED, "the device has no cooperative launches");
    int resident = 0;
    FULCRUM_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, barriers, kThreads, 0));
    if (resident < 1) return failed(FULCRUM_UNSUPPORTED, "no CTA of 512 threads fits on an SM");
    return marks_.open();
  }
  fulcrum_status run(double* seconds) override {
    double one = 0, all = 0;
    for (int i = 0; i < 5; ++i) {
      double now = 0;
      FULCRUM_STATUS(time(1, &now));
      if (i == 0 || now < one) one = now;
      FULCRUM_STATUS(time(1 + kBarriers, &now));
      if (i == 0 || now < all) all = now;
    }
    *seconds = (all - one) / kBarriers;
    return done();
  }

 private:
  static constexpr int kThreads = 512;
  static constexpr int kBarriers = 200;

  fulcrum_status time(int count, double* seconds) {
    const cudaStream_t stream = stream_of(nullptr);
    FULCRUM_STATUS(marks_.begin(stream));
    void* arguments[] = {&count};
    FULCRUM_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(barriers),
                                             dim3(static_cast<unsigned>(device().sms)), dim3(kThreads),
                                             arguments, 0, stream));
    return marks_.end(stream, seconds);
  }

  Marks marks_;
};

}  // namespace

void add_latency_probes(std::vector<fulcrum_probe>& list) {
  list.push_back(entry<EmptyLaunch>("latency", "launch", 0, 1));
  list.push_back(entry<LaunchSync>("latency", "launch_sync", 0, 1));
  list.push_back(entry<GraphSync>("latency", "graph_sync", 0, 1));
  list.push_back(entry<GraphNode>("latency", "graph_node", 0, 1));
  list.push_back(entry<EventResolution>("latency", "event_resolution", 0, 1));
  list.push_back(entry<TakeAndGive<Memory::device>>("latency", "alloc", 0, 1));
  list.push_back(entry<TakeAndGive<Memory::device_async>>("latency", "alloc_async", 0, 1));
  list.push_back(entry<TakeAndGive<Memory::pinned>>("latency", "pin", 0, 1));
  list.push_back(entry<TakeAndGive<Memory::registered>>("latency", "register", 0, 1));
  list.push_back(entry<GridBarrier>("latency", "grid_barrier", 0, 1));
}

}  // namespace fulcrum::backends::cuda::probes
