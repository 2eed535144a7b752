// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See breaker.h. What calls ask on their way is two atomic loads while all is well; changes are rare and take a lock.
#include "executor/breaker.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <thread>

namespace fulcrum::executor {
namespace {

enum Position : std::uint8_t { kClosed, kBackingOff, kOpenForGood };

constexpr std::array<std::string_view, 8> kNames = {"none",   "out of memory", "configuration", "busy",
                                                    "absent", "device lost",   "wrong result",  "late"};
constexpr double kFirstBackOffSeconds = 1;
constexpr double kMostBackOffSeconds = 60;
constexpr double kLogEverySeconds = 60;  // a line of each kind at most
// A kernel that cannot do one shape may do others; one that fails again and again within a minute is left out.
constexpr int kRefusalsToBlock = 3;
constexpr double kRefusalSeconds = 60;

LogLevel level_of(Failure kind) {
  return kind == Failure::sticky || kind == Failure::wrong_result ? LogLevel::error : LogLevel::warning;
}

std::string_view consequence_of(Failure kind) {
  switch (kind) {
    case Failure::capacity:
      return "the call is cut into pieces or runs on the CPU; the device stays in use";
    case Failure::configuration:
      return "another kernel runs the call";
    case Failure::busy:
      return "the CPU takes its calls; it is asked again later";
    case Failure::absent:
      return "the CPU takes all calls";
    case Failure::sticky:
      return "the device gets no further call in this process, the CPU takes all";
    case Failure::wrong_result:
      return "this kernel is not used again in this process";
    default:
      return "the CPU takes the call";
  }
}

}  // namespace

std::string_view to_string(Failure kind) { return kNames[static_cast<std::size_t>(kind)]; }

Failure classify(Code code) {
  switch (code) {
    case Code::ok:
      return Failure::none;
    case Code::out_of_memory:
      return Failure::capacity;
    case Code::device_busy:
      return Failure::busy;
    case Code::device_lost:
    case Code::data_lost:
      return Failure::sticky;
    case Code::environment:
      return Failure::absent;
    case Code::wrong_result:
      return Failure::wrong_result;
    case Code::inconclusive:
      return Failure::late;
    default:
      return Failure::configuration;
  }
}

struct Breaker::State {
  const measure::Clock* clock;
  mutable std::mutex mutex;
  std::string reason;  // of not being closed
  double back_off_seconds = kFirstBackOffSeconds;
  double retry_at = 0;
  std::optional<std::thread::id> probing;  // whose call finds out
  double probe_ends = 0;                   // for one that never reports: then it is somebody else's turn
  std::array<std::atomic<std::int64_t>, kNames.size()> failures{};
  struct Said {
    std::optional<double> at;
    std::int64_t left_out = 0;
  };
  std::array<Said, kNames.size()> said;
  std::map<const fulcrum_kernel*, std::string> quarantine;  // with the reason
  std::map<const fulcrum_kernel*, std::vector<double>> refusals;

  /// The line to log, or nothing when one of its kind was written a moment ago.
  std::string line(Failure kind, const backends::Kernel& kernel, const Error& error) {
    Said& mine = said[static_cast<std::size_t>(kind)];
    const double now = clock->now();
    if (mine.at && now - *mine.at < kLogEverySeconds) {
      ++mine.left_out;
      return {};
    }
    const std::string more =
        mine.left_out > 0 ? fmt::format(" ({} more since the last line)", mine.left_out) : "";
    mine = Said{.at = now};
    return fmt::format("{} failed, {}: {}; {}{}", kernel.name(), to_string(kind), error.message,
                       consequence_of(kind), more);
  }

  /// True when this refusal is one too many.
  bool refused_too_often(const fulcrum_kernel* kernel) {
    std::vector<double>& times = refusals[kernel];
    const double now = clock->now();
    std::erase_if(times, [now](double at) { return now - at > kRefusalSeconds; });
    times.push_back(now);
    return times.size() >= kRefusalsToBlock;
  }

  bool is_turn_of(std::thread::id caller, double now) const {
    return now >= retry_at && (!probing || *probing == caller || now >= probe_ends);
  }

  void back_off(double now) {
    retry_at = now + back_off_seconds;
    back_off_seconds = std::min(2 * back_off_seconds, kMostBackOffSeconds);
    probing.reset();
  }
};

Breaker::Breaker(const measure::Clock* clock, const std::atomic<bool>* lost)
    : state_(std::make_shared<State>()), lost_(lost) {
  state_->clock = clock ? clock : &measure::steady_clock();
}

std::uint8_t Breaker::position() const {
  if (lost_ && lost_->load(std::memory_order_acquire)) return kOpenForGood;
  return position_.load(std::memory_order_acquire);
}

bool Breaker::allows() const {
  const std::uint8_t now_at = position();
  if (now_at != kBackingOff) return now_at == kClosed;
  const std::lock_guard lock(state_->mutex);
  return state_->is_turn_of(std::this_thread::get_id(), state_->clock->now());
}

bool Breaker::claim() {
  const std::uint8_t now_at = position();
  if (now_at != kBackingOff) return now_at == kClosed;
  const std::lock_guard lock(state_->mutex);
  const double now = state_->clock->now();
  const auto me = std::this_thread::get_id();
  if (!state_->is_turn_of(me, now)) return false;
  // One that asks again without having reported gets no more time than it had.
  if (state_->probing == me && now < state_->probe_ends) return true;
  state_->probing = me;
  state_->probe_ends = now + state_->back_off_seconds;
  return true;
}

bool Breaker::open_for_good() const { return position() == kOpenForGood; }

Failure Breaker::failed(const backends::Kernel& kernel, const Error& error) {
  const Failure kind = classify(error.code);
  if (kind == Failure::none) return kind;
  state_->failures[static_cast<std::size_t>(kind)].fetch_add(1, std::memory_order_relaxed);
  std::string line;
  {
    const std::lock_guard lock(state_->mutex);
    line = state_->line(kind, kernel, error);
    const std::uint8_t position = position_.load(std::memory_order_relaxed);
    bool changed = false;
    if (kind == Failure::sticky || kind == Failure::absent) {
      if (position != kOpenForGood) state_->reason = error.message;
      changed = position_.exchange(kOpenForGood, std::memory_order_acq_rel) != kOpenForGood;
    } else if (kind == Failure::busy && position != kOpenForGood) {
      // Calls that were under way when the first of them failed say nothing new.
      if (position == kClosed || state_->probing == std::this_thread::get_id()) {
        state_->reason = error.message;
        state_->back_off(state_->clock->now());
        position_.store(kBackingOff, std::memory_order_release);
        changed = true;
      }
    } else if (kind == Failure::wrong_result ||
               (kind == Failure::configuration && state_->refused_too_often(&kernel.entry()))) {
      changed = state_->quarantine.emplace(&kernel.entry(), error.message).second;
      any_quarantined_.store(true, std::memory_order_release);
    }
    // A probe that failed in another way has found out nothing: the next caller tries.
    if (state_->probing == std::this_thread::get_id()) state_->probing.reset();
    if (changed) epoch_.fetch_add(1, std::memory_order_acq_rel);
  }
  if (!line.empty()) log(level_of(kind), line);
  return kind;
}

void Breaker::succeeded() {
  if (position_.load(std::memory_order_acquire) != kBackingOff) return;
  {
    const std::lock_guard lock(state_->mutex);
    // Only the probe closes it: a call that began before the device was busy says nothing.
    if (position_.load(std::memory_order_relaxed) != kBackingOff ||
        state_->probing != std::this_thread::get_id()) {
      return;
    }
    state_->probing.reset();
    state_->back_off_seconds = kFirstBackOffSeconds;
    position_.store(kClosed, std::memory_order_release);
    epoch_.fetch_add(1, std::memory_order_acq_rel);
  }
  log(LogLevel::info, "the device answers again and is in use");
}

bool Breaker::quarantined(const fulcrum_kernel* kernel) const {
  if (!any_quarantined_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(state_->mutex);
  return state_->quarantine.contains(kernel);
}

std::string Breaker::quarantine_reason(const fulcrum_kernel* kernel) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->quarantine.find(kernel);
  return found == state_->quarantine.end() ? "" : found->second;
}

std::string Breaker::describe() const {
  const std::lock_guard lock(state_->mutex);
  const std::uint8_t now_at = position();
  if (now_at == kClosed) return "closed";
  if (now_at == kBackingOff && state_->clock->now() >= state_->retry_at) return "half open";
  if (now_at == kBackingOff) return fmt::format("open: {}; it is asked again later", state_->reason);
  if (position_.load(std::memory_order_acquire) != kOpenForGood)
    return "open: the device was lost earlier in this process";
  return fmt::format("open: {}", state_->reason);
}

std::int64_t Breaker::failures(Failure kind) const {
  return state_->failures[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
}

}  // namespace fulcrum::executor
