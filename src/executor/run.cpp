// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Running one candidate of a call: here, on the device, or there in pieces when memory is short.
#include <fmt/format.h>

#include <algorithm>

#include "executor/device_run.h"

namespace fulcrum::executor {
namespace {

constexpr std::int64_t kLeastPieceBytes = 1 << 20;  // below it a call in pieces is not worth another try

/// Bytes that a call takes on the device: results go into blocks of their own, inputs that are there need none.
std::int64_t room_for(const Request& request) {
  std::int64_t bytes = 0;
  for (int slot = 0; slot < request.facts->pointers; ++slot) {
    if (!request.args.ptr[slot]) continue;
    const auto at = static_cast<std::size_t>(slot);
    const Residence* home = request.homes[at];
    const std::int64_t size = home ? home->bytes() : request.facts->bytes(request.args, slot, request.dtype);
    if (request.facts->slots[at].writes) bytes += size;
    if (request.facts->slots[at].reads && !(home && home->valid_on(Place::device))) bytes += size;
  }
  return bytes;
}

/// A plan of the host depends on whether an operand is there, and on its address only where it reads it.
PlanKey host_key(const fulcrum_kernel& kernel, const Args& args, bool for_any = false) {
  static char somewhere;
  PlanKey key{.kernel = &kernel, .for_any = for_any, .args = args};
  for (std::size_t slot = 0; slot < FULCRUM_SLOTS; ++slot) {
    const bool matters = !for_any && (kernel.plan_reads >> slot & 1u) != 0;
    if (!matters && args.ptr[slot]) key.args.ptr[slot] = &somewhere;
  }
  return key;
}

/// Buffers of a call that is about to run, or runs, on the device.
class Uses {
 public:
  explicit Uses(const Request& request) : request_(request) {
    for (Residence* home : request_.homes) {
      if (home) home->begin_use();
    }
  }
  Uses(const Uses&) = delete;
  Uses& operator=(const Uses&) = delete;
  ~Uses() {
    for (Residence* home : request_.homes) {
      if (home) home->end_use();
    }
  }

 private:
  const Request& request_;
};

}  // namespace

bool overwrites_input(const Request& request, int slot) {
  const OpFacts& facts = *request.facts;
  const auto* out = static_cast<const std::byte*>(request.args.ptr[slot]);
  const std::int64_t out_bytes = facts.bytes(request.args, slot, request.dtype);
  for (int other = 0; other < facts.pointers; ++other) {
    const auto* in = static_cast<const std::byte*>(request.args.ptr[other]);
    if (!in || !facts.slots[static_cast<std::size_t>(other)].reads) continue;
    if (in < out + out_bytes && out < in + facts.bytes(request.args, other, request.dtype)) return true;
  }
  return false;
}

Result<void*> host_memory(const Request& request, int slot, bool read, bool write) {
  Residence* home = request.homes[static_cast<std::size_t>(slot)];
  if (!home) return request.args.ptr[slot];
  const bool partly = write && home->bytes() > request.facts->bytes(request.args, slot, request.dtype);
  return home->host(read || partly, write);
}

Status Engine::run_candidate(const Request& request, const Candidate& candidate) {
  if (ops::outputs(*request.facts->op, request.args) == 0) return {};
  return candidate.place == Place::device ? run_on_device(request, candidate)
                                          : run_on_host(request, candidate);
}

Status Engine::run_on_host(const Request& request, const Candidate& candidate) {
  Args args = request.args;
  for (int pass = 0; pass < 2; ++pass) {  // inputs first: a result that shares their block must not drop them
    for (int slot = 0; slot < request.facts->pointers; ++slot) {
      const SlotFacts& role = request.facts->slots[static_cast<std::size_t>(slot)];
      if (!request.homes[static_cast<std::size_t>(slot)] || role.writes != (pass == 1)) continue;
      FULCRUM_TRY(args.ptr[slot], host_memory(request, slot, role.reads, role.writes));
    }
  }
  const fulcrum_kernel& entry = candidate.kernel.entry();
  if (!entry.plan) return to_status(entry.run(&args, nullptr, 1));
  PlanKey key = host_key(entry, args);
  const bool keep = stamp(request, key);
  PlanKey any = host_key(entry, args, true);
  if (!keep && entry.plan_for_any && name_prepared(*request.facts->op, any)) {
    const PlanLease plan(host_plans_, any, args, true);
    if (!plan.get().ok()) return plan.get().error();
    args.plan = plan.get().value();
    if (args.plan) return to_status(entry.run(&args, nullptr, 1));
  }
  const PlanLease plan(host_plans_, key, args, keep);
  if (!plan.get().ok()) return plan.get().error();
  args.plan = plan.get().value();
  return to_status(entry.run(&args, nullptr, 1));
}

Status Engine::run_on_device(const Request& request, const Candidate& candidate, Eviction eviction) {
  const Uses uses(request);
  for (bool again = false;; again = true) {
    Status status;
    {
      DeviceRun run(*device_, device_plans_, request, candidate.kernel.entry());
      status = run.run();
    }
    if (again || status.ok() || status.error().code != Code::out_of_memory) return status;
    if (eviction == Eviction::none) return status;
    // Buffers of other calls that lie there make room: they are needed again later, or never; this call is here now.
    if (!device_->make_room(room_for(request))) return status;
  }
}

Status Engine::run_in_pieces(const Request& request, const Candidate& candidate) {
  const OpFacts& facts = *request.facts;
  const Error cannot{Code::out_of_memory, fmt::format("{} cannot be cut into pieces", facts.op->name), ""};
  if (!can_slice(facts, request.args)) return cannot;
  Request host = request;
  std::int64_t total = 0;
  for (int slot = 0; slot < facts.pointers; ++slot) {
    if (!request.args.ptr[slot]) continue;
    total += facts.bytes(request.args, slot, request.dtype);
    const auto at = static_cast<std::size_t>(slot);
    // Operands in buffers stay whole on the device; cutting them would copy them over and over. A call in place whose
    // first piece is done and whose second fails would have no inputs left to start again from.
    if (request.homes[at] || (facts.slots[at].writes && overwrites_input(request, slot))) return cannot;
  }
  const std::int64_t units = request.args.dim[facts.slice_dim];
  std::int64_t pieces = 2;
  while (total / pieces >= kLeastPieceBytes && pieces <= units) {
    const std::int64_t unit = std::max<std::int64_t>(1, facts.op->slice_unit);
    const std::int64_t step = ((units + pieces - 1) / pieces + unit - 1) / unit * unit;
    Status status;
    for (std::int64_t begin = 0; begin < units && status.ok(); begin += step) {
      host.args = slice(facts, request.args, request.dtype, begin, std::min(units, begin + step));
      status = run_on_device(host, candidate);
    }
    if (status.ok()) return {};
    if (status.error().code != Code::out_of_memory) return status;
    pieces *= 2;
  }
  return cannot;
}

}  // namespace fulcrum::executor
