// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A language model writes a sentence, token by token, 58 small kernels for each. Planted: the host launches every one.
// Twin: a token is one CUDA graph. Expected: launch_bound.
#include "z.h"

constexpr int kHidden = 256, kHeads = 4, kDim = kHidden / kHeads, kLayers = 8, kUp = 512, kVocabulary = 1024,
              kTokens = 16;

__global__ void init(float* w, int n, std::uint32_t seed, float scale) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) w[i] = scale * (static_cast<float>(z::mix(seed + i) >> 8) / 8388608.0f - 1.0f);
}

__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  return v;
}

__global__ void begin(int* position, int* tokens, int prompt) {
  *position = 0;
  tokens[0] = prompt;
}

__global__ void embed(const float* table, const int* tokens, const int* position, float* x) {
  x[threadIdx.x] = table[tokens[*position] * kHidden + threadIdx.x];
}

__global__ void rmsnorm(const float* x, float* y) {
  __shared__ float part[kHidden / 32];
  const float v = x[threadIdx.x];
  const float s = warp_sum(v * v);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  float all = 0;
  for (int i = 0; i < kHidden / 32; ++i) all += part[i];
  y[threadIdx.x] = v * rsqrtf(all / kHidden + 1e-5f);
}

enum Then { kStore, kAdd, kRelu };

/// One warp a row.
template <int kCols, Then kThen>
__global__ void gemv(const float* w, const float* x, float* y) {
  const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  float s = 0;
#pragma unroll
  for (int c = lane; c < kCols; c += 32) s += w[row * kCols + c] * x[c];
  s = warp_sum(s);
  if (lane != 0) return;
  if (kThen == kStore) y[row] = s;
  if (kThen == kAdd) y[row] += s;
  if (kThen == kRelu) y[row] = fmaxf(s, 0.0f);
}

/// One warp a head; qkv holds query, key and value of this token.
__global__ void attend(const float* qkv, float* keys, float* values, const int* position, float* out) {
  const int head = blockIdx.x, lane = threadIdx.x, at = *position;
  const int a = head * kDim + lane, b = a + 32;
  keys[at * kHidden + a] = qkv[kHidden + a];
  keys[at * kHidden + b] = qkv[kHidden + b];
  values[at * kHidden + a] = qkv[2 * kHidden + a];
  values[at * kHidden + b] = qkv[2 * kHidden + b];
  __syncwarp();
  float total = 0, oa = 0, ob = 0;
  for (int t = 0; t <= at; ++t) {
    const float s = warp_sum(qkv[a] * keys[t * kHidden + a] + qkv[b] * keys[t * kHidden + b]) / 8.0f;
    const float e = expf(fminf(s, 20.0f));
    total += e;
    oa += e * values[t * kHidden + a];
    ob += e * values[t * kHidden + b];
  }
  out[a] = oa / total;
  out[b] = ob / total;
}

__global__ void choose(const float* logits, int* tokens, int* position) {
  __shared__ float best[256];
  __shared__ int where[256];
  const int t = threadIdx.x;
  float b = logits[t];
  int w = t;
  for (int i = t + 256; i < kVocabulary; i += 256)
    if (logits[i] > b) b = logits[i], w = i;
  best[t] = b, where[t] = w;
  __syncthreads();
  for (int d = 128; d > 0; d /= 2) {
    if (t < d && (best[t + d] > best[t] || (best[t + d] == best[t] && where[t + d] < where[t])))
      best[t] = best[t + d], where[t] = where[t + d];
    __syncthreads();
  }
  if (t == 0) {
    tokens[*position + 1] = where[0];
    *position += 1;
  }
}

struct Program : z::Base {
  explicit Program(bool fixed) {
    const auto make = [this](int n, std::uint32_t seed, float scale) {
      float* w = z::device<float>(n);
      init<<<(n + 255) / 256, 256, 0, s>>>(w, n, seed, scale);
      OK(cudaGetLastError());
      return w;
    };
    OK(cudaDeviceSynchronize());
    table = make(kVocabulary * kHidden, 1, 1.0f);
    head = make(kVocabulary * kHidden, 77777777, 0.2f);
    for (int l = 0; l < kLayers; ++l) {
      wqkv[l] = make(3 * kHidden * kHidden, 1000003u * (4 * l + 1), 0.1f);
      wout[l] = make(kHidden * kHidden, 1000003u * (4 * l + 2), 0.1f);
      wup[l] = make(kUp * kHidden, 1000003u * (4 * l + 3), 0.1f);
      wdown[l] = make(kHidden * kUp, 1000003u * (4 * l + 4), 0.1f);
      keys[l] = z::device<float>((kTokens + 1) * kHidden);
      values[l] = z::device<float>((kTokens + 1) * kHidden);
    }
    OK(cudaDeviceSynchronize());
    if (!fixed) return;
    cudaGraph_t graph;
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    token();
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphInstantiate(&ready, graph, 0));
  }
  void token() {
    embed<<<1, kHidden, 0, s>>>(table, tokens, position, x);
    for (int l = 0; l < kLayers; ++l) {
      rmsnorm<<<1, kHidden, 0, s>>>(x, y);
      gemv<kHidden, kStore><<<3 * kHidden / 4, 128, 0, s>>>(wqkv[l], y, qkv);
      attend<<<kHeads, 32, 0, s>>>(qkv, keys[l], values[l], position, y);
      gemv<kHidden, kAdd><<<kHidden / 4, 128, 0, s>>>(wout[l], y, x);
      rmsnorm<<<1, kHidden, 0, s>>>(x, y);
      gemv<kHidden, kRelu><<<kUp / 4, 128, 0, s>>>(wup[l], y, up);
      gemv<kUp, kAdd><<<kHidden / 4, 128, 0, s>>>(wdown[l], up, x);
    }
    gemv<kHidden, kStore><<<kVocabulary / 4, 128, 0, s>>>(head, x, logits);
    choose<<<1, 256, 0, s>>>(logits, tokens, position);
  }
  void step(std::int64_t number) {
    begin<<<1, 1, 0, s>>>(position, tokens, static_cast<int>(number % kVocabulary));
    for (int t = 0; t < kTokens; ++t) {
      if (ready != nullptr)
        OK(cudaGraphLaunch(ready, s));
      else
        token();
    }
    OK(cudaMemcpyAsync(text, tokens, sizeof(int) * (kTokens + 1), cudaMemcpyDeviceToHost, s));
    OK(cudaStreamSynchronize(s));
  }
  double result() {
    const std::vector<float> l = z::fetch(logits, kVocabulary);
    double sum = 0;
    for (int t = 0; t <= kTokens; ++t) {
      z::require(text[t] >= 0 && text[t] < kVocabulary, "a token is none");
      sum += text[t] * (t + 1);
    }
    z::require(std::max_element(l.begin(), l.end()) - l.begin() == text[kTokens], "not the best token");
    for (const float v : l) sum += std::fabs(v);
    z::require(std::isfinite(sum), "not finite");
    return sum;
  }

  cudaStream_t s = z::stream();
  cudaGraphExec_t ready = nullptr;
  float *table, *head, *wqkv[kLayers], *wout[kLayers], *wup[kLayers], *wdown[kLayers], *keys[kLayers],
      *values[kLayers];
  float *x = z::device<float>(kHidden), *y = z::device<float>(kHidden), *qkv = z::device<float>(3 * kHidden),
        *up = z::device<float>(kUp), *logits = z::device<float>(kVocabulary);
  int *tokens = z::device<int>(kTokens + 1), *position = z::device<int>(1),
      *text = z::pinned<int>(kTokens + 1);
};

int main(int argc, char** argv) { return z::run<Program>(argc, argv); }
