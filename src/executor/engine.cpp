// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The life of a call. See engine.h.
#include "executor/engine.h"

#include <fmt/format.h>
#include <fulcrum/backends/device.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "executor/candidates.h"

namespace fulcrum::executor {
namespace {

constexpr std::int64_t kDefaultCapBytes = std::int64_t{16} << 30;

std::size_t thread_shard() {
  static std::atomic<std::size_t> next{0};
  static thread_local const std::size_t mine = next.fetch_add(1);
  return mine;
}

Result<const backends::Backend*> find_device(const Options& options) {
  if (!options.use_device) return nullptr;
  for (const backends::Backend* backend : backends::all()) {
    if (!options.device.empty() && backend->name() != options.device) continue;
    if (backend->kind() == "gpu" && backends::has_memory(*backend) && backend->available()) return backend;
  }
  if (options.device.empty()) return nullptr;
  FULCRUM_TRY(const backends::Backend* named, backends::find(options.device));
  return Error{Code::environment,
               fmt::format("{} cannot be used as a device: {}", options.device, named->why_not()),
               "leave Options::device empty to use what there is"};
}

std::int64_t cap_of(const backends::Backend& device, const Policy& policy) {
  if (policy.device_bytes > 0) return policy.device_bytes;
  const Json facts = device.describe();
  const std::int64_t memory = facts.value("memory_bytes", std::int64_t{0});
  return memory > 0 ? memory / 5 * 4 : kDefaultCapBytes;
}

bool allows(const Policy& policy, const Candidate& candidate, DType dtype) {
  if (candidate.kernel.dtype() != to_string(dtype)) return false;
  const std::string_view precision = candidate.kernel.precision();
  if (precision == "fp32" || (dtype == DType::f16 && precision == "fp16") ||
      (dtype == DType::bf16 && precision == "bf16")) {
    return true;
  }
  return std::find(policy.precisions.begin(), policy.precisions.end(), precision) != policy.precisions.end();
}

/// A kernel of the CPU that cannot do a call, or has no memory for its plan, leaves it to the others, as long as the
/// inputs are what they were.
bool is_left_to_others(const Request& request, const Error& error) {
  if (error.code != Code::unsupported && error.code != Code::out_of_memory) return false;
  for (int slot = 0; slot < request.facts->pointers; ++slot) {
    const bool writes = request.facts->slots[static_cast<std::size_t>(slot)].writes;
    if (writes && request.args.ptr[slot] && overwrites_input(request, slot)) return false;
  }
  return true;
}

}  // namespace

Engine::Engine(const Options& options)
    : options_(options),
      clock_(options.clock ? options.clock : &measure::steady_clock()),
      tracker_(options.policy.explore_credit),
      guards_(std::make_unique<Guards>()),
      no_guards_(std::make_unique<Guards>()),
      watch_([this](const void* prepared) {
        host_plans_.drop_over(prepared);
        if (!device_ || device_->alive()) device_plans_.drop_over(prepared);
      }) {
  find_known_ops(*guards_);
  find_known_ops(*no_guards_);
}

Engine::~Engine() {
  // Calls that still run may be the ones that lose the device.
  batches_.reset();
  pool_.drain();
  if (device_ && !device_->alive()) device_plans_.forget();
}

Result<std::shared_ptr<Engine>> Engine::make(const Options& options) {
  std::shared_ptr<Engine> engine(new Engine(options));
  FULCRUM_TRY(const backends::Backend* device, find_device(options));
  if (device) {
    engine->device_ = std::make_shared<Device>(device, engine->clock_, cap_of(*device, options.policy));
  }
  for (const ops::Op* op : ops::all()) {
    engine->index_.emplace(op, static_cast<int>(engine->facts_.size()));
    engine->facts_.push_back(facts_of(*op));
  }
  FULCRUM_TRY(auto table, load_table(device, options));
  engine->publish(std::move(table));
  return engine;
}

void Engine::publish(std::shared_ptr<const Table> table) {
  table->when_made([this, of = table.get()](int op, const OpTable& entry) { fill_guard(*of, op, entry); });
  const std::lock_guard lock(tables_mutex_);
  table_.store(table.get(), std::memory_order_release);
  tables_.push_back(std::move(table));
  clear_guards();
}

void Engine::clear_guards() {
  for (auto& guard : guards_->of) guard.below.store(0, std::memory_order_release);
}

/// With the first call of an op its guard is known. A table that was replaced in the meantime has no say.
void Engine::fill_guard(const Table& of, int op, const OpTable& entry) {
  const std::lock_guard lock(tables_mutex_);
  if (&of != table_.load(std::memory_order_acquire)) return;
  const OpTable::Guard guard = entry.guard();
  if (!guard.kernel) return;
  for (std::size_t known = 0; known < kKnownCount; ++known) {
    if (index_of(*guards_->op[known]) != op) continue;
    // The kernel is there before the size that lets calls through to it.
    guards_->of[known].kernel.store(guard.kernel, std::memory_order_release);
    guards_->of[known].below.store(guard.below, std::memory_order_release);
  }
}

int Engine::index_of(const ops::Op& op) const {
  const auto found = index_.find(&op);
  return found == index_.end() ? -1 : found->second;
}

std::shared_ptr<const Terms> Engine::terms_of(const Policy& policy) const {
  auto terms = std::make_shared<Terms>();
  terms->policy = policy;
  terms->allowed.resize(facts_.size());
  for (std::size_t op = 0; op < facts_.size(); ++op) {
    const auto candidates = table().candidates(static_cast<int>(op));
    for (std::size_t dtype = 0; dtype < kDTypes; ++dtype) {
      Terms::Masks& masks = terms->allowed[op][dtype];
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (!allows(policy, candidates[i], static_cast<DType>(dtype))) continue;
        const Mask bit = Mask{1} << i;
        masks.fallback |= bit;
        if (policy.backend.empty() || candidates[i].kernel.backend().name() == policy.backend)
          masks.first |= bit;
      }
      if (policy.strict) masks.fallback = masks.first;
    }
  }
  return terms;
}

Result<Request> Engine::shape_request(const ops::Op& op, const Args& args, DType dtype) const {
  Request request{.op = index_of(op), .dtype = dtype, .args = args};
  if (request.op < 0) {
    return Error{Code::not_found, fmt::format("the executor was made before {} was registered", op.name),
                 "make the executor after ops::add()"};
  }
  request.facts = &facts_[static_cast<std::size_t>(request.op)];
  request.args.plan = nullptr;
  if (!request.args.prepared && op.standing) request.args.prepared = op.standing();
  FULCRUM_CHECK(ops::check_args(op, request.args));
  return request;
}

/// Enough values, of the slot's type, that may be written where the call writes, in a buffer of this executor.
Status Engine::check_operand(const Request& request, int slot, const Operand& operand) const {
  if (operand.absent()) return {};
  const ops::Op& op = *request.facts->op;
  const auto refuse = [&](std::string_view what, std::string_view hint) {
    return Error{Code::invalid_argument,
                 fmt::format("{} of {} {}", ops::pointer_slot(op, slot).name, op.name, what),
                 std::string(hint)};
  };
  const std::int64_t needed = op.extent(request.args, slot);
  if (needed > operand.count())
    return refuse(fmt::format("has {} values where {} are needed", operand.count(), needed),
                  "pass all of them, or say smaller sizes");
  const DType type = ops::dtype_of(op, slot, request.dtype);
  if (!request.facts->is_list(request.args) && !operand.holds(type)) {
    return refuse(fmt::format("does not hold values of {}", to_string(type)),
                  "pass values of that type, or say another dtype where the op has one");
  }
  if (request.facts->slots[static_cast<std::size_t>(slot)].writes && !operand.writable())
    return refuse("is a result and may not be written", "pass memory that is not const");
  const Residence* home = operand.home();
  if (home && home->owner() != device_.get())
    return refuse("is a buffer of another executor", "make it with this one, or pass what it reads");
  return {};
}

Result<Request> Engine::request(const ops::Op& op, const Args& args, std::span<const Operand> operands,
                                DType dtype) const {
  FULCRUM_TRY(Request request, shape_request(op, args, dtype));
  for (std::size_t slot = 0; slot < operands.size(); ++slot) {
    const Operand& operand = operands[slot];
    if (slot >= static_cast<std::size_t>(request.facts->pointers)) {
      return Error{
          Code::invalid_argument,
          fmt::format("{} takes {} operands, not {}", op.name, request.facts->pointers, operands.size()),
          fmt::format("`fulcrum ops {}` lists them", op.name)};
    }
    FULCRUM_CHECK(check_operand(request, static_cast<int>(slot), operand));
    request.homes[slot] = operand.home();
    request.args.ptr[slot] = operand.home() ? operand.home()->identity() : operand.host();
  }
  FULCRUM_CHECK(ops::check_pointers(op, request.args, dtype));
  return request;
}

Traffic Engine::traffic_of(const Request& request, bool waive_moving) const {
  Traffic traffic;
  traffic.pinned = true;
  for (int slot = 0; slot < request.facts->pointers; ++slot) {
    const auto bit = static_cast<std::uint8_t>(1U << static_cast<unsigned>(slot));
    if (!request.args.ptr[slot]) {
      traffic.kept |= bit;
      continue;
    }
    const auto bytes = static_cast<double>(request.facts->bytes(request.args, slot, request.dtype));
    const SlotFacts& role = request.facts->slots[static_cast<std::size_t>(slot)];
    const Residence* home = request.homes[static_cast<std::size_t>(slot)];
    if (home && home->memory() != Residence::Memory::foreign) traffic.kept |= bit;
    bool moves = false;
    if (role.reads && !(home && (home->valid_on(Place::device) || (waive_moving && home->moving())))) {
      traffic.add_in(bytes);
      moves = true;
    }
    if (role.reads && home && !home->valid_on(Place::host)) {
      traffic.add_home(bytes);
      moves = true;
    }
    // A buffer whose data is on the device alone is one that calls there hand on to each other.
    if (role.writes && !(home && (home->stays_on_device() || !home->valid_on(Place::host)))) {
      traffic.add_out(bytes);
      moves = true;
    }
    const bool pinned = home ? home->memory() == Residence::Memory::pinned : (request.pinned & bit) != 0;
    if (moves && !pinned) traffic.pinned = false;
  }
  return traffic;
}

Traffic Engine::traffic_at(const Request& request, Place place) const {
  Traffic traffic;
  traffic.pinned = place == Place::device;  // as buffers of an executor with a device are
  traffic.kept = place == Place::device ? 0xff : 0;
  for (int slot = 0; slot < request.facts->pointers; ++slot) {
    const auto bytes = static_cast<double>(request.facts->bytes(request.args, slot, request.dtype));
    const SlotFacts& role = request.facts->slots[static_cast<std::size_t>(slot)];
    if (role.optional && !request.args.ptr[slot]) continue;
    if (role.reads && place == Place::host) traffic.add_in(bytes);
    if (role.reads && place == Place::device) traffic.add_home(bytes);
    if (role.writes && place == Place::host) traffic.add_out(bytes);
  }
  return traffic;
}

Mask Engine::allowed_now(const Request& request, Mask mask) const {
  const OpTable* entry = table_of(request.op);
  const auto candidates = entry ? entry->candidates() : std::span<const Candidate>{};
  const bool device = device_ && !request.facts->is_list(request.args) && device_->breaker().allows();
  const bool suspects = device_ && device_->breaker().has_quarantine();
  if (device && !suspects) return mask;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].place != Place::device) continue;
    if (!device || device_->breaker().quarantined(&candidates[i].kernel.entry())) mask &= ~(Mask{1} << i);
  }
  return mask;
}

Choice Engine::choose(const Request& request, const Traffic& traffic, Mask allowed) const {
  const OpTable* entry = table_of(request.op);
  if (!entry || allowed == 0) return Choice{.candidate = 255, .runner_up = 255};
  if ((allowed & (allowed - 1)) == 0) {  // one: nothing to choose
    const auto only = static_cast<std::uint8_t>(__builtin_ctz(allowed));
    const bool supported = entry->candidates()[only].kernel.supports(request.args);
    return Choice{.candidate = supported ? only : std::uint8_t{255}, .runner_up = only, .tier = Tier::pinned};
  }
  return entry->choose(request.args, traffic, allowed, tracker_);
}

std::optional<Trial> Engine::tried(const Asked& asked, const Terms& terms, const Choice& choice) {
  const bool wanted = terms.policy.explore_credit > 0 && !terms.policy.frozen && !terms.policy.strict;
  auto trial = wanted ? explored(asked, choice, tracker_) : std::nullopt;
  if (trial) explored_.fetch_add(1, std::memory_order_relaxed);
  return trial;
}

void Engine::book(const Candidate& candidate, double seconds) {
  Tally& mine = tally();
  auto& spent = candidate.place == Place::device ? mine.device_nanoseconds : mine.cpu_nanoseconds;
  spent.fetch_add(static_cast<std::int64_t>(seconds * 1e9), std::memory_order_relaxed);
}

/// Ski rental: what the call lost because its data is here and not there is booked on the blocks that would have to
/// move; when a block has lost as much as its move costs, it moves with the next call.
void Engine::rent(const Request& request, const Traffic& traffic, const Choice& choice, Mask allowed) {
  if (!device_ || traffic.in_bytes <= 0) return;
  Traffic resident = traffic;
  resident.in_bytes = 0;
  resident.in_copies = 0;
  for (int slot = 0; slot < request.facts->pointers; ++slot) {
    const Residence* home = request.homes[static_cast<std::size_t>(slot)];
    if (request.args.ptr[slot] && request.facts->slots[static_cast<std::size_t>(slot)].reads && !home) {
      return;  // plain memory moves with every call: nothing to keep
    }
  }
  const Choice there = choose(request, resident, allowed);
  if (there.candidate == 255 || table_of(request.op)->candidates()[there.candidate].place != Place::device)
    return;
  const double lost = static_cast<double>(choice.seconds) - static_cast<double>(there.seconds);
  if (lost <= 0) return;
  const std::vector<Price> with = table_of(request.op)->prices(request.args, traffic);
  const double moves = with[there.candidate].moves_seconds;
  for (int slot = 0; slot < request.facts->pointers; ++slot) {
    Residence* home = request.homes[static_cast<std::size_t>(slot)];
    if (!home || !request.facts->slots[static_cast<std::size_t>(slot)].reads || home->valid_on(Place::device))
      continue;
    const double share = static_cast<double>(home->bytes()) / traffic.in_bytes;
    home->rent(lost * share, moves * share);
  }
}

/// A shadow run is no part of the call: what it throws is not the call's.
void Engine::compare(const Asked& asked, const Request& request, const Terms& terms,
                     const Candidate& candidate, double seconds, Status& outcome) {
  try {
    if (auto right = shadow(asked, request, terms, candidate, seconds); !right.ok())
      outcome = std::move(right).take_error();
  } catch (const std::exception&) {
    // No memory for a second result: not compared.
  }
}

Status Engine::run(const Request& request, const Terms& terms) {
  try {
    return run_call(request, terms);
  } catch (const std::exception& thrown) {
    return error_of(thrown);
  }
}

Status Engine::run_call(const Request& request, const Terms& terms) {
  const Terms::Masks& masks =
      terms.allowed[static_cast<std::size_t>(request.op)][static_cast<std::size_t>(request.dtype)];
  Traffic traffic = traffic_of(request);
  traffic.throughput = terms.policy.throughput;
  Mask allowed = allowed_now(request, masks.first);
  if (terms.policy.strict) FULCRUM_CHECK(stand_by(request, traffic, masks.first, allowed));
  if (allowed == 0) {
    allowed = allowed_now(request, masks.fallback);
    if (allowed != 0 && masks.first == 0) say_fallback(request, Failure::absent, no_kernel(request, terms));
    if (allowed != 0 && masks.first != 0) say_kept_off(request);
  }
  Mask failed = 0;
  std::optional<Error> last;
  while (allowed != 0) {
    Choice choice = choose(request, traffic, allowed);
    if (choice.candidate == 255) {
      // Nothing of what the policy names takes these sizes: others do, unless it is strict.
      const Mask others = allowed_now(request, masks.fallback & ~failed) & ~allowed;
      if (others != 0) say_fallback(request, Failure::configuration, no_kernel(request, terms));
      failed |= allowed;
      allowed = others;
      continue;
    }
    const Asked asked{*table_of(request.op), request.op, request.args, traffic, allowed};
    const int timed = stands_for(asked.table, choice);
    std::optional<Trial> trial;
    if (failed == 0 && timed > 0) trial = tried(asked, terms, choice);
    if (trial) choice = trial->choice;
    const Candidate& candidate = table_of(request.op)->candidates()[choice.candidate];
    if (candidate.place == Place::device && !device_->breaker().claim()) {
      // Since it was asked, somebody else's call has begun to find out, or has found that the device is gone.
      if (trial) tracker_.settle(trial->taken_seconds, 0);
      const Mask device = mask_of(table_of(request.op)->candidates(), Place::device);
      if (terms.policy.strict) FULCRUM_CHECK(stand_by(request, traffic, masks.first, masks.first & ~device));
      failed |= device;
      allowed = allowed_now(request, masks.fallback & ~failed);
      continue;
    }
    Tally& mine = tally();
    // What the call takes is held against all that it moves.
    std::optional<Traffic> moved;
    if (candidate.place == Place::device) moved = traffic_of(request, false);
    const double begin = timed > 0 ? now() : 0;
    Status status = run_candidate(request, candidate);
    if (trial) tracker_.settle(trial->taken_seconds, now() - begin - trial->usual_seconds);
    if (status.ok()) {
      mine.calls.fetch_add(1, std::memory_order_relaxed);
      mine.by_tier[static_cast<std::size_t>(choice.tier)].fetch_add(1, std::memory_order_relaxed);
      if (candidate.place == Place::device) mine.on_device.fetch_add(1, std::memory_order_relaxed);
      const double seconds = timed > 0 ? now() - begin : 0;
      if (timed > 0 && !terms.policy.frozen) {
        book(candidate, seconds);
        learn({asked.table, asked.op, asked.args, moved ? *moved : traffic, asked.allowed}, choice, seconds,
              timed, tracker_);
      }
      if (candidate.place == Place::host) {
        rent(request, traffic, choice, allowed);
        if (terms.policy.shadow_share > 0) shadow_here(asked, request, terms, candidate, seconds);
        return {};
      }
      device_->breaker().succeeded();
      compare(asked, request, terms, candidate, seconds, status);
      return status;
    }
    last = std::move(status).take_error();
    if (last->code == Code::data_lost) lost_.fetch_add(1, std::memory_order_relaxed);
    if (last->code == Code::data_lost) return *last;
    if (candidate.place == Place::host) {
      if (terms.policy.strict || !is_left_to_others(request, *last)) return *last;
      say_fallback(request, classify(last->code), *last);
      if (!terms.policy.frozen) learn_refusal(asked, choice, tracker_);
      failed |= Mask{1} << choice.candidate;
      allowed = allowed_now(request, masks.fallback & ~failed);
      continue;
    }
    const Failure failure = device_->breaker().failed(candidate.kernel, *last);
    if (terms.policy.strict) return *last;
    say_fallback(request, failure, *last);
    if (failure == Failure::capacity) {
      const double cut_begin = now();
      const Status cut = run_in_pieces(request, candidate);
      if (cut.ok()) {
        book(candidate, now() - cut_begin);
        splits_.fetch_add(1, std::memory_order_relaxed);
        mine.calls.fetch_add(1, std::memory_order_relaxed);
        mine.on_device.fetch_add(1, std::memory_order_relaxed);
        return {};
      }
      if (cut.error().code != Code::out_of_memory) device_->breaker().failed(candidate.kernel, cut.error());
    }
    failed |= failure == Failure::configuration || failure == Failure::wrong_result
                  ? Mask{1} << choice.candidate
                  : mask_of(table_of(request.op)->candidates(), Place::device);
    allowed = allowed_now(request, masks.fallback & ~failed);
    traffic = traffic_of(request);
    traffic.throughput = terms.policy.throughput;
  }
  if (last) return *last;
  return no_kernel(request, terms);
}

Tally& Engine::tally() const { return tallies_[thread_shard() % tallies_.size()]; }

Status Engine::calibrate(const CalibrateConfig& config) {
  if (device_ && !device_->alive()) {
    return Error{
        Code::device_lost,
        fmt::format("{} was lost earlier in this process and cannot be measured", device_->backend().name()),
        "start the program again to calibrate; for the CPU alone, with Options::use_device = false"};
  }
  auto table = calibrate_table(device_ ? &device_->backend() : nullptr, options_, config);
  if (!table.ok()) {
    // What it measured with is none of Device: a loss that it met is noted here.
    if (device_) static_cast<void>(device_->note({static_cast<std::int32_t>(table.error().code), nullptr}));
    return table.error();
  }
  // What was learned says how far off the old table is.
  tracker_.forget();
  publish(std::move(table).value());
  return {};
}

}  // namespace fulcrum::executor
