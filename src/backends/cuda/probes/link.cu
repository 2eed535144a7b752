// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The link between host and device by size: one copy and the wait for it, by the host's clock. Mapped memory is read
// and written by a kernel, without a copy; duplex is a copy each way at once.
#include <algorithm>

#include "backends/cuda/probes/probe.h"

namespace fulcrum::backends::cuda::probes {
namespace {

constexpr int kLinkThreads = 256;
constexpr int kLoads = 4;

enum class Way { pinned_h2d, pinned_d2h, pageable_h2d, pageable_d2h, mapped_read, mapped_write, duplex };

/// Words of 16 bytes, four in flight a thread; fewer than 16 bytes are one word of 4.
__global__ void __launch_bounds__(kLinkThreads)
    read_mapped(const uint4* from, int64_t words, unsigned* sink) {
  unsigned seen = words == 0 ? *reinterpret_cast<const volatile unsigned*>(from) : 0;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kLinkThreads;
  const int64_t first = blockIdx.x * static_cast<int64_t>(kLinkThreads) + threadIdx.x;
  for (int64_t at = first; at < words; at += kLoads * step) {
    uint4 x[kLoads] = {};
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      if (at + j * step < words) x[j] = __ldcv(from + at + j * step);
    }
#pragma unroll
    for (int j = 0; j < kLoads; ++j) seen ^= x[j].x ^ x[j].y ^ x[j].z ^ x[j].w;
  }
  if (seen == 0x9E3779B1u) *sink = seen;
}

__global__ void __launch_bounds__(kLinkThreads) write_mapped(uint4* to, int64_t words) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kLinkThreads;
  const int64_t first = blockIdx.x * static_cast<int64_t>(kLinkThreads) + threadIdx.x;
  if (words == 0 && first == 0) *reinterpret_cast<unsigned*>(to) = 0x3F800000u;
  for (int64_t at = first; at < words; at += step) {
    const unsigned value = 0x3F800000u | (static_cast<unsigned>(at) * 0x9E3779B1u >> 9);
    to[at] = make_uint4(value, value ^ 1u, value ^ 2u, value ^ 3u);
  }
}

class OtherStream {
 public:
  OtherStream() = default;
  OtherStream(const OtherStream&) = delete;
  OtherStream& operator=(const OtherStream&) = delete;
  ~OtherStream() {
    if (stream_) cudaStreamDestroy(stream_);
  }
  fulcrum_status open() {
    FULCRUM_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    return done();
  }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

template <Way kWay>
class LinkWindow : public Window {
 public:
  fulcrum_status open(const fulcrum_probe& self) override {
    bytes_ = static_cast<std::size_t>(self.size);
    // A few milliseconds at most, and of small copies enough that the clock's reads do not count.
    times_ = bytes_ <= (64 << 10) ? 50 : bytes_ <= (1 << 20) ? 10 : bytes_ <= (16 << 20) ? 3 : 1;
    FULCRUM_STATUS(share_ends(ends_));
    FULCRUM_STATUS(sink_.take(sizeof(unsigned)));
    if constexpr (kWay == Way::duplex) FULCRUM_STATUS(back_.open());
    if constexpr (kWay == Way::mapped_read || kWay == Way::mapped_write) {
      Block& end = kWay == Way::mapped_read ? ends_->pinned_in : ends_->pinned_out;
      FULCRUM_CUDA(cudaHostGetDevicePointer(&mapped_, end.data(), 0));
    }
    return step();
  }
  fulcrum_status run(double* seconds) override {
    const double begin = host_now();
    for (int i = 0; i < times_; ++i) FULCRUM_STATUS(step());
    *seconds = (host_now() - begin) / times_;
    return done();
  }

 private:
  fulcrum_status step() {
    const cudaStream_t stream = stream_of(nullptr);
    FULCRUM_STATUS(enqueue(stream));
    if constexpr (kWay == Way::duplex) FULCRUM_CUDA(cudaStreamSynchronize(back_.get()));
    FULCRUM_CUDA(cudaStreamSynchronize(stream));
    return done();
  }

  fulcrum_status enqueue(cudaStream_t stream) {
    if constexpr (kWay == Way::mapped_read || kWay == Way::mapped_write) return enqueue_kernel(stream);
    if constexpr (kWay == Way::duplex) {
      FULCRUM_CUDA(cudaMemcpyAsync(ends_->pinned_out.data(), ends_->device_out.data(), bytes_,
                                   cudaMemcpyDeviceToHost, back_.get()));
    }
    constexpr bool kIn = kWay == Way::pinned_h2d || kWay == Way::pageable_h2d || kWay == Way::duplex;
    constexpr bool kPageable = kWay == Way::pageable_h2d || kWay == Way::pageable_d2h;
    void* host = kPageable ? ends_->pageable.data()
                 : kIn     ? ends_->pinned_in.data()
                           : ends_->pinned_out.data();
    void* device = kIn ? ends_->device_in.data() : ends_->device_out.data();
    FULCRUM_CUDA(cudaMemcpyAsync(kIn ? device : host, kIn ? host : device, bytes_,
                                 kIn ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, stream));
    return done();
  }

  fulcrum_status enqueue_kernel(cudaStream_t stream) {
    const auto words = static_cast<int64_t>(bytes_ / sizeof(uint4));
    const int64_t per_cta = kLinkThreads * (kWay == Way::mapped_read ? kLoads : 1);
    const int64_t most = 4 * static_cast<int64_t>(cuda::device().sms);
    const auto ctas = static_cast<unsigned>(std::clamp<int64_t>((words + per_cta - 1) / per_cta, 1, most));
    if constexpr (kWay == Way::mapped_read) {
      read_mapped<<<ctas, kLinkThreads, 0, stream>>>(static_cast<const uint4*>(mapped_), words,
                                                     sink_.as<unsigned>());
    } else {
      write_mapped<<<ctas, kLinkThreads, 0, stream>>>(static_cast<uint4*>(mapped_), words);
    }
    return launched("mapped memory");
  }

  std::shared_ptr<Ends> ends_;
  Scratch sink_;
  OtherStream back_;
  void* mapped_ = nullptr;
  std::size_t bytes_ = 0;
  int times_ = 1;
};

template <Way kWay>
void add_way(std::vector<fulcrum_probe>& list, const char* name) {
  for (int64_t bytes = 4; bytes <= kLargestCopy; bytes *= 4) {
    list.push_back(entry<LinkWindow<kWay>>("link", name, bytes, static_cast<double>(bytes)));
  }
}

}  // namespace

void add_link_probes(std::vector<fulcrum_probe>& list) {
  add_way<Way::pinned_h2d>(list, "pinned_h2d");
  add_way<Way::pinned_d2h>(list, "pinned_d2h");
  add_way<Way::pageable_h2d>(list, "pageable_h2d");
  add_way<Way::pageable_d2h>(list, "pageable_d2h");
  add_way<Way::mapped_read>(list, "mapped_read");
  add_way<Way::mapped_write>(list, "mapped_write");
  add_way<Way::duplex>(list, "duplex");
}

}  // namespace fulcrum::backends::cuda::probes
