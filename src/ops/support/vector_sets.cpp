// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Drawn vectors and plain products. Each loop is compiled for several instruction sets and one is chosen by what the
// CPU has; multiplications and additions are rounded one by one (or fused where fma is written), so the choice does
// not show in the bits.
#include "ops/support/vector_sets.h"

#include <fulcrum/ops.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/support/memo.h"

#if defined(__x86_64__)
#define FULCRUM_FOR(isa) __attribute__((target(isa)))
#endif

namespace fulcrum::ops {
namespace {

constexpr std::int64_t kCentres = 1000;
constexpr std::int64_t kDirections = 16;
constexpr float kNoise = 0.1f;

struct Cluster {
  std::int64_t dimension;
  std::vector<float> centres, directions;
  std::uint64_t member_key = tensor_key(4), latent_key = tensor_key(5), noise_key = tensor_key(6);

  explicit Cluster(std::int64_t d) : dimension(d) {
    const std::uint64_t centre_key = tensor_key(2), direction_key = tensor_key(3);
    centres.resize(static_cast<std::size_t>(kCentres * d));
    directions.resize(static_cast<std::size_t>(kDirections * d));
    for (std::size_t i = 0; i < centres.size(); ++i) centres[i] = random_normal(centre_key, i);
    for (std::size_t i = 0; i < directions.size(); ++i) directions[i] = random_normal(direction_key, i) / 4;
  }
};

std::shared_ptr<const Cluster> cluster_of(std::int64_t dimension) {
  static Memo<std::int64_t, Cluster> memo(std::int64_t{16} << 20);
  const auto made = memo.get(
      dimension,
      [&]() -> Result<std::shared_ptr<const Cluster>> { return std::make_shared<const Cluster>(dimension); },
      [](const Cluster& cluster) { return static_cast<std::int64_t>(4 * cluster.centres.size()); });
  return *made;
}

/// x = centre, then fma with each direction, then fma with the noise, all f32.
__attribute__((always_inline)) inline void draw_member(const Cluster& cluster, std::uint64_t id, float* x) {
  const auto d = static_cast<std::size_t>(cluster.dimension);
  const std::size_t centre = random_bits(cluster.member_key, id) % kCentres;
  std::copy_n(cluster.centres.data() + centre * d, d, x);
  for (std::size_t r = 0; r < kDirections; ++r) {
    const float latent = random_normal(cluster.latent_key, id * kDirections + r);
    const float* direction = cluster.directions.data() + r * d;
    for (std::size_t i = 0; i < d; ++i) x[i] = __builtin_fmaf(latent, direction[i], x[i]);
  }
  for (std::size_t i = 0; i < d; ++i) {
    x[i] = __builtin_fmaf(kNoise, random_normal(cluster.noise_key, id * d + i), x[i]);
  }
}

void draw_plain(const Cluster& cluster, std::uint64_t id, float* x) { draw_member(cluster, id, x); }

// Thirty-two running sums as two vectors; the compiler cuts them into what the instruction set has.
typedef float Lanes __attribute__((vector_size(64), aligned(4)));
constexpr std::int64_t kLanes = 16;

template <bool kDistance>
__attribute__((always_inline)) inline float add_products(const float* a, const float* b, std::int64_t n) {
  Lanes even = {}, odd = {};
  std::int64_t i = 0;
  const auto add = [](Lanes & sum, const float* p, const float* q) __attribute__((always_inline)) {
    Lanes x, y;
    std::memcpy(&x, p, sizeof(x));
    std::memcpy(&y, q, sizeof(y));
    const Lanes term = kDistance ? (x - y) * (x - y) : x * y;
    sum = sum + term;
  };
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    add(even, a + i, b + i);
    add(odd, a + i + kLanes, b + i + kLanes);
  }
  for (; i < n; i += kLanes) {
    float p[kLanes] = {}, q[kLanes] = {};
    const auto count = static_cast<std::size_t>(std::min(kLanes, n - i));
    std::memcpy(p, a + i, count * sizeof(float));
    std::memcpy(q, b + i, count * sizeof(float));
    add(even, p, q);
  }
  float lane[kLanes];
  even = even + odd;
  std::memcpy(lane, &even, sizeof(lane));
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::int64_t l = 0; l < half; ++l) lane[l] += lane[l + half];
  }
  return lane[0];
}

template <bool kDistance>
float products_plain(const float* a, const float* b, std::int64_t n) {
  return add_products<kDistance>(a, b, n);
}

#if defined(__x86_64__)
FULCRUM_FOR("avx2,fma") void draw_fma(const Cluster& cluster, std::uint64_t id, float* x) {
  draw_member(cluster, id, x);
}

template <bool kDistance>
FULCRUM_FOR("avx2")
float products_avx2(const float* a, const float* b, std::int64_t n) {
  return add_products<kDistance>(a, b, n);
}

template <bool kDistance>
FULCRUM_FOR("avx512f")
float products_avx512(const float* a, const float* b, std::int64_t n) {
  return add_products<kDistance>(a, b, n);
}
#endif

using Draw = void (*)(const Cluster&, std::uint64_t, float*);
Draw best_draw() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return draw_fma;
#endif
  return draw_plain;
}

template <bool kDistance>
VectorProduct best_product() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return products_avx512<kDistance>;
  if (__builtin_cpu_supports("avx2")) return products_avx2<kDistance>;
#endif
  return products_plain<kDistance>;
}

}  // namespace

void draw_vectors(VectorSet set, std::int64_t dimension, std::uint64_t first, std::span<float> rows) {
  const auto d = static_cast<std::size_t>(dimension);
  if (set == VectorSet::gaussian) {
    const std::uint64_t key = tensor_key(6);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = random_normal(key, first * d + i);
    return;
  }
  const auto cluster = cluster_of(dimension);
  const Draw draw = best_draw();
  for (std::size_t row = 0; row < rows.size() / d; ++row) draw(*cluster, first + row, rows.data() + row * d);
}

std::uint64_t fnv1a(std::span<const std::byte> bytes, std::uint64_t hash) {
  constexpr std::uint64_t kPrime = 0x100000001B3;
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<std::uint64_t>(byte)) * kPrime;
  return hash;
}

VectorProduct squared_distance() {
  static const VectorProduct best = best_product<true>();
  return best;
}

VectorProduct inner_product() {
  static const VectorProduct best = best_product<false>();
  return best;
}

}  // namespace fulcrum::ops
