// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The life of a decision: seen before, clear by the grid, or priced. Nothing here locks, allocates or builds a string.
#include "executor/op_table.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "executor/candidates.h"
#include "executor/shapes.h"
#include "executor/tracker.h"

namespace fulcrum::executor {
namespace {

std::uint64_t bytes_of(double bytes) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(bytes)); }

/// Odd numbers without a pattern: splitmix64.
constexpr auto kFactors = [] {
  std::array<std::uint64_t, 2 * FULCRUM_SLOTS + 4> factors{};
  std::uint64_t state = 0x9e3779b97f4a7c15;
  for (std::uint64_t& factor : factors) {
    std::uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    factor = (z ^ z >> 31) | 1;
  }
  return factors;
}();

bool near(double a, double b) { return std::abs(a - b) <= 0.05 * b; }

// With so many timed calls behind it, a correction is worth more than the table's own doubt.
constexpr std::int64_t kEnoughSamples = 8;
constexpr float kLeastSigma = 0.02F;
// Threads wait for the slowest of them. Where another program has its core, whoever called waits some 10 us for it before
// doing its share too; at one call in three hundred that is this much a call, and no reason to fork for less.
constexpr double kForkRisk = 0.03e-6;
constexpr float kLongerWay = 0.03F;
// Where a fork of ours took 0.54 us longer than the table had it, calls on oneDNN's two threads took 1.0 to 3.8 us longer (a
// Zen 5, regret 631003). Whether a call forks at all is not known: one that does not is no worse for it, since the same
// library on one thread does the same. So forks that have become cheaper change nothing.
constexpr double kLibraryForks = 2;

}  // namespace

MeasuredOpTable::MeasuredOpTable(const ops::Op& op, int index, std::vector<Candidate> candidates,
                                 const OpPoints& points, std::shared_ptr<const Costs> costs,
                                 const Caches& caches)
    : op_(&op),
      index_(index),
      candidates_(std::move(candidates)),
      preference_(preference_of(candidates_)),
      map_(op),
      predictor_(map_, candidates_, points, caches),
      costs_(std::move(costs)),
      caches_(caches),
      host_(mask_of(candidates_, Place::host)),
      device_(mask_of(candidates_, Place::device)),
      default_(default_mask(op, candidates_)) {
  all_ = host_ | device_;
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    const std::uint32_t reads = candidates_[c].kernel.entry().plan_reads;
    if (reads) plans_ |= Mask{1} << c;
    plan_reads_ |= static_cast<std::uint8_t>(reads);
    if (candidates_[c].kernel.entry().supports) asked_ |= Mask{1} << c;
    const backends::Kernel& kernel = candidates_[c].kernel;
    if (kernel.backend().name() == "simd" && kernel.variant() == "default" && (default_ >> c & 1))
      base_ = static_cast<int>(c);
  }
  find_line();
  build_grids();
  build_lines();
}

Mask MeasuredOpTable::supported(const Args& args, Mask wanted) const {
  Mask possible = 0;
  for (Mask left = wanted & all_; left; left &= left - 1) {
    const int c = std::countr_zero(left);
    if (candidates_[static_cast<std::size_t>(c)].kernel.supports(args)) possible |= Mask{1} << c;
  }
  return possible;
}

Mask MeasuredOpTable::on_one_part(const Features& f, Mask wanted) const {
  Mask alone = 0;
  for (Mask left = wanted & host_; left; left &= left - 1) {
    const auto c = static_cast<std::size_t>(std::countr_zero(left));
    if (candidates_[c].threads > 1 && Runner(candidates_[c], caches_).parts(f) <= 1) alone |= Mask{1} << c;
  }
  return alone;
}

Mask MeasuredOpTable::planned(const Traffic& traffic, Mask wanted) const {
  Mask made = 0;
  for (Mask left = wanted & plans_; left; left &= left - 1) {
    const int c = std::countr_zero(left);
    if (candidates_[static_cast<std::size_t>(c)].kernel.entry().plan_reads & ~std::uint32_t{traffic.kept})
      made |= Mask{1} << c;
  }
  return made;
}

// However a fit bends between its points: threads begin with a fork, p of them are no more than p, and a call of fewer
// pieces keeps no more of them busy than it has pieces.
void MeasuredOpTable::hold_to_threads(const Features& f, Mask wanted, Estimates& out) const {
  float one = INFINITY;
  for (Mask left = wanted & host_; left; left &= left - 1) {
    const auto c = static_cast<std::size_t>(std::countr_zero(left));
    if (candidates_[c].threads == 1) one = std::min(one, out.log_seconds[c]);
  }
  if (std::isinf(one)) return;
  const double alone = std::exp(static_cast<double>(one));
  for (Mask left = wanted & host_; left; left &= left - 1) {
    const auto c = static_cast<std::size_t>(std::countr_zero(left));
    const Candidate& candidate = candidates_[c];
    if (candidate.threads <= 1) continue;
    const Runner runner(candidate, caches_);
    const auto parts = static_cast<int>(runner.parts(f));
    if (parts <= 1) {
      // The vectorised kernel itself, by a longer way.
      const bool known = base_ >= 0 && (wanted >> base_ & 1);
      out.log_seconds[c] = kLongerWay + (known ? out.log_seconds[static_cast<std::size_t>(base_)] : one);
      continue;
    }
    // Several private caches together can hold what one cannot.
    double least = 0.8 * alone / parts;
    // Libraries may fork or not, as they see fit; our own threads do so for every phase.
    double run = std::exp(static_cast<double>(out.log_seconds[c]));
    const double change = costs_->fork_change(parts);
    if (runner.split) {
      run += f.phases * change;
      least += 0.9 * f.phases * (costs_->fork_of(parts) + change);
    } else {
      run += kLibraryForks * std::max(0.0, change);
    }
    out.log_seconds[c] = static_cast<float>(std::log(std::max(run, least) + kForkRisk));
  }
}

// Points end where a call still fits into a cache; beyond them no kernel is faster than the memory behind it.
void MeasuredOpTable::hold_to_memory(const Features& f, Mask wanted, Estimates& out) const {
  const auto hold = [&](Mask place, double cached_bytes, double bytes_per_second) {
    const double beyond = f.bytes - cached_bytes;
    if (!(wanted & place) || bytes_per_second <= 0 || beyond <= 0) return;
    const auto least = static_cast<float>(std::log(beyond / bytes_per_second));
    for (Mask left = wanted & place; left; left &= left - 1) {
      float& seconds = out.log_seconds[static_cast<std::size_t>(std::countr_zero(left))];
      seconds = std::max(seconds, least);
    }
  };
  hold(device_, caches_.device_bytes, caches_.device_bytes_per_second);
  hold(host_, caches_.far_bytes + caches_.near_bytes * backends::usable_threads(),
       caches_.host_bytes_per_second);
}

void MeasuredOpTable::price(const Features& f, const Traffic& traffic, Mask wanted, Estimates& out) const {
  predictor_.predict(f, wanted, planned(traffic, wanted), out);
  hold_to_threads(f, wanted, out);
  hold_to_memory(f, wanted, out);
  const double home = traffic.home_bytes > 0 && (wanted & host_) ? costs_->home_seconds(traffic) : 0;
  const bool moves = traffic.in_bytes > 0 || traffic.out_bytes > 0;
  const double away =
      moves && (wanted & device_) ? costs_->in_seconds(traffic) + costs_->out_seconds(traffic) : 0;
  if (home <= 0 && away <= 0) return;
  for (Mask left = wanted; left; left &= left - 1) {
    const auto c = static_cast<std::size_t>(std::countr_zero(left));
    const double extra = host_ >> c & 1 ? home : away;
    if (extra <= 0) continue;
    const double run = std::exp(static_cast<double>(out.log_seconds[c]));
    out.log_seconds[c] = static_cast<float>(std::log(run + extra));
    // Copies are known better than kernels: the kernel's doubt counts for its share.
    out.sigma[c] = std::hypot(out.sigma[c] * static_cast<float>(run / (run + extra)), 0.03F);
  }
}

std::uint64_t MeasuredOpTable::key_of(const Args& args, const Traffic& traffic, Mask allowed) const {
  std::uint64_t hash = std::uint64_t{epoch_.load(std::memory_order_acquire)} << 32 | allowed;
  // A sum of products, each with a factor of its own, and one mix: the products do not wait for each other.
  std::uint64_t sum = 0;
  for (int i = 0; i < map_.dims(); ++i)
    sum += static_cast<std::uint64_t>(args.dim[i]) * kFactors[static_cast<std::size_t>(i)];
  for (int i = 0; i < map_.scalars(); ++i)
    sum +=
        static_cast<std::uint64_t>(args.scalar[i].i) * kFactors[static_cast<std::size_t>(FULCRUM_SLOTS + i)];
  if (device_) {
    const std::uint64_t* factor = kFactors.data() + std::ptrdiff_t{2} * FULCRUM_SLOTS;
    sum += bytes_of(traffic.in_bytes) * factor[0] + bytes_of(traffic.out_bytes) * factor[1] +
           bytes_of(traffic.home_bytes) * factor[2];
    sum += (std::uint64_t{traffic.in_copies} << 24 | std::uint64_t{traffic.out_copies} << 16 |
            std::uint64_t{traffic.home_copies} << 8 | std::uint64_t{traffic.pinned}) *
           factor[3];
  }
  hash = mix(hash, sum);
  if (plan_reads_) hash = mix(hash, std::uint64_t{traffic.kept} & plan_reads_);
  if (traffic.throughput) hash = mix(hash, 1);
  hash = mix(hash, hash >> 29);
  return hash | 1ULL << 17;  // never the key of an empty entry
}

MeasuredOpTable::Size MeasuredOpTable::size_of(const Args& args) const {
  if (!line_.known) {
    const Work work = op_->work(args);
    return {std::max({1.0, work.flops, work.issue_slots}), std::max(1.0, work.bytes()), work.link_in_bytes,
            work.link_out_bytes};
  }
  const double n = elements_of(args);
  return {std::max(1.0, line_.first.flops + n * line_.each.flops),
          std::max(1.0, line_.first.bytes + n * line_.each.bytes),
          line_.first.in_bytes + n * line_.each.in_bytes, line_.first.out_bytes + n * line_.each.out_bytes};
}

/// Through two calls, and true of all others that are tried. Operands that may be missing or listed change the work of
/// calls that look alike.
void MeasuredOpTable::find_line() {
  const bool plain = std::none_of(op_->slots.begin(), op_->slots.end(), [](const ops::Slot& slot) {
    return slot.optional && slot.kind != ops::SlotKind::real;
  });
  if (!map_.is_line() || map_.dims() == 0 || op_->needs_prepared || op_->list_lengths || !plain) return;
  constexpr int kTried = 24;
  constexpr double kExact = 1e-9;
  ShapeSource source(*op_, 11);
  std::vector<std::pair<double, Size>> tried;
  for (int i = 0; i < kTried; ++i) {
    const auto args = source.draw(1e-7, 1e-2);
    if (!args) continue;
    tried.emplace_back(map_.of(*args).elements(), size_of(*args));
  }
  const auto [least, most] = std::minmax_element(
      tried.begin(), tried.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (tried.size() < 3 || most->first <= least->first) return;
  Line line{.known = true, .first = {}, .each = {}};
  for (double Size::*part : {&Size::flops, &Size::bytes, &Size::in_bytes, &Size::out_bytes}) {
    line.each.*part = (most->second.*part - least->second.*part) / (most->first - least->first);
    line.first.*part = least->second.*part - line.each.*part * least->first;
    for (const auto& [elements, size] : tried) {
      const double said = line.first.*part + elements * line.each.*part;
      if (std::abs(said - size.*part) > kExact * std::max(1.0, size.*part)) return;
    }
  }
  line_ = line;
}

Case MeasuredOpTable::case_of(const Size& size, const Traffic& traffic, Mask allowed) const {
  // Grids are those of plain memory on the host and of buffers elsewhere.
  const unsigned lasting = traffic.kept & plan_reads_;
  if (!(allowed & device_)) return traffic.home_bytes > 0 || lasting ? Case::none : Case::cpu_only;
  if (lasting != (traffic.pinned ? plan_reads_ : 0U)) return Case::none;
  if (traffic.in_bytes > 0) {
    const bool all_on_host = traffic.home_bytes <= 0 && near(traffic.in_bytes, size.in_bytes) &&
                             near(traffic.out_bytes, size.out_bytes);
    return !all_on_host ? Case::none : traffic.pinned ? Case::pinned : Case::pageable;
  }
  if (!traffic.pinned || !near(traffic.home_bytes, size.in_bytes)) return Case::none;
  if (traffic.out_bytes <= 0) return Case::resident;
  return near(traffic.out_bytes, size.out_bytes) ? Case::resident_home : Case::none;
}

// All that it calls here becomes part of it.
[[gnu::flatten]] bool MeasuredOpTable::choose_by_grid(const Args& args, const Traffic& traffic, Mask allowed,
                                                      const Tracker& tracker, Choice& choice) const {
  // Grids are those of the default policy, with the device or without it.
  const Mask asked = allowed & all_;
  if (traffic.throughput || (asked != default_ && asked != (default_ & host_))) return false;
  const Size size = size_of(args);
  const Case which = case_of(size, traffic, allowed);
  if (which == Case::none) return false;
  const Grid::Cell* cell = grids_[static_cast<std::size_t>(which)].find(size.flops, size.bytes);
  if (!cell) return false;
  if ((asked_ >> cell->best & 1) && !candidates_[cell->best].kernel.supports(args)) return false;
  bool clear = false;
  choice = choice_in(*cell, size_class_of(size.flops, size.bytes), traffic, tracker, clear);
  return clear;
}

/// What a cell says after what was learned since; not clear when that has used up its margin.
inline Choice MeasuredOpTable::choice_in(const Grid::Cell& cell, std::uint8_t size_class,
                                         const Traffic& traffic, const Tracker& tracker, bool& clear) const {
  const auto there = [&](std::uint8_t c) { return (device_ >> c & 1) != 0; };
  const Tracker::Corrections learned =
      tracker.corrections(index_, traffic.residency(), size_class, cell.best, there(cell.best),
                          cell.runner_up, there(cell.runner_up));
  constexpr float kToLn = 0.693147F / 256;
  clear = static_cast<float>(cell.margin) * kToLn + learned.second - learned.first >= 0.05F;
  return choice_of(cell.best, cell.runner_up, Tier::grid, size_class, cell.seconds * learned.first_factor,
                   cell.runner_seconds * learned.second_factor);
}

[[gnu::flatten]] bool MeasuredOpTable::choose_by_line(const Args& args, const Traffic& traffic, Mask allowed,
                                                      const Tracker& tracker, Choice& choice) const {
  const Mask asked = allowed & all_;
  if (traffic.throughput || (asked != default_ && asked != (default_ & host_))) return false;
  const double n = elements_of(args);
  const Size &first = line_.first, &each = line_.each;
  const Case which = case_of({1, 1, first.in_bytes + n * each.in_bytes, first.out_bytes + n * each.out_bytes},
                             traffic, allowed);
  if (which == Case::none) return false;
  const auto& cells = lines_[static_cast<std::size_t>(which)];
  const std::size_t bin = bin_of(n);
  if (bin >= cells.size() || cells[bin].margin < 0) return false;
  const std::uint8_t size_class = size_class_of(first.flops + n * each.flops, first.bytes + n * each.bytes);
  bool clear = false;
  choice = choice_in(cells[bin], size_class, traffic, tracker, clear);
  return clear;
}

// A bin has the answer of the cells at both of its ends, when that is one and nobody has to be asked whether it can.
void MeasuredOpTable::build_lines() {
  if (!line_.known) return;
  const auto cell_at = [&](const Grid& grid, double n) {
    return grid.find(std::max(1.0, line_.first.flops + n * line_.each.flops),
                     std::max(1.0, line_.first.bytes + n * line_.each.bytes));
  };
  for (std::size_t k = 0; k < kCases; ++k) {
    lines_[k].resize(kBins);
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      const double low = std::bit_cast<double>((std::uint64_t{bin} + (1023ULL << 3)) << 49);
      const double high =
          std::nextafter(std::bit_cast<double>((std::uint64_t{bin} + 1 + (1023ULL << 3)) << 49), 0.0);
      const Grid::Cell *a = cell_at(grids_[k], low), *b = cell_at(grids_[k], high);
      if (!a || !b || a->best != b->best || a->runner_up != b->runner_up || (asked_ >> a->best & 1)) continue;
      lines_[k][bin] = a->margin <= b->margin ? *a : *b;
    }
  }
}

Choice MeasuredOpTable::choose_by_model(const Args& args, const Traffic& traffic, Mask allowed,
                                        const Tracker& tracker) const {
  Choice choice{.candidate = 255, .runner_up = 255};
  const Mask possible = supported(args, allowed);
  const Features f = map_.of(args);
  choice.size_class = size_class_of(f.flops, f.bytes);
  if (!possible) return choice;
  Estimates costs;
  price(f, traffic, possible, costs);
  for (Mask left = possible; left; left &= left - 1) {
    const auto c = static_cast<std::size_t>(std::countr_zero(left));
    const Tracker::Cell cell{index_, static_cast<std::uint8_t>(c), traffic.residency(), choice.size_class,
                             candidates_[c].place};
    const Tracker::Known known = tracker.known(cell);
    costs.log_seconds[c] += known.correction;
    costs.sigma[c] = known.samples >= kEnoughSamples ? std::max(kLeastSigma, known.doubt)
                                                     : std::hypot(costs.sigma[c], known.doubt);
  }
  Estimates ranked = costs;
  for (Mask left = traffic.throughput ? possible & host_ : 0; left; left &= left - 1) {
    const auto c = static_cast<std::size_t>(std::countr_zero(left));
    const int threads = std::max(1, candidates_[c].threads);
    ranked.log_seconds[c] +=
        std::log(static_cast<float>(threads) / static_cast<float>(backends::usable_threads()));
  }
  const Picked picked = pick(ranked, possible, device_, preference_, traffic.throughput);
  choice.candidate = static_cast<std::uint8_t>(picked.best);
  choice.runner_up = static_cast<std::uint8_t>(picked.runner_up < 0 ? picked.best : picked.runner_up);
  choice.seconds = std::exp(costs.log_seconds[choice.candidate]);
  choice.runner_seconds = std::exp(costs.log_seconds[choice.runner_up]);
  return choice;
}

// Along a line nearly every cell is clear, and finding it is cheaper than finding out whether the call was seen before;
// elsewhere few are.
Choice MeasuredOpTable::choose(const Args& args, const Traffic& traffic, Mask allowed,
                               const Tracker& tracker) const {
  Choice choice;
  const bool grid_first = map_.is_line();
  if (line_.known && choose_by_line(args, traffic, allowed, tracker, choice)) return choice;
  if (grid_first && choose_by_grid(args, traffic, allowed, tracker, choice)) return choice;
  const std::uint64_t key = key_of(args, traffic, allowed);
  if (seen_.find(key, choice)) return choice;
  if (!grid_first && choose_by_grid(args, traffic, allowed, tracker, choice)) {
    seen_.put(key, choice);  // next time it is found before the grid is asked
    return choice;
  }
  choice = choose_by_model(args, traffic, allowed, tracker);
  if (choice.candidate != 255) seen_.put(key, choice);
  return choice;
}

// With the single threads beside it, which bound what threads can do.
double MeasuredOpTable::seconds(const Args& args, const Traffic& traffic, std::uint8_t candidate) const {
  Estimates costs;
  price(map_.of(args), traffic, (Mask{1} << candidate) | (host_ & default_), costs);
  return std::exp(static_cast<double>(costs.log_seconds[candidate]));
}

std::vector<Price> MeasuredOpTable::prices(const Args& args, const Traffic& traffic) const {
  std::vector<Price> prices(candidates_.size());
  const Features f = map_.of(args);
  Estimates run, whole;
  price(f, Traffic{.kept = traffic.kept}, all_, run);
  price(f, traffic, all_, whole);
  for (std::size_t c = 0; c < prices.size(); ++c) {
    prices[c].seconds = std::exp(static_cast<double>(whole.log_seconds[c]));
    prices[c].moves_seconds =
        std::max(0.0, prices[c].seconds - std::exp(static_cast<double>(run.log_seconds[c])));
    prices[c].sigma = whole.sigma[c];
    prices[c].grade = whole.grade;
  }
  return prices;
}

}  // namespace fulcrum::executor
