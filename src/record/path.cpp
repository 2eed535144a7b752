// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Wall-clock seconds of each sample. The main thread's own samples and waits count as they are. While it waits, time
// belongs to the threads that run: to one of them in full, to several in equal parts, since the wait ends when they are
// done. Only what is left is waiting. A thread that neither runs nor waits is kept from its CPU: such time is in no
// share, neither its own nor that of the one who waits for it.
#include <fulcrum/record/hot.h>

#include <algorithm>
#include <cmath>

namespace fulcrum::record {
namespace {

/// Samples in a window: few enough to follow the phases of a program, enough that one sample more or less does not
/// decide whether somebody ran.
constexpr double kSamplesInWindow = 64;
/// Waits up to twice this long may be several that were put together, so that where they lie is not known.
constexpr double kGrainSeconds = 1.0 / 199;

struct Window {
  double on_cpu = 0, short_waits = 0, long_waits = 0;  // of the main thread
  double others_in_long = 0, others_beside = 0;        // CPU seconds of the other threads
  double ready_in_long = 0, ready_all = 0;  // seconds in which they did not wait, whether they ran or not
};

struct Interval {
  double begin = 0, end = 0;
};

/// The thread that started first in the first process.
std::uint32_t main_thread(const CpuProfile& profile) {
  std::uint32_t best = 0;
  const std::int64_t pid = profile.threads.front().pid;
  for (std::uint32_t i = 0; i < profile.threads.size(); ++i) {
    const CpuProfile::Thread& thread = profile.threads[i];
    if (thread.pid == pid && thread.tid == pid) return i;
    if (thread.begin_seconds < profile.threads[best].begin_seconds) best = i;
  }
  return best;
}

class Path {
 public:
  explicit Path(const CpuProfile& profile)
      : profile_(profile), main_(main_thread(profile)), width_(window_width(profile)) {
    double end = profile.wall_seconds;
    for (const CpuProfile::Sample& sample : profile.samples) {
      end = std::max(end, sample.seconds + (sample.blocked ? sample.weight_seconds : 0));
    }
    windows_.resize(static_cast<std::size_t>(std::min(end / width_, 1e7)) + 1);
    find_absence(end);
  }

  std::vector<double> seconds() {
    fill_main();
    fill_others();
    std::vector<double> result;
    result.reserve(profile_.samples.size());
    for (const CpuProfile::Sample& sample : profile_.samples) result.push_back(seconds_of(sample));
    return result;
  }

 private:
  static double window_width(const CpuProfile& profile) {
    double weight = 0;
    std::int64_t count = 0;
    for (const CpuProfile::Sample& sample : profile.samples) {
      if (sample.blocked) continue;
      weight += sample.weight_seconds;
      ++count;
    }
    const double period = count > 0 ? weight / static_cast<double>(count) : 0;
    return std::max(kSamplesInWindow * period, 1e-3);
  }

  /// Before the main thread began and after it ended, others carry the program.
  void find_absence(double end) {
    const CpuProfile::Thread& thread = profile_.threads[main_];
    if (thread.end_seconds <= thread.begin_seconds) return;
    if (thread.begin_seconds > 0) long_.push_back({0, thread.begin_seconds});
    if (thread.end_seconds < end) long_.push_back({thread.end_seconds, end});
  }

  std::size_t window_of(double seconds) const {
    return std::min(static_cast<std::size_t>(std::max(0.0, seconds) / width_), windows_.size() - 1);
  }
  bool is_long(const CpuProfile::Sample& sample) const {
    return sample.blocked && sample.weight_seconds >= 2 * kGrainSeconds;
  }
  /// Calls `take(window, seconds)` for the parts of an interval.
  template <class Take>
  void each_part(const Interval& interval, const Take& take) const {
    for (std::size_t w = window_of(interval.begin); w <= window_of(interval.end); ++w) {
      const double begin = std::max(interval.begin, static_cast<double>(w) * width_);
      const double end = w + 1 == windows_.size()
                             ? interval.end
                             : std::min(interval.end, static_cast<double>(w + 1) * width_);
      if (end > begin) take(w, end - begin);
    }
  }

  void fill_main() {
    for (const CpuProfile::Sample& sample : profile_.samples) {
      if (sample.thread != main_) continue;
      Window& window = windows_[window_of(sample.seconds)];
      if (is_long(sample)) {
        long_.push_back({sample.seconds, sample.seconds + sample.weight_seconds});
      } else if (sample.blocked) {
        window.short_waits += sample.weight_seconds;
      } else {
        window.on_cpu += sample.weight_seconds;
      }
    }
    std::sort(long_.begin(), long_.end(),
              [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    for (const Interval& interval : long_) {
      each_part(interval, [this](std::size_t w, double part) { windows_[w].long_waits += part; });
    }
  }
  bool in_long_wait(double seconds) const {
    auto after = std::upper_bound(long_.begin(), long_.end(), seconds,
                                  [](double at, const Interval& interval) { return at < interval.begin; });
    // Waits of one thread do not overlap, so only the one before can hold it.
    return after != long_.begin() && seconds < std::prev(after)->end;
  }
  /// Adds `sign` times an interval of another thread, whole and where it falls into long waits of the main one.
  void add_ready(const Interval& interval, double sign) {
    each_part(interval, [&](std::size_t w, double part) { windows_[w].ready_all += sign * part; });
    auto wait = std::upper_bound(long_.begin(), long_.end(), interval.begin,
                                 [](double at, const Interval& one) { return at < one.begin; });
    if (wait != long_.begin()) --wait;
    for (; wait != long_.end() && wait->begin < interval.end; ++wait) {
      const Interval both{std::max(wait->begin, interval.begin), std::min(wait->end, interval.end)};
      if (both.end <= both.begin) continue;
      each_part(both, [&](std::size_t w, double part) { windows_[w].ready_in_long += sign * part; });
    }
  }
  bool lifetime_known(std::uint32_t thread) const {
    return profile_.threads[thread].end_seconds > profile_.threads[thread].begin_seconds;
  }
  void fill_others() {
    for (std::uint32_t i = 0; i < profile_.threads.size(); ++i) {
      if (i == main_ || !lifetime_known(i)) continue;
      add_ready({profile_.threads[i].begin_seconds, profile_.threads[i].end_seconds}, 1);
    }
    for (const CpuProfile::Sample& sample : profile_.samples) {
      if (sample.thread == main_ || !sample.blocked || !lifetime_known(sample.thread)) continue;
      add_ready({sample.seconds, sample.seconds + sample.weight_seconds}, -1);
    }
    for (const CpuProfile::Sample& sample : profile_.samples) {
      if (sample.thread == main_ || sample.blocked) continue;
      Window& window = windows_[window_of(sample.seconds)];
      (in_long_wait(sample.seconds) ? window.others_in_long : window.others_beside) += sample.weight_seconds;
    }
  }

  /// Which part of the other threads' time beside long waits fell into short ones.
  static double short_part(const Window& window) {
    const double present = window.on_cpu + window.short_waits;
    return present > 0 ? window.short_waits / present : 0;
  }
  /// Seconds of other threads that ran or wanted to while the main one waited.
  static double ready_meanwhile(const Window& window) {
    const double in_long = std::max(window.others_in_long, window.ready_in_long);
    const double beside = std::max(window.others_beside, window.ready_all - window.ready_in_long);
    return in_long + beside * short_part(window);
  }
  static double waited(const Window& window) { return window.short_waits + window.long_waits; }
  /// Of one second that another thread ran while the main one waited.
  static double worth(const Window& window) {
    const double ready = ready_meanwhile(window);
    return ready > 0 ? std::min(1.0, waited(window) / ready) : 0;
  }
  /// What is left of one second of waiting.
  static double left(const Window& window) {
    const double all = waited(window);
    return all > 0 ? std::max(0.0, 1 - ready_meanwhile(window) / all) : 1;
  }

  double seconds_of(const CpuProfile::Sample& sample) const {
    const Window& window = windows_[window_of(sample.seconds)];
    if (sample.thread != main_) {
      if (sample.blocked) return 0;
      const double part = in_long_wait(sample.seconds) ? 1 : short_part(window);
      return sample.weight_seconds * part * worth(window);
    }
    if (!sample.blocked) return sample.weight_seconds;
    if (!is_long(sample)) return sample.weight_seconds * left(window);
    double sum = 0;
    each_part({sample.seconds, sample.seconds + sample.weight_seconds},
              [&](std::size_t w, double part) { sum += part * left(windows_[w]); });
    return sum;
  }

  const CpuProfile& profile_;
  std::uint32_t main_;
  double width_;
  std::vector<Window> windows_;
  std::vector<Interval> long_;
};

}  // namespace

std::vector<double> path_seconds(const CpuProfile& profile) {
  const bool waits = std::any_of(profile.samples.begin(), profile.samples.end(),
                                 [](const CpuProfile::Sample& sample) { return sample.blocked; });
  const bool alone = profile.threads.size() == 1 && profile.origin == "fulcrum";
  if (profile.threads.empty() || profile.wall_seconds <= 0 || !(waits || alone)) return {};
  return Path(profile).seconds();
}

}  // namespace fulcrum::record
