// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A radio receiver: blocks of 4 M complex samples of 8 bits go up and through a Fourier transform of eleven passes.
// Planted: everything is in one stream. Twin: uploads have a stream of their own and two buffers. Expected: no_overlap.
#include "z.h"

constexpr int kCount = 1 << 22, kSlots = 3;

__global__ void unpack(const char2* in, float2* out) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  out[i] = make_float2(static_cast<float>(in[i].x), static_cast<float>(in[i].y));
}

__device__ float2 times(float2 a, float2 b) {
  return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

/// One pass of a transform by fours that sorts itself (Stockham): length n, stride s = 1 << shift.
__global__ void pass(const float2* x, float2* y, int n, int shift) {
  const int t = blockIdx.x * 256 + threadIdx.x, s = 1 << shift, q = t & (s - 1), p = t >> shift, m = n / 4;
  float2 w1;
  sincospif(-2.0f * static_cast<float>(p) / static_cast<float>(n), &w1.y, &w1.x);
  const float2 w2 = times(w1, w1), w3 = times(w1, w2);
  const float2 a = x[q + s * p], b = x[q + s * (p + m)], c = x[q + s * (p + 2 * m)],
               d = x[q + s * (p + 3 * m)];
  const float2 apc = make_float2(a.x + c.x, a.y + c.y), amc = make_float2(a.x - c.x, a.y - c.y);
  const float2 bpd = make_float2(b.x + d.x, b.y + d.y), jbmd = make_float2(-(b.y - d.y), b.x - d.x);
  float2* out = y + q + s * 4 * p;
  out[0] = make_float2(apc.x + bpd.x, apc.y + bpd.y);
  out[s] = times(w1, make_float2(amc.x - jbmd.x, amc.y - jbmd.y));
  out[2 * s] = times(w2, make_float2(apc.x - bpd.x, apc.y - bpd.y));
  out[3 * s] = times(w3, make_float2(amc.x + jbmd.x, amc.y + jbmd.y));
}

struct Program : z::Base {
  explicit Program(bool fixed) : copies(fixed ? z::stream() : work) {
    for (int k = 0; k < kSlots; ++k) {
      samples[k] = z::pinned<char2>(kCount);
      for (int i = 0; i < kCount; ++i) {
        const std::uint32_t r = z::mix(i);
        samples[k][i] =
            make_char2(static_cast<signed char>(r % 100), static_cast<signed char>(r / 128 % 100));
      }
      sent[k] = z::event();
    }
    for (int k = 0; k < 2; ++k) {
      raw[k] = z::device<char2>(kCount);
      there[k] = z::event();
      used[k] = z::event();
    }
  }
  void step(std::int64_t number) {
    const int k = static_cast<int>(number % kSlots), b = static_cast<int>(number % 2);
    OK(cudaEventSynchronize(sent[k]));
    for (int i = 0; i < kCount; i += 2048)
      samples[k][i].x = static_cast<signed char>((number + i / 2048) % 100);
    OK(cudaStreamWaitEvent(copies, used[b], 0));
    OK(cudaMemcpyAsync(raw[b], samples[k], kCount * sizeof(char2), cudaMemcpyHostToDevice, copies));
    OK(cudaEventRecord(sent[k], copies));
    OK(cudaEventRecord(there[b], copies));
    OK(cudaStreamWaitEvent(work, there[b], 0));
    unpack<<<kCount / 256, 256, 0, work>>>(raw[b], field[0]);
    OK(cudaEventRecord(used[b], work));
    int at = 0;
    for (int n = kCount, shift = 0; n > 1; n /= 4, shift += 2, at ^= 1)
      pass<<<kCount / 4 / 256, 256, 0, work>>>(field[at], field[at ^ 1], n, shift);
    last = number;
    where = at;
  }
  double result() {
    const std::vector<float2> got = z::fetch(field[where], kCount);
    const char2* in = samples[last % kSlots];
    double power = 0, spectrum = 0, re = 0, im = 0, sum = 0;
    for (int i = 0; i < kCount; ++i) {
      power += double(in[i].x) * in[i].x + double(in[i].y) * in[i].y;
      spectrum += double(got[i].x) * got[i].x + double(got[i].y) * got[i].y;
      re += in[i].x;
      im += in[i].y;
      sum += std::fabs(got[i].x) + std::fabs(got[i].y);
    }
    z::require(std::fabs(spectrum / kCount - power) < 1e-3 * power, "the power");
    z::require(std::fabs(got[0].x - re) < 1e-3 * re && std::fabs(got[0].y - im) < 1e-3 * im, "the mean");
    return sum;
  }

  cudaStream_t work = z::stream(), copies;
  std::int64_t last = 0;
  int where = 0;
  char2 *samples[kSlots], *raw[2];
  cudaEvent_t sent[kSlots], there[2], used[2];
  float2* field[2] = {z::device<float2>(kCount), z::device<float2>(kCount)};
};

int main(int argc, char** argv) { return z::run<Program>(argc, argv); }
