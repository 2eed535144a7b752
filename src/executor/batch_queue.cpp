// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Who waits for whom, and until when. How a batch runs is in batch_run.cpp.
#include "executor/batch_queue.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <system_error>
#include <tuple>

#include "executor/seen.h"

namespace fulcrum::executor {
namespace {

constexpr std::size_t kMostGroups = 64, kMostGroupTerms = 16;
constexpr std::size_t kRoom = 32;           // of a batch that begins
constexpr int kRecommendationBatches = 64;  // the table learns, so its advice is asked for now and then
constexpr std::chrono::microseconds kLongestNap{
    1000};  // the clock may not be the one that waits are counted in

char somewhere = 0;  // stands for an operand that is there, wherever that is

bool equal_policy(const Policy& a, const Policy& b) {
  return std::tie(a.precisions, a.throughput, a.strict, a.frozen, a.backend, a.device_bytes, a.shadow_share,
                  a.explore_credit, a.batch_latency_seconds) ==
         std::tie(b.precisions, b.throughput, b.strict, b.frozen, b.backend, b.device_bytes, b.shadow_share,
                  b.explore_credit, b.batch_latency_seconds);
}

bool equal(const Terms& a, const Terms& b) {
  const auto same = [](const Terms::Masks& one, const Terms::Masks& other) {
    return one.first == other.first && one.fallback == other.fallback;
  };
  return equal_policy(a.policy, b.policy) &&
         std::ranges::equal(a.allowed, b.allowed, [&](const auto& one, const auto& other) {
           return std::ranges::equal(one, other, same);
         });
}

}  // namespace

bool BatchQueue::Key::operator==(const Key& other) const {
  const auto same_bits = [](fulcrum_scalar a, fulcrum_scalar b) { return a.i == b.i; };
  return op == other.op && dtype == other.dtype && terms == other.terms &&
         args.prepared == other.args.prepared && std::ranges::equal(args.ptr, other.args.ptr) &&
         std::ranges::equal(args.dim, other.args.dim) &&
         std::ranges::equal(args.scalar, other.args.scalar, same_bits);
}

std::size_t BatchQueue::Hash::operator()(const Key& key) const {
  std::uint64_t hash = mix(static_cast<std::uint64_t>(key.op), static_cast<std::uint64_t>(key.dtype));
  const auto add = [&hash](const void* pointer) {
    hash = mix(hash, reinterpret_cast<std::uintptr_t>(pointer));
  };
  add(key.terms);
  add(key.args.prepared);
  for (const void* pointer : key.args.ptr) add(pointer);
  for (const std::int64_t dim : key.args.dim) hash = mix(hash, static_cast<std::uint64_t>(dim));
  for (const fulcrum_scalar& scalar : key.args.scalar) hash = mix(hash, static_cast<std::uint64_t>(scalar.i));
  return hash;
}

/// Handles of equal policies share their batches: the first terms that were seen stand for all of them.
std::shared_ptr<const Terms> BatchQueue::shared_terms(const std::shared_ptr<const Terms>& terms) {
  const auto same = [&](const std::shared_ptr<const Terms>& known) {
    return known == terms || equal(*known, *terms);
  };
  const auto found = std::find_if(terms_.begin(), terms_.end(), same);
  if (found != terms_.end()) return *found;
  if (terms_.size() >= kMostGroupTerms) terms_.erase(terms_.begin());
  return terms_.emplace_back(terms);
}

BatchQueue::BatchQueue(AsyncPool& pool, const measure::Clock& clock, BatchHooks hooks, bool timer)
    : pool_(pool), clock_(clock), hooks_(std::move(hooks)), timer_wanted_(timer) {}

BatchQueue::~BatchQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (timer_.joinable()) timer_.join();
  flush();
  pool_.drain();
}

bool BatchQueue::can_batch(const Request& request) {
  const OpFacts& facts = *request.facts;
  if (!can_slice(facts, request.args) || request.args.dim[facts.slice_dim] <= 0) return false;
  Args twice = request.args;
  twice.dim[facts.slice_dim] *= 2;
  if (!ops::check_args(*facts.op, twice).ok()) return false;  // sizes that hang together
  for (int slot = 0; slot < facts.pointers; ++slot) {
    const auto at = static_cast<std::size_t>(slot);
    if (!request.args.ptr[slot]) continue;
    const bool grows = facts.op->extent(twice, slot) != facts.op->extent(request.args, slot);
    if (!grows && facts.slots[at].writes) return false;
    const Residence* home = request.homes[at];
    // What is on the device already has no way to save.
    if (grows && home && (!home->valid_on(Place::host) || home->valid_on(Place::device))) return false;
  }
  return true;
}

BatchQueue::Key BatchQueue::key_of(const LaterCall& call) {
  const Request& request = call.request;
  const OpFacts& facts = *request.facts;
  Key key{.op = request.op, .dtype = request.dtype, .terms = call.terms.get(), .args = request.args};
  Args twice = request.args;
  twice.dim[facts.slice_dim] *= 2;
  for (int slot = 0; slot < facts.pointers; ++slot) {
    const bool grows = facts.op->extent(twice, slot) != facts.op->extent(request.args, slot);
    if (key.args.ptr[slot] && grows) key.args.ptr[slot] = &somewhere;
  }
  key.args.dim[facts.slice_dim] = 0;
  return key;
}

/// How many units go together, for calls like this one and larger ones; what a large call gains nothing by says nothing
/// of smaller ones. For a group in which nobody waits.
void BatchQueue::ask_advice(Group& group, const LaterCall& call, std::int64_t units) {
  if (group.batches_left > 0 && (group.gains || units >= group.target_units)) return;
  const std::int64_t calls =
      recommended_calls(hooks_, call.request, *call.terms, call.terms->policy.batch_latency_seconds);
  group.terms = call.terms;
  group.target_units = units * calls;
  group.gains = calls > 1;
  group.batches_left = kRecommendationBatches;
}

/// Those that wait, as a batch of their own. With mutex_ held.
std::vector<BatchQueue::Item> BatchQueue::take(Group& group) {
  waiting_ -= group.waiting.size();
  group.units = 0;
  --group.batches_left;
  return std::exchange(group.waiting, {});
}

Future BatchQueue::submit(LaterCall call) {
  auto state = std::make_shared<Future::State>();
  Future future(state);
  const double latency = call.terms->policy.batch_latency_seconds;
  if (latency <= 0 || !can_batch(call.request)) {
    std::vector<Item> alone;
    alone.push_back(Item{std::move(call), std::move(state)});
    start(std::move(alone));
    return future;
  }
  std::vector<std::vector<Item>> ready;
  bool wake_timer = false;
  {
    const std::lock_guard lock(mutex_);
    call.terms = shared_terms(call.terms);
    const Key key = key_of(call);
    if (groups_.size() >= kMostGroups && !groups_.contains(key)) {
      std::erase_if(groups_, [](const auto& entry) { return entry.second.waiting.empty(); });
    }
    Group& group = groups_[key];
    const std::int64_t units = call.request.args.dim[call.request.facts->slice_dim];
    if (group.waiting.empty()) ask_advice(group, call, units);
    const bool alone = units >= group.target_units;
    Item item{std::move(call), std::move(state)};
    if (alone) {
      ready.emplace_back().push_back(std::move(item));
      if (group.waiting.empty()) --group.batches_left;
    } else {
      // Together they might take longer than the limit.
      if (group.units + units > group.target_units) ready.push_back(take(group));
      if (group.waiting.empty()) {
        group.deadline = clock_.now() + latency;
        group.waiting.reserve(kRoom);
        wake_timer = group.deadline < timer_wakes_at_;
      }
      group.units += units;
      group.waiting.push_back(std::move(item));
      ++waiting_;
      if (group.units >= group.target_units || !timer_runs()) ready.push_back(take(group));
    }
  }
  if (wake_timer) changed_.notify_one();
  for (std::vector<Item>& items : ready) start(std::move(items));
  return future;
}

/// False: no thread could be had, so that nobody may be left waiting. With mutex_ held.
bool BatchQueue::timer_runs() {
  if (!timer_wanted_ || timer_.joinable()) return true;
  try {
    timer_ = std::thread([this] { serve_timer(); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

std::vector<std::vector<BatchQueue::Item>> BatchQueue::take_due(double now) {
  std::vector<std::vector<Item>> due;
  for (auto& [key, group] : groups_) {
    if (group.waiting.empty() || group.deadline > now) continue;
    due.push_back(take(group));
  }
  return due;
}

void BatchQueue::poll() {
  std::vector<std::vector<Item>> due;
  {
    const std::lock_guard lock(mutex_);
    due = take_due(clock_.now());
  }
  for (std::vector<Item>& items : due) start(std::move(items));
}

void BatchQueue::flush() {
  std::vector<std::vector<Item>> all;
  {
    const std::lock_guard lock(mutex_);
    all = take_due(std::numeric_limits<double>::infinity());
  }
  for (std::vector<Item>& items : all) start(std::move(items));
}

void BatchQueue::start(std::vector<Item> items) {
  auto shared = std::make_shared<std::vector<Item>>(std::move(items));
  pool_.post([this, shared] {
    try {
      run_items(*shared);
    } catch (const std::exception& thrown) {
      for (Item& item : *shared) {  // those that have their answer already keep it
        item.call.keep = {};
        item.state->set(error_of(thrown));
      }
    }
  });
}

void BatchQueue::serve_timer() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    timer_wakes_at_ = std::numeric_limits<double>::infinity();
    if (waiting_ == 0) {
      changed_.wait(lock, [&] { return stopping_ || waiting_ > 0; });
      continue;
    }
    double next = std::numeric_limits<double>::infinity();
    for (const auto& [key, group] : groups_) {
      if (!group.waiting.empty()) next = std::min(next, group.deadline);
    }
    const double left = next - clock_.now();
    if (left > 0) {
      timer_wakes_at_ = next;
      const auto nap = std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(left, 1.0) * 1e9));
      changed_.wait_for(lock, std::min<std::chrono::nanoseconds>(nap, kLongestNap));
      continue;
    }
    auto due = take_due(clock_.now());
    lock.unlock();
    for (std::vector<Item>& items : due) start(std::move(items));
    lock.lock();
  }
}

}  // namespace fulcrum::executor
