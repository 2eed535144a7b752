// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The pool and the queue of activity buffers.
#include "trace/inject/buffers.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace fulcrum::trace::inject {
namespace {

constexpr std::size_t kManyBuffers = 16;

}  // namespace

Buffers::Buffers() {
  sem_init(&work_, 0, 0);
  emergency_ = make();
  free_.reserve(256);
  filled_.reserve(256);
}

std::uint8_t* Buffers::make() noexcept {
  void* bytes = std::aligned_alloc(4096, kBufferBytes);
  if (bytes != nullptr) std::memset(bytes, 0, kBufferBytes);
  return static_cast<std::uint8_t*>(bytes);
}

std::uint8_t* Buffers::request() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::uint8_t* bytes = free_.back();
      free_.pop_back();
      return bytes;
    }
  }
  std::uint8_t* bytes = make();
  // Out of memory: records may be overwritten, which is better than a null.
  return bytes != nullptr ? bytes : emergency_;
}

void Buffers::completed(std::uint8_t* bytes, std::size_t valid_bytes) noexcept {
  if (bytes == nullptr) return;
  try {
    const std::lock_guard lock(mutex_);
    filled_.push_back({bytes, valid_bytes, stay()});
    // The writer comes by itself soon enough; to wake it costs this thread, and may put it beside this one.
    if (filled_.size() % kManyBuffers != 0) return;
  } catch (...) {
    return;
  }
  wake();
}

bool Buffers::has_filled() noexcept {
  const std::lock_guard lock(mutex_);
  return !filled_.empty();
}

std::vector<FilledBuffer> Buffers::take() noexcept {
  std::vector<FilledBuffer> taken;
  try {
    taken.reserve(256);
  } catch (...) {
    return taken;
  }
  const std::lock_guard lock(mutex_);
  taken.swap(filled_);
  return taken;
}

void Buffers::recycle(FilledBuffer buffer) noexcept {
  if (buffer.bytes == emergency_) {
    std::memset(buffer.bytes, 0, kBufferBytes);
    return;
  }
  std::memset(buffer.bytes, 0, buffer.valid_bytes);
  constexpr std::size_t kMostKept = 256;
  try {
    const std::lock_guard lock(mutex_);
    if (free_.size() < kMostKept) {
      free_.push_back(buffer.bytes);
      return;
    }
  } catch (...) {
  }
  std::free(buffer.bytes);
}

void Buffers::stock(std::size_t at_least) noexcept {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (free_.size() >= at_least) return;
    }
    std::uint8_t* bytes = make();
    if (bytes == nullptr) return;
    recycle({bytes, 0, 0});
  }
}

void Buffers::wait(int milliseconds) noexcept {
  timespec until{};
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += long(milliseconds) * 1'000'000;
  until.tv_sec += until.tv_nsec / 1'000'000'000;
  until.tv_nsec %= 1'000'000'000;
  while (sem_timedwait(&work_, &until) != 0 && errno == EINTR) {
  }
  while (sem_trywait(&work_) == 0) {
  }
}

}  // namespace fulcrum::trace::inject
