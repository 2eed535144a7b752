// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See calibrate_op.h.
#include "executor/calibrate_op.h"

#include <fulcrum/backends/dtypes.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "executor/candidates.h"
#include "executor/choose.h"
#include "executor/held_up.h"
#include "executor/op_table.h"
#include "executor/rounds.h"
#include "executor/shapes.h"
#include "executor/widths.h"

namespace fulcrum::executor {
namespace {

// Nominal seconds of what is measured. Below a microsecond a call is its own fixed part. Long calls take as much time as
// thirty short ones and are fewer: six in ten seconds of a calibration went to those of half a millisecond and more.
constexpr double kLineShortest = 3e-8, kLineLongest = 4e-3;
constexpr double kShortest = 5e-7, kLongest = 2e-4, kLongAnchor = 5e-3;
constexpr double kLongestBesideDevice = 1e-3;  // its break-even lies among calls that are long for one thread
constexpr int kSpread[] = {0, 12, 6, 9, 3, 7, 5, 8, 10, 4, 11, 2, 1};
constexpr int kLineSizes = static_cast<int>(std::size(kSpread)), kMostAnchors = 6, kDrawnToSeek = 10;
constexpr std::size_t kMostOnLine = 36;
constexpr int kOtherTypePoints = 10;
constexpr double kMostAnchorBytes = 16e6;  // making larger inputs takes longer than timing them
constexpr double kHopeless = 3;
// Few rounds and more shapes: what lies between shapes is in more doubt than any of them.
constexpr int kCalibrationRounds = 5;
constexpr double kEnoughSeconds = 6e-4;
// Some shapes take a kernel a hundred times as long as their work says (a search whose rows all have the same score): one
// such point would take seconds.
constexpr double kGiveUpSeconds = 20e-3, kOvertimeSeconds = 0.02;
// Plans that take so long each may use this share of the time, and all of them together that one, and no more: one library
// must not leave an op without shapes.
constexpr double kCostlySeconds = 5e-3, kCostlyShare = 0.25, kUnusualShare = 0.05, kAllCostlyShare = 0.35;
constexpr double kWorthAPlan = 5e-5;
constexpr int kCostlyEvery = 2, kSeldomEvery = 8, kUnusualEvery = 6, kThinEvery = 8, kLongEvery = 4;
// Points of long calls that took more than this to measure may use so much of an op's time; then none as long are drawn.
constexpr double kLongPoint = 8e-3, kLongShare = 0.35, kNeverLong = 1e-4;
constexpr std::size_t kRefitEvery = 8;
// Sizes of a line are no closer than this where another candidate becomes the fastest, and where times make a step: one
// of more than so much, in ln, beyond what there is more to do.
constexpr double kLineStep = 1.3, kLeastLineStep = 1.06, kStepExcess = 0.15, kMayWin = 2.5;
constexpr double kLeastLoss = 1e-3;
constexpr std::size_t kNeighbours = 3;
constexpr float kNear = 0.8F;

constexpr Mask kAll = ~Mask{0};

// ln of the most that any candidate which may win at both of two sizes takes longer at the larger one.
double excess(const Point& small, const Point& large) {
  double most = 0;
  const int first = fastest_of(small, kAll), last = fastest_of(large, kAll);
  if (first < 0 || last < 0) return 0;
  const double least = small.samples[static_cast<std::size_t>(first)].total(),
               later = large.samples[static_cast<std::size_t>(last)].total();
  for (std::size_t c = 0; c < small.samples.size(); ++c) {
    const Sample &a = small.samples[c], &b = large.samples[c];
    if (a.seconds <= 0 || b.seconds <= 0) continue;
    if (a.total() < kMayWin * least && b.total() < kMayWin * later) most = std::max(most, log_ratio(b, a));
  }
  return most;
}

}  // namespace

double log_ratio(const Sample& a, const Sample& b) { return std::log(a.total() / b.total()); }

int fastest_of(const Point& point, Mask among) {
  int best = -1;
  for (std::size_t c = 0; c < point.samples.size(); ++c) {
    if ((among >> c & 1) && point.samples[c].seconds > 0 &&
        (best < 0 || point.samples[c].total() < point.samples[static_cast<std::size_t>(best)].total()))
      best = static_cast<int>(c);
  }
  return best;
}

OpCalibration::OpCalibration(const ops::Op& op, std::span<const Candidate> candidates,
                             const CalibrationTools& tools)
    : op_(&op), candidates_(candidates), tools_(&tools), map_(op) {}

bool OpCalibration::out_of_time() const {
  return tools_->clock->now() > end_ || (tools_->interrupted && tools_->interrupted());
}

Mask OpCalibration::hopeless(const Args& args, DType dtype) const {
  // Along a line a candidate is hopeless at one end and the best at the other.
  if (map_.is_line() || points_.points.size() < kLeastPoints) return 0;
  const Features f = map_.of(args);
  std::vector<std::pair<float, const Point*>> near;
  for (const Point& point : points_.points) {
    const float squared = distance_squared(f, map_.of(point.args).at, map_.count());
    if (point.dtype == dtype && squared < kNear * kNear) near.emplace_back(squared, &point);
  }
  std::sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const Mask on_device = mask_of(candidates_, Place::device);
  Mask mask = 0;
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    const Mask rivals = on_device >> c & 1 ? on_device : ~on_device;
    std::size_t looked = 0, slow = 0;
    for (const auto& [distance, point] : near) {
      if (looked == kNeighbours || point->samples[c].seconds <= 0) continue;
      const int best = fastest_of(*point, rivals);
      ++looked;
      slow +=
          log_ratio(point->samples[c], point->samples[static_cast<std::size_t>(best)]) > std::log(kHopeless);
    }
    if (looked == kNeighbours && slow == kNeighbours) mask |= Mask{1} << c;
  }
  return mask;
}

double OpCalibration::longest(bool may_be_long) const {
  const double most = may_be_long ? kLongAnchor : tools_->device ? kLongestBesideDevice : kLongest;
  return long_seconds_ > kLongShare * share_seconds_ ? std::min(most, least_long_) : most;
}

Mask OpCalibration::overdrawn() const {
  Mask mask = 0;
  double all = 0;
  const Mask usual = default_mask(*op_, candidates_);
  for (Mask left = costly_; left; left &= left - 1) {
    const int c = std::countr_zero(left);
    const double share = usual >> c & 1 ? kCostlyShare : kUnusualShare;
    all += plan_seconds_[static_cast<std::size_t>(c)];
    if (plan_seconds_[static_cast<std::size_t>(c)] > share * share_seconds_) mask |= Mask{1} << c;
  }
  return all > kAllCostlyShare * share_seconds_ ? costly_ : mask;
}

void OpCalibration::drop_impossible(const Args& args, Point& point) const {
  if (!tools_->machine) return;
  const Work work = backends::work_of(*op_, args, point.dtype);
  const auto set_bytes = static_cast<std::int64_t>(work.bytes());
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    Sample& sample = point.samples[c];
    if (sample.seconds <= 0) continue;
    const Candidate& candidate = candidates_[c];
    measure::Physics physics;
    if (candidate.place == Place::host) {
      physics = measure::physics_check(work, sample.seconds, Cache::warm, candidate.threads,
                                       candidate.kernel.isa(), set_bytes, *tools_->machine);
    } else if (!tools_->machine->gpus.empty()) {
      physics = measure::device_physics(work, sample.seconds, Cache::warm, candidate.kernel.precision(),
                                        set_bytes, tools_->machine->gpus.front());
    }
    if (!physics.violation.empty()) sample = Sample{};
  }
}

// Never below what is left when the work is shared out and forks take the usual: that much is no fork.
void OpCalibration::level_forks(Point& point, const Point& known) const {
  if (!tools_->forks || !tools_->costs) return;
  const Features f = map_.of(point.args);
  const std::vector<int> singles = singles_of(candidates_);
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    const Runner runner(candidates_[c], tools_->caches);
    const auto parts = static_cast<int>(runner.parts(f));
    double& seconds = point.samples[c].seconds;
    if (!runner.split || parts <= 1 || seconds <= 0) continue;
    const double one_thread =
        singles[c] < 0 ? 0 : known.samples[static_cast<std::size_t>(singles[c])].seconds;
    const double least = one_thread > 0 ? shared_out(candidates_[c], f, *tools_->costs, one_thread) : 0;
    seconds = std::max(tools_->forks->as_usual(seconds, f.phases, parts), std::min(seconds, least));
  }
}

std::optional<Point> OpCalibration::measure(const Args& args, DType dtype, Mask among) {
  const auto bound = tools_->bench->bind(*op_, args, dtype);
  if (!bound.ok()) return {};
  Mask wanted = mask_of(*op_, candidates_, dtype) & ~hopeless(args, dtype);
  // Precisions that only some policies allow are nobody's answer to most calls, and often need a plan of their own; those
  // whose plan takes longer than a whole point take part in some. Where calls are short, in few: there all of a device's
  // take as long as a launch.
  const Mask usual = default_mask(*op_, candidates_);
  const int every = nominal_seconds(*op_, args) > kWorthAPlan ? kCostlyEvery : kSeldomEvery;
  const bool with_costly = measured_ % every == 0, with_unusual = measured_ % kUnusualEvery == 0;
  ++measured_;
  const Mask left_out = with_costly ? overdrawn() : costly_;
  if (!with_unusual && (wanted & usual & ~left_out)) wanted &= usual;
  if (wanted & ~left_out) wanted &= ~left_out;
  wanted &= among;
  std::shared_ptr<DeviceOperands> operands;
  if (tools_->device && (wanted & mask_of(candidates_, Place::device))) {
    auto made = DeviceOperands::make(*tools_->device, *op_, *bound, dtype);
    if (made.ok()) operands = *made;
  }
  std::vector<std::unique_ptr<Subject>> owned(candidates_.size());
  std::vector<Subject*> subjects(candidates_.size(), nullptr);
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    const Candidate& candidate = candidates_[c];
    if (!(wanted >> c & 1) || !candidate.kernel.supports(*bound)) continue;
    if (candidate.place == Place::device && !operands) continue;
    const double begin = tools_->clock->now();
    auto subject = make_subject(candidate, *bound, operands, *tools_->clock);
    const double took = tools_->clock->now() - begin;
    const bool reads = candidate.place == Place::host && candidate.kernel.entry().plan_reads != 0;
    const double planning = reads && subject.ok() ? (*subject)->plan_seconds : took;
    plan_seconds_[c] += planning;
    if (planning > kCostlySeconds) costly_ |= Mask{1} << c;
    if (!subject.ok()) continue;
    owned[c] = std::move(*subject);
    subjects[c] = owned[c].get();
  }
  share_plans(candidates_, subjects);
  // A device is compared with a device: how data gets there is another question.
  std::vector<int> groups;
  for (const Candidate& candidate : candidates_) groups.push_back(candidate.place == Place::device);
  const RoundsConfig rounds{.rounds = kCalibrationRounds,
                            .enough_seconds = kEnoughSeconds,
                            .hopeless = kHopeless,
                            .end = end_ + kOvertimeSeconds,
                            .give_up_seconds = kGiveUpSeconds,
                            .groups = groups,
                            .clock = tools_->clock};
  auto times = time_rounds(subjects, rounds);
  if (is_restless(times) && !out_of_time()) {
    const auto more = time_rounds(subjects, rounds);
    for (std::size_t c = 0; c < times.size(); ++c) {
      if (times[c].size() > 1) times[c].insert(times[c].end(), more[c].begin(), more[c].end());
    }
  }
  Point point{.args = args, .dtype = dtype, .samples = std::vector<Sample>(candidates_.size())};
  bool any = false;
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    point.samples[c] = sample_of(times[c]);
    if (subjects[c]) point.samples[c].plan_seconds = subjects[c]->plan_seconds;
    any = any || point.samples[c].seconds > 0;
  }
  drop_impossible(args, point);
  if (!any) return {};
  return point;
}

void OpCalibration::add(const Args& args, DType dtype) {
  if (tools_->forks) tools_->forks->look();
  const double begin = tools_->clock->now();
  auto point = measure(args, dtype);
  const double took = tools_->clock->now() - begin, nominal = nominal_seconds(*op_, args);
  if (took > kLongPoint && nominal > kNeverLong) {
    long_seconds_ += took;
    least_long_ = std::min(least_long_, nominal);
  }
  if (!point) return;
  level_forks(*point, *point);
  auto& looks = looks_.emplace_back(point->samples.size());
  for (std::size_t c = 0; c < looks.size(); ++c) looks[c].add(point->samples[c]);
  points_.points.push_back(*std::move(point));
}

void OpCalibration::run_line() {
  ShapeSource source(*op_);
  if (source.empty()) return;
  const DType dtype = op_->dtypes.empty() ? DType::f32 : op_->dtypes.front();
  std::vector<double> wanted;
  wanted.reserve(kLineSizes);
  for (int i = 0; i < kLineSizes; ++i)
    wanted.push_back(kLineShortest * std::pow(kLineLongest / kLineShortest, i / (kLineSizes - 1.0)));
  // Ends first, then halves: whenever time runs out, the curve spans all sizes.
  for (const int number : kSpread) {
    const double seconds = wanted[static_cast<std::size_t>(number)];
    add(source.scaled(source.standard().front(), seconds), dtype);
    if (out_of_time() && points_.points.size() >= kLeastPoints) break;
  }
  seek_on_line();
}

void OpCalibration::seek_on_line() {
  const ShapeSource source(*op_);
  if (source.empty()) return;
  const DType dtype = op_->dtypes.empty() ? DType::f32 : op_->dtypes.front();
  while (points_.points.size() < kMostOnLine && !out_of_time()) {
    const double seconds = between_points();
    if (seconds <= 0) return;
    const Args args = source.scaled(source.standard().front(), seconds);
    const auto same = [&](const Point& point) {
      return std::equal(args.dim, args.dim + FULCRUM_SLOTS, point.args.dim);
    };
    if (std::any_of(points_.points.begin(), points_.points.end(), same)) return;
    const std::size_t before = points_.points.size();
    add(args, dtype);
    if (points_.points.size() == before) return;
  }
}

// Halves the gap in which most happens: another candidate becomes the fastest, or one that may win takes longer by more
// than there is more to do, as where its data no longer fits into a cache.
double OpCalibration::between_points() const {
  std::vector<const Point*> by_size;
  for (const Point& point : points_.points) by_size.push_back(&point);
  std::sort(by_size.begin(), by_size.end(), [&](const Point* a, const Point* b) {
    return op_->work(a->args).bytes() < op_->work(b->args).bytes();
  });
  double most = 1, middle = 0;
  for (std::size_t i = 1; i < by_size.size(); ++i) {
    const Point &a = *by_size[i - 1], &b = *by_size[i];
    const double low = nominal_seconds(*op_, a.args), high = nominal_seconds(*op_, b.args);
    const double gap = std::log(high / low);
    double happens = fastest_of(a, kAll) == fastest_of(b, kAll) ? 0 : gap / std::log(kLineStep);
    if (gap > std::log(kLeastLineStep) && low < kLongest)
      happens = std::max(happens, (excess(a, b) - gap) / kStepExcess);
    if (happens <= most) continue;
    most = happens;
    middle = std::sqrt(low * high);
  }
  return middle;
}

void OpCalibration::charge_home(const Args& args, Mask on_host, Estimates& costs) const {
  const double home = tools_->costs->home_seconds(traffic_of(*op_, args, Case::resident));
  for (Mask left = on_host; left; left &= left - 1) {
    const auto c = static_cast<std::size_t>(std::countr_zero(left));
    const double run = std::exp(static_cast<double>(costs.log_seconds[c]));
    costs.log_seconds[c] = static_cast<float>(std::log(run + home));
    costs.sigma[c] *= static_cast<float>(run / (run + home));
  }
}

const Predictor& OpCalibration::predictor() {
  // A fit takes as long as a few points do, of many points longer.
  if (!predictor_ || points_.points.size() >= predicted_ + std::max(kRefitEvery, predicted_ / 4)) {
    predictor_.emplace(map_, candidates_, points_, tools_->caches);
    predicted_ = points_.points.size();
  }
  return *predictor_;
}

OpCalibration::Rivals OpCalibration::rivals(const Args& args, bool at_home) {
  const Mask on_device = mask_of(candidates_, Place::device);
  Mask mask = default_mask(*op_, candidates_);
  if (at_home && (mask & ~on_device)) mask &= ~on_device;
  Mask possible = 0;
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    if ((mask >> c & 1) && candidates_[c].kernel.supports(args)) possible |= Mask{1} << c;
  }
  Estimates costs;
  predictor().predict(map_.of(args), possible, 0, costs);
  if (!at_home && on_device && tools_->costs) charge_home(args, possible & ~on_device, costs);
  const Picked picked = pick(costs, possible, on_device, preference_of(candidates_));
  if (picked.runner_up < 0) return {};
  const auto first = static_cast<std::size_t>(picked.best),
             second = static_cast<std::size_t>(picked.runner_up);
  return {.apart = std::abs(costs.log_seconds[first] - costs.log_seconds[second]),
          .sigma = std::hypot(costs.sigma[first], costs.sigma[second])};
}

std::optional<Args> OpCalibration::doubtful(ShapeSource& source) {
  const bool at_home = ++sought_ % 2 == 0;
  std::optional<Args> found;
  float most = -INFINITY;
  for (int i = 0; i < 16; ++i) {
    const auto args = source.draw(kShortest, longest(i % kLongEvery == 0));
    if (!args) continue;
    const Rivals both = rivals(*args, at_home);
    if (both.sigma <= 0 || 1.96F * both.sigma - both.apart <= most) continue;
    most = 1.96F * both.sigma - both.apart;
    found = args;
  }
  return found;
}

double OpCalibration::expected_loss() {
  if (map_.is_line() || points_.points.size() < kLeastPoints) return 0;
  return std::max(kLeastLoss, predictor().left_out_loss(default_mask(*op_, candidates_)));
}

void OpCalibration::run_surface() {
  ShapeSource source(*op_, 1);
  const DType dtype = op_->dtypes.empty() ? DType::f32 : op_->dtypes.front();
  const auto enough = [&] {
    return points_.points.size() >= kMostPoints || (out_of_time() && points_.points.size() >= kLeastPoints);
  };
  int anchors = 0;
  for (const Args& args : source.standard()) {
    if (anchors >= kMostAnchors || enough()) break;
    if (nominal_seconds(*op_, args) > longest(true) || op_->work(args).bytes() > kMostAnchorBytes) continue;
    add(args, dtype);
    ++anchors;
    // Standard sizes are much alike: where there is time for few shapes, half of them are others.
    if (const auto other = enough() ? std::nullopt : source.draw(kShortest, longest(false)))
      add(*other, dtype);
  }
  grow(source, kMostPoints);
}

void OpCalibration::grow(ShapeSource& source, std::size_t most) {
  const DType dtype = op_->dtypes.empty() ? DType::f32 : op_->dtypes.front();
  for (int drawn = 0; drawn < 4 * kMostPoints; ++drawn) {
    const std::size_t points = points_.points.size();
    if (points >= most || (out_of_time() && points >= kLeastPoints)) return;
    const bool seek = points >= kDrawnToSeek && drawn % 2 == 1;
    const auto args = seek ? doubtful(source)
                      : drawn % kThinEvery == 6
                          ? source.draw_thin(kShortest, longest(false))
                          : source.draw(kShortest, longest(drawn % kLongEvery == 0 || tools_->device));
    if (args) add(*args, dtype);
    if (tools_->interrupted && tools_->interrupted()) return;
  }
}

void OpCalibration::touch() {
  const ShapeSource source(*op_);
  if (source.empty()) return;
  const DType dtype = op_->dtypes.empty() ? DType::f32 : op_->dtypes.front();
  const auto bound = tools_->bench->bind(*op_, source.scaled(source.standard().front(), kShortest), dtype);
  if (!bound.ok()) return;
  std::shared_ptr<DeviceOperands> operands;
  if (tools_->device) {
    auto made = DeviceOperands::make(*tools_->device, *op_, *bound, dtype);
    if (made.ok()) operands = *made;
  }
  const Mask wanted = mask_of(*op_, candidates_, dtype);
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    const bool possible = (wanted >> c & 1) && candidates_[c].kernel.supports(*bound);
    if (!possible || (candidates_[c].place == Place::device && !operands)) continue;
    auto subject = make_subject(candidates_[c], *bound, operands, *tools_->clock);
    if (subject.ok()) static_cast<void>((*subject)->run(1));
  }
}

void OpCalibration::run_other_types(double end) {
  end_ = end;
  for (std::size_t t = 1; t < op_->dtypes.size(); ++t) {
    const DType dtype = op_->dtypes[t];
    if (!mask_of(*op_, candidates_, dtype)) continue;
    ShapeSource source(*op_, 100 + t);
    for (int i = 0; i < kOtherTypePoints && !(i >= kLeastPoints && out_of_time()); ++i) {
      if (const auto args = source.draw(kShortest, longest(true))) add(*args, dtype);
    }
  }
}

OpPoints OpCalibration::run(double seconds) {
  const double begin = tools_->clock->now();
  share_seconds_ += seconds;
  end_ = begin + (op_->dtypes.size() > 1 ? 0.8 * seconds : seconds);
  if (map_.is_line()) {
    run_line();
  } else {
    run_surface();
  }
  if (op_->dtypes.size() > 1) run_other_types(begin + seconds);
  points_.grade = Grade::b;
  return points_;
}

}  // namespace fulcrum::executor
