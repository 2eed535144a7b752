// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Data that stays where it is used: a Buffer moves to the device when that pays, results stay there until somebody reads
// them, and a chain of calls pays for the way in and out once.
#include <fulcrum/executor.h>

#include <cstdio>

using namespace fulcrum;

namespace {

Status run() {
  FULCRUM_TRY(const Executor exec, Executor::make());
  constexpr std::int64_t kCount = 4'000'000;
  FULCRUM_TRY(Buffer<float> x, exec.buffer<float>(kCount));
  FULCRUM_TRY(Buffer<float> y, exec.buffer<float>(kCount));
  FULCRUM_TRY(const auto values, x.overwrite());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1e-6F * static_cast<float>(i) - 2;
  y.stay_on_device();  // nobody reads it before the last step

  const executor::Counters before = exec.counters();
  for (int step = 0; step < 20; ++step) {
    FULCRUM_CHECK(exec.gelu(x, y));
    FULCRUM_CHECK(exec.tanh(y, y));
  }
  FULCRUM_TRY(const auto result, y.read());
  const executor::Counters after = exec.counters();
  std::printf("y[0] = %.6f; 40 calls, %lld on the device, %lld uploads, %lld downloads\n",
              static_cast<double>(result[0]), static_cast<long long>(after.on_device - before.on_device),
              static_cast<long long>(after.uploads - before.uploads),
              static_cast<long long>(after.downloads - before.downloads));

  // Memory of your own takes part without a copy on the host, as long as it lives.
  std::vector<float> mine(1000, 1.0F);
  const Buffer<float> wrapped = exec.wrap(std::span(mine));
  FULCRUM_CHECK(exec.relu(wrapped, wrapped));
  return {};
}

}  // namespace

int main() {
  const Status status = run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n%s\n", status.error().message.c_str(), status.error().hint.c_str());
  return exit_code(status.error().code);
}
