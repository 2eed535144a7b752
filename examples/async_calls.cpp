// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls that nobody waits for yet: exec.async() has every function of the executor and returns futures. Small calls may
// also wait a little for each other and run as one.
#include <fulcrum/executor.h>

#include <cstdio>

using namespace fulcrum;

int main() {
  const auto made = Executor::make();
  if (!made.ok()) return std::puts(made.error().message.c_str()), 1;

  // Two independent calls at once; memory must stay until get() has returned.
  std::vector<float> x(200'000, 0.25F), y(x.size()), scores(1000), rows(1000 * 64, 0.5F), query(64, 1.0F);
  const auto activation = made->async().gelu(x, y);
  const auto similarity = made->async().cosine_similarity(query, rows, scores, 64);
  if (!activation.get().ok() || !similarity.get().ok()) return 1;
  std::printf("gelu(0.25) = %.4f, cosine %.3f\n", static_cast<double>(y[0]), static_cast<double>(scores[0]));

  // A hundred small calls, each of which may wait up to 200 us for its like.
  Policy policy = made->policy();
  policy.batch_latency_seconds = 200e-6;
  const Executor patient = made->with(policy);
  std::vector<std::vector<float>> a(100, std::vector<float>(1000, 1.0F)), b = a, out = a;
  const auto later = patient.async();
  std::vector<executor::Future> futures;
  for (std::size_t i = 0; i < a.size(); ++i) futures.push_back(later.vec_add(a[i], b[i], out[i]));
  later.flush();  // no more are coming: nobody needs to wait
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!futures[i].get().ok() || out[i][999] != 2.0F) return 1;
  }
  std::printf("100 sums, %lld of them in batches\n", static_cast<long long>(made->counters().batched));
  return 0;
}
