// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Queries join a fact table, which is on the device, with a hash table of a million items. Planted: the hash table is sent
// before every query. Twin: once. Expected: redundant_copy.
#include "z.h"

constexpr int kSlots = 1 << 20, kItems = kSlots / 2, kRows = 1 << 23, kQueries = 64;

__host__ __device__ inline std::uint32_t key_of_item(std::uint32_t i) { return i * 2654435761u | 1u; }

__global__ void facts(std::uint32_t* keys, std::uint32_t* amounts) {
  const std::uint32_t i = blockIdx.x * 256 + threadIdx.x;
  keys[i] = key_of_item(z::mix(i) % (2 * kItems));  // half of them have no partner
  amounts[i] = z::mix(i + 99) % 1000;
}

__global__ void probe(const std::uint32_t* keys, const std::uint32_t* amounts, const uint2* table,
                      std::uint32_t year, unsigned long long* out) {
  __shared__ unsigned sums[8];
  const int i = blockIdx.x * 256 + threadIdx.x;
  const std::uint32_t key = keys[i];
  unsigned value = 0;
  for (std::uint32_t at = z::mix(key) & (kSlots - 1);; at = (at + 1) & (kSlots - 1)) {
    const uint2 entry = __ldg(table + at);
    if (entry.x == key && (entry.y & 15) == year) value = amounts[i];
    if (entry.x == key || entry.x == 0) break;
  }
  for (int d = 16; d > 0; d /= 2) value += __shfl_down_sync(~0u, value, d);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x != 0) return;
  unsigned long long all = 0;
  for (const unsigned s : sums) all += s;
  if (all != 0) atomicAdd(out, all);
}

struct Program : z::Base {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    for (std::uint32_t n = 0; n < kItems; ++n) {
      const std::uint32_t key = key_of_item(n);
      std::uint32_t at = z::mix(key) & (kSlots - 1);
      while (table[at].x != 0 && table[at].x != key) at = (at + 1) & (kSlots - 1);
      table[at] = make_uint2(key, n % 977);
    }
    facts<<<kRows / 256, 256, 0, s>>>(keys, amounts);
    if (fixed) send();
    OK(cudaDeviceSynchronize());
  }
  void send() { OK(cudaMemcpyAsync(on_device, table, kSlots * sizeof(uint2), cudaMemcpyHostToDevice, s)); }
  void query(int rows, std::uint32_t year, unsigned long long* out) {
    OK(cudaMemsetAsync(out, 0, sizeof *out, s));
    probe<<<rows / 256, 256, 0, s>>>(keys, amounts, on_device, year, out);
  }
  void step(std::int64_t number) {
    if (!fixed) send();
    query(kRows, static_cast<std::uint32_t>(number % 16), totals + number % kQueries);
  }
  double result() {
    const std::vector<unsigned long long> got = z::fetch(totals, 4);
    query(65536, 3, totals + 63);
    const unsigned long long some = z::fetch(totals + 63, 1)[0];
    const std::vector<std::uint32_t> k = z::fetch(keys, 65536), a = z::fetch(amounts, 65536);
    unsigned long long want = 0;
    for (int i = 0; i < 65536; ++i) {
      std::uint32_t at = z::mix(k[i]) & (kSlots - 1);
      while (table[at].x != 0 && table[at].x != k[i]) at = (at + 1) & (kSlots - 1);
      if (table[at].x == k[i] && (table[at].y & 15) == 3) want += a[i];
    }
    z::require(want == some && want != 0, "a query");
    return static_cast<double>(got[0]) + static_cast<double>(got[1]) + static_cast<double>(got[2]) +
           static_cast<double>(got[3]);
  }

  bool fixed;
  cudaStream_t s = z::stream();
  uint2 *table = z::pinned<uint2>(kSlots), *on_device = z::device<uint2>(kSlots);
  std::uint32_t *keys = z::device<std::uint32_t>(kRows), *amounts = z::device<std::uint32_t>(kRows);
  unsigned long long* totals = z::device<unsigned long long>(kQueries);
};

int main(int argc, char** argv) { return z::run<Program>(argc, argv); }
