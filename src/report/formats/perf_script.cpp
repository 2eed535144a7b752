// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The text of `perf script`: a head line a sample (command, pid/tid, cpu, time, period, event), then its frames, leaf
// first, then an empty line. Which fields the head has depends on how perf was called.
#include <fmt/format.h>
#include <fulcrum/report/formats.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "report/formats/builder.h"

namespace fulcrum::report {
namespace {

struct Head {
  std::string name, event;
  std::int64_t pid = 0, tid = 0;
  double seconds = 0;
  double period = 0;  // 0: not said
};
struct Entry {
  CpuProfile::Sample sample;
  double period = 0;
  std::string event;
};

template <class T>
bool number(std::string_view text, T& value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool decimal(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> list;
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return list;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    list.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

/// "pid" or "pid/tid".
bool ids(std::string_view text, Head& head) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    if (!number(text, head.tid)) return false;
    head.pid = head.tid;
    return true;
  }
  return number(text.substr(0, slash), head.pid) && number(text.substr(slash + 1), head.tid);
}

/// The time, "123.456789:", is the anchor: what stands before it names the thread, what follows the event.
std::optional<Head> head_of(std::string_view line) {
  const std::vector<std::string_view> parts = words(line);
  for (std::size_t at = 1; at < parts.size(); ++at) {
    std::string_view time = parts[at];
    if (!time.ends_with(':') || time.find('.') == std::string_view::npos) continue;
    time.remove_suffix(1);
    Head head;
    if (!decimal(time, head.seconds)) continue;
    std::size_t last = at - 1;
    if (parts[last].starts_with('[') && last > 0) --last;  // the CPU
    if (last == 0 || !ids(parts[last], head)) continue;
    const auto begin = static_cast<std::size_t>(parts[0].data() - line.data());
    head.name =
        trimmed(line.substr(begin, static_cast<std::size_t>(parts[last].data() - line.data()) - begin));
    std::size_t next = at + 1;
    double period = 0;
    if (next < parts.size() && decimal(parts[next], period) && period > 0) {
      head.period = period;
      ++next;
    }
    if (next < parts.size()) {
      std::string_view event = parts[next];
      event = event.substr(0, event.find_last_not_of(':') + 1);
      // "cpu-clock:u" is cpu-clock in user space; "sched:sched_switch" is a name of its own.
      const std::size_t colon = event.rfind(':');
      if (colon != std::string_view::npos && event.find_first_not_of("ukhHGDpPSe", colon + 1) == event.npos) {
        event = event.substr(0, colon);
      }
      head.event = event;
    }
    return head;
  }
  return {};
}

/// "    7f12 name+0x1f (/usr/lib/libc.so.6)".
std::optional<Frame> frame_of(std::string_view line) {
  std::string_view rest = trimmed(line);
  Frame frame;
  const std::size_t space = rest.find(' ');
  if (space == std::string_view::npos || !number(rest.substr(0, space), frame.address, 16)) return {};
  rest = trimmed(rest.substr(space));
  if (rest.ends_with(')')) {
    // The file stands in the last pair of brackets, which may hold brackets itself.
    int depth = 0;
    for (std::size_t i = rest.size(); i-- > 0;) {
      depth += rest[i] == ')' ? 1 : rest[i] == '(' ? -1 : 0;
      if (depth != 0) continue;
      const std::string_view file = rest.substr(i + 1, rest.size() - i - 2);
      frame.inlined = file == "inlined";
      if (!frame.inlined) frame.module = std::filesystem::path(file).filename().string();
      rest = trimmed(rest.substr(0, i));
      break;
    }
  }
  const std::size_t offset = rest.rfind("+0x");
  if (offset != std::string_view::npos && offset > 0 &&
      rest.find_first_not_of("0123456789abcdef", offset + 3) == std::string_view::npos) {
    rest = rest.substr(0, offset);
  }
  frame.function = rest;
  if (rest.empty() || rest == "[unknown]") {
    frame.function = fmt::format("[{}]", frame.module.empty() ? "unknown" : "unknown in " + frame.module);
  }
  // Where it was mapped is not where it was linked.
  frame.address = 0;
  return frame;
}

class Script {
 public:
  explicit Script(std::string_view origin) : origin_(origin) {}

  Result<CpuProfile> read(std::string_view text) {
    std::size_t number = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      ++number;
      if (line.ends_with('\r')) line.remove_suffix(1);
      FULCRUM_CHECK(take(line, fmt::format("line {}", number)));
    }
    close();
    if (entries_.empty()) return damaged(origin_, "the file", "has no sample");
    return finish();
  }

 private:
  Status take(std::string_view line, const std::string& place) {
    if (trimmed(line).empty()) {
      close();
      return {};
    }
    if (line.starts_with('#')) return {};
    const bool indented = line.front() == ' ' || line.front() == '\t';
    if (open_ && indented) {
      if (auto frame = frame_of(line)) {
        stack_.frames.push_back(builder_.frame(*std::move(frame)));
        return {};
      }
    }
    if (const auto head = head_of(line)) {
      close();
      open_ = true;
      head_ = *head;
      return {};
    }
    return damaged(origin_, place,
                   fmt::format("'{}' is neither a sample nor a frame", trimmed(line).substr(0, 60)));
  }

  void close() {
    if (!open_) return;
    open_ = false;
    Entry entry;
    entry.sample.stack = builder_.stack(std::move(stack_));
    entry.sample.thread = builder_.thread(head_.pid, head_.tid, head_.name);
    entry.sample.seconds = head_.seconds;
    entry.period = head_.period;
    entry.event = head_.event;
    entries_.push_back(std::move(entry));
    stack_ = {};
  }

  std::string most_frequent_event() const {
    std::map<std::string, int> counts;
    for (const Entry& entry : entries_) ++counts[entry.event];
    return std::max_element(counts.begin(), counts.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  }

  Result<CpuProfile> finish() {
    CpuProfile profile = std::move(builder_.profile);
    profile.event = most_frequent_event();
    const std::size_t all = entries_.size();
    std::erase_if(entries_, [&profile](const Entry& entry) { return entry.event != profile.event; });
    if (entries_.size() < all) {
      profile.notes.push_back(fmt::format("perf script: {} samples of other events than {} are left out",
                                          all - entries_.size(), profile.event));
    }
    double first = entries_.front().sample.seconds, last = first;
    for (const Entry& entry : entries_) {
      first = std::min(first, entry.sample.seconds);
      last = std::max(last, entry.sample.seconds);
    }
    profile.wall_seconds = last - first;
    const bool clock = profile.event.ends_with("-clock");
    const bool periods =
        std::all_of(entries_.begin(), entries_.end(), [](const Entry& e) { return e.period > 0; });
    const double step = typical_step();
    for (Entry& entry : entries_) {
      entry.sample.seconds -= first;
      entry.sample.weight_seconds = clock && periods ? entry.period * 1e-9 : step;
      profile.samples.push_back(entry.sample);
    }
    if (step > 0) profile.rate_hz = 1 / step;
    profile.cpu_seconds = profile.sampled_seconds();
    if (!clock || !periods) {
      profile.notes.emplace_back(
          "perf script: samples carry no time; each counts as the usual distance between two of a thread");
    }
    profile.notes.emplace_back("perf script: waiting time and cut stacks are not in the text: not checked");
    return profile;
  }

  /// Median distance between two samples of one thread; 1 when no thread has two.
  double typical_step() const {
    std::map<std::uint32_t, double> before;
    std::vector<double> steps;
    for (const Entry& entry : entries_) {
      const auto [at, added] = before.try_emplace(entry.sample.thread, entry.sample.seconds);
      if (!added && entry.sample.seconds > at->second) steps.push_back(entry.sample.seconds - at->second);
      at->second = entry.sample.seconds;
    }
    if (steps.empty()) return 1;
    const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
    std::nth_element(steps.begin(), middle, steps.end());
    return *middle;
  }

  std::string_view origin_;
  ProfileBuilder builder_{"perf script"};
  std::vector<Entry> entries_;
  bool open_ = false;
  Head head_;
  CpuProfile::Stack stack_;
};

}  // namespace

Result<CpuProfile> from_perf_script(std::string_view text, std::string_view origin) {
  return Script(origin).read(text);
}

}  // namespace fulcrum::report
