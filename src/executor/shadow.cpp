// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Shadow runs: a share of the calls is run another way too, on results of its own, compared, and timed. A result of the
// device that differs is not handed out and its kernel goes into quarantine; both times together say what the choice cost.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "executor/alike.h"
#include "executor/candidates.h"
#include "executor/engine.h"

namespace fulcrum::executor {
namespace {

/// One call in 1 / share of this thread; the first one comes after half of that.
bool is_turn(double share) {
  if (share <= 0) return false;
  static thread_local double due = 0.5;
  due += share;
  if (due < 1) return false;
  due -= 1;
  return true;
}

/// A comparison that cannot be made says nothing of the call; data that is gone does.
Result<bool> not_compared(Error error) {
  if (error.code == Code::data_lost) return error;
  return true;
}

bool is_result(const Request& request, int slot) {
  return request.args.ptr[slot] && request.facts->slots[static_cast<std::size_t>(slot)].writes;
}

}  // namespace

/// A call over the same inputs, with memory of its own for results in place of the caller's.
struct Twin {
  Request request;
  std::array<std::vector<std::byte>, FULCRUM_SLOTS> results;
  std::array<std::unique_ptr<Residence>, FULCRUM_SLOTS> homes;  // of results that may stay on the device
};

namespace {

/// None where the call has overwritten its inputs, has no results, or takes arrays of pointers.
std::optional<Twin> twin_of(const Request& request) {
  const OpFacts& facts = *request.facts;
  if (facts.is_list(request.args) || ops::outputs(*facts.op, request.args) == 0) return {};
  std::optional<Twin> twin(std::in_place);
  twin->request = request;
  for (int slot = 0; slot < facts.pointers; ++slot) {
    const auto at = static_cast<std::size_t>(slot);
    if (!is_result(request, slot)) continue;
    if (overwrites_input(request, slot)) return {};
    // Zeroed, so that no page of it is new to the call that is timed.
    twin->results[at].resize(static_cast<std::size_t>(facts.bytes(request.args, slot, request.dtype)));
    twin->request.homes[at] = nullptr;
    twin->request.args.ptr[slot] = twin->results[at].data();
  }
  return twin;
}

/// `args` with the twin's results, which lie on the host.
Args with_results(const Request& request, Args args, const Twin& twin) {
  for (int slot = 0; slot < request.facts->pointers; ++slot) {
    if (is_result(request, slot)) args.ptr[slot] = twin.request.args.ptr[slot];
  }
  return args;
}

/// The way home of a result counts as it did in the choice: not where it stays where it was made.
bool pays_way_home(const Traffic& traffic, const Residence& home) {
  return traffic.out_copies > 0 && !home.stays_on_device();
}

/// What a way costs: under a policy for many callers at once a CPU call counts by the threads it holds.
double cost_of(const Candidate& candidate, double seconds, const Policy& policy) {
  if (!policy.throughput || candidate.place == Place::device) return seconds;
  return seconds * std::max(1, candidate.threads) / backends::usable_threads();
}

bool is_reduced(const Candidate& a, const Candidate& b) {
  return a.kernel.precision() != "fp32" || b.kernel.precision() != "fp32";
}

Error disagreement(const Request& request, const Candidate& suspect, const Candidate& other) {
  return Error{Code::wrong_result,
               fmt::format("{} and {} differ on {}", suspect.kernel.name(), other.kernel.name(),
                           ops::shape_of(*request.facts->op, request.args).text()),
               "the kernel is not used again in this process"};
}

}  // namespace

/// The operands where the host finds them. `paid_seconds` grows by what the way home of results took that pay for it.
Result<Args> Engine::seen_from_host(const Request& request, const Traffic& traffic, double& paid_seconds) {
  Args args = request.args;
  for (int slot = 0; slot < request.facts->pointers; ++slot) {
    Residence* home = request.homes[static_cast<std::size_t>(slot)];
    if (!home) continue;
    const double begin = now();
    FULCRUM_TRY(args.ptr[slot], home->host(true, false));
    if (is_result(request, slot) && pays_way_home(traffic, *home)) paid_seconds += now() - begin;
  }
  return args;
}

Result<double> Engine::run_twin(const Twin& twin, const Candidate& candidate) {
  const double begin = now();
  FULCRUM_CHECK(run_on_host(twin.request, candidate));
  return now() - begin;
}

/// The same on the device, as if the call had gone there: what is there already is used, what is not is copied to memory
/// that nobody keeps. No buffer moves, and none makes room. The results come to the host.
Result<double> Engine::run_twin_there(const Request& request, const Traffic& traffic,
                                      const Candidate& candidate, Twin& twin) {
  Request there = twin.request;
  for (int slot = 0; slot < request.facts->pointers; ++slot) {
    const auto at = static_cast<std::size_t>(slot);
    Residence* home = request.homes[at];
    if (!home || !request.args.ptr[slot]) continue;
    if (is_result(request, slot)) {
      const bool pinned = home->memory() == Residence::Memory::pinned;
      twin.homes[at] =
          std::make_unique<Residence>(static_cast<std::int64_t>(twin.results[at].size()), device_,
                                      pinned ? Residence::Memory::pinned : Residence::Memory::plain);
      there.homes[at] = twin.homes[at].get();
      there.args.ptr[slot] = twin.homes[at]->identity();
      if (!there.args.ptr[slot]) return Error{Code::out_of_memory, "no memory for a shadow's result", ""};
    } else if (!home->valid_on(Place::device)) {
      there.homes[at] = nullptr;
      FULCRUM_TRY(there.args.ptr[slot], home->host(true, false));
    }
  }
  Breaker& breaker = device_->breaker();
  if (!breaker.claim()) return Error{Code::device_busy, "the device is not in use", ""};
  const double begin = now();
  Status status = run_on_device(there, candidate, Eviction::none);
  double seconds = now() - begin;
  for (int slot = 0; status.ok() && slot < request.facts->pointers; ++slot) {
    const auto at = static_cast<std::size_t>(slot);
    if (!twin.homes[at]) continue;
    const double fetch_begin = now();
    auto fetched = twin.homes[at]->host(true, false);
    if (!fetched.ok()) {
      status = std::move(fetched).take_error();
      break;
    }
    if (pays_way_home(traffic, *request.homes[at])) seconds += now() - fetch_begin;
    twin.request.args.ptr[slot] = fetched.value();
  }
  if (!status.ok()) {
    breaker.failed(candidate.kernel, status.error());
    return std::move(status).take_error();
  }
  breaker.succeeded();
  return seconds;
}

Result<bool> Engine::shadow(const Asked& asked, const Request& request, const Terms& terms,
                            const Candidate& candidate, double seconds) {
  if (!is_turn(terms.policy.shadow_share)) return true;
  const auto candidates = asked.table.candidates();
  const Terms::Masks& masks =
      terms.allowed[static_cast<std::size_t>(request.op)][static_cast<std::size_t>(request.dtype)];
  const Mask cpu = mask_of(candidates, Place::host);
  // Where the policy leaves nothing but the device, what would answer in its place says whether it was right; that the
  // call went there was no choice of ours.
  const bool chosen = (asked.allowed & cpu) != 0;
  const Choice choice = choose(request, asked.traffic, (chosen ? asked.allowed : masks.fallback) & cpu);
  if (choice.candidate == 255) return true;
  const Candidate& other = candidates[choice.candidate];
  std::optional<Twin> twin = twin_of(request);
  if (!twin) return true;
  auto here = run_twin(*twin, other);
  if (!here.ok()) return not_compared(std::move(here).take_error());
  auto got = seen_from_host(request, asked.traffic, seconds);
  if (!got.ok()) return not_compared(std::move(got).take_error());
  const bool right = alike(*request.facts, request.dtype, *got, with_results(request, *got, *twin),
                           is_reduced(candidate, other));
  shadowed_.fetch_add(1, std::memory_order_relaxed);
  if (right && chosen)
    regret_.add(cost_of(candidate, seconds, terms.policy), cost_of(other, *here, terms.policy));
  if (right) return true;
  mismatches_.fetch_add(1, std::memory_order_relaxed);
  const Error error = disagreement(request, candidate, other);
  device_->breaker().failed(candidate.kernel, error);
  table_of(request.op)->renew();
  if (terms.policy.strict) return error;
  say_fallback(request, Failure::wrong_result, error);
  for (int slot = 0; slot < request.facts->pointers; ++slot) {
    const auto at = static_cast<std::size_t>(slot);
    if (twin->results[at].empty()) continue;
    void* to = request.args.ptr[slot];
    if (request.homes[at]) {
      FULCRUM_TRY(to, host_memory(request, slot, false, true));
    }
    std::memcpy(to, twin->results[at].data(), twin->results[at].size());
  }
  return false;
}

/// The best way of the device where it is in use, else the best other one of the CPU.
const Candidate* Engine::other_way(const Asked& asked, const Request& request, const Candidate& taken) const {
  const auto candidates = asked.table.candidates();
  const Mask own = Mask{1} << (&taken - candidates.data());
  for (const Place place : {Place::device, Place::host}) {
    const Mask others = allowed_now(request, asked.allowed & mask_of(candidates, place) & ~own);
    const Choice choice = choose(request, asked.traffic, others);
    if (choice.candidate != 255) return &candidates[choice.candidate];
  }
  return nullptr;
}

void Engine::shadow_here(const Asked& asked, const Request& request, const Terms& terms,
                         const Candidate& candidate, double seconds) {
  if (!is_turn(terms.policy.shadow_share)) return;
  try {
    const Candidate* other = other_way(asked, request, candidate);
    std::optional<Twin> twin = other ? twin_of(request) : std::nullopt;
    if (!twin) return;
    const bool there = other->place == Place::device;
    // Short calls are timed now and then, and another kernel of the CPU would find the operands in the caches: the way
    // that was taken is run again, so that both times are of a second run.
    if (seconds <= 0 || !there) {
      const auto again = run_twin(*twin, candidate);
      if (!again.ok()) return;
      seconds = *again;
    }
    const auto spent =
        there ? run_twin_there(request, asked.traffic, *other, *twin) : run_twin(*twin, *other);
    if (!spent.ok()) return;
    double ignored = 0;
    const auto own = seen_from_host(request, asked.traffic, ignored);
    if (!own.ok()) return;
    const bool right = alike(*request.facts, request.dtype, with_results(request, *own, *twin), *own,
                             is_reduced(candidate, *other));
    shadowed_.fetch_add(1, std::memory_order_relaxed);
    if (right) {
      regret_.add(cost_of(candidate, seconds, terms.policy), cost_of(*other, *spent, terms.policy));
      return;
    }
    mismatches_.fetch_add(1, std::memory_order_relaxed);
    const Error error = disagreement(request, *other, candidate);
    if (there) {
      device_->breaker().failed(other->kernel, error);
      table_of(request.op)->renew();
      return;
    }
    // Which of two kernels of the CPU is right is not known: both stay.
    const auto bit = static_cast<std::uint8_t>(1U << static_cast<unsigned>(Failure::wrong_result));
    Fallbacks& of = fallbacks_of_[static_cast<std::size_t>(request.op) % fallbacks_of_.size()];
    if ((of.said.fetch_or(bit, std::memory_order_relaxed) & bit) == 0) log(LogLevel::warning, error.message);
  } catch (const std::exception&) {
    // No memory for a second run: it says nothing of the first.
  }
}

Regret Engine::regret() const { return regret_.summary(); }

}  // namespace fulcrum::executor
