// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The tracker's cells, found by array steps and made on first use; the shift that all device cells share; the credit
// for exploration. Nothing here waits for another thread.
#include "executor/tracker.h"

#include <cstring>
#include <tuple>

#include "executor/tracker_cell.h"
#include "executor/tracker_gather.h"

namespace fulcrum::executor {
namespace {

constexpr int kMostOps = 256;
constexpr int kResidencies = 3;
constexpr int kSizeClasses = 64;
constexpr int kBlocks = kMostCandidates * kResidencies * 2;
constexpr int kShards = 64;
constexpr float kNews = 0.05F;     // a correction that moved so far in ln may change a decision
constexpr float kMostNews = 0.2F;  // one that moved so far does so however much it scatters
constexpr float kMostRatio = 4;    // of the runner-up's time, at its best, to that of the choice
constexpr double kTie = 1.1;       // at most so much slower counts as even
constexpr float kLeastDoubt = 0.05F;
constexpr double kRevisitShare = 0.001;
constexpr int kShiftOps = 3;              // ops that must agree before a shift is the device's
constexpr std::uint32_t kShiftEvery = 4;  // device samples; at each while there is one
constexpr std::uint32_t kFresh = 256;     // device samples after which an op's word on the shift is old
// Of ln: what decisions see is at most so far behind, or half of what is in doubt anyway.
constexpr float kShownStep = 0.002F, kMostShownStep = 0.02F, kShownShare = 0.5F;
constexpr double kTicksPerSecond = 16e9;
constexpr std::int64_t kFlushTicks = 16'000'000;  // 1 ms: sums of longer calls are handed on at once
constexpr std::uint32_t kFlushCalls = 64;

/// ln of a factor, and the factor, in one word.
std::uint64_t shown_word(float ln) {
  return static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(std::exp(ln))) << 32 |
         std::bit_cast<std::uint32_t>(ln);
}
float shown_ln(std::uint64_t word) { return std::bit_cast<float>(static_cast<std::uint32_t>(word)); }
float shown_factor(std::uint64_t word) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(word >> 32));
}

/// All size classes of one candidate, place and residency of an op.
struct CellBlock {
  /// What decisions read: apart from the cells, which every sample writes, and written only when it has moved, so that
  /// threads that decide do not wait for a line that others have changed.
  alignas(64) std::array<std::atomic<std::uint64_t>, kSizeClasses> shown;
  std::array<TrackedCell, kSizeClasses> cells;
  CellBlock() {
    for (auto& word : shown) word.store(shown_word(0), std::memory_order_relaxed);
  }
};

struct OpCells {
  std::array<std::atomic<CellBlock*>, kBlocks> blocks{};
  /// What a thread learned when it handed samples of this op on because of another: told with the op's next sample.
  alignas(64) std::atomic<bool> news{false};
  alignas(64) std::atomic<std::uint64_t> shift_word{
      0};  // newest value less its baseline, and when: see CommonShift
  std::atomic<float> shift_told{0};
  ~OpCells() {
    for (auto& block : blocks) delete block.load();
  }
};

/// The object behind `slot`, made by whoever is first.
template <class T>
T& made(std::atomic<T*>& slot) {
  if (T* there = slot.load(std::memory_order_acquire)) return *there;
  T* mine = new T;
  T* other = nullptr;
  if (slot.compare_exchange_strong(other, mine, std::memory_order_acq_rel)) return *mine;
  delete mine;
  return *other;
}

std::uint64_t word_of(float value, std::uint32_t tick) {
  return (static_cast<std::uint64_t>(tick) << 32) | std::bit_cast<std::uint32_t>(value);
}

bool in_range(const Tracker::Cell& cell) {
  return cell.op >= 0 && cell.op < kMostOps && cell.candidate < kMostCandidates &&
         cell.residency < kResidencies && cell.size_class < kSizeClasses;
}

int block_of(int candidate, int residency, bool on_device) {
  return (candidate * kResidencies + residency) * 2 + (on_device ? 1 : 0);
}
int block_of(const Tracker::Cell& cell) {
  return block_of(cell.candidate, cell.residency, cell.place == Place::device);
}

struct alignas(64) Shard {
  std::atomic<std::int64_t> ticks{0};
  std::atomic<std::int64_t> handed_on{0};
  std::atomic<Gatherer*> gathered{nullptr};
  ~Shard() { delete gathered.load(); }
};

/// Numbers threads, so that each has a cache line of its own to count on.
int shard_of_thread() {
  static std::atomic<int> next{0};
  thread_local const int mine = next.fetch_add(1, std::memory_order_relaxed) % kShards;
  return mine;
}

std::int64_t ticks_of(double seconds) {
  return seconds > 0 && seconds < 1e8 ? static_cast<std::int64_t>(seconds * kTicksPerSecond) : 0;
}

}  // namespace

struct Tracker::State {
  double explore_credit = 0;
  std::array<std::atomic<OpCells*>, kMostOps> ops{};
  std::atomic<int> ops_end{0};              // beyond the last op that was seen
  alignas(64) std::atomic<float> shift{0};  // of all device cells; read by decisions
  std::atomic<float> shift_factor{1};       // e to the power of it
  alignas(64) std::atomic<std::uint32_t> device_samples{0};
  std::atomic<std::int64_t> alarms{0};
  alignas(64) std::atomic<std::int64_t> spent_ticks{0};
  alignas(64) std::atomic<std::int64_t> explored_ticks{0};
  std::array<Shard, kShards> shards;

  ~State() {
    for (auto& op : ops) delete op.load();
  }

  const TrackedCell* find(const Cell& cell) const {
    if (!in_range(cell)) return nullptr;
    const OpCells* op = ops[cell.op].load(std::memory_order_acquire);
    if (!op) return nullptr;
    const CellBlock* block = op->blocks[block_of(cell)].load(std::memory_order_acquire);
    return block ? &block->cells[cell.size_class] : nullptr;
  }

  /// What a cell adds to ln of a prediction; `op` null: nothing was learned yet.
  float correction(const OpCells* op, const Cell& cell) const {
    const float common = shift_of(cell.place);
    const CellBlock* block = op ? op->blocks[block_of(cell)].load(std::memory_order_acquire) : nullptr;
    if (!block) return common;
    return common + shown_ln(block->shown[cell.size_class].load(std::memory_order_relaxed));
  }

  float shift_of(Place place) const {
    return place == Place::device ? shift.load(std::memory_order_relaxed) : 0;
  }

  /// What all device cells moved by: the median over ops of how far each is from its own baseline. One op that is off
  /// says nothing about the others, and neither do two.
  void learn_shift(OpCells& op, float away_from_baseline) {
    const std::uint32_t tick = device_samples.fetch_add(1, std::memory_order_relaxed) + 1;
    op.shift_word.store(word_of(away_from_baseline, tick), std::memory_order_relaxed);
    if (tick % kShiftEvery != 0 && shift.load(std::memory_order_relaxed) == 0) return;
    std::array<float, kMostOps> words;
    int used = 0;
    const int end = ops_end.load(std::memory_order_relaxed);
    for (int i = 0; i < end; ++i) {
      const OpCells* other = ops[i].load(std::memory_order_acquire);
      if (!other) continue;
      const std::uint64_t word = other->shift_word.load(std::memory_order_relaxed);
      const auto when = static_cast<std::uint32_t>(word >> 32);
      if (when != 0 && tick - when < kFresh)
        words[used++] = std::bit_cast<float>(static_cast<std::uint32_t>(word));
    }
    if (used < kShiftOps) return;
    std::sort(words.begin(), words.begin() + used);
    const float middle = (words[(used - 1) / 2] + words[used / 2]) / 2;
    if (middle == shift.load(std::memory_order_relaxed)) return;
    shift.store(middle, std::memory_order_relaxed);
    shift_factor.store(std::exp(middle), std::memory_order_relaxed);
  }

  /// True when what was learned may change a decision of the op.
  static bool is_news(std::atomic<float>& told, float now, float doubt) {
    const float least = std::clamp(1.5F * doubt, kNews, kMostNews);
    if (std::abs(now - told.load(std::memory_order_relaxed)) < least) return false;
    told.store(now, std::memory_order_relaxed);
    return true;
  }

  bool learn(const Cell& cell, float sample, double seconds) {
    const TrackedCell::Sample one{sample, static_cast<float>(seconds)};
    return learn(cell, std::span(&one, 1));
  }

  bool learn(const Cell& cell, std::span<const TrackedCell::Sample> samples) {
    OpCells& op = made(ops[cell.op]);
    for (int end = ops_end.load(std::memory_order_relaxed); end <= cell.op;) {
      if (ops_end.compare_exchange_weak(end, cell.op + 1, std::memory_order_relaxed)) break;
    }
    CellBlock& block = made(op.blocks[block_of(cell)]);
    TrackedCell& tracked = block.cells[cell.size_class];
    const float prior = shift_of(cell.place);
    const auto learned = tracked.learn(samples, prior);
    tracked.spent_then.store(spent_seconds(), std::memory_order_relaxed);
    if (!learned.counted) return false;
    if (learned.alarm) alarms.fetch_add(1, std::memory_order_relaxed);

    const float value = tracked.value();
    if (cell.place == Place::device) {
      const float baseline = tracked.baseline.load(std::memory_order_relaxed);
      if (tracked.learned() >= TrackedCell::kAlarmWindow) learn_shift(op, value - baseline);
      const float common = shift.load(std::memory_order_relaxed);
      tracked.baseline.store(baseline + (value - common - baseline) / 32, std::memory_order_relaxed);
    }
    // What the device does from now on counts for this cell too. The value is read again: others may have learned.
    const float apart = tracked.value() - shift_of(cell.place);
    auto& shown = block.shown[cell.size_class];
    const float step = std::clamp(kShownShare * tracked.doubt(), kShownStep, kMostShownStep);
    if (std::abs(apart - shown_ln(shown.load(std::memory_order_relaxed))) > step)
      shown.store(shown_word(apart), std::memory_order_relaxed);
    const bool moved = is_news(tracked.told, value, tracked.doubt());
    const bool shifted = is_news(op.shift_told, shift_of(cell.place), 0) && cell.place == Place::device;
    return learned.alarm || moved || shifted;
  }

  /// One sample of a thread: kept with others of its kind while the cell expects it. True as of learn().
  bool take(const Cell& cell, float sample, double seconds) {
    const int number = shard_of_thread();
    Shard& shard = shards[number];
    // A call to the device is long, and one that got slower must be seen at once.
    Gatherer* mine = cell.place == Place::host ? &made(shard.gathered) : nullptr;
    if (!mine || !mine->take()) return learn(cell, sample, seconds);
    const std::uint64_t key = Gatherer::key_of(cell);
    Gatherer::Slot& slot = mine->slot_of(key);
    if (slot.key != key) {
      hand_on(slot, shard, true);
      slot.key = key;
      expect(slot);
    }
    const bool expected = slot.expects(sample);
    slot.add({sample, static_cast<float>(seconds)});
    // Threads that go in step do not all come at once.
    constexpr int kSteps = Gatherer::kMost - Gatherer::kLeast;
    if (!expected || slot.count >= Gatherer::kLeast + number % kSteps) hand_on(slot, shard, slot.full());
    mine->leave();
    OpCells* op = ops[cell.op].load(std::memory_order_acquire);
    return op && op->news.load(std::memory_order_relaxed) &&
           op->news.exchange(false, std::memory_order_relaxed);
  }

  void expect(Gatherer::Slot& slot) const {
    const TrackedCell* tracked = find(slot.cell());
    std::tie(slot.low, slot.high) = tracked ? tracked->expected() : std::pair{1.F, -1.F};
  }

  /// What was gathered of a cell, by whoever holds the slot. While another thread is at the cell it waits, unless it must.
  void hand_on(Gatherer::Slot& slot, Shard& shard, bool must) {
    if (slot.count == 0) return;
    const Cell cell = slot.cell();
    TrackedCell& tracked = made(made(ops[cell.op]).blocks[block_of(cell)]).cells[cell.size_class];
    const bool alone = tracked.take();
    if (!alone && !must) return;
    const bool news = learn(cell, slot.all());
    if (alone) tracked.leave();
    slot.count = 0;
    expect(slot);
    shard.handed_on.fetch_add(1, std::memory_order_relaxed);
    if (news) ops[cell.op].load(std::memory_order_acquire)->news.store(true, std::memory_order_relaxed);
  }

  /// What all threads have gathered; one that is adding to it now keeps its own.
  void hand_on_all() {
    for (Shard& shard : shards) {
      Gatherer* gathered = shard.gathered.load(std::memory_order_acquire);
      if (!gathered || !gathered->take()) continue;
      for (Gatherer::Slot& slot : gathered->slots()) hand_on(slot, shard, true);
      gathered->leave();
    }
  }

  double spent_seconds() const {
    return static_cast<double>(spent_ticks.load(std::memory_order_relaxed)) / kTicksPerSecond;
  }
};

Tracker::Tracker(double explore_credit) {
  states_.push_back(std::make_unique<State>());
  states_.back()->explore_credit = std::max(0.0, explore_credit);
  state_.store(states_.back().get(), std::memory_order_release);
}
Tracker::~Tracker() = default;

void Tracker::forget() {
  const std::lock_guard lock(states_mutex_);
  const State& old = state();
  auto fresh = std::make_unique<State>();
  fresh->explore_credit = old.explore_credit;
  fresh->spent_ticks = old.spent_ticks.load(std::memory_order_relaxed);
  fresh->explored_ticks = old.explored_ticks.load(std::memory_order_relaxed);
  fresh->alarms = old.alarms.load(std::memory_order_relaxed);
  states_.push_back(std::move(fresh));
  state_.store(states_.back().get(), std::memory_order_release);
}

float Tracker::correction(const Cell& cell) const {
  return in_range(cell) ? state().correction(state().ops[cell.op].load(std::memory_order_acquire), cell)
                        : state().shift_of(cell.place);
}

Tracker::Corrections Tracker::corrections(int op, std::uint8_t residency, std::uint8_t size_class,
                                          std::uint8_t first, bool first_on_device, std::uint8_t second,
                                          bool second_on_device) const {
  const State& state = this->state();
  Corrections told;
  if (first_on_device || second_on_device) {
    const float shift = state.shift.load(std::memory_order_relaxed);
    const float factor = state.shift_factor.load(std::memory_order_relaxed);
    if (first_on_device) told = {shift, 0, factor, 1};
    if (second_on_device) {
      told.second = shift;
      told.second_factor = factor;
    }
  }
  const OpCells* cells = op < kMostOps ? state.ops[op].load(std::memory_order_acquire) : nullptr;
  if (!cells) return told;
  const CellBlock* block =
      cells->blocks[block_of(first, residency, first_on_device)].load(std::memory_order_acquire);
  if (block) {
    const std::uint64_t word = block->shown[size_class].load(std::memory_order_relaxed);
    told.first += shown_ln(word);
    told.first_factor *= shown_factor(word);
  }
  block = cells->blocks[block_of(second, residency, second_on_device)].load(std::memory_order_acquire);
  if (block) {
    const std::uint64_t word = block->shown[size_class].load(std::memory_order_relaxed);
    told.second += shown_ln(word);
    told.second_factor *= shown_factor(word);
  }
  return told;
}

Tracker::Known Tracker::known(const Cell& cell) const {
  const TrackedCell* tracked = state().find(cell);
  if (!tracked) return {.correction = state().shift_of(cell.place)};
  return {.correction = correction(cell), .doubt = tracked->doubt(), .samples = tracked->count()};
}

float Tracker::doubt(const Cell& cell) const {
  const TrackedCell* tracked = state().find(cell);
  return tracked ? tracked->doubt() : 0;
}

std::int64_t Tracker::samples(const Cell& cell) const {
  state().hand_on_all();
  const TrackedCell* tracked = state().find(cell);
  return tracked ? tracked->count() : 0;
}

std::array<double, 3> Tracker::last_seconds(const Cell& cell) const {
  state().hand_on_all();
  const TrackedCell* tracked = state().find(cell);
  return tracked ? tracked->last_seconds() : std::array<double, 3>{};
}

bool Tracker::record(const Cell& cell, double predicted_seconds, double measured_seconds) {
  if (!in_range(cell) || !(predicted_seconds > 0) || !(measured_seconds > 0)) return false;
  return state().take(cell, static_cast<float>(std::log(measured_seconds / predicted_seconds)),
                      measured_seconds);
}

bool Tracker::record_at_least(const Cell& cell, double predicted_seconds, double waited_seconds) {
  if (!in_range(cell) || !(predicted_seconds > 0) || !(waited_seconds > 0)) return false;
  // Less than what is known already says nothing new, and must not pull the cell down.
  const auto least = static_cast<float>(std::log(waited_seconds / predicted_seconds));
  return state().learn(cell, std::max(least, correction(cell)), waited_seconds);
}

bool Tracker::explore(double extra_seconds, double ratio) {
  if (!(ratio <= kMostRatio) || state().explore_credit <= 0) return false;
  const std::int64_t wanted = ticks_of(extra_seconds);
  const auto credit = static_cast<std::int64_t>(
      state().explore_credit * static_cast<double>(state().spent_ticks.load(std::memory_order_relaxed)));
  std::int64_t explored = state().explored_ticks.load(std::memory_order_relaxed);
  do {
    if (explored + wanted > credit || credit == 0) return false;
  } while (
      !state().explored_ticks.compare_exchange_weak(explored, explored + wanted, std::memory_order_relaxed));
  return true;
}

bool Tracker::explore(const Cell& runner_up, double extra_seconds, double ratio) {
  const TrackedCell* tracked = state().find(runner_up);
  if (!tracked || tracked->learned() < TrackedCell::kWindow) return explore(extra_seconds, ratio);
  // One that has been better, or should be by the table, may be so again: it is judged by what it would then be.
  const double at_best = ratio * std::exp(std::min(0.F, std::min(tracked->best(), 0.F) - tracked->value()));
  if (at_best <= kTie) return explore(extra_seconds, at_best);
  // What is known to be slower is looked at again when its turn costs next to nothing of what was spent since.
  const double since = state().spent_seconds() - tracked->spent_then.load(std::memory_order_relaxed);
  const bool close = ratio <= std::exp(2 * std::max(tracked->doubt(), kLeastDoubt));
  return (close || extra_seconds <= kRevisitShare * since) && explore(extra_seconds, ratio);
}

void Tracker::settle(double taken_seconds, double extra_seconds) {
  state().explored_ticks.fetch_add(ticks_of(extra_seconds) - ticks_of(taken_seconds),
                                   std::memory_order_relaxed);
}

void Tracker::spend(double seconds) {
  thread_local std::uint32_t calls = 0;
  Shard& shard = state().shards[shard_of_thread()];
  const std::int64_t mine = ticks_of(seconds);
  const std::int64_t sum = shard.ticks.fetch_add(mine, std::memory_order_relaxed) + mine;
  if (++calls % kFlushCalls != 0 && sum < kFlushTicks) return;
  state().spent_ticks.fetch_add(shard.ticks.exchange(0, std::memory_order_relaxed),
                                std::memory_order_relaxed);
}

double Tracker::explored_seconds() const {
  return static_cast<double>(state().explored_ticks.load(std::memory_order_relaxed)) / kTicksPerSecond;
}

float Tracker::device_shift() const { return state().shift_of(Place::device); }

std::int64_t Tracker::alarms() const { return state().alarms.load(std::memory_order_relaxed); }

std::int64_t Tracker::handed_on() const {
  std::int64_t sum = 0;
  for (const Shard& shard : state().shards) sum += shard.handed_on.load(std::memory_order_relaxed);
  return sum;
}

}  // namespace fulcrum::executor
