// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Every call where it is fastest: ops on plain vectors, no word about where they run, and errors that say what to do.
#include <fulcrum/executor.h>

#include <cstdio>

int main() {
  const auto made = fulcrum::Executor::make();
  if (!made.ok()) return std::puts(made.error().message.c_str()), 1;
  const fulcrum::Executor& exec = *made;

  std::vector<float> x(1'000'000, 0.5F), y(x.size()), z(x.size());
  float sum = 0;
  if (!exec.sigmoid(x, y).ok() || !exec.vec_add(x, y, z).ok() || !exec.dot(y, z, sum).ok()) return 1;

  std::vector<float> a(64 * 32, 1.0F), b(32 * 16, 2.0F), c(64 * 16);
  const fulcrum::Status product =
      exec.matmul(a, b, c, 64, 16, 32, {.epilogue = fulcrum::executor::Epilogue::relu});
  if (!product.ok()) return std::puts(product.error().message.c_str()), 1;
  std::printf("sum %.6g, c[0] %.6g\n", static_cast<double>(sum), static_cast<double>(c[0]));

  const fulcrum::Status wrong = exec.matmul(a, b, c, 64, 17, 32);  // sizes that do not fit
  std::printf("%s\n", wrong.error().message.c_str());
  const auto counters = exec.counters();
  std::printf("%lld calls decided, %lld on the device\n", static_cast<long long>(counters.calls),
              static_cast<long long>(counters.on_device));
  return wrong.ok() ? 1 : 0;
}
