// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One cell of the tracker: where ln(measured / predicted) lies, how far it scatters, and whether it has moved. Every
// field is atomic and every update a fetch or a compare-and-swap, so that threads may learn at once: none waits and no
// sample is lost.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

namespace fulcrum::executor {

inline constexpr float kNoSample = std::numeric_limits<float>::quiet_NaN();

class alignas(64) TrackedCell {
 public:
  static constexpr int kFirstCalls = 2;  // of a cell: code and pages are loaded; kept apart
  static constexpr int kWindow = 7;      // of the median
  static constexpr int kAlarmWindow = 3;
  static constexpr int kPriorSamples = 2;  // what the table said counts as so many, until the window is full
  static constexpr float kFirstScale = 0.3F;   // of ln: doubt before the scatter was seen
  static constexpr float kLeastScale = 0.03F;  // no machine is steadier than that for long
  static constexpr float kClip = 3;            // samples count at most so many scales away
  static constexpr float kSlack = 0.5F;        // of the cumulative sums, in scales
  static constexpr float kAlarm = 6;           // three samples far away in a row, or many a little away
  static constexpr float kAlarmDoubt = 0.7F;
  static constexpr int kAlarmSamples = 8;  // after which an alarm's doubt is gone
  static constexpr float kForget = 1.F / 256;
  static constexpr std::size_t kMostAtOnce = 8;  // samples

  TrackedCell() {
    for (auto& sample : ring_) sample.store(kNoSample, std::memory_order_relaxed);
  }

  struct Learned {
    bool alarm = false;
    bool counted = false;  // false: one of the first calls
  };

  struct Sample {
    float ln = 0, seconds = 0;
  };

  /// One sample; `prior` is what an unknown cell would be taken to be.
  Learned learn(float sample, float seconds, float prior) {
    const Sample one{sample, seconds};
    return learn(std::span(&one, 1), prior);
  }

  /// Samples of one thread, oldest first, at most kMostAtOnce. The smoothed value goes through all of them; between the
  /// newest of all it is brought once, at the end: that is most of the work.
  Learned learn(std::span<const Sample> samples, float prior) {
    const auto many = static_cast<std::uint32_t>(samples.size());
    const std::uint32_t number = count_.fetch_add(many, std::memory_order_acq_rel);
    for (std::uint32_t i = 0; i < many; ++i)
      last_seconds_[(number + i) % last_seconds_.size()].store(samples[i].seconds, std::memory_order_relaxed);
    const std::uint32_t apart =
        number < kFirstCalls ? std::min<std::uint32_t>(kFirstCalls - number, many) : 0;
    samples = samples.subspan(apart);
    if (samples.empty()) return {};
    const std::uint32_t index = number + apart - kFirstCalls;
    for (std::size_t i = 0; i < samples.size(); ++i)
      ring_[(index + i) % kWindow].store(samples[i].ln, std::memory_order_release);

    const float before = index == 0 ? prior : value_.load(std::memory_order_relaxed);
    float scale = scale_.load(std::memory_order_relaxed), moved = 0;
    std::array<float, kMostAtOnce> room;
    const std::span<float> away(room.data(), samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      // Whether it has moved is judged by what was known before all of them.
      const float off = (samples[i].ln - before) / scale;
      away[i] = std::clamp(off, -kClip, kClip);
      moved += std::clamp(off - moved / scale, -kClip, kClip) * scale / 8;
      scale = next_scale(scale, away[i]);
    }
    update(scale_, [&](float old) { return std::accumulate(away.begin(), away.end(), old, next_scale); });
    const std::size_t alarm = accumulate(away);
    if (alarm > 0) alarm_at_.store(index + static_cast<std::uint32_t>(alarm), std::memory_order_relaxed);

    // Against what others learned meanwhile: a thread that was held up must not bring an old value back.
    Range range;
    update(value_, [&](float old) {
      range = inner_range(learned(), prior);
      const float from = index == 0 ? prior : old;
      return std::clamp(from + moved, range.low, range.high);
    });
    const std::uint32_t learned_now = index + static_cast<std::uint32_t>(samples.size());
    publish_doubt(learned_now, range.used);
    remember_best(learned_now);
    return Learned{.alarm = alarm > 0, .counted = true};
  }

  /// Samples in between move nothing at once: within what is clipped, of a cell that is known and has not just moved.
  std::pair<float, float> expected() const {
    const std::uint32_t samples = learned(), alarm_at = alarm_at_.load(std::memory_order_relaxed);
    if (samples < kWindow || (alarm_at > 0 && samples < alarm_at + kAlarmSamples)) return {1.F, -1.F};
    const float middle = value(), most = kClip * scale_.load(std::memory_order_relaxed);
    return {middle - most, middle + most};
  }

  float value() const { return value_.load(std::memory_order_relaxed); }
  float doubt() const { return doubt_.load(std::memory_order_relaxed); }
  std::uint32_t count() const { return count_.load(std::memory_order_acquire); }
  /// Of the counted samples: the first calls are not among them.
  std::uint32_t learned() const { return std::max<std::uint32_t>(count(), kFirstCalls) - kFirstCalls; }
  /// The best it has been, long ago counting less and less.
  float best() const { return std::min(best_.load(std::memory_order_relaxed), value()); }

  std::array<double, 3> last_seconds() const {
    const std::uint32_t number = count();
    std::array<double, 3> result{};
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(number, 3); ++i)
      result[i] = last_seconds_[(number - 1 - i) % 3].load(std::memory_order_relaxed);
    return result;
  }

  /// For one thread at a time, while others keep their samples; those that cannot wait learn beside it.
  bool take() {
    return !taken_.load(std::memory_order_relaxed) && !taken_.exchange(true, std::memory_order_acquire);
  }
  void leave() { taken_.store(false, std::memory_order_release); }

  // Kept for the tracker.
  std::atomic<float> baseline{0};     // of the value, less the common shift; slow
  std::atomic<float> told{0};         // value when decisions were last made anew
  std::atomic<double> spent_then{0};  // seconds spent in all calls when it was last seen

 private:
  struct Range {
    float low = 0, high = 0;
    int used = 0;
  };

  template <class Step>
  static float update(std::atomic<float>& target, Step step) {
    float old = target.load(std::memory_order_relaxed);
    float next = step(old);
    while (!target.compare_exchange_weak(old, next, std::memory_order_relaxed)) next = step(old);
    return next;
  }

  static float next_scale(float old, float away) {
    return std::max(kLeastScale, old + (1.2533F * std::abs(away) * old - old) / 8);
  }

  /// Two one-sided cumulative sums in one word. The number of the last sample that has taken one of them past the limit,
  /// after which both start again; 0: none has.
  std::size_t accumulate(std::span<const float> away) {
    std::uint64_t old = sums_.load(std::memory_order_relaxed);
    for (;;) {
      float up = std::bit_cast<float>(static_cast<std::uint32_t>(old >> 32));
      float down = std::bit_cast<float>(static_cast<std::uint32_t>(old));
      std::size_t alarm = 0;
      for (std::size_t i = 0; i < away.size(); ++i) {
        up = std::max(0.F, up + away[i] - kSlack);
        down = std::max(0.F, down - away[i] - kSlack);
        if (up <= kAlarm && down <= kAlarm) continue;
        up = down = 0;
        alarm = i + 1;
      }
      const std::uint64_t next = (static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(up)) << 32) |
                                 std::bit_cast<std::uint32_t>(down);
      if (sums_.compare_exchange_weak(old, next, std::memory_order_relaxed)) return alarm;
    }
  }

  /// The middle of the newest samples, between which the smoothed value must lie. After an alarm the window is short
  /// and grows again; nothing is thrown away.
  Range inner_range(std::uint32_t learned, float prior) const {
    const std::uint32_t alarm_at = alarm_at_.load(std::memory_order_relaxed);
    std::uint32_t window = std::min<std::uint32_t>(learned, kWindow);
    if (alarm_at > 0 && learned >= alarm_at)
      window = std::min<std::uint32_t>(window, kAlarmWindow + learned - alarm_at);
    std::array<float, kWindow + kPriorSamples> sorted;
    int used = 0;
    for (std::uint32_t i = 0; i < window; ++i) {
      const float sample = ring_[(learned - 1 - i) % kWindow].load(std::memory_order_acquire);
      // A sample that is counted and not yet there says nothing: what is known stands in for it.
      sorted[used++] = std::isnan(sample) ? value_.load(std::memory_order_relaxed) : sample;
    }
    if (alarm_at == 0) {
      for (int i = 0; i < kPriorSamples && used < kWindow; ++i) sorted[used++] = prior;
    }
    if (used == 0) return Range{prior, prior, 0};
    std::sort(sorted.begin(), sorted.begin() + used);
    const int width = used >= 5 ? 1 : 0;
    return Range{sorted[(used - 1) / 2 - width], sorted[used / 2 + width], used};
  }

  void publish_doubt(std::uint32_t learned, int used) {
    float doubt =
        1.2533F * scale_.load(std::memory_order_relaxed) / std::sqrt(static_cast<float>(std::max(used, 1)));
    const std::uint32_t alarm_at = alarm_at_.load(std::memory_order_relaxed);
    if (alarm_at > 0 && learned < alarm_at + kAlarmSamples) {
      const float left =
          1 - static_cast<float>(learned - std::min(learned, alarm_at)) / static_cast<float>(kAlarmSamples);
      doubt = std::max(doubt, kAlarmDoubt * left);
    }
    doubt_.store(doubt, std::memory_order_relaxed);
  }

  void remember_best(std::uint32_t learned) {
    if (learned < kWindow) return;
    const float value = value_.load(std::memory_order_relaxed);
    update(best_, [value](float old) { return value < old ? value : old + kForget * (value - old); });
  }

  // Read by decisions.
  std::atomic<float> value_{0};
  std::atomic<float> doubt_{0};
  std::atomic<float> best_{1e30F};
  std::atomic<std::uint32_t> count_{0};
  // Written by samples.
  std::array<std::atomic<float>, kWindow> ring_;
  std::atomic<float> scale_{kFirstScale};
  std::atomic<std::uint64_t> sums_{0};
  std::atomic<std::uint32_t> alarm_at_{0};
  std::array<std::atomic<float>, 3> last_seconds_{};
  std::atomic<bool> taken_{false};
};

}  // namespace fulcrum::executor
