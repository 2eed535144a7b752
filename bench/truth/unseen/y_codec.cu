// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: one thread decodes a picture and then works on it with the GPU. Twin: another thread decodes the next one
// meanwhile.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "../truth.h"

constexpr int kPixels = 1 << 18, kThreads = 256, kSlots = 4;

__global__ void enhance(const float* in, float* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = truth::churn(in[i], 25000);
}

void decode(std::int64_t number, float* pixels) {
  unsigned state = static_cast<unsigned>(number) * 2654435761u + 1;
  for (int i = 0; i < kPixels; ++i) {
    state = state * 1664525u + 1013904223u;
    pixels[i] = 0.1f + 0.8f * static_cast<float>(state >> 8) / 16777216.0f;
  }
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    CUDA_OK(cudaStreamCreate(&stream));
    for (auto& one : pixels) one = truth::pinned_array<float>(kPixels);
    for (auto& one : sent) CUDA_OK(cudaEventCreateWithFlags(&one, cudaEventDisableTiming));
    if (fixed) decoder = std::thread([this] { work(); });
  }
  ~Program() { stop(); }
  void stop() {
    {
      const std::lock_guard lock(mutex);
      ends = true;
    }
    changed.notify_all();
    if (decoder.joinable()) decoder.join();
  }
  void work() {
    for (std::int64_t next = 1;; ++next) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return ends || next < taken + kSlots; });
      if (ends) return;
      lock.unlock();
      decode(next, pixels[next % kSlots]);
      lock.lock();
      decoded = next;
      changed.notify_all();
    }
  }
  void iteration(std::int64_t number) {
    const int slot = static_cast<int>(number % kSlots);
    if (!fixed || number == 0) {
      if (fixed) stop();
      CUDA_OK(cudaEventSynchronize(sent[slot]));
      decode(number, pixels[slot]);
    } else {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return decoded >= number; });
    }
    CUDA_OK(cudaMemcpyAsync(in, pixels[slot], kPixels * sizeof(float), cudaMemcpyHostToDevice, stream));
    CUDA_OK(cudaEventRecord(sent[slot], stream));
    enhance<<<kPixels / kThreads, kThreads, 0, stream>>>(in, out);
    if (!fixed || number < 2) return;
    CUDA_OK(cudaEventSynchronize(sent[(number - 1) % kSlots]));
    const std::lock_guard lock(mutex);
    taken = number - 1;
    changed.notify_all();
  }
  double sum() { return truth::sum_of(out, kPixels); }

  bool fixed;
  cudaStream_t stream;
  cudaEvent_t sent[kSlots];
  float *pixels[kSlots], *in = truth::device_array<float>(kPixels),
                         *out = truth::device_array<float>(kPixels);
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t decoded = 0, taken = 0;
  bool ends = false;
  std::thread decoder;
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
