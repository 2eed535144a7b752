// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Statistics of timings: exact intervals, safe peeking, paired comparison, bootstrap, modes, outliers, fits.
// Pure functions of their arguments: no clock, no I/O, no globals. Times are positive finite seconds unless
// said otherwise; a quantity that the data cannot give is NaN or an empty optional, never a made-up number.
// Levels are two-sided, alpha = 1 - level, unless a name says upper or lower.
#pragma once

#include <fulcrum/core.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fulcrum::stats {

// The vocabulary is core's.
using fulcrum::Quality;
using fulcrum::to_string;
using fulcrum::Verdict;

inline constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

struct Interval {
  double low = kUndefined;
  double high = kUndefined;
};

// Order statistics and summaries (order_statistics.cpp, effective_size.cpp, summary.cpp).

/// Hazen's quantile, linear between order statistics: (r - 0.5)/n is exactly the r-th smallest. NaN if empty.
double quantile(std::span<const double> values, double q);
double median(std::span<const double> values);
/// Median absolute deviation from the median, unscaled.
double mad(std::span<const double> values);
double mean(std::span<const double> values);
/// Two-pass, n - 1 in the denominator; NaN below two values.
double stddev(std::span<const double> values);

/// What a time-ordered series is worth in independent samples, in [1, n]; 0 if empty.
/// O(n * lag) with lag <= min(n/4, 400).
double effective_sample_size(std::span<const double> values);

/// Largest r with 2 * P(Bin(n, 1/2) <= r - 1) <= alpha: [x_(r), x_(n+1-r)] covers the median. 0: there is
/// none.
std::int64_t median_rank(std::int64_t n, double alpha);

struct MedianInterval {
  double low = kUndefined;
  double high = kUndefined;
  double n_eff = 0;
  std::int64_t rank = 0;  // taken for floor(n_eff)
  bool exact = false;     // false: too few (effective) samples for this alpha; [low, high] is then [min, max]
};

/// For a time-ordered series: order statistics at the effective sample size.
MedianInterval median_interval(std::span<const double> values, double alpha);
/// For independent values (paired differences, process medians): plain order statistics, n_eff = n.
MedianInterval median_interval_independent(std::span<const double> values, double alpha);

/// Two-sided interval of any quantile and one-sided bounds, for independent values; none if n is too small.
std::optional<Interval> quantile_interval(std::span<const double> values, double q, double alpha);
std::optional<double> quantile_upper_bound(std::span<const double> values, double q, double alpha);
std::optional<double> quantile_lower_bound(std::span<const double> values, double q, double alpha);

struct Summary {
  std::int64_t n = 0;
  double n_eff = 0;
  double median = kUndefined;
  double ci_low = kUndefined;  // interval of the median at alpha
  double ci_high = kUndefined;
  double level =
      kUndefined;  // 1 - alpha of this one interval; a runner that peeks reports the level of its schedule
  bool exact = false;  // false: too few samples for the level, the interval is [min, max]
  double mean = kUndefined;
  double stddev = kUndefined;
  double mad = kUndefined;
  double iqr = kUndefined;
  double cv = kUndefined;         // stddev / mean
  double cv_robust = kUndefined;  // 1.4826 * mad / median
  double min = kUndefined;
  double max = kUndefined;
  double p90 = kUndefined;
  double p99 = kUndefined;
  std::optional<double> p90_upper = {};  // 95 % upper bound: none below n = 29
  std::optional<double> p99_upper = {};  // none below n = 299
};
Summary summarize(std::span<const double> values, double alpha = 0.05);

// Looking before the end without paying for it in false alarms (sequential.cpp).

struct Look {
  std::int64_t n = 0;  // samples (or rounds) at which this look is taken
  double alpha = 0;    // level spent on it
};

inline constexpr int kMaxLooks = 10;
inline constexpr double kTotalAlpha = 0.05;
inline constexpr std::int64_t kPairedFirst = 12;
inline constexpr std::int64_t kPairedCap = 200;

/// Looks at n_min * 1.5^k up to n_cap (which becomes the last look), at most kMaxLooks. Half of alpha at the
/// last look, the rest shared evenly by the others; a single look gets it all. Stopping off schedule (wall
/// clock) is covered if the last look's alpha is used for it and it is final.
std::vector<Look> plan_looks(std::int64_t n_min, std::int64_t n_cap, double alpha = kTotalAlpha);
/// Rounds of a paired comparison: 12, 18, 27, 40, 60, 90, 135, 200 by default.
std::vector<Look> plan_paired_looks(std::int64_t first = kPairedFirst, std::int64_t cap = kPairedCap,
                                    double alpha = kTotalAlpha);

/// (ln high - ln low) / 2.
double log_half_width(Interval interval);
/// The interval lies wholly on one side of every horizon (false if there is none: nothing was to be decided).
bool clears(Interval interval, std::span<const double> horizons);

// Paired comparison (paired.cpp).

inline constexpr double kEquivalence = 1.02;  // `same` is [1/1.02, 1.02]

bool excludes_one(Interval speedup);
/// `same` wins over faster/slower where both hold: a proven difference below 2 % changes no decision.
/// Detection (self-test, A/A) uses excludes_one, which sees every proven difference.
Verdict verdict_of(Interval speedup);

struct Paired {
  std::int64_t rounds = 0;
  std::int64_t ties = 0;
  double speedup =
      kUndefined;  // exp(median ln(t_b / t_a)): above 1, the subject a is faster than the baseline b
  double ci_low = kUndefined;
  double ci_high = kUndefined;
  double level = kUndefined;
  bool exact = false;                 // false: too few rounds for the level; the verdict is then unresolved
  double seconds_saved = kUndefined;  // median of t_b - t_a
  double share_a_faster = kUndefined;
  double p_value = kUndefined;  // two-sided sign test, ties left out
  bool excludes_one = false;
  Verdict verdict = Verdict::unresolved;
};
/// Round i is the pair (seconds_a[i], seconds_b[i]); spans of equal length.
Paired compare_paired(std::span<const double> seconds_a, std::span<const double> seconds_b,
                      double alpha = 0.05);

/// P(a value of b > a value of a) - P(b < a), in [-1, 1]: above 0, a is the faster. For unpaired imports
/// only.
double cliffs_delta(std::span<const double> seconds_a, std::span<const double> seconds_b);

/// Adjusted p-values, in the order given: reject where <= alpha, family-wise.
std::vector<double> holm(std::span<const double> p_values);

struct Detection {
  double effect = 0;  // relative size that was injected, e.g. 0.02
  std::int64_t found = 0;
  std::int64_t trials = 0;
};
/// Smallest tested effect from which on all are found with this power; none if the largest is not.
std::optional<double> minimum_detectable_effect(std::span<const Detection> curve, double power = 0.8);

// Distributions (binomial.cpp).

double binomial_pmf(std::int64_t k, std::int64_t n, double p);
double binomial_cdf(std::int64_t k, std::int64_t n, double p);   // P(X <= k)
double sign_test(std::int64_t positive, std::int64_t negative);  // two-sided p, at most 1
double normal_quantile(double p);

// Bootstrap (bootstrap.cpp).

/// splitmix64: one word of state, so that a stored seed repeats the run everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  double uniform();                          // (0, 1)
  std::size_t below(std::size_t exclusive);  // 0 .. exclusive - 1, exclusive < 2^32

 private:
  std::uint64_t state_;
};

using Block = std::vector<double>;      // samples taken together (an epoch)
using Cluster = std::vector<Block>;     // blocks of one process
using Clusters = std::vector<Cluster>;  // all processes of one case

/// Cuts a time-ordered series into a single cluster; length 0: about sqrt(n) samples a block.
Clusters in_blocks(std::span<const double> values, std::size_t block_length = 0);

struct BootstrapOptions {
  std::int64_t resamples = 10'000;
  double alpha = 0.05;
  std::uint64_t seed = 0x9e3779b97f4a7c15;
};
struct Bootstrap {
  double estimate = kUndefined;  // of the data as they are
  double low = kUndefined;
  double high = kUndefined;
  std::int64_t resamples = 0;
  std::int64_t undefined =
      0;  // resamples whose statistic was NaN; left out of the percentiles (infinities are kept)
  std::uint64_t seed = 0;
};
using Statistic = std::function<double(std::span<const double>)>;
using JointStatistic = std::function<double(std::span<const std::vector<double>>)>;

/// Percentile interval; resamples processes, then blocks inside each; the statistic sees the pooled values.
Bootstrap bootstrap(const Clusters& clusters, const Statistic& statistic,
                    const BootstrapOptions& options = {});
/// The same over several samples drawn independently (k*, n*, ratios): one pooled vector of each.
Bootstrap bootstrap_joint(std::span<const Clusters> samples, const JointStatistic& statistic,
                          const BootstrapOptions& options = {});

/// Variance of ln t by level (nested analysis of variance, negative estimates are 0).
struct VarianceSplit {
  double sample = kUndefined;          // inside a block
  std::optional<double> epoch = {};    // between blocks of a process; none: one block per process
  std::optional<double> process = {};  // between processes; none: one process, not measured
};
VarianceSplit split_variance(const Clusters& clusters);

// Outliers, modes, quality (outliers.cpp, modes.cpp, quality.cpp).

/// Tukey's fences on ln t; nothing is dropped, this only counts.
struct Outliers {
  std::int64_t low_severe = 0;
  std::int64_t low_mild = 0;
  std::int64_t high_mild = 0;
  std::int64_t high_severe = 0;
  Interval mild = {};  // fences in seconds
  Interval severe = {};
  bool slow_first = false;  // the first sample is 10 robust sigma slower than the rest
  std::int64_t total() const { return low_severe + low_mild + high_mild + high_severe; }
};
Outliers classify_outliers(std::span<const double> values);

enum class ModePattern {
  single,
  switching,
  alternating
};  // switching: long stretches in one mode, then another
std::string_view to_string(ModePattern pattern);

struct Mode {
  double location = kUndefined;  // median of its samples, seconds
  double share = 0;
};
struct Modes {
  std::vector<Mode> modes = {};  // >= 10 % of the samples and >= 6 each, by location; one if unimodal
  ModePattern pattern = ModePattern::single;
};
Modes find_modes(std::span<const double> values);

struct QualityLabel {
  Quality quality = Quality::invalid;
  bool heavy_tail = false;  // the classic CV is two tiers worse than the robust one
  bool correlated = false;  // n_eff < 30, and n/2 at most: keep sampling; at the cap, unresolved
};
inline constexpr double kMinEffective = 30;
/// tagged_share: samples that carry a clock, throttle or migration tag.
QualityLabel quality_of(double cv_robust, double cv, std::int64_t modes, double tagged_share);
QualityLabel quality_of(const Summary& summary, std::int64_t modes, double tagged_share);

// Fits (fit.cpp).

/// seconds ~ size^exponent. Theil-Sen slope in log-log; Kendall's exact interval, none below 5 sizes at 95 %.
struct Growth {
  double exponent = kUndefined;
  std::optional<Interval> interval = {};
  double coefficient = kUndefined;       // seconds at size 1
  double max_log_residual = kUndefined;  // large: not a power law
};
Growth fit_growth(std::span<const double> sizes, std::span<const double> seconds, double alpha = 0.05);

/// y ~ y_pivot + slope * (x - x_pivot), weighted least squares about the means: safe for huge timestamps.
struct Affine {
  double x_pivot = 0;
  double y_pivot = kUndefined;
  double slope = kUndefined;
  double slope_stderr = kUndefined;
  double intercept_stderr = kUndefined;
  double max_residual = kUndefined;
  double rms_residual = kUndefined;
  double at(double x) const { return y_pivot + slope * (x - x_pivot); }
  double intercept() const { return at(0); }
};
/// weights empty: all equal. Times with a constant relative error want 1/seconds^2.
Affine fit_affine(std::span<const double> x, std::span<const double> y, std::span<const double> weights = {});

}  // namespace fulcrum::stats
