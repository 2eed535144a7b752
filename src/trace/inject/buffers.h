// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The buffers that CUPTI fills. It asks for them and gives them back on the program's threads, so neither may take
// time: they come zeroed and touched from a pool, and go into a queue that the writer's thread empties.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include <semaphore.h>

namespace fulcrum::trace::inject {

struct FilledBuffer {
  std::uint8_t* bytes = nullptr;
  std::size_t valid_bytes = 0;
  std::uint16_t stay = 0;
};

class Buffers {
 public:
  // About 1,200 kernels. CUPTI gives back no buffer that holds an unfinished one, so a killed program loses as much.
  static constexpr std::size_t kBufferBytes = std::size_t{256} << 10;

  Buffers();
  /// A zeroed buffer, never null: CUPTI before 12.9 does not survive a null.
  std::uint8_t* request() noexcept;
  void completed(std::uint8_t* bytes, std::size_t valid_bytes) noexcept;
  /// CUPTI was attached again: what comes from now on is numbered from one.
  void next_stay() noexcept { ++stay_; }
  std::uint16_t stay() const noexcept { return stay_.load(std::memory_order_relaxed); }
  bool has_filled() noexcept;
  /// Everything that came since the last call.
  std::vector<FilledBuffer> take() noexcept;
  /// After parsing: zeroed as far as it was used, and back into the pool.
  void recycle(FilledBuffer) noexcept;
  /// Puts buffers aside until so many wait. Called by our own threads alone.
  void stock(std::size_t at_least) noexcept;

  void wake() noexcept { sem_post(&work_); }
  /// Sleeps until somebody wakes us, or so many milliseconds.
  void wait(int milliseconds) noexcept;

 private:
  static std::uint8_t* make() noexcept;

  std::mutex mutex_;
  std::vector<std::uint8_t*> free_;
  std::vector<FilledBuffer> filled_;
  std::uint8_t* emergency_ = nullptr;
  sem_t work_;
  std::atomic<std::uint16_t> stay_{0};
};

}  // namespace fulcrum::trace::inject
