// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See guard_cost.h. The same eight elements by exec.relu() and by the kernel that it ends up with.
#include "executor/guard_cost.h"

#include <algorithm>
#include <array>

#include "executor/engine.h"

namespace fulcrum::executor {
namespace {

constexpr int kRounds = 201, kCalls = 500;

template <class Call>
double seconds_of(const measure::Clock& clock, const Call& call) {
  const double begin = clock.now();
  for (int i = 0; i < kCalls; ++i) {
    call();
    asm volatile("" ::: "memory");
  }
  return (clock.now() - begin) / kCalls;
}

}  // namespace

double guard_cost(const Executor& executor, const measure::Clock& clock) {
  alignas(64) std::array<float, 8> x{}, y{};
  const auto op = ops::find("relu");
  if (!op.ok()) return 0;
  const auto typed = [&] { static_cast<void>(executor.relu(x, y)); };
  typed();  // the first call of an op fits its table
  const Engine& engine = executor.engine();
  const OpTable* table = engine.table().of(engine.index_of(**op));
  const OpTable::Guard guard = table ? table->guard() : OpTable::Guard{};
  if (!guard.kernel || guard.below <= static_cast<std::int64_t>(x.size())) return 0;
  Args args{};
  args.ptr[0] = x.data(), args.ptr[1] = y.data();
  args.dim[0] = static_cast<std::int64_t>(x.size());
  const auto alone = [&] { static_cast<void>(guard.kernel->run(&args, nullptr, 1)); };
  std::vector<double> longer;
  for (int round = 0; round < kRounds; ++round) {
    const double before = seconds_of(clock, alone), with = seconds_of(clock, typed);
    longer.push_back(with - (before + seconds_of(clock, alone)) / 2);
  }
  return std::max(0.0, stats::median(longer));
}

}  // namespace fulcrum::executor
