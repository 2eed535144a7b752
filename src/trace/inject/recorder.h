// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Turns what CUPTI and our callbacks saw into records of the trace file. Used by the writer's thread alone. Kernels are
// added up by shape and stream as well, so that totals remain when single records are not kept.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "trace/inject/calls.h"
#include "trace/inject/cupti_table.h"
#include "trace/inject/device.h"
#include "trace/inject/stays.h"
#include "trace/inject/totals.h"
#include "trace/inject/writer.h"

namespace fulcrum::trace::inject {

class Recorder {
 public:
  Recorder(Writer& writer, const Cupti& cupti) : writer_(writer), cupti_(cupti) {}

  void parse(std::uint8_t* buffer, std::size_t valid_bytes, std::uint16_t stay);
  void add(const SeenCall&, pid_t tid);
  /// Whether single records go into the file, or are only added up.
  void keep(bool yes) { keep_ = yes; }
  /// Writes what has gathered.
  void write();
  /// Each total has its place in the file, where it is written again and again: a killed program leaves them as they
  /// last stood, and the file does not grow by them.
  void write_totals(const std::vector<file::Total>&);
  /// What was lost since the last call. `lost_calls` counts from the start.
  void write_drops(std::int64_t lost_calls);

  std::int64_t ops() const { return ops_; }  // kernels, copies and memsets seen
  std::int64_t calls() const { return calls_; }

  Totals totals;

 private:
  struct ShapeKey {
    std::uint32_t name, device;
    std::int32_t grid[3], block[3];
    std::uint32_t cluster[3];
    std::int32_t static_shared, dynamic_shared;
    std::uint32_t registers, local_bytes, optin;
    bool operator==(const ShapeKey&) const = default;
  };
  struct Hash {
    std::size_t operator()(const ShapeKey&) const;
  };
  struct KnownName {
    std::uint32_t id;
    std::string name;  // a pointer may come to mean another name when a module is unloaded
  };
  struct Addresses {
    std::uint64_t from, to, hash;
  };

  void parse(const CUpti_ActivityKernel9&);
  template <typename Record>
  void parse_copy(const Record&, std::uint32_t runtime_correlation);
  void parse(const CUpti_ActivityMemset4&);
  void parse(const CUpti_ActivityAPI&);
  void parse(const CUpti_ActivityOverhead3&);
  void parse(const CUpti_ActivityJit2&);
  void parse(const CUpti_ActivityUnifiedMemoryCounter3&);
  void parse_record(CUpti_Activity&);
  bool stamps_are_good(std::uint64_t begin, std::uint64_t end);
  const DeviceFacts& device(std::uint32_t id);
  void write_device(const DeviceFacts&);
  void know_context(std::uint32_t context, std::uint32_t device);
  std::uint32_t shape(const CUpti_ActivityKernel9&);
  std::uint32_t name_of(const char* name);
  std::uint32_t stream(std::uint32_t context, std::uint32_t cupti_id, std::uint32_t device);
  void describe_stream(std::uint32_t context, std::uint32_t cupti_id, std::uint32_t flags);
  std::uint32_t thread(pid_t tid);
  void remember(std::uint32_t correlation, const Addresses&);
  Addresses addresses(std::uint32_t correlation, std::uint32_t runtime_correlation) const;

  std::uint32_t correlation(std::uint32_t number) { return stays_.correlation(stay_, number); }
  std::uint32_t context(std::uint32_t number) { return stays_.context(stay_, number); }

  Writer& writer_;
  const Cupti& cupti_;
  Stays stays_;
  std::uint16_t stay_ = 0;
  bool keep_ = true, layout_is_wrong_ = false;
  std::int64_t ops_ = 0, calls_ = 0, zero_stamps_ = 0, dropped_ = 0;
  std::int64_t written_dropped_ = 0, written_lost_calls_ = 0, written_zero_stamps_ = 0,
               written_lost_kernels_ = 0;

  std::unordered_map<std::uint32_t, DeviceFacts> devices_;
  std::unordered_set<std::uint32_t> written_devices_;
  std::unordered_map<std::uint32_t, std::uint32_t> device_of_context_;
  std::unordered_map<ShapeKey, std::uint32_t, Hash> shapes_;
  std::unordered_map<const char*, KnownName> names_;  // of this stay
  std::uint16_t names_stay_ = 0;
  std::unordered_map<std::uint64_t, file::Stream> streams_;  // by context and CUPTI's number
  std::unordered_map<std::uint64_t, std::uint32_t> stream_flags_;
  std::unordered_map<pid_t, std::uint32_t> threads_;
  std::uint32_t shape_count_ = 0;
  // Where copies came from and went, by correlation: the younger half and the older half of what is remembered.
  std::unordered_map<std::uint32_t, Addresses> addresses_, older_addresses_;
  std::unordered_map<std::uint32_t, Api> runtime_apis_, driver_apis_;

  struct TotalsPlace {
    std::int64_t at;
    std::vector<std::uint64_t> keys;  // shape and stream, in the order of the records there
  };
  std::vector<TotalsPlace> totals_places_;

  std::vector<file::Kernel> kernels_;
  std::vector<file::Copy> copies_;
  std::vector<file::Call> call_records_;
  std::vector<file::Range> ranges_;
  std::vector<file::Overhead> overheads_;
  std::vector<file::Fault> faults_;
};

}  // namespace fulcrum::trace::inject
