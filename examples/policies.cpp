// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What an executor may do is a policy, and with() gives another handle on the same table, tracker and device: here one
// that may use tensor cores, one that is bound to a backend and never falls back, and one that decides the same way twice.
#include <fulcrum/executor.h>

#include <cstdio>

using namespace fulcrum;

int main() {
  const auto made = Executor::make();
  if (!made.ok()) return std::puts(made.error().message.c_str()), 1;
  const std::int64_t n = 96;
  std::vector<float> a(n * n, 0.5F), b(n * n, 2.0F), c(n * n);

  // Ten bits of mantissa are enough: kernels of that precision stand in the list too, where there are any.
  Policy fast = made->policy();
  fast.precisions = {"fp32", "tf32"};
  if (!made->with(fast).matmul(a, b, c, n, n, n).ok() || c[0] != 96.0F) return 1;

  // The caller has decided: this backend, or an error.
  Policy mine = made->policy();
  mine.backend = "simd";
  mine.strict = true;
  const Executor pinned = made->with(mine);
  if (!pinned.matmul(a, b, c, n, n, n).ok()) return 1;
  mine.backend = "abacus";
  const Status refused = made->with(mine).matmul(a, b, c, n, n, n);
  std::printf("pinned to an abacus: %s\n", refused.ok() ? "ran" : refused.error().message.c_str());
  if (refused.ok()) return 1;

  // By the table alone: no learning, no trials, the same answer every time.
  Policy still = made->policy();
  still.frozen = true;
  still.throughput = true;  // many callers at once: a call counts by the share of the threads it holds
  const auto shape = parse_shape("M=96,N=96,K=96");
  const auto why = made->with(still).explain("matmul", *shape, executor::Place::host);
  if (!why.ok() || why->ways.empty()) return 1;
  std::printf("with many callers it runs on %s\n", why->ways.front().name.c_str());
  return 0;
}
