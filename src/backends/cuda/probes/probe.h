// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the probes of a device share: a window as an object, the device's and the host's clock, memory that several
// probes use while one of them is open. Nothing is allocated in a window, except where the allocation is measured.
#pragma once

#include <memory>
#include <vector>

#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda::probes {

/// An open probe.
class Window {
 public:
  Window() = default;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  virtual ~Window() = default;
  virtual fulcrum_status open(const fulcrum_probe& self) = 0;
  /// Seconds of the probe's `work`.
  virtual fulcrum_status run(double* seconds) = 0;
};

/// The entry of a probe whose windows are of class W.
template <class W>
fulcrum_probe entry(const char* group, const char* name, int64_t size, double work) {
  const auto open = [](const fulcrum_probe* self, void** state) {
    auto made = std::make_unique<W>();
    const fulcrum_status status = made->open(*self);
    if (status.code == FULCRUM_OK) *state = static_cast<Window*>(made.release());
    return status;
  };
  return fulcrum_probe{
      .group = group,
      .name = name,
      .size = size,
      .work = work,
      .open = open,
      .window = [](void* state, double* seconds) { return static_cast<Window*>(state)->run(seconds); },
      .close = [](void* state) { delete static_cast<Window*>(state); }};
}

/// Seconds of the host's monotonic clock.
double host_now();

/// Two marks of the device's clock.
class Marks {
 public:
  Marks() = default;
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;
  ~Marks();
  fulcrum_status open();
  fulcrum_status begin(cudaStream_t stream);
  /// Records the second mark, waits for it and says what lies between.
  fulcrum_status end(cudaStream_t stream, double* seconds);

 private:
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

/// A block of memory of one kind, given back with the last probe that uses it.
enum class Place { device, pinned, pageable };
class Block {
 public:
  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();
  fulcrum_status take(Place place, int64_t bytes);
  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  Place place_ = Place::device;
};

/// Device memory many times larger than L2, full of numbers; nobody may expect to find what it wrote.
fulcrum_status share_arena(std::shared_ptr<Block>& arena);
/// The two ends of the link: as many bytes of each kind as the largest copy needs, twice where both ways run at once.
struct Ends {
  Block device_in, device_out, pinned_in, pinned_out, pageable;
};
inline constexpr int64_t kLargestCopy = int64_t{256} << 20;
fulcrum_status share_ends(std::shared_ptr<Ends>& ends);

/// Fills memory with numbers in [-1, 1) that depend on the place only: equal or zero bytes would draw less power.
enum class Number { f32, f16, bf16 };
fulcrum_status fill_with_numbers(void* data, int64_t bytes, Number number, cudaStream_t stream);

void add_memory_probes(std::vector<fulcrum_probe>& list);   // memory.cu
void add_compute_probes(std::vector<fulcrum_probe>& list);  // compute.cu
void add_gemm_probes(std::vector<fulcrum_probe>& list);     // gemm.cpp
void add_latency_probes(std::vector<fulcrum_probe>& list);  // latency.cu
void add_link_probes(std::vector<fulcrum_probe>& list);     // link.cu

}  // namespace fulcrum::backends::cuda::probes
