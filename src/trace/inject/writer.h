// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The trace file of one process, appended chunk by chunk. Every call may come from any thread; what append() was given
// is with the kernel when it returns, so that a killed program loses nothing of it. No call throws or prints, and none
// does anything in a forked child.
#pragma once

#include "trace/file/format.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace fulcrum::trace::inject {

class Writer {
 public:
  /// Makes the file and writes its head. False: nothing will be written, and the reason is in failure().
  bool open(const char* path, std::int64_t limit_bytes) noexcept;
  /// One chunk of `count` records of `record_bytes` each. False: not written (full, failed, not open).
  bool append(file::Kind, const void* records, std::size_t record_bytes, std::size_t count) noexcept;
  template <typename Record>
  bool append(file::Kind kind, const Record& record) noexcept {
    return append(kind, &record, sizeof record, 1);
  }
  /// The same as one chunk that may be written again: where its records begin in the file, or -1.
  std::int64_t append_to_keep(file::Kind, const void* records, std::size_t record_bytes,
                              std::size_t count) noexcept;
  /// Over records that were appended at `at`.
  bool overwrite(std::int64_t at, const void* records, std::size_t bytes) noexcept;
  /// The number of a text, which it writes when it is new. 0: the empty text, or one that could not be kept.
  std::uint32_t text(std::string_view) noexcept;
  void property(std::string_view name, std::string_view value) noexcept;
  void property(std::string_view name, double number) noexcept;

  bool is_open() const noexcept { return descriptor_.load(std::memory_order_relaxed) >= 0; }
  std::int64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  std::int64_t limit_bytes() const noexcept { return limit_bytes_; }
  /// errno of the first write that failed; 0: none did. After one, nothing more is written.
  int failure() const noexcept { return failure_.load(std::memory_order_relaxed); }
  std::int64_t lost_chunks() const noexcept { return lost_chunks_.load(std::memory_order_relaxed); }

  void close() noexcept;
  /// In a forked child: the parent's file is not ours, and its lock may be held for ever.
  void abandon_after_fork() noexcept;

 private:
  /// Where the chunk's records begin in the file; -1: it was not written.
  std::int64_t write_chunk(file::Kind, const void* first, std::size_t first_bytes, const void* second,
                           std::size_t second_bytes, std::size_t records) noexcept;

  std::mutex mutex_;  // over the file's end
  std::mutex text_mutex_;
  std::unordered_map<std::string, std::uint32_t> texts_;
  std::atomic<int> descriptor_{-1};
  std::atomic<std::int64_t> bytes_{0};
  std::atomic<int> failure_{0};
  std::atomic<std::int64_t> lost_chunks_{0};
  std::int64_t limit_bytes_ = 0;
};

}  // namespace fulcrum::trace::inject
