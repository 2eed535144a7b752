// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The threads backend: every SIMD kernel that can do a part of its op, split over threads by the op's own rule. It
// has no kernels of its own. A variant keeps the name of the SIMD variant when it uses all threads that this process
// may use; t2, t4, ... use so many. Bits do not depend on the count: the op fixes the pieces and their order.
#include <fmt/format.h>
#include <fulcrum/backends.h>

#include <deque>
#include <memory>
#include <new>

#include "backends/plan_threads.h"
#include "backends/table.h"

namespace fulcrum::backends {

namespace simd {
const fulcrum_backend* backend();
}

namespace threads {
namespace {

// Two lines, which are fetched together: parts of it belong to different threads.
constexpr std::align_val_t kScratchAlign{128};

struct FreeScratch {
  void operator()(void* memory) const { ::operator delete(memory, kScratchAlign); }
};

/// What a call needs besides its arguments.
struct Plan {
  const fulcrum_kernel* inner = nullptr;
  ops::Split split;
  int threads = 1;
  std::unique_ptr<void, FreeScratch> scratch;
  void* inner_plan = nullptr;

  ~Plan() {
    if (inner_plan && inner->drop) inner->drop(inner_plan);
  }
};

std::span<const fulcrum_kernel> simd_kernels() {
  std::int64_t count = 0;
  const fulcrum_kernel* first = simd::backend()->kernels(&count);
  return {first, static_cast<std::size_t>(count)};
}

/// The SIMD kernel behind one of ours: the same variant, or `default` for t2, t4, ...
const fulcrum_kernel* inner_of(const fulcrum_kernel& kernel) {
  const fulcrum_kernel* plain = nullptr;
  for (const fulcrum_kernel& inner : simd_kernels()) {
    if (std::string_view(inner.op) != kernel.op) continue;
    if (std::string_view(inner.variant) == kernel.variant) return &inner;
    if (std::string_view(inner.variant) == "default") plain = &inner;
  }
  return plain;
}

using MakePlan = decltype(fulcrum_kernel::plan);

/// `inner_plan` names what makes the plan of the SIMD kernel. Where that has none for any data, there is none of ours.
fulcrum_status make(const fulcrum_kernel* self, const fulcrum_args* a, MakePlan fulcrum_kernel::*inner_plan,
                    void** made) {
  const auto op = ops::find(self->op);
  const fulcrum_kernel* inner = inner_of(*self);
  if (!op.ok() || !inner) return fulcrum_status{FULCRUM_UNSUPPORTED, "no SIMD kernel to split"};
  auto plan = std::make_unique<Plan>();
  plan->inner = inner;
  plan->split = op.value()->split;
  plan->threads = self->threads;
  const std::int64_t bytes = plan->split.scratch_bytes ? plan->split.scratch_bytes(*a) : 0;
  if (bytes > 0) {
    plan->scratch.reset(::operator new(static_cast<std::size_t>(bytes), kScratchAlign, std::nothrow));
    if (!plan->scratch) return fulcrum_status{FULCRUM_OUT_OF_MEMORY, "no memory for the parts of the result"};
  }
  if (inner->*inner_plan) {
    const PlanThreads all(self->threads);
    const fulcrum_status status = (inner->*inner_plan)(inner, a, &plan->inner_plan);
    if (status.code != FULCRUM_OK) return status;
    if (!plan->inner_plan && inner_plan == &fulcrum_kernel::plan_for_any) return done();
  }
  *made = plan.release();
  return done();
}

fulcrum_status make_plan(const fulcrum_kernel* self, const fulcrum_args* a, void** made) {
  return make(self, a, &fulcrum_kernel::plan, made);
}

fulcrum_status make_plan_for_any(const fulcrum_kernel* self, const fulcrum_args* a, void** made) {
  return make(self, a, &fulcrum_kernel::plan_for_any, made);
}

void drop_plan(void* plan) { delete static_cast<Plan*>(plan); }

struct Phase {
  const Plan* plan;
  const fulcrum_args* args;
  int number;
};

void run_pieces(void* context, std::int64_t begin, std::int64_t end) {
  const auto& phase = *static_cast<const Phase*>(context);
  phase.plan->inner->partial(phase.args, phase.number, begin, end, phase.plan->scratch.get());
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const Plan& plan = *static_cast<const Plan*>(a->plan);
  // Lines of their own, written only when something changes: then they stay in every core's cache from call to call.
  alignas(64) fulcrum_args args = *a;
  alignas(64) Phase phase{&plan, &args, 0};
  args.plan = plan.inner_plan;
  const int phases = plan.split.phase_count(args);
  for (std::int64_t call = 0; call < count; ++call) {
    for (int number = 0; number < phases; ++number) {
      if (phase.number != number) phase.number = number;
      parallel(plan.split.pieces(args, number), plan.threads, run_pieces, &phase);
      if (plan.split.combine) plan.split.combine(args, number, plan.scratch.get());
    }
  }
  return done();
}

/// 2, 4, ... below the number of threads that may be used, and their variant names.
struct Count {
  int threads;
  std::string name;
};
const std::deque<Count>& smaller_counts() {
  static const std::deque<Count> counts = [] {
    std::deque<Count> result;
    for (int threads = 2; threads < usable_threads(); threads *= 2) {
      result.push_back(Count{threads, fmt::format("t{}", threads)});
    }
    return result;
  }();
  return counts;
}

std::vector<fulcrum_kernel> make_table() {
  std::vector<fulcrum_kernel> table;
  for (const fulcrum_kernel& inner : simd_kernels()) {
    const auto op = ops::find(inner.op);
    if (!inner.partial || !op.ok() || op.value()->split.phases == 0) continue;
    fulcrum_kernel entry = inner;
    entry.plan = make_plan;
    if (entry.plan_for_any) entry.plan_for_any = make_plan_for_any;
    entry.drop = drop_plan;
    entry.run = run;
    entry.partial = nullptr;
    entry.threads = usable_threads();
    table.push_back(entry);
    if (std::string_view(inner.variant) != "default") continue;
    for (const Count& count : smaller_counts()) {
      entry.threads = count.threads;
      entry.variant = count.name.c_str();
      table.push_back(entry);
    }
  }
  return table;
}

const fulcrum_kernel* table(std::int64_t* count) {
  static const std::vector<fulcrum_kernel> table = make_table();
  *count = static_cast<std::int64_t>(table.size());
  return table.data();
}

const char* describe() {
  static const std::string text = fmt::format(R"({{"threads": {}}})", usable_threads());
  return text.c_str();
}

}  // namespace

const fulcrum_backend* backend() {
  static const fulcrum_backend backend{.abi_version = FULCRUM_ABI_VERSION,
                                       .struct_bytes = sizeof(fulcrum_backend),
                                       .name = "threads",
                                       .kind = "cpu",
                                       .describe = describe,
                                       .kernels = table};
  return &backend;
}

}  // namespace threads
}  // namespace fulcrum::backends
