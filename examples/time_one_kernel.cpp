// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Time one kernel from your own program: how to time is data, and the result carries its own doubt.
#include <fulcrum/fulcrum.h>

#include <cstdio>

using namespace fulcrum;

namespace {

Result<Measurement> time_sigmoid() {
  FULCRUM_TRY(const backends::Kernel kernel, backends::kernel("sigmoid", "simd"));
  FULCRUM_TRY(const ops::Op* op, ops::find("sigmoid"));
  FULCRUM_TRY(const Shape shape, parse_shape("n=100000"));
  FULCRUM_TRY(ops::Problem problem, ops::Problem::make(*op, shape));
  const measure::Config config{.cache = Cache::warm, .precision = 0.01, .budget_seconds = 1};
  return measure::run(kernel, problem, config);  // checks the result first: a wrong kernel has no time
}

}  // namespace

int main() {
  const Result<Measurement> m = time_sigmoid();
  if (!m.ok()) {
    std::fprintf(stderr, "%s\n%s\n", m.error().message.c_str(), m.error().hint.c_str());
    return exit_code(m.error().code);
  }
  std::printf("%s on %s: %s\n", m->name().c_str(), m->isa.c_str(), report::estimate_text(m->seconds).c_str());
  std::printf("%lld samples, stopped by %s, %s\n", static_cast<long long>(m->samples),
              to_string(m->stop_reason).data(), to_string(m->quality).data());
  return 0;
}
