// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What records refer to (shapes, streams, threads, devices), and what is written at the end of each round.
#include "trace/inject/recorder.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "trace/inject/clock.h"
#include "trace/inject/frame_sizes.h"

namespace fulcrum::trace::inject {

std::size_t Recorder::Hash::operator()(const ShapeKey& key) const {
  std::uint64_t h = key.name;
  const auto mix = [&h](std::uint64_t v) { h = (h ^ v) * 0x9e3779b97f4a7c15u, h ^= h >> 29; };
  mix(std::uint64_t(std::uint32_t(key.grid[0])) << 32 | std::uint32_t(key.grid[1]));
  mix(std::uint64_t(std::uint32_t(key.grid[2])) << 32 | std::uint32_t(key.block[0]));
  mix(std::uint64_t(std::uint32_t(key.block[1])) << 32 | std::uint32_t(key.block[2]));
  mix(std::uint64_t(std::uint32_t(key.dynamic_shared)) << 32 | key.cluster[0]);
  mix(std::uint64_t{key.registers} << 32 | key.device);
  return std::size_t(h);
}

const DeviceFacts& Recorder::device(std::uint32_t id) {
  const auto [place, is_new] = devices_.try_emplace(id);
  // Without a driver to ask, CUPTI's own record will tell.
  if (is_new && device_facts(id, place->second)) write_device(place->second);
  return place->second;
}

void Recorder::write_device(const DeviceFacts& facts) {
  if (facts.sms <= 0 || !written_devices_.insert(facts.id).second) return;
  writer_.append(file::Kind::device, to_record(facts, writer_));
  char name[48];
  std::snprintf(name, sizeof name, "UUID of device %u", facts.id);
  if (facts.uuid[0] != '\0') writer_.property(name, facts.uuid);
}

void Recorder::know_context(std::uint32_t context, std::uint32_t device_id) {
  device_of_context_[context] = device_id;
  for (auto& [key, known] : streams_)
    if (known.context == context && known.device != device_id) {
      known.device = device_id;
      writer_.append(file::Kind::stream, known);
    }
}

std::uint32_t Recorder::name_of(const char* name) {
  if (names_stay_ != stay_) names_.clear();
  names_stay_ = stay_;
  KnownName& known = names_[name];
  if (known.id == 0 || known.name != name) known = {writer_.text(name), name};
  return known.id;
}

std::uint32_t Recorder::shape(const CUpti_ActivityKernel9& k) {
  const char* name = k.name != nullptr ? k.name : "";
  const ShapeKey key{name_of(name),
                     k.deviceId,
                     {k.gridX, k.gridY, k.gridZ},
                     {k.blockX, k.blockY, k.blockZ},
                     {k.clusterX, k.clusterY, k.clusterZ},
                     k.staticSharedMemory,
                     k.dynamicSharedMemory,
                     k.registersPerThread,
                     k.localMemoryPerThread,
                     0};
  std::uint32_t& known = shapes_[key];
  if (known != 0) return known;
  known = ++shape_count_;
  const Occupancy fits = occupancy(device(k.deviceId), k);
  file::Shape out{};
  out.id = known;
  out.name = key.name;
  for (int i = 0; i < 3; ++i) {
    out.grid[i] = std::uint32_t(key.grid[i]);
    out.block[i] = std::uint32_t(key.block[i]);
    out.cluster[i] = key.cluster[i];
  }
  out.registers = k.registersPerThread;
  out.static_shared = k.staticSharedMemory;
  out.dynamic_shared = k.dynamicSharedMemory;
  out.local_bytes =
      std::int32_t(k.localMemoryPerThread != 0 ? k.localMemoryPerThread : frame_sizes().of(name));
  out.blocks_per_sm = fits.blocks_per_sm;
  out.occupancy = fits.share;
  out.limiter = writer_.text(fits.limiter);
  writer_.append(file::Kind::shape, out);
  return known;
}

std::uint32_t Recorder::stream(std::uint32_t context, std::uint32_t cupti_id, std::uint32_t device_id) {
  const std::uint64_t key = std::uint64_t{context} << 32 | cupti_id;
  const auto [place, is_new] = streams_.try_emplace(key);
  file::Stream& out = place->second;
  if (is_new) {
    const auto flags = stream_flags_.find(key);
    out = {std::uint32_t(streams_.size()),
           device_id,
           context,
           cupti_id,
           flags == stream_flags_.end() ? 0 : flags->second,
           0};
    writer_.append(file::Kind::stream, out);
  }
  return out.id;
}

void Recorder::describe_stream(std::uint32_t context, std::uint32_t cupti_id, std::uint32_t flags) {
  const std::uint64_t key = std::uint64_t{context} << 32 | cupti_id;
  stream_flags_[key] |= flags;
  const auto known = streams_.find(key);
  if (known == streams_.end() || (known->second.flags | flags) == known->second.flags) return;
  known->second.flags |= flags;
  writer_.append(file::Kind::stream, known->second);  // the later record of a number counts
}

std::uint32_t Recorder::thread(pid_t tid) {
  const auto [place, is_new] = threads_.try_emplace(tid, std::uint32_t(threads_.size() + 1));
  if (!is_new) return place->second;
  char path[64], name[32] = "";
  std::snprintf(path, sizeof path, "/proc/self/task/%d/comm", int(tid));
  if (std::FILE* file = std::fopen(path, "re")) {
    if (std::fgets(name, sizeof name, file) != nullptr) name[std::strcspn(name, "\n")] = '\0';
    std::fclose(file);
  }
  writer_.append(file::Kind::thread, file::Thread{place->second, writer_.text(name), tid});
  return place->second;
}

void Recorder::remember(std::uint32_t correlation, const Addresses& which) {
  constexpr std::size_t kHalf = 32768;
  if (addresses_.size() >= kHalf) {
    older_addresses_.swap(addresses_);
    addresses_.clear();
  }
  addresses_[correlation] = which;
}

Recorder::Addresses Recorder::addresses(std::uint32_t correlation, std::uint32_t runtime_correlation) const {
  for (const std::uint32_t id : {correlation, runtime_correlation})
    for (const auto* map : {&addresses_, &older_addresses_})
      if (const auto found = map->find(id); id != 0 && found != map->end()) return found->second;
  return {};
}

void Recorder::add(const SeenCall& seen, pid_t tid) {
  if (seen.flags & 4) {
    if (keep_) ranges_.push_back({seen.begin_ns, seen.end_ns, thread(tid), std::uint32_t(seen.event)});
    return;
  }
  ++calls_;
  stay_ = seen.stay;
  const std::uint32_t number = correlation(seen.correlation), of_context = context(seen.context);
  if (seen.flags & 2) remember(number, {seen.event, seen.address, seen.hash});
  if (!keep_) return;
  file::Call out{};
  out.begin_ns = seen.begin_ns;
  out.thread = thread(tid);
  out.correlation = number;
  const bool is_copy = (seen.flags & 2) != 0;
  const auto device_of = device_of_context_.find(of_context);
  if (seen.stream != 0)
    out.stream =
        stream(of_context, seen.stream - 1, device_of == device_of_context_.end() ? 0 : device_of->second) +
        1;
  out.event = is_copy ? 0 : seen.event;
  out.bytes = is_copy ? 0 : seen.bytes;
  out.address = is_copy ? 0 : seen.address;
  out.kind = seen.kind;
  out.flags = seen.flags & 1;
  const std::int64_t duration = seen.end_ns - seen.begin_ns;
  if (duration >= 0xffffffff) {
    out.duration_ns = 0xffffffff;
    out.bytes = duration;
  } else {
    out.duration_ns = std::uint32_t(duration);
  }
  call_records_.push_back(out);
}

namespace {

template <typename Record>
void write_all(Writer& writer, file::Kind kind, std::vector<Record>& records) {
  if (records.empty()) return;
  writer.append(kind, records.data(), sizeof(Record), records.size());
  records.clear();
}

}  // namespace

void Recorder::write() {
  write_all(writer_, file::Kind::kernel, kernels_);
  write_all(writer_, file::Kind::copy, copies_);
  write_all(writer_, file::Kind::call, call_records_);
  write_all(writer_, file::Kind::range, ranges_);
  write_all(writer_, file::Kind::overhead, overheads_);
  write_all(writer_, file::Kind::fault, faults_);
}

void Recorder::write_totals(const std::vector<file::Total>& all) {
  const auto key_of = [](const file::Total& t) { return std::uint64_t{t.shape} << 32 | t.stream; };
  std::unordered_map<std::uint64_t, const file::Total*> left;
  for (const file::Total& total : all) left.emplace(key_of(total), &total);
  std::vector<file::Total> records;
  for (const TotalsPlace& place : totals_places_) {
    records.clear();
    for (const std::uint64_t key : place.keys)
      if (const auto found = left.find(key); found != left.end()) {
        records.push_back(*found->second);
        left.erase(found);
      }
    // None is ever taken back, so they are as many as there were.
    if (records.size() == place.keys.size())
      writer_.overwrite(place.at, records.data(), records.size() * sizeof(file::Total));
  }
  if (left.empty()) return;
  // Behind their shapes, which a reader must have met before them.
  TotalsPlace place;
  records.clear();
  for (const file::Total& total : all)
    if (left.contains(key_of(total))) {
      records.push_back(total);
      place.keys.push_back(key_of(total));
    }
  place.at = writer_.append_to_keep(file::Kind::total, records.data(), sizeof(file::Total), records.size());
  if (place.at >= 0) totals_places_.push_back(std::move(place));
}

void Recorder::write_drops(std::int64_t lost_calls) {
  const auto write_one = [this](std::int64_t records, std::int64_t zero_stamps, const char* why) {
    if (records > 0 || zero_stamps > 0)
      writer_.append(file::Kind::drop, file::Drop{now_ns(), records, zero_stamps, writer_.text(why), 0});
  };
  write_one(dropped_ - written_dropped_, 0, "CUPTI ran out of buffers");
  write_one(lost_calls - written_lost_calls_, 0, "calls came faster than they were written");
  write_one(totals.lost() - written_lost_kernels_, 0, "CUPTI recorded no kernels for launches of a thread");
  write_one(0, zero_stamps_ - written_zero_stamps_, "CUPTI gave no time stamps");
  written_dropped_ = dropped_;
  written_lost_calls_ = lost_calls;
  written_zero_stamps_ = zero_stamps_;
  written_lost_kernels_ = totals.lost();
}

}  // namespace fulcrum::trace::inject
