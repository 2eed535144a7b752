// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The layouts are those of PERF_RECORD_* in perf_event_open(2), for the sample type in parse.h and sample_id_all.
#include "record/parse.h"

#include <cstring>

namespace fulcrum::record {
namespace {

// After every record but a sample: pid, tid, time, cpu.
constexpr std::size_t kTrailerBytes = 24;

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <class T>
  T get() {
    T value{};
    if (rest_.size() < sizeof(T)) {
      fine_ = false;
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  std::span<const std::byte> take(std::uint64_t bytes) {
    if (rest_.size() < bytes) {
      fine_ = false;
      return {};
    }
    const auto taken = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return taken;
  }
  std::string_view text() {
    const char* begin = reinterpret_cast<const char*>(rest_.data());
    return {begin, ::strnlen(begin, rest_.size())};
  }
  bool fine() const { return fine_; }

 private:
  std::span<const std::byte> rest_;
  bool fine_ = true;
};

bool read_sample(Reader& in, bool with_callchain, Record& record) {
  SampleView& sample = record.sample;
  sample.ip = in.get<std::uint64_t>();
  record.pid = static_cast<pid_t>(in.get<std::uint32_t>());
  record.tid = static_cast<pid_t>(in.get<std::uint32_t>());
  record.time_ns = in.get<std::uint64_t>();
  sample.cpu = in.get<std::uint32_t>();
  in.get<std::uint32_t>();
  sample.period = in.get<std::uint64_t>();
  if (with_callchain) {
    const auto count = in.get<std::uint64_t>();
    if (count > 4096) return false;
    const auto bytes = in.take(count * 8);
    // Records are 8-byte aligned in the ring and so is our copy of them.
    sample.callchain = {reinterpret_cast<const std::uint64_t*>(bytes.data()), bytes.size() / 8};
  }
  const auto abi = in.get<std::uint64_t>();
  sample.has_registers = abi == kRegisterAbi;
  if (abi != PERF_SAMPLE_REGS_ABI_NONE) {
    for (const RegisterName& name : kRegisters) {
      sample.registers[static_cast<std::size_t>(name.dwarf)] = in.get<std::uint64_t>();
    }
  }
  sample.stack_asked = in.get<std::uint64_t>();
  if (sample.stack_asked > 0) {
    const auto dump = in.take(sample.stack_asked);
    const auto filled = in.get<std::uint64_t>();
    if (filled > dump.size()) return false;
    sample.stack = dump.first(filled);
  }
  return in.fine();
}

bool read_other(std::uint32_t type, std::uint16_t misc, Reader in, Record& record) {
  switch (type) {
    case PERF_RECORD_MMAP2:
      record.kind = Record::Kind::map;
      record.pid = static_cast<pid_t>(in.get<std::uint32_t>());
      record.tid = static_cast<pid_t>(in.get<std::uint32_t>());
      record.address = in.get<std::uint64_t>();
      record.length = in.get<std::uint64_t>();
      record.offset = in.get<std::uint64_t>();
      in.take(32);  // device, inode, protection
      record.text = in.text();
      return in.fine();
    case PERF_RECORD_COMM:
      record.kind = Record::Kind::name;
      record.pid = static_cast<pid_t>(in.get<std::uint32_t>());
      record.tid = static_cast<pid_t>(in.get<std::uint32_t>());
      record.exec = (misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
      record.text = in.text();
      return in.fine();
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
      record.kind = type == PERF_RECORD_FORK ? Record::Kind::fork : Record::Kind::exit;
      record.pid = static_cast<pid_t>(in.get<std::uint32_t>());
      record.parent_pid = static_cast<pid_t>(in.get<std::uint32_t>());
      record.tid = static_cast<pid_t>(in.get<std::uint32_t>());
      record.parent_tid = static_cast<pid_t>(in.get<std::uint32_t>());
      return in.fine();
    case PERF_RECORD_SWITCH:
      record.kind =
          (misc & PERF_RECORD_MISC_SWITCH_OUT) != 0 ? Record::Kind::switch_out : Record::Kind::switch_in;
      record.preempted = (misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
      return true;
    case PERF_RECORD_LOST:
      record.kind = Record::Kind::lost;
      in.get<std::uint64_t>();
      record.count = in.get<std::uint64_t>();
      return in.fine();
    case PERF_RECORD_LOST_SAMPLES:
      record.kind = Record::Kind::lost;
      record.count = in.get<std::uint64_t>();
      return in.fine();
    case PERF_RECORD_THROTTLE:
      record.kind = Record::Kind::throttle;
      return true;
    default:
      return false;
  }
}

}  // namespace

std::uint64_t record_time_ns(std::span<const std::byte> bytes) {
  perf_event_header header;
  if (bytes.size() < sizeof(header)) return 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const bool sample = header.type == PERF_RECORD_SAMPLE;
  if (bytes.size() < sizeof(header) + kTrailerBytes) return 0;
  std::uint64_t time = 0;
  std::memcpy(&time, sample ? bytes.data() + sizeof(header) + 16 : bytes.data() + bytes.size() - 16, 8);
  return time;
}

std::optional<Record> parse_record(std::span<const std::byte> bytes, bool with_callchain) {
  perf_event_header header;
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  bytes = bytes.subspan(sizeof(header));
  Record record;
  if (header.type == PERF_RECORD_SAMPLE) {
    Reader in(bytes);
    if (!read_sample(in, with_callchain, record)) return std::nullopt;
    record.sample.in_kernel = (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
    return record;
  }
  if (bytes.size() < kTrailerBytes) return std::nullopt;
  Reader trailer(bytes.last(kTrailerBytes));
  record.pid = static_cast<pid_t>(trailer.get<std::uint32_t>());
  record.tid = static_cast<pid_t>(trailer.get<std::uint32_t>());
  record.time_ns = trailer.get<std::uint64_t>();
  if (!read_other(header.type, header.misc, Reader(bytes.first(bytes.size() - kTrailerBytes)), record)) {
    return std::nullopt;
  }
  return record;
}

}  // namespace fulcrum::record
