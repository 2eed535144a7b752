// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: the host prepares the next parameters between two launches and takes longer than the kernel. Twin: three
// threads prepare them ahead.
#include <atomic>
#include <thread>

#include "../truth.h"

constexpr int kCount = 1 << 20, kThreads = 256, kWeights = 24000, kSlots = 12, kWorkers = 3;

__global__ void simulate(const float* weights, float* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = truth::churn(weights[i % kWeights], 2000);
}

void prepare(std::int64_t turn, float* weights) {
  double x = 0.1 + 0.8 * static_cast<double>(turn % 97) / 97;
  for (int i = 0; i < kWeights; ++i) {
    for (int k = 0; k < 4; ++k) x = 3.7 * x * (1 - x);
    weights[i] = static_cast<float>(x);
  }
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int s = 0; s < kSlots; ++s) {
      weights[s] = truth::pinned_array<float>(kWeights);
      CUDA_OK(cudaEventCreateWithFlags(&sent[s], cudaEventDisableTiming));
      ready[s] = -1;
      wanted[s] = -1;
    }
    if (!fixed) return;
    for (int w = 0; w < kWorkers; ++w) workers.emplace_back(&Program::work, this, w);
    for (std::int64_t turn = 1; turn <= kSlots; ++turn) wanted[turn % kSlots] = turn;
  }
  ~Program() { finish(); }
  void finish() {
    stop = true;
    for (auto& worker : workers) worker.join();
    workers.clear();
  }
  void work(int number) {
    for (int s = number; !stop; s = (s + kWorkers) % kSlots) {
      const std::int64_t turn = wanted[s];
      if (turn >= 0 && ready[s] != turn)
        prepare(turn, weights[s]), ready[s] = turn;
      else
        std::this_thread::yield();
    }
  }
  void iteration(std::int64_t turn) {
    const int slot = static_cast<int>(turn % kSlots);
    if (fixed && turn > 0) {
      while (ready[slot] != turn) std::this_thread::yield();
    } else {
      finish();
      CUDA_OK(cudaEventSynchronize(sent[slot]));
      prepare(turn, weights[slot]);
    }
    CUDA_OK(cudaMemcpyAsync(device, weights[slot], kWeights * sizeof(float), cudaMemcpyHostToDevice, stream));
    CUDA_OK(cudaEventRecord(sent[slot], stream));
    simulate<<<kCount / kThreads, kThreads, 0, stream>>>(device, out);
    // The slot before this one is free once its copy is done: it becomes that of a later turn.
    const int before = static_cast<int>((turn + kSlots - 2) % kSlots);
    if (!fixed || turn < 3) return;
    CUDA_OK(cudaEventSynchronize(sent[before]));
    wanted[before] = turn - 2 + kSlots;
  }
  double sum() { return truth::sum_of(out, kCount); }

  bool fixed;
  cudaStream_t stream;
  float *weights[kSlots], *device = truth::device_array<float>(kWeights),
                          *out = truth::device_array<float>(kCount);
  cudaEvent_t sent[kSlots];
  std::atomic<std::int64_t> wanted[kSlots], ready[kSlots];
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
