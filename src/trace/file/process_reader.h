// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Adds what one process wrote to a trace: its own numbers of streams, threads, shapes and texts become the trace's.
#pragma once

#include <fulcrum/core/trace.h>

#include <unordered_map>

#include "trace/file/sections.h"

namespace fulcrum::trace::file {

/// Shapes of all processes by their text, so that a kernel that two of them run is one.
using ShapeNumbers = std::unordered_map<std::string, std::uint32_t>;

/// What a merged file says of the run, and where its instant 0 is.
struct RunFacts {
  std::optional<std::int64_t> base_ns, begin_ns, wall_ns;
  std::string cpu_profile, kernel_counters;
};

class ProcessReader {
 public:
  ProcessReader(GpuTrace& trace, ShapeNumbers& shapes, const Section& section);

  /// Texts, properties and whatever records refer to. Comes first: it may lie behind them in the file.
  void read_definitions(RunFacts& run);
  /// Everything with an instant, which becomes relative to `base_ns`.
  void read_records(std::int64_t base_ns);

  /// The trace's number of a shape of this file; for what is stored as text.
  std::uint32_t shape(std::uint32_t id) { return number_of_shape(id); }

 private:
  using Numbers = std::unordered_map<std::uint32_t, std::uint32_t>;

  void read_property(const Property& record, RunFacts& run);
  void read_device(const Device& record);
  void read_shape(const Shape& record);
  void add_op(GpuTrace::Op& op, std::int64_t begin, std::int64_t end);
  void read_kernel(const Kernel& record);
  void read_copy(const Copy& record);
  void read_call(const Call& record);
  void read_chunk(const ChunkView& chunk);
  void read_samples(const ChunkView& chunk);
  void read_total(const Total& record);
  void read_window(const Window& record);
  void read_footer(const Footer& record);
  void add_clock(const Clock& record);
  void add_counter(const Counter& record);
  void close_open_ends();
  void add_last_window();
  void add_notes();
  /// Once: a merged file holds the notes of its first reading.
  void note(std::string text);

  const std::string& text(std::uint32_t id);
  std::uint32_t number_of_stream(std::uint32_t id);
  std::uint32_t number_of_thread(std::uint32_t id);
  std::uint32_t number_of_shape(std::uint32_t id);
  /// Relative to the trace's begin; false: no stamp of a clock.
  bool relative(std::int64_t stamp, std::int64_t& instant) const;
  bool span(std::int64_t begin, std::int64_t end, std::int64_t& begin_ns, std::int64_t& end_ns);
  template <class Row>
  void keep(bool there, std::vector<Row>& rows, Row row) {
    if (there) {
      rows.push_back(std::move(row));
    } else {
      ++bad_spans_;
    }
  }
  GpuTrace::Process& process() { return trace_.processes[process_]; }

  GpuTrace& trace_;
  ShapeNumbers& shape_numbers_;
  const Section& section_;
  std::uint32_t process_;
  std::int64_t base_ns_ = 0, last_ns_ = 0;
  std::size_t first_range_ = 0, first_window_ = 0, first_op_ = 0;
  std::unordered_map<std::uint32_t, std::string> texts_;
  Numbers streams_, threads_, shapes_;
  std::unordered_map<std::uint64_t, std::size_t> totals_;  // by shape and stream
  std::int64_t missing_streams_ = 0, missing_threads_ = 0, missing_shapes_ = 0, missing_texts_ = 0;
  std::int64_t bad_spans_ = 0, unread_chunks_ = 0;
};

}  // namespace fulcrum::trace::file
