// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Several element-wise ops as one pass: operators only build the expression, eval() decides once where it runs, reads
// each buffer once and writes the result once.
#include <fulcrum/executor/expression.h>

#include <cstdio>

using namespace fulcrum;

namespace {

Result<int> run() {
  FULCRUM_TRY(const Executor exec, Executor::make());
  constexpr std::int64_t kSize = 1 << 20;
  FULCRUM_TRY(Buffer<float> a, exec.buffer<float>(kSize));
  FULCRUM_TRY(Buffer<float> b, exec.buffer<float>(kSize));
  FULCRUM_TRY(Buffer<float> c, exec.buffer<float>(kSize));
  for (Buffer<float>* buffer : {&a, &b, &c}) {
    FULCRUM_TRY(const auto values, buffer->overwrite());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 100) / 50;
  }

  const Expression activation = gelu(clip((a + b) * c, -2, 2));  // nothing is computed yet
  FULCRUM_TRY(const Buffer<float> y, activation.eval(exec));

  FULCRUM_TRY(const auto why, activation.explain(exec));
  FULCRUM_TRY(const auto values, y.read());
  const executor::Counters counted = exec.counters();
  std::printf("y[30] = %.4f, %lld call, by %s\n", static_cast<double>(values[30]),
              static_cast<long long>(counted.calls), why.ways.front().name.c_str());
  return values[30] > 0.5F && counted.calls == 1 ? 0 : 1;
}

}  // namespace

int main() {
  const Result<int> result = run();
  if (result.ok()) return *result;
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  return exit_code(result.error().code);
}
