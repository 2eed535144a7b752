// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Is my new version faster? Two functions, interleaved round by round, and an interval for the ratio. No op and no
// kernel needed: anything that can be called can be compared.
#include <fulcrum/fulcrum.h>

#include <cstdio>
#include <numeric>
#include <vector>

using namespace fulcrum;

namespace {

double sum_with_one_accumulator(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum;
}

double sum_with_four_accumulators(const std::vector<float>& values) {
  double sums[4] = {};
  for (std::size_t i = 0; i + 4 <= values.size(); i += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] += values[i + lane];
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// Runs `count` calls and keeps the results alive, so that the compiler cannot drop them.
measure::Subject subject(const char* name, double (*sum)(const std::vector<float>&),
                         const std::vector<float>& values, double& sink) {
  return measure::Subject{.name = name, .run = [sum, &values, &sink](std::int64_t count) -> Status {
                            for (std::int64_t i = 0; i < count; ++i) sink += sum(values);
                            return {};
                          }};
}

}  // namespace

int main() {
  std::vector<float> values(4096);
  std::iota(values.begin(), values.end(), 0.0F);
  double sink = 0;
  const Result<Comparison> compared = measure::compare(
      subject("four accumulators", sum_with_four_accumulators, values, sink),
      subject("one accumulator", sum_with_one_accumulator, values, sink), {.budget_seconds = 1});
  if (!compared.ok()) {
    std::fprintf(stderr, "%s\n", compared.error().message.c_str());
    return exit_code(compared.error().code);
  }
  std::printf("%s\n", report::comparison_sentence(*compared).c_str());
  return sink > 0 ? 0 : 1;
}
