// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Appending to the trace file. A chunk goes out in one writev, so that a file is cut off between chunks or, at worst,
// in its last one. A full disk or a file size limit ends the writing and leaves the program alone.
#include "trace/inject/writer.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

namespace fulcrum::trace::inject {
namespace {

// What records may not use up: the footer, totals and drops are still written when the limit is reached.
constexpr std::int64_t kReserveBytes = std::int64_t{1} << 20;

std::int64_t now_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// A write beyond RLIMIT_FSIZE raises SIGXFSZ, which would kill the program for our sake: it is held back, and taken
// out again unless it was already waiting.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~SignalsHeld() {
    const int error = errno;
    sigset_t pending;
    sigpending(&pending);
    if (!was_pending_ && sigismember(&pending, SIGXFSZ) == 1) {
      const timespec none{};
      sigtimedwait(&set_, nullptr, &none);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t set_{}, before_{};
  bool was_pending_ = false;
};

bool write_all(int descriptor, iovec* parts, int count) {
  while (count > 0) {
    const ssize_t written = ::writev(descriptor, parts, count);
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    std::size_t left = std::size_t(written);
    while (count > 0 && left >= parts->iov_len) {
      left -= parts->iov_len;
      ++parts;
      --count;
    }
    if (count > 0) {
      parts->iov_base = static_cast<char*>(parts->iov_base) + left;
      parts->iov_len -= left;
    }
  }
  return true;
}

bool is_essential(file::Kind kind) {
  return kind == file::Kind::text || kind == file::Kind::property || kind == file::Kind::drop ||
         kind == file::Kind::footer || kind == file::Kind::total || kind == file::Kind::window ||
         kind == file::Kind::shape;
}

}  // namespace

bool Writer::open(const char* path, std::int64_t limit_bytes) noexcept {
  // Not O_TRUNC: a process that execs keeps its pid, and what it did before belongs to the same file.
  int descriptor = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    failure_ = errno;
    return false;
  }
  // Programs that close or count on the low numbers (shells, daemons) must not find ours there.
  const int high = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 200);
  if (high >= 0) {
    ::close(descriptor);
    descriptor = high;
  }
  limit_bytes_ = limit_bytes;
  file::Head head{};
  std::memcpy(head.magic, file::kMagic, sizeof head.magic);
  head.version = file::kVersion;
  head.head_bytes = sizeof head;
  head.pid = getpid();
  head.parent = getppid();
  head.begin_ns = now_ns(CLOCK_MONOTONIC);
  head.realtime_ns = now_ns(CLOCK_REALTIME);
  iovec part{&head, sizeof head};
  const SignalsHeld held;
  if (!write_all(descriptor, &part, 1)) {
    failure_ = errno;
    ::close(descriptor);
    return false;
  }
  bytes_ = sizeof head;
  descriptor_ = descriptor;
  return true;
}

std::int64_t Writer::write_chunk(file::Kind kind, const void* first, std::size_t first_bytes,
                                 const void* second, std::size_t second_bytes, std::size_t records) noexcept {
  const std::int64_t all = std::int64_t(sizeof(file::Chunk) + first_bytes + second_bytes);
  const std::lock_guard lock(mutex_);
  const int descriptor = descriptor_.load(std::memory_order_relaxed);
  const std::int64_t limit = is_essential(kind) ? limit_bytes_ + kReserveBytes : limit_bytes_;
  if (descriptor < 0 || failure_ != 0 || (limit_bytes_ > 0 && bytes_ + all > limit)) {
    ++lost_chunks_;
    return -1;
  }
  file::Chunk chunk{file::kChunkMagic, kind, std::uint32_t(first_bytes + second_bytes),
                    std::uint32_t(records)};
  iovec parts[3] = {{&chunk, sizeof chunk},
                    {const_cast<void*>(first), first_bytes},
                    {const_cast<void*>(second), second_bytes}};
  const SignalsHeld held;
  if (!write_all(descriptor, parts, second_bytes > 0 ? 3 : 2)) {
    failure_ = errno;
    ++lost_chunks_;
    return -1;
  }
  const std::int64_t at = bytes_ + std::int64_t(sizeof chunk);
  bytes_ += all;
  return at;
}

std::int64_t Writer::append_to_keep(file::Kind kind, const void* records, std::size_t record_bytes,
                                    std::size_t count) noexcept {
  return write_chunk(kind, records, record_bytes * count, nullptr, 0, count);
}

bool Writer::overwrite(std::int64_t at, const void* records, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const int descriptor = descriptor_.load(std::memory_order_relaxed);
  if (descriptor < 0 || failure_ != 0) return false;
  const auto* next = static_cast<const char*>(records);
  while (bytes > 0) {
    const ssize_t written = ::pwrite(descriptor, next, bytes, at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    next += written;
    at += written;
    bytes -= std::size_t(written);
  }
  return true;
}

bool Writer::append(file::Kind kind, const void* records, std::size_t record_bytes,
                    std::size_t count) noexcept {
  // A chunk's length is a 32-bit number.
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  const auto* next = static_cast<const char*>(records);
  const std::size_t at_once = kMostBytes / record_bytes;
  bool written = true;
  while (count > 0) {
    const std::size_t now = count < at_once ? count : at_once;
    written = write_chunk(kind, next, now * record_bytes, nullptr, 0, now) >= 0 && written;
    next += now * record_bytes;
    count -= now;
  }
  return written;
}

std::uint32_t Writer::text(std::string_view value) noexcept {
  if (value.empty() || !is_open()) return 0;
  try {
    const std::lock_guard lock(text_mutex_);
    const auto [place, is_new] = texts_.try_emplace(std::string(value), std::uint32_t(texts_.size() + 1));
    if (is_new) {
      const std::uint32_t id = place->second;
      write_chunk(file::Kind::text, &id, sizeof id, value.data(), value.size(), 1);
    }
    return place->second;
  } catch (...) {
    return 0;
  }
}

void Writer::property(std::string_view name, std::string_view value) noexcept {
  append(file::Kind::property, file::Property{text(name), text(value), 0});
}

void Writer::property(std::string_view name, double number) noexcept {
  append(file::Kind::property, file::Property{text(name), 0, number});
}

void Writer::close() noexcept {
  const std::lock_guard lock(mutex_);
  const int descriptor = descriptor_.exchange(-1);
  if (descriptor >= 0) ::close(descriptor);
}

void Writer::abandon_after_fork() noexcept {
  const int descriptor = descriptor_.exchange(-1);
  if (descriptor >= 0) ::close(descriptor);
}

}  // namespace fulcrum::trace::inject
