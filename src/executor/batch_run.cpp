// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A batch as one call: operands that differ from call to call are laid side by side along the op's slice dim, those
// that all calls share stay where they are, and results go back to their callers when the call has succeeded. When it
// has not, each call runs alone, so that nobody gets the error of a neighbour.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "executor/batch_queue.h"

namespace fulcrum::executor {
namespace {

constexpr std::int64_t kMostCalls = 1024;         // as `fulcrum batch` looks
constexpr double kLeastGain = 1.2;                // in throughput, for which calls are made to wait
constexpr double kCopyBytesPerSecond = 12e9;      // of one thread between memories; small copies are slower
constexpr double kCopySeconds = 20e-9;            // of beginning one
constexpr double kHandlingSeconds = 1e-6;         // of a call in a batch: its future, its place, its turn
constexpr std::int64_t kParallelBytes = 1 << 22;  // copies that pay for waking other threads
constexpr int kCopyThreads = 4;
constexpr std::size_t kMostStaging = 16;

/// The request with so many times the units.
Request grown(const Request& request, std::int64_t units) {
  Request many = request;
  many.args.dim[request.facts->slice_dim] = units;
  return many;
}

/// Bytes of a slot behind one unit; 0: all calls share it.
std::int64_t unit_bytes(const Request& request, int slot) {
  const std::int64_t one = request.facts->bytes(grown(request, 1).args, slot, request.dtype);
  const std::int64_t two = request.facts->bytes(grown(request, 2).args, slot, request.dtype);
  return two - one;
}

/// One operand of a batch, side by side in memory of ours.
struct Lane {
  int slot = 0;
  std::int64_t unit_bytes = 0;
  std::byte* memory = nullptr;
  bool reads = false, writes = false;
};

struct Move {
  std::byte* to;
  const std::byte* from;
  std::size_t bytes;
};

void copy_all(const std::vector<Move>& moves) {
  std::size_t total = 0;
  for (const Move& move : moves) total += move.bytes;
  const bool wide = static_cast<std::int64_t>(total) >= kParallelBytes;
  const auto work = [](void* context, std::int64_t begin, std::int64_t end) {
    const Move* const list = static_cast<const std::vector<Move>*>(context)->data();
    for (std::int64_t i = begin; i < end; ++i) std::memcpy(list[i].to, list[i].from, list[i].bytes);
  };
  backends::parallel(static_cast<std::int64_t>(moves.size()),
                     wide ? std::min(kCopyThreads, backends::usable_threads()) : 1, work,
                     const_cast<std::vector<Move>*>(&moves));
}

}  // namespace

std::int64_t recommended_calls(const BatchHooks& hooks, const Request& request, const Terms& terms,
                               double limit_seconds) {
  const std::int64_t units = request.args.dim[request.facts->slice_dim];
  const BatchHooks::Time alone = hooks.predict(request, terms);
  if (alone.seconds <= 0) return 1;
  double copied_bytes = 0, copies = 0;
  Request staged = request;
  for (int slot = 0; slot < request.facts->pointers; ++slot) {
    const std::int64_t bytes = request.args.ptr[slot] ? unit_bytes(request, slot) * units : 0;
    if (bytes > 0) staged.homes[static_cast<std::size_t>(slot)] = nullptr;
    if (bytes > 0 && hooks.pinned_staging)
      staged.pinned |= static_cast<std::uint8_t>(1U << static_cast<unsigned>(slot));
    copied_bytes += static_cast<double>(bytes);
    copies += bytes > 0 ? 1 : 0;
  }
  const double own_seconds = kHandlingSeconds + copied_bytes / kCopyBytesPerSecond + copies * kCopySeconds;
  std::int64_t best = 1;
  double best_rate = kLeastGain / alone.seconds;
  for (std::int64_t calls = 2; calls <= kMostCalls; calls *= 2) {
    if (units > std::numeric_limits<std::int64_t>::max() / kMostCalls) break;
    const Request many = grown(staged, units * calls);
    if (!ops::check_args(*request.facts->op, many.args).ok()) break;
    const BatchHooks::Time together = hooks.predict(many, terms);
    const double moves = static_cast<double>(calls) * own_seconds;
    if (together.seconds <= 0 || together.high + moves > limit_seconds) break;
    const double rate = static_cast<double>(calls) / (together.seconds + moves);
    if (rate > best_rate) best = calls, best_rate = rate;
  }
  return best;
}

std::shared_ptr<Residence> BatchQueue::take_staging(std::int64_t bytes) {
  {
    const std::lock_guard lock(staging_mutex_);
    for (auto block = staging_.begin(); block != staging_.end(); ++block) {
      if ((*block)->bytes() < bytes || (*block)->bytes() > 4 * bytes) continue;
      std::shared_ptr<Residence> taken = std::move(*block);
      staging_.erase(block);
      return taken;
    }
  }
  return hooks_.staging(static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes))));
}

void BatchQueue::give_staging(std::shared_ptr<Residence> block) {
  const std::lock_guard lock(staging_mutex_);
  if (staging_.size() >= kMostStaging) staging_.erase(staging_.begin());
  staging_.push_back(std::move(block));
}

void BatchQueue::run_items(std::vector<Item>& items) {
  if (items.size() > 1 && run_together(items).ok()) {
    batched_.fetch_add(static_cast<std::int64_t>(items.size()), std::memory_order_relaxed);
    batches_.fetch_add(1, std::memory_order_relaxed);
    for (Item& item : items) item.state->set({});
    return;
  }
  for (Item& item : items) {
    Status outcome = hooks_.run(item.call.request, *item.call.terms);
    item.call.keep = {};  // a caller that hears of the end may count on its buffers being its own again
    item.state->set(std::move(outcome));
  }
}

Status BatchQueue::run_together(std::vector<Item>& items) {
  const Request& first = items.front().call.request;
  const int slice_dim = first.facts->slice_dim;
  std::int64_t units = 0;
  for (const Item& item : items) units += item.call.request.args.dim[slice_dim];
  Request whole = grown(first, units);
  FULCRUM_CHECK(ops::check_args(*first.facts->op, whole.args));

  std::vector<Lane> lanes;
  std::vector<std::shared_ptr<Residence>> blocks;
  struct GiveBack {
    BatchQueue& queue;
    std::vector<std::shared_ptr<Residence>>& blocks;
    ~GiveBack() {
      for (auto& block : blocks) queue.give_staging(std::move(block));
    }
  } const give_back{*this, blocks};
  for (int slot = 0; slot < first.facts->pointers; ++slot) {
    const std::int64_t bytes = first.args.ptr[slot] ? unit_bytes(first, slot) : 0;
    if (bytes == 0) continue;
    auto block = take_staging(bytes * units);
    if (!block || !block->identity())
      return Error{Code::out_of_memory, "no memory to put calls together", ""};
    const SlotFacts& role = first.facts->slots[static_cast<std::size_t>(slot)];
    lanes.push_back(Lane{slot, bytes, static_cast<std::byte*>(block->identity()), role.reads, role.writes});
    blocks.push_back(std::move(block));
    whole.args.ptr[slot] = lanes.back().memory;
    whole.homes[static_cast<std::size_t>(slot)] = nullptr;
    if (blocks.back()->memory() == Residence::Memory::pinned)
      whole.pinned |= static_cast<std::uint8_t>(1U << static_cast<unsigned>(slot));
  }

  std::vector<Move> moves;
  for (const bool way_in : {true, false}) {
    moves.clear();
    std::int64_t at = 0;
    for (const Item& item : items) {
      const std::int64_t mine = item.call.request.args.dim[slice_dim];
      for (const Lane& lane : lanes) {
        if (way_in ? !lane.reads : !lane.writes) continue;
        FULCRUM_TRY(void* memory, host_memory(item.call.request, lane.slot, way_in, !way_in));
        auto* theirs = static_cast<std::byte*>(memory);
        std::byte* ours = lane.memory + at * lane.unit_bytes;
        const auto bytes = static_cast<std::size_t>(mine * lane.unit_bytes);
        moves.push_back(way_in ? Move{ours, theirs, bytes} : Move{theirs, ours, bytes});
      }
      at += mine;
    }
    copy_all(moves);
    if (way_in) FULCRUM_CHECK(hooks_.run(whole, *items.front().call.terms));
  }
  for (Item& item : items) item.call.keep = {};
  return {};
}

}  // namespace fulcrum::executor
