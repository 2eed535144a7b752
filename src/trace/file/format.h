// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The trace file: a head, then chunks, each an array of one kind of record, appended as they come. Little-endian,
// no footer needed: a file that was cut off is read up to its last whole chunk. The injected library writes it and
// must not pull in the library, so this header needs the C++ standard library alone (docs/trace-file.md).
#pragma once

#include <cstdint>
#include <type_traits>

namespace fulcrum::trace::file {

inline constexpr char kMagic[8] = {'F', 'L', 'C', 'T', 'R', 'A', 'C', 'E'};
inline constexpr std::uint32_t kVersion = 1;              // readers refuse newer majors
inline constexpr std::uint32_t kChunkMagic = 0x4b4e4843;  // "CHNK"

struct Head {
  char magic[8];
  std::uint32_t version;
  std::uint32_t head_bytes;  // of this struct: a later version may append
  std::int64_t pid;
  std::int64_t parent;
  std::int64_t
      begin_ns;  // CLOCK_MONOTONIC when the file was opened; all instants are CLOCK_MONOTONIC, absolute
  std::int64_t realtime_ns;  // CLOCK_REALTIME then
};
static_assert(sizeof(Head) == 48);

enum class Kind : std::uint32_t {
  text = 1,  // no array: u32 id, then bytes; ids are referred to by the records below. 0 is the empty text
  property = 2,  // Property: facts about the process, by name
  device = 3,
  shape = 4,
  kernel = 5,
  copy = 6,  // and memsets
  call = 7,
  stream = 8,
  thread = 9,
  range = 10,
  overhead = 11,
  fault = 12,
  clock = 13,
  counter = 14,
  window = 15,
  total = 16,
  binary = 17,
  drop = 18,
  footer = 19,
};

struct Chunk {
  std::uint32_t magic;
  Kind kind;
  std::uint32_t bytes;    // of the payload
  std::uint32_t records;  // payload = records of one size: bytes / records, at least the size known here
};
static_assert(sizeof(Chunk) == 16);

struct Property {       // numbers and texts by name: "command", "cupti_version", "refused", "profiler", ...
  std::uint32_t name;   // text
  std::uint32_t value;  // text; 0: the number counts
  double number;
};
static_assert(sizeof(Property) == 16);

struct Device {
  std::uint32_t id, name;
  std::int32_t sms, compute_major, compute_minor, max_threads_per_sm, max_blocks_per_sm, registers_per_sm;
  std::int64_t shared_per_sm, memory_bytes;
  double memory_bytes_per_second, max_sm_mhz;
};
static_assert(sizeof(Device) == 64);

struct Shape {
  std::uint32_t id, name;  // name: mangled as CUPTI gives it; the reader demangles
  std::uint32_t grid[3], block[3], cluster[3];
  std::int32_t registers, static_shared, dynamic_shared, local_bytes;
  std::int32_t blocks_per_sm;
  float occupancy;
  std::uint32_t limiter;  // text
};
static_assert(sizeof(Shape) == 72);

struct Kernel {
  std::int64_t begin_ns, end_ns;
  std::uint32_t shape, stream, correlation, graph;  // stream: id of a Stream record
  std::uint64_t graph_node;
};
static_assert(sizeof(Kernel) == 40);

struct Copy {
  std::int64_t begin_ns, end_ns, bytes;
  std::uint32_t stream, correlation, graph;
  std::uint8_t kind;      // CopyKind; 255: a memset
  std::uint8_t from, to;  // MemoryKind
  std::uint8_t flags;     // 1: asynchronous
  std::uint64_t graph_node, from_address, to_address, content_hash;
};
static_assert(sizeof(Copy) == 72);

struct Call {
  std::int64_t begin_ns;
  std::uint32_t duration_ns;  // 2^32 - 1: longer, and `wide` follows in bytes
  std::uint32_t thread;       // id of a Thread record
  std::uint32_t correlation;
  std::uint32_t stream;  // id of a Stream record plus one; 0: not known or all
  std::uint64_t event;   // id of the record of an event; 0: none
  std::int64_t bytes;    // of allocations; of calls longer than 4 s: their nanoseconds
  std::uint64_t address;
  std::uint16_t kind;   // CallKind
  std::uint16_t flags;  // 1: per-thread default stream
  std::uint32_t reserved;
};
static_assert(sizeof(Call) == 56);

struct Stream {
  std::uint32_t id;  // number that records refer to
  std::uint32_t device;
  std::uint32_t context, cupti_id;
  std::uint32_t flags;  // 1: legacy default, 2: non-blocking, 4: per-thread default
  std::uint32_t reserved;
};
static_assert(sizeof(Stream) == 24);

struct Thread {
  std::uint32_t id, name;
  std::int64_t tid;
};
static_assert(sizeof(Thread) == 16);

struct Range {
  std::int64_t begin_ns, end_ns;
  std::uint32_t thread, name;
};
static_assert(sizeof(Range) == 24);

struct Overhead {
  std::int64_t begin_ns, end_ns;
  std::uint32_t thread, what;  // text
};
static_assert(sizeof(Overhead) == 24);

struct Fault {
  std::int64_t begin_ns, end_ns, bytes, count;
  std::uint8_t direction;  // CopyKind
  std::uint8_t stalled;
  std::uint16_t device;
  std::uint32_t reserved;
};
static_assert(sizeof(Fault) == 40);

struct Clock {
  std::int64_t at_ns;
  std::uint32_t device;
  float sm_mhz, memory_mhz, watts, celsius, utilisation;
  std::uint64_t reasons;
  std::uint32_t others, other_pid;  // how many processes beside ours, and one of them
};
static_assert(sizeof(Clock) == 48);

struct Counter {
  std::int64_t begin_ns, end_ns;
  std::uint32_t device;
  float sm_active, tensor_active, warps_active, instructions, dram_read, dram, l2_hit, l1_hit, pcie_read,
      pcie_write;
  float sm_throughput;  // -1, as for the others: not in the set of this chip
};
static_assert(sizeof(Counter) == 64);

struct Window {
  std::int64_t begin_ns, end_ns;
};
static_assert(sizeof(Window) == 16);

struct Total {
  std::uint32_t shape, stream;
  std::int64_t count, sum_ns, min_ns, max_ns;
  std::uint32_t histogram[40];  // log2 of nanoseconds
};
static_assert(sizeof(Total) == 200);

struct Binary {
  std::uint32_t path, build_id;
  std::int64_t modified_ns;
  std::uint32_t newer, reserved;
  std::int64_t newer_by_ns;
};
static_assert(sizeof(Binary) == 32);

struct Drop {
  std::int64_t at_ns, records, zero_stamps;
  std::uint32_t why;  // text
  std::uint32_t reserved;
};
static_assert(sizeof(Drop) == 32);

struct Footer {
  std::int64_t end_ns;
  std::uint32_t end;  // text: "exit", "_exit", "signal 15"
  std::uint32_t reserved;
  double overhead_seconds;  // predicted
};
static_assert(sizeof(Footer) == 24);

// Where processes are merged, the number of an event's record has that of its process in the bits above these.
inline constexpr int kEventBits = 48;

}  // namespace fulcrum::trace::file
