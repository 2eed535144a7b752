// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory that knows where its valid copies are. A Buffer is handed to calls in place of a pointer: inputs move to where
// the call runs only when they are not there, and a result stays where it was made until somebody looks at it.
#pragma once

#include <fulcrum/backends.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <type_traits>
#include <vector>

namespace fulcrum::executor {

enum class Place : std::uint8_t { host, device };
std::string_view to_string(Place);

class Device;

/// One block of data with up to two copies of it, shared by the buffer and the calls that are under way. Thread-safe;
/// two calls that write the same block at once are the caller's error, as with any memory.
class Residence {
 public:
  enum class Memory : std::uint8_t { plain, pinned, foreign };

  /// Plain and pinned memory is owned and zeroed; foreign memory is the caller's, and what is on the device alone comes
  /// home to it at the end. Check identity() for null: no memory.
  Residence(std::int64_t bytes, std::shared_ptr<Device> device, Memory memory, void* foreign = nullptr);
  Residence(const Residence&) = delete;
  Residence& operator=(const Residence&) = delete;
  ~Residence();

  std::int64_t bytes() const { return bytes_; }
  Memory memory() const { return memory_; }
  const Device* owner() const { return device_.get(); }
  /// Address of the host's copy, valid or not: tells blocks apart.
  void* identity() const { return host_; }
  bool valid_on(Place place) const { return (state_.load(std::memory_order_acquire) & bit(place)) != 0; }
  /// Changes when somebody may have written: what was derived from the data is good as long as it does not. No two
  /// blocks have the same one, also where the later has the address of the earlier.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// True once the data is gone: what was derived from it can go then.
  std::shared_ptr<const std::atomic<bool>> ended() const { return ended_; }

  /// The host's copy, brought up to date when `read`. `write`: the device's copy is no longer valid. data_lost when the
  /// only valid copy was on a device that is gone.
  Result<void*> host(bool read, bool write);

  /// The device's copy for reading. A fresh one was enqueued on the stream and belongs to the caller, who hands it over
  /// when the stream has been waited for, or releases it.
  struct Loan {
    void* block = nullptr;
    bool fresh = false;
  };
  Result<Loan> device(void* stream);
  void keep_upload(void* block);
  /// The result of a call that succeeded, in a block of its own: it is the only valid copy from now on.
  void keep_result(void* block);

  /// Frees the device's copy, after bringing the data home if it is the only one.
  Status leave_device();

  /// While a call uses the device's copy it is not given up for another call that needs room.
  void begin_use();
  void end_use() { uses_.fetch_sub(1, std::memory_order_acq_rel); }
  /// When begin_use() was called last, in calls of the device.
  std::uint64_t last_use() const { return last_use_.load(std::memory_order_relaxed); }
  /// leave_device() for the sake of another call: bytes that became free, 0 where it is in use or could not be saved.
  std::int64_t give_up();

  /// Time that calls lost because this block was not on the device, against what moving it would cost: once they are
  /// even, moving() is true and the way in is not charged to the next call (docs/executing.md). Data that is written anew
  /// begins again.
  void rent(double lost_seconds, double move_seconds);
  bool moving() const { return moving_.load(std::memory_order_relaxed); }
  /// Results written here may stay on the device, so that their way back costs a call nothing.
  void stay_on_device(bool stay) { stay_.store(stay, std::memory_order_relaxed); }
  bool stays_on_device() const { return stay_.load(std::memory_order_relaxed); }

 private:
  static std::uint8_t bit(Place place) { return place == Place::host ? 1 : 2; }
  // With mutex_ held, or at the end:
  void drop_device();
  Status fetch();
  void bring_home() noexcept;
  void remember();

  std::int64_t bytes_;
  Memory memory_;
  std::shared_ptr<Device> device_;
  std::mutex mutex_;
  void* host_ = nullptr;
  void* device_block_ = nullptr;
  std::atomic<std::uint8_t> state_{1};
  std::atomic<bool> stay_{false}, moving_{false};
  std::shared_ptr<std::atomic<bool>> ended_ = std::make_shared<std::atomic<bool>>(false);
  std::atomic<std::uint64_t> version_{unique_number()}, last_use_{0};
  std::atomic<int> uses_{0};
  bool remembered_ = false;  // by the device
  double lost_seconds_ = 0;
};

/// n values of T. Copies of a Buffer share the data, like std::shared_ptr.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  std::int64_t size() const { return size_; }
  bool on_device() const { return home_ && home_->valid_on(Place::device); }
  bool on_host() const { return home_ && home_->valid_on(Place::host); }

  /// For reading: the data comes home first where it must.
  Result<std::span<const T>> read() const {
    if (!home_) return std::span<const T>{};
    FULCRUM_TRY(void* data, home_->host(true, false));
    return std::span<const T>(static_cast<const T*>(data), static_cast<std::size_t>(size_));
  }
  /// For writing all of it: what was there is not fetched.
  Result<std::span<T>> overwrite() {
    if (!home_) return std::span<T>{};
    FULCRUM_TRY(void* data, home_->host(false, true));
    return std::span<T>(static_cast<T*>(data), static_cast<std::size_t>(size_));
  }
  /// For changing parts of it.
  Result<std::span<T>> modify() {
    if (!home_) return std::span<T>{};
    FULCRUM_TRY(void* data, home_->host(true, true));
    return std::span<T>(static_cast<T*>(data), static_cast<std::size_t>(size_));
  }
  /// Results written here may stay on the device: the way back is not charged to the calls that write it.
  Buffer& stay_on_device(bool stay = true) {
    if (home_) home_->stay_on_device(stay);
    return *this;
  }
  const std::shared_ptr<Residence>& home() const { return home_; }

 private:
  friend class Executor;
  Buffer(std::shared_ptr<Residence> home, std::int64_t size) : home_(std::move(home)), size_(size) {}
  std::shared_ptr<Residence> home_;
  std::int64_t size_ = 0;
};

/// The types of the product that values of T may be, a bit each; all of them for bytes, whose type T does not say.
template <class T>
constexpr std::uint8_t types_held() {
  constexpr auto kOnly = [](auto... types) {
    return static_cast<std::uint8_t>((0U | ... | (1U << static_cast<unsigned>(types))));
  };
  if (std::is_same_v<T, std::byte>) return 0xff;
  if (std::is_same_v<T, float>) return kOnly(DType::f32);
  if (!std::is_integral_v<T>)
    return sizeof(T) == 2 ? kOnly(DType::f16, DType::bf16) : 0;  // a half of the caller's
  if (sizeof(T) == 1) return std::is_unsigned_v<T> ? kOnly(DType::u8) : 0;
  if (sizeof(T) == 2) return std::is_unsigned_v<T> ? kOnly(DType::f16, DType::bf16) : 0;  // their bits
  if (std::is_unsigned_v<T>) return 0;
  return sizeof(T) == 4 ? kOnly(DType::i32) : kOnly(DType::i64);
}

/// What a call takes for a pointer slot: a span, a vector or a Buffer; nothing for an optional one.
class Operand {
 public:
  Operand() = default;
  template <class T>
  Operand(std::span<T> values)
      : host_(const_cast<void*>(static_cast<const void*>(values.data()))),
        count_(static_cast<std::int64_t>(values.size())),
        types_(types_held<std::remove_const_t<T>>()),
        writable_(!std::is_const_v<T>) {}
  template <class T>
  Operand(const std::vector<T>& values) : Operand(std::span<const T>(values)) {}
  template <class T>
  Operand(std::vector<T>& values) : Operand(std::span<T>(values)) {}
  template <class T>
  Operand(const Buffer<T>& buffer)
      : home_(&buffer.home()), count_(buffer.size()), types_(types_held<std::remove_const_t<T>>()) {}

  void* host() const { return host_; }
  Residence* home() const { return home_ ? home_->get() : nullptr; }
  /// For calls that outlive the caller's scope. Null: host memory, which the caller keeps until the call has ended.
  std::shared_ptr<Residence> share() const { return home_ ? *home_ : nullptr; }
  std::int64_t count() const { return count_; }
  /// Whether its values are of this type, as far as it is known.
  bool holds(DType type) const { return (types_ >> static_cast<unsigned>(type) & 1U) != 0; }
  bool writable() const { return writable_; }
  /// Its values are of this type, as the caller knows.
  Operand& is(DType type) {
    types_ &= static_cast<std::uint8_t>(1U << static_cast<unsigned>(type));
    return *this;
  }
  bool absent() const { return !host_ && !home_; }

 private:
  void* host_ = nullptr;
  const std::shared_ptr<Residence>* home_ = nullptr;  // of the caller's buffer, which outlives the operand
  std::int64_t count_ = 0;
  std::uint8_t types_ = 0xff;
  bool writable_ = true;
};

}  // namespace fulcrum::executor
