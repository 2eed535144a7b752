// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Goes through calls and ops in the order in which the host asked for them, and notes what CUDA's rules make them wait
// for: a sync for what was issued before it, an op for recorded events and for the legacy default stream.
#include <algorithm>
#include <map>

#include "trace/simulate/links.h"

namespace fulcrum::trace {
namespace {

using Ops = std::vector<std::uint32_t>;

class Issuer {
 public:
  Issuer(const Joined& joined, Issue& issue)
      : joined_(joined), issue_(issue), streams_(joined.trace.streams.size()) {
    for (std::uint32_t s = 0; s < streams_.size(); ++s) {
      const auto& stream = joined.trace.streams[s];
      Group& group = groups_[{stream.process, stream.device}];
      if (stream.legacy_default) {
        group.legacy.push_back(s);
      } else if (stream.blocking) {
        group.blocking.push_back(s);
      }
      of_process_[stream.process].push_back(s);
    }
  }

  void call(std::uint32_t c) {
    for (const auto op : joined_.caused_by(c)) this->op(op);
    const GpuTrace::Call& call = joined_.call(c);
    const auto process = joined_.call_process[c];
    const bool known = call.stream >= 0 && std::size_t(call.stream) < streams_.size();
    switch (call.kind) {
      case CallKind::device_sync:
        for (const auto s : of_process_[process]) add(issue_.sync_targets[c], front(s));
        break;
      case CallKind::stream_sync:
        if (known) issue_.sync_targets[c] = front(std::uint32_t(call.stream));
        break;
      case CallKind::event_sync:
        if (const auto found = records_.find({process, call.event}); call.event && found != records_.end()) {
          issue_.sync_targets[c] = found->second;
        }
        break;
      case CallKind::event_record:
        if (known && call.event) records_[{process, call.event}] = front(std::uint32_t(call.stream));
        break;
      case CallKind::stream_wait:
        if (const auto found = records_.find({process, call.event}); known && found != records_.end()) {
          add(streams_[std::size_t(call.stream)].pending, found->second);
        }
        break;
      default:
        break;
    }
  }

  void op(std::uint32_t i) {
    const auto s = joined_.op(i).stream;
    Stream& stream = streams_[s];
    Ops waits = std::move(stream.pending);
    stream.pending.clear();
    const auto& own = joined_.trace.streams[s];
    const Group& group = groups_[{own.process, own.device}];
    if (own.legacy_default) {
      for (const auto other : group.blocking) add(waits, front(other));
    } else if (own.blocking) {
      for (const auto other : group.legacy) add(waits, front(other));
    }
    if (!waits.empty()) issue_.op_waits.emplace(i, std::move(waits));
    stream.last = i;
  }

 private:
  struct Stream {
    std::int64_t last = -1;
    Ops pending;  // what the next op waits for beside the last
  };
  struct Group {  // streams of one process on one device
    Ops legacy, blocking;
  };

  /// Everything that a stream has been asked to do is done when these are.
  Ops front(std::uint32_t s) const {
    Ops result = streams_[s].pending;
    if (streams_[s].last >= 0) result.push_back(std::uint32_t(streams_[s].last));
    return result;
  }
  static void add(Ops& to, const Ops& from) {
    for (const auto op : from) {
      if (std::find(to.begin(), to.end(), op) == to.end()) to.push_back(op);
    }
  }

  const Joined& joined_;
  Issue& issue_;
  std::vector<Stream> streams_;
  std::map<std::pair<std::uint32_t, int>, Group> groups_;
  std::map<std::uint32_t, Ops> of_process_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Ops> records_;  // process and number of the record
};

}  // namespace

Issue::Issue(const Joined& joined) {
  Issuer issuer(joined, *this);
  // Ops whose call is not known are issued when they begin.
  std::size_t c = 0;
  for (const auto i : joined.ops) {
    if (joined.call_of[i] >= 0) continue;
    for (; c < joined.calls.size() && joined.trace.calls[joined.calls[c]].begin_ns <= joined.begin_ns[i];
         ++c) {
      issuer.call(joined.calls[c]);
    }
    issuer.op(i);
  }
  for (; c < joined.calls.size(); ++c) issuer.call(joined.calls[c]);
}

}  // namespace fulcrum::trace
