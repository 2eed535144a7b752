// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What belongs to one process of a trace, as the records of its section.
#pragma once

#include <fulcrum/core/trace.h>

#include "trace/file/section_writer.h"

namespace fulcrum::trace::file {

class ProcessWriter {
 public:
  /// `base_ns`: the stamp of instant 0.
  ProcessWriter(const GpuTrace& trace, std::uint32_t process, std::int64_t base_ns, SectionWriter& out)
      : trace_(trace), process_(process), base_ns_(base_ns), out_(out) {}

  void definitions();
  void work();
  /// Of devices and of the whole machine: once a file.
  void shared_samples();

  /// Texts of the format name streams, threads and shapes by their number here, plus one.
  static std::uint32_t id_of(std::uint32_t number) { return number + 1; }

 private:
  std::int64_t at(std::int64_t instant) const { return base_ns_ + instant; }
  bool ours(std::uint32_t stream) const;
  bool our_thread(std::uint32_t thread) const;
  void write_shapes();
  void write_calls();
  void write_marks();
  void write_totals();

  const GpuTrace& trace_;
  std::uint32_t process_;
  std::int64_t base_ns_;
  SectionWriter& out_;
};

}  // namespace fulcrum::trace::file
