// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Is a confidence worth its number? Of the items recalled with confidence 0.7, 70 % should be right. Samples fall into
// ten equal bins; every figure is over the last 100,000 of them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace memory_recall {

class Calibration {
 public:
  static constexpr std::size_t kBins = 10;
  static constexpr std::size_t kWindow = 100'000;
  static constexpr std::size_t kEnough = 100;  // more than so many samples before anything is corrected

  void add(double confidence, bool right) {
    samples_.push_back(Sample{std::clamp(confidence, 0.0, 1.0), right});
    count(samples_.back(), 1);
    if (samples_.size() <= kWindow) return;
    count(samples_.front(), -1);
    samples_.pop_front();
  }

  std::size_t size() const { return samples_.size(); }

  /// Expected and largest calibration error: |mean confidence - share right| over bins, weighted and at worst.
  double expected_error() const {
    double sum = 0;
    for (const Bin& bin : bins_) sum += static_cast<double>(bin.count) * bin.gap();
    return samples_.empty() ? 0 : sum / static_cast<double>(samples_.size());
  }
  double largest_error() const {
    double largest = 0;
    for (const Bin& bin : bins_) largest = std::max(largest, bin.gap());
    return largest;
  }

  /// Mean squared distance of confidence and outcome.
  double brier() const {
    double sum = 0;
    for (const Sample& sample : samples_) sum += std::pow(sample.confidence - (sample.right ? 1 : 0), 2);
    return samples_.empty() ? 0 : sum / static_cast<double>(samples_.size());
  }

  /// Rank correlation of mean confidence and share right over the bins that have samples; none below three bins or
  /// where one of them does not vary.
  std::optional<double> spearman() const {
    std::vector<double> confidence, accuracy;
    for (const Bin& bin : bins_) {
      if (bin.count == 0) continue;
      confidence.push_back(bin.mean());
      accuracy.push_back(bin.accuracy());
    }
    if (confidence.size() < 3) return std::nullopt;
    return correlation(ranks(confidence), ranks(accuracy));
  }

  /// What a confidence should have said, going by its bin.
  double corrected(double confidence) const {
    const double c = std::clamp(confidence, 0.0, 1.0);
    const Bin& bin = bins_[bin_of(c)];
    if (samples_.size() <= kEnough || bin.count == 0 || bin.mean() == 0) return c;
    return std::clamp(c * std::clamp(bin.accuracy() / bin.mean(), 0.5, 1.5), 0.0, 1.0);
  }

 private:
  struct Sample {
    double confidence;
    bool right;
  };
  struct Bin {
    std::int64_t count = 0, right = 0;
    double confidence = 0;  // summed
    double mean() const { return confidence / static_cast<double>(count); }
    double accuracy() const { return static_cast<double>(right) / static_cast<double>(count); }
    double gap() const { return count == 0 ? 0 : std::abs(mean() - accuracy()); }
  };

  static std::size_t bin_of(double confidence) {
    return std::min(kBins - 1, static_cast<std::size_t>(confidence * kBins));
  }

  void count(const Sample& sample, int sign) {
    Bin& bin = bins_[bin_of(sample.confidence)];
    bin.count += sign;
    bin.right += sample.right ? sign : 0;
    bin.confidence = bin.count == 0 ? 0 : bin.confidence + sign * sample.confidence;
  }

  /// Rank of each value, from 1; equal values share the mean of their ranks.
  static std::vector<double> ranks(const std::vector<double>& values) {
    std::vector<double> result;
    for (const double value : values) {
      const auto below =
          std::count_if(values.begin(), values.end(), [&](double other) { return other < value; });
      const auto equal = std::count(values.begin(), values.end(), value);
      result.push_back(static_cast<double>(below) + (static_cast<double>(equal) + 1) / 2);
    }
    return result;
  }

  static std::optional<double> correlation(const std::vector<double>& a, const std::vector<double>& b) {
    const double mean = (static_cast<double>(a.size()) + 1) / 2;
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      ab += (a[i] - mean) * (b[i] - mean);
      aa += (a[i] - mean) * (a[i] - mean);
      bb += (b[i] - mean) * (b[i] - mean);
    }
    if (aa == 0 || bb == 0) return std::nullopt;
    return ab / std::sqrt(aa * bb);
  }

  std::deque<Sample> samples_;
  std::array<Bin, kBins> bins_;
};

}  // namespace memory_recall
