// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rates of the device's memory and of L2. A kernel walks over tiles of 512 threads x kLoads words of 16 bytes, all
// loads of a tile in flight before the first is used. How many loads and CTAs are best differs between devices, so that
// a probe tries a few when it is opened, the driver's copy and the forms of the ops too, and keeps the fastest.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "backends/cuda/probes/probe.h"
#include "backends/cuda/probes/rings.h"

namespace fulcrum::backends::cuda::probes {
namespace {

constexpr int kWalkThreads = 512;
constexpr int64_t kWord = sizeof(uint4);

enum class Mix { read, copy, write, add };
constexpr int arrays_of(Mix mix) { return mix == Mix::add ? 3 : mix == Mix::copy ? 2 : 1; }

/// Arrays of `tiles` tiles, walked over again and again until `total` tiles are done. `step`: CTAs modulo `tiles`.
struct Walk {
  uint4* a;
  uint4* b;
  uint4* c;
  unsigned* sink;
  int64_t tiles, total, step;
};

template <bool kOnce>
__device__ uint4 load(const uint4* from) {
  // Never from L1: what is read once would not be there, and L2 is what the other case measures.
  return kOnce ? __ldcs(from) : __ldcg(from);
}

template <bool kOnce>
__device__ void store(uint4* to, uint4 value) {
  if constexpr (kOnce) {
    __stcs(to, value);
  } else {
    __stcg(to, value);
  }
}

__device__ uint4 add(uint4 x, uint4 y) {
  const auto one = [](unsigned a, unsigned b) {
    return __float_as_uint(__uint_as_float(a) + __uint_as_float(b));
  };
  return make_uint4(one(x.x, y.x), one(x.y, y.y), one(x.z, y.z), one(x.w, y.w));
}

template <Mix kMix, int kLoads, bool kOnce>
__global__ void __launch_bounds__(kWalkThreads, 2) walk(Walk w) {
  unsigned seen = 0;
  int64_t tile = blockIdx.x % w.tiles;
#pragma unroll 1
  for (int64_t turn = blockIdx.x; turn < w.total; turn += gridDim.x) {
    const int64_t at = tile * (kWalkThreads * kLoads) + threadIdx.x;
    uint4 x[kLoads], y[kLoads];
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      if constexpr (kMix != Mix::write) x[j] = load<kOnce>(w.a + at + j * kWalkThreads);
      if constexpr (kMix == Mix::add) y[j] = load<kOnce>(w.b + at + j * kWalkThreads);
    }
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      if constexpr (kMix == Mix::read) seen ^= x[j].x ^ x[j].y ^ x[j].z ^ x[j].w;
      if constexpr (kMix == Mix::copy) store<kOnce>(w.b + at + j * kWalkThreads, x[j]);
      if constexpr (kMix == Mix::add) store<kOnce>(w.c + at + j * kWalkThreads, add(x[j], y[j]));
      if constexpr (kMix == Mix::write) {
        // Floats between 1 and 2: whoever reads them next must find numbers.
        const unsigned value =
            0x3F800000u | (static_cast<unsigned>(at + j * kWalkThreads) * 0x9E3779B1u >> 9);
        store<kOnce>(w.a + at + j * kWalkThreads, make_uint4(value, value ^ 1u, value ^ 2u, value ^ 3u));
      }
    }
    tile += w.step;
    if (tile >= w.tiles) tile -= w.tiles;
  }
  // Keeps the loads alive; whether one thread of a billion writes here does not matter.
  if (kMix == Mix::read && seen == 0x9E3779B1u) *w.sink = seen;
}

/// How a walk is launched.
struct Setting {
  int loads = 4;
  int ctas_per_sm = 4;  // 0: one tile a CTA
};

template <Mix kMix, bool kOnce>
fulcrum_status launch_walk(int loads, unsigned ctas, const Walk& w, cudaStream_t stream) {
  switch (loads) {
    case 1:
      walk<kMix, 1, kOnce><<<ctas, kWalkThreads, 0, stream>>>(w);
      break;
    case 2:
      walk<kMix, 2, kOnce><<<ctas, kWalkThreads, 0, stream>>>(w);
      break;
    case 4:
      walk<kMix, 4, kOnce><<<ctas, kWalkThreads, 0, stream>>>(w);
      break;
    default:
      walk<kMix, 8, kOnce><<<ctas, kWalkThreads, 0, stream>>>(w);
      break;
  }
  return launched("walking over memory");
}

enum class By { walk, driver, tiles2, tiles4, ring };

/// One launch over `bytes` of each array, `passes` times, with `ctas` CTAs (0: one for each tile).
struct WalkLaunch {
  By by = By::walk;
  Mix mix = Mix::read;
  bool once = true;
  int loads = 4;
  int64_t ctas = 0;
  char* base = nullptr;  // arrays lie behind each other
  int64_t bytes = 0;
  int64_t passes = 1;
  unsigned* sink = nullptr;
  unsigned* counter = nullptr;

  double moved() const { return static_cast<double>(bytes * arrays_of(mix) * passes); }

  fulcrum_status operator()(cudaStream_t stream) const {
    return by == By::walk ? walk_over(stream) : pass_over(stream);
  }

 private:
  /// One pass in another form.
  fulcrum_status pass_over(cudaStream_t stream) const {
    if (by == By::driver && mix == Mix::copy) {
      FULCRUM_CUDA(cudaMemcpyAsync(base + bytes, base, static_cast<std::size_t>(bytes),
                                   cudaMemcpyDeviceToDevice, stream));
      return done();
    }
    if (by != By::driver) {
      const Form form = by == By::ring ? Form::ring : by == By::tiles2 ? Form::tiles2 : Form::tiles4;
      if (mix == Mix::read) return read_as(form, base, bytes, counter, sink, stream);
      if (mix == Mix::copy) return copy_as(form, base, bytes, counter, stream);
      if (mix == Mix::add) return add_as(form, base, bytes, counter, stream);
    }
    return failed(FULCRUM_UNSUPPORTED, "this memory is not walked over in this form");
  }

  fulcrum_status walk_over(cudaStream_t stream) const {
    Walk w{};
    const auto array = [&](int64_t i) { return reinterpret_cast<uint4*>(base + i * bytes); };
    w.a = array(0);
    w.b = array(1);
    w.c = array(2);
    w.sink = sink;
    w.tiles = bytes / (kWalkThreads * kWord * loads);
    w.total = w.tiles * passes;
    const int64_t grid = ctas > 0 ? std::min(ctas, w.total) : w.total;
    w.step = grid % w.tiles;
    const auto number = static_cast<unsigned>(grid);
    switch (mix) {
      case Mix::read:
        return once ? launch_walk<Mix::read, true>(loads, number, w, stream)
                    : launch_walk<Mix::read, false>(loads, number, w, stream);
      case Mix::copy:
        return once ? launch_walk<Mix::copy, true>(loads, number, w, stream)
                    : launch_walk<Mix::copy, false>(loads, number, w, stream);
      case Mix::write:
        return launch_walk<Mix::write, true>(loads, number, w, stream);
      case Mix::add:
        break;
    }
    return launch_walk<Mix::add, true>(loads, number, w, stream);
  }
};

/// What the windows of this file have in common.
class MemoryWindow : public Window {
 protected:
  fulcrum_status prepare(const fulcrum_probe& self) {
    work_ = self.work;
    FULCRUM_STATUS(share_arena(arena_));
    FULCRUM_STATUS(numbers_.take(2 * sizeof(unsigned)));
    FULCRUM_CUDA(cudaMemsetAsync(numbers_.as<unsigned>(), 0, 2 * sizeof(unsigned), stream_of(nullptr)));
    return marks_.open();
  }
  char* base() const { return static_cast<char*>(arena_->data()); }
  unsigned* sink() const { return numbers_.as<unsigned>(); }
  unsigned* counter() const { return numbers_.as<unsigned>() + 1; }

  /// Seconds of `times` launches. One more in front keeps the device busy while the host enqueues them.
  fulcrum_status time(const WalkLaunch& launch, int times, double* seconds) {
    const cudaStream_t stream = stream_of(nullptr);
    FULCRUM_STATUS(launch(stream));
    FULCRUM_STATUS(marks_.begin(stream));
    for (int i = 0; i < times; ++i) FULCRUM_STATUS(launch(stream));
    FULCRUM_STATUS(marks_.end(stream, seconds));
    *seconds *= work_ / (times * launch.moved());
    return done();
  }

  std::shared_ptr<Block> arena_;
  Scratch numbers_;
  Marks marks_;
  double work_ = 1;
};

/// Tries settings and keeps the fastest.
template <Mix kMix, bool kOnce>
class RateWindow : public MemoryWindow {
 public:
  fulcrum_status open(const fulcrum_probe& self) override {
    FULCRUM_STATUS(prepare(self));
    constexpr Setting kSettings[] = {{4, 4},  {4, 8}, {4, 16}, {8, 2}, {8, 4},
                                     {2, 16}, {2, 0}, {4, 0},  {8, 0}};
    best_.mix = kMix;
    best_.once = kOnce;
    best_.base = base();
    best_.sink = sink();
    best_.counter = counter();
    // All arrays together: the arena, or a third of L2, often enough for some hundred microseconds.
    constexpr int64_t kTile = kWalkThreads * kWord * 8;
    const int64_t all = kOnce ? arena_->bytes() : device().l2_bytes / 3;
    best_.bytes = all / arrays_of(kMix) / kTile * kTile;
    best_.passes = kOnce ? 1 : 200;
    if (best_.bytes <= 0) return failed(FULCRUM_UNSUPPORTED, "the device does not say how large its L2 is");
    for (const Setting& setting : kSettings) {
      if (!kOnce && setting.ctas_per_sm == 0) continue;
      WalkLaunch trial = best_;
      trial.loads = setting.loads;
      trial.ctas = static_cast<int64_t>(setting.ctas_per_sm) * device().sms;
      FULCRUM_STATUS(try_out(trial));
    }
    if constexpr (kOnce) {
      for (const By by : {By::driver, By::tiles2, By::tiles4, By::ring}) {
        WalkLaunch trial = best_;
        trial.by = by;
        const fulcrum_status status = try_out(trial);
        if (status.code != FULCRUM_UNSUPPORTED) FULCRUM_STATUS(status);
      }
    }
    return done();
  }
  fulcrum_status run(double* seconds) override { return time(best_, 2, seconds); }

 private:
  fulcrum_status try_out(const WalkLaunch& trial) {
    double seconds = 0;
    FULCRUM_STATUS(time(trial, 2, &seconds));
    if (fastest_ == 0 || seconds < fastest_) {
      fastest_ = seconds;
      best_ = trial;
    }
    return done();
  }

  WalkLaunch best_;
  double fastest_ = 0;
};

/// Reads by a given number of CTAs, with a known number of loads in flight a thread. Every window reads on where the
/// one before stopped, so that a small grid does not find in L2 what it read before.
template <int kLoads>
class GridWindow : public MemoryWindow {
 public:
  fulcrum_status open(const fulcrum_probe& self) override {
    FULCRUM_STATUS(prepare(self));
    constexpr int64_t kBytesPerCta = int64_t{8} << 20;
    launch_.loads = kLoads;
    launch_.ctas = self.size;
    launch_.bytes = std::min(self.size * kBytesPerCta, arena_->bytes());
    launch_.sink = sink();
    return done();
  }
  fulcrum_status run(double* seconds) override {
    if (next_ + launch_.bytes > arena_->bytes()) next_ = 0;
    launch_.base = base() + next_;
    next_ += launch_.bytes;
    const cudaStream_t stream = stream_of(nullptr);
    WalkLaunch ahead =
        launch_;  // keeps the device busy while the host enqueues, in another part of the arena
    ahead.base = base() + (next_ + launch_.bytes <= arena_->bytes() ? next_ : 0);
    FULCRUM_STATUS(ahead(stream));
    next_ = ahead.base - base() + launch_.bytes;
    FULCRUM_STATUS(marks_.begin(stream));
    FULCRUM_STATUS(launch_(stream));
    FULCRUM_STATUS(marks_.end(stream, seconds));
    *seconds *= work_ / launch_.moved();
    return done();
  }

 private:
  WalkLaunch launch_;
  int64_t next_ = 0;
};

template <class T>
__device__ T to_number(float value) {
  if constexpr (sizeof(T) == 4) {
    return value;
  } else {
    return T(value);
  }
}

template <class T>
__global__ void fill(T* data, int64_t count) {
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    unsigned h = static_cast<unsigned>(i) * 0x9E3779B1u + static_cast<unsigned>(i >> 32);
    h ^= h >> 15;
    h *= 0x85EBCA77u;
    h ^= h >> 13;
    data[i] = to_number<T>(static_cast<float>(static_cast<int>(h)) * 0x1p-31F);
  }
}

}  // namespace

fulcrum_status fill_with_numbers(void* data, int64_t bytes, Number number, cudaStream_t stream) {
  const auto ctas = static_cast<unsigned>(8 * device().sms);
  switch (number) {
    case Number::f32:
      fill<<<ctas, kWalkThreads, 0, stream>>>(static_cast<float*>(data), bytes / 4);
      break;
    case Number::f16:
      fill<<<ctas, kWalkThreads, 0, stream>>>(static_cast<__half*>(data), bytes / 2);
      break;
    case Number::bf16:
      fill<<<ctas, kWalkThreads, 0, stream>>>(static_cast<__nv_bfloat16*>(data), bytes / 2);
      break;
  }
  return launched("filling memory");
}

void add_memory_probes(std::vector<fulcrum_probe>& list) {
  constexpr double kGigabyte = 1e9;
  list.push_back(entry<RateWindow<Mix::read, true>>("rate", "hbm_read", 0, kGigabyte));
  list.push_back(entry<RateWindow<Mix::copy, true>>("rate", "hbm_copy", 0, kGigabyte));
  list.push_back(entry<RateWindow<Mix::write, true>>("rate", "hbm_write", 0, kGigabyte));
  list.push_back(entry<RateWindow<Mix::add, true>>("rate", "hbm_add", 0, kGigabyte));
  list.push_back(entry<RateWindow<Mix::read, false>>("rate", "l2_read", 0, kGigabyte));
  list.push_back(entry<RateWindow<Mix::copy, false>>("rate", "l2_copy", 0, kGigabyte));
  const int64_t sms = device().sms;
  std::vector<int64_t> grids;
  for (int64_t ctas = 1; ctas < sms; ctas *= 2) grids.push_back(ctas);
  for (const int64_t per_sm : {1, 2, 4, 8, 16}) grids.push_back(per_sm * sms);
  for (const int64_t ctas : grids) {
    list.push_back(entry<GridWindow<4>>("table", "read_by_ctas", ctas, kGigabyte));
    list.push_back(entry<GridWindow<1>>("table", "read_by_ctas_one_load", ctas, kGigabyte));
  }
}

}  // namespace fulcrum::backends::cuda::probes
