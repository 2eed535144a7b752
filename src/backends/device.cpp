// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Operands of a call as the C interface wants them, and calls on operands that stay in a device's memory.
#include <fmt/format.h>
#include <fulcrum/backends/device.h>

#include <algorithm>
#include <cstring>

#include "backends/operands.h"

namespace fulcrum::backends {
namespace {

constexpr std::size_t kGuardBytes = 512;  // also keeps operands aligned as the allocator aligned the block
constexpr int kGuardByte = 0xA5;
constexpr int kPoisonByte = 0xFF;

/// One operand of one set in the device's memory: guard, data, guard.
struct Room {
  fulcrum_operand operand;
  std::byte* block = nullptr;
  std::byte* data() const { return block + kGuardBytes; }
};

struct Set {
  std::vector<Room> rooms;
  Args args{};
};

}  // namespace

struct DeviceCall::State {
  const fulcrum_backend* table = nullptr;
  const fulcrum_kernel* kernel = nullptr;
  Args host{};
  std::string name;
  std::vector<Set> sets;
  void* stream = nullptr;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    for (Set& set : sets) {
      if (kernel->drop && set.args.plan) kernel->drop(set.args.plan);
      for (const Room& room : set.rooms) table->release(FULCRUM_MEMORY_DEVICE, room.block);
    }
    if (stream) table->stream_close(stream);
  }

  Status copy(void* to, const void* from, std::size_t bytes) const {
    return bytes == 0 ? Status{} : to_status(table->copy(to, from, bytes, stream));
  }
  Status wait() const { return to_status(table->stream_wait(stream)); }

  Status fill(std::byte* at, int byte, std::size_t bytes) const {
    return bytes == 0 ? Status{} : to_status(table->fill(at, byte, bytes, stream));
  }

  Status add_set(std::span<const fulcrum_operand> operands) {
    Set& set = sets.emplace_back();
    set.args = host;
    set.args.plan = nullptr;
    for (const fulcrum_operand& operand : operands) {
      // Operands that share the host's buffer (calls in place) share the device's.
      const auto twin = std::find_if(set.rooms.begin(), set.rooms.end(), [&](const Room& room) {
        return host.ptr[room.operand.slot] == host.ptr[operand.slot];
      });
      if (twin != set.rooms.end() && operand.bytes > 0) {
        twin->operand.role = FULCRUM_INOUT;
        set.args.ptr[operand.slot] = twin->data();
        continue;
      }
      void* block = nullptr;
      FULCRUM_CHECK(to_status(table->allocate(
          FULCRUM_MEMORY_DEVICE, static_cast<std::size_t>(operand.bytes) + 2 * kGuardBytes, &block)));
      const Room& room = set.rooms.emplace_back(Room{operand, static_cast<std::byte*>(block)});
      set.args.ptr[operand.slot] = room.data();
    }
    if (!kernel->plan) return {};
    return to_status(kernel->plan(kernel, &set.args, &set.args.plan));
  }

  Status upload(const Set& set) const {
    for (const Room& room : set.rooms) {
      const auto bytes = static_cast<std::size_t>(room.operand.bytes);
      FULCRUM_CHECK(fill(room.block, kGuardByte, kGuardBytes));
      FULCRUM_CHECK(fill(room.data() + bytes, kGuardByte, kGuardBytes));
      if (room.operand.role == FULCRUM_OUT) {
        FULCRUM_CHECK(fill(room.data(), kPoisonByte, bytes));
      } else {
        FULCRUM_CHECK(copy(room.data(), host.ptr[room.operand.slot], bytes));
      }
    }
    return wait();
  }

  /// Guards as they were filled, and inputs as they were sent.
  Status untouched(const Room& room) const {
    const auto bytes = static_cast<std::size_t>(room.operand.bytes);
    std::vector<std::byte> seen(2 * kGuardBytes);
    FULCRUM_CHECK(copy(seen.data(), room.block, kGuardBytes));
    FULCRUM_CHECK(copy(seen.data() + kGuardBytes, room.data() + bytes, kGuardBytes));
    FULCRUM_CHECK(wait());
    const bool guarded =
        std::all_of(seen.begin(), seen.end(), [](std::byte byte) { return byte == std::byte{kGuardByte}; });
    if (!guarded) return wrong(fmt::format("wrote outside the buffer of slot {}", room.operand.slot));
    if (room.operand.role != FULCRUM_IN) return {};
    seen.resize(bytes);
    FULCRUM_CHECK(copy(seen.data(), room.data(), bytes));
    FULCRUM_CHECK(wait());
    const bool same = bytes == 0 || std::memcmp(seen.data(), host.ptr[room.operand.slot], bytes) == 0;
    return same ? Status{} : wrong(fmt::format("changed the input of slot {}", room.operand.slot));
  }

  Error wrong(const std::string& what) const {
    return Error{Code::wrong_result, fmt::format("{} {}", name, what), "Fix the kernel."};
  }

  Status download(const Set& set) const {
    for (const Room& room : set.rooms) {
      FULCRUM_CHECK(untouched(room));
      if (room.operand.role == FULCRUM_IN) continue;
      FULCRUM_CHECK(
          copy(host.ptr[room.operand.slot], room.data(), static_cast<std::size_t>(room.operand.bytes)));
    }
    return wait();
  }
};

bool has_memory(const Backend& backend) {
  const fulcrum_backend& table = backend.table();
  return table.allocate && table.release && table.copy && table.fill && table.stream_open &&
         table.stream_close && table.stream_wait;
}

Result<DeviceCall> DeviceCall::make(const Kernel& kernel, const Args& host, int sets) {
  FULCRUM_TRY(const Operands operands, checked_operands(kernel, host));
  auto state = std::make_unique<State>();
  state->table = &kernel.backend().table();
  state->kernel = &kernel.entry();
  state->host = host;
  state->name = kernel.name();
  FULCRUM_CHECK(to_status(state->table->stream_open(&state->stream)));
  state->sets.reserve(static_cast<std::size_t>(sets));
  for (int i = 0; i < sets; ++i) FULCRUM_CHECK(state->add_set(operands.list));
  return DeviceCall(std::move(state));
}

DeviceCall::DeviceCall(std::unique_ptr<State> state) : state_(std::move(state)) {}
DeviceCall::DeviceCall(DeviceCall&&) noexcept = default;
DeviceCall& DeviceCall::operator=(DeviceCall&&) noexcept = default;
DeviceCall::~DeviceCall() = default;

int DeviceCall::sets() const { return static_cast<int>(state_->sets.size()); }

std::int64_t DeviceCall::set_bytes() const {
  std::int64_t bytes = 0;
  for (const Room& room : state_->sets.front().rooms) bytes += room.operand.bytes;
  return bytes;
}

Status DeviceCall::upload() {
  for (const Set& set : state_->sets) FULCRUM_CHECK(state_->upload(set));
  return {};
}

Status DeviceCall::run(std::int64_t count, int set) {
  const Args& args = state_->sets[static_cast<std::size_t>(set)].args;
  const fulcrum_status status = state_->kernel->run(&args, state_->stream, count);
  if (status.code != FULCRUM_OK) return to_status(status);
  const fulcrum_status waited = state_->table->stream_wait(state_->stream);
  return waited.code == FULCRUM_OK ? Status{} : to_status(waited);
}

Status DeviceCall::download(int set) { return state_->download(state_->sets[static_cast<std::size_t>(set)]); }

Result<Replay> DeviceCall::record(int calls) {
  const fulcrum_backend& table = *state_->table;
  if (!table.graph_open || !table.mark_open) {
    return Error{Code::unsupported, fmt::format("the backend {} records no batches", table.name), ""};
  }
  std::vector<Args> args;
  for (const Set& set : state_->sets) args.push_back(set.args);
  Replay replay;
  replay.table_ = &table;
  replay.stream_ = state_->stream;
  replay.calls_ = calls;
  FULCRUM_CHECK(to_status(table.graph_open(state_->kernel, args.data(),
                                           static_cast<std::int32_t>(args.size()), calls, &replay.graph_)));
  FULCRUM_CHECK(to_status(table.mark_open(&replay.begin_)));
  FULCRUM_CHECK(to_status(table.mark_open(&replay.end_)));
  return replay;
}

Replay::Replay(Replay&& other) noexcept { *this = std::move(other); }

Replay& Replay::operator=(Replay&& other) noexcept {
  std::swap(table_, other.table_);
  std::swap(graph_, other.graph_);
  std::swap(stream_, other.stream_);
  std::swap(begin_, other.begin_);
  std::swap(end_, other.end_);
  std::swap(calls_, other.calls_);
  return *this;
}

Replay::~Replay() {
  if (!table_) return;
  if (begin_) table_->mark_close(begin_);
  if (end_) table_->mark_close(end_);
  if (graph_) table_->graph_close(graph_);
}

Result<double> Replay::run() {
  FULCRUM_CHECK(to_status(table_->mark_record(begin_, stream_)));
  FULCRUM_CHECK(to_status(table_->graph_run(graph_, stream_)));
  FULCRUM_CHECK(to_status(table_->mark_record(end_, stream_)));
  FULCRUM_CHECK(to_status(table_->stream_wait(stream_)));
  double seconds = 0;
  FULCRUM_CHECK(to_status(table_->mark_seconds(begin_, end_, &seconds)));
  return seconds;
}

}  // namespace fulcrum::backends
