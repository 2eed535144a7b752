// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Multiply-adds without memory: eight independent chains a thread, all threads that an SM holds.
#include <algorithm>

#include "backends/cuda/probes/probe.h"

namespace fulcrum::backends::cuda::probes {
namespace {

constexpr int kChainThreads = 256;
constexpr int kChains = 8;
constexpr int kUnrolled = 16;  // steps of every chain in one turn of the loop

__device__ float multiply_add(float x, float a, float b) { return __fmaf_rn(x, a, b); }
__device__ double multiply_add(double x, double a, double b) { return __fma_rn(x, a, b); }

template <class T>
__global__ void __launch_bounds__(kChainThreads) chains(T a, T b, int turns, T* out) {
  T x[kChains];
#pragma unroll
  for (int c = 0; c < kChains; ++c) x[c] = static_cast<T>(threadIdx.x + c) * static_cast<T>(0x1p-8);
#pragma unroll 1
  for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (int step = 0; step < kUnrolled; ++step) {
#pragma unroll
      for (int c = 0; c < kChains; ++c) x[c] = multiply_add(x[c], a, b);
    }
  }
  T sum = 0;
#pragma unroll
  for (int c = 0; c < kChains; ++c) sum += x[c];
  if (sum == static_cast<T>(-1)) *out = sum;  // chains stay positive: never, but the compiler cannot know
}

template <class T>
class ChainWindow : public Window {
 public:
  fulcrum_status open(const fulcrum_probe& self) override {
    work_ = self.work;
    FULCRUM_STATUS(out_.take(sizeof(T)));
    FULCRUM_STATUS(marks_.open());
    int resident = 0;
    FULCRUM_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, chains<T>, kChainThreads, 0));
    ctas_ = std::max(1, resident) * device().sms;
    double seconds = 0;
    for (turns_ = 16; turns_ < (1 << 20); turns_ *= 4) {  // some milliseconds, whatever the device's rate
      FULCRUM_STATUS(run(&seconds));
      if (seconds * done_flops() / work_ > 1e-3) break;
    }
    return done();
  }
  fulcrum_status run(double* seconds) override {
    const cudaStream_t stream = stream_of(nullptr);
    FULCRUM_STATUS(launch(stream));
    FULCRUM_STATUS(marks_.begin(stream));
    FULCRUM_STATUS(launch(stream));
    FULCRUM_STATUS(marks_.end(stream, seconds));
    *seconds *= work_ / done_flops();
    return done();
  }

 private:
  double done_flops() const {
    return 2.0 * kChains * kUnrolled * turns_ * kChainThreads * static_cast<double>(ctas_);
  }
  fulcrum_status launch(cudaStream_t stream) const {
    // Towards b / (1 - a): no chain overflows or becomes denormal.
    chains<T><<<static_cast<unsigned>(ctas_), kChainThreads, 0, stream>>>(
        static_cast<T>(0.9990234375), static_cast<T>(0.7310585786), turns_, out_.as<T>());
    return launched("multiply-adds");
  }

  Scratch out_;
  Marks marks_;
  int ctas_ = 1;
  int turns_ = 1;
  double work_ = 1;
};

}  // namespace

void add_compute_probes(std::vector<fulcrum_probe>& list) {
  constexpr double kTera = 1e12;
  list.push_back(entry<ChainWindow<float>>("flops", "fp32", 0, kTera));
  list.push_back(entry<ChainWindow<double>>("flops", "fp64", 0, kTera));
}

}  // namespace fulcrum::backends::cuda::probes
