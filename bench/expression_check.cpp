// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What one pass gains over one op after the other: chains of four element-wise ops, fused and op by op, interleaved. Op
// by op each op is the suite's own SIMD kernel where the suite has it, in the variant that is fastest at this size, and
// writes a buffer of its own; beside it stands the same with all ops but the first in place. One and all threads. Beside
// each ratio stands what allows it: the ratio of the bytes that must move, and the ratio that a pass would reach which
// moves its bytes as fast as the suite's relu moves its own, or computes as fast as it does in cache.
//   expression_check [N [SECONDS [PROGRAM]]]
#include <fmt/format.h>
#include <fulcrum/machine.h>
#include <fulcrum/measure.h>
#include <fulcrum/ops/expression.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace {

using namespace fulcrum;
using ops::Tape;
using ops::TapeCode;

using Floats = std::vector<float>;

/// One op as a call: the suite's where it has it, else a tape of one step.
struct Step {
  std::string op;
  Args args{};
  int in = 0, out = 1;  // pointer slots of what comes from the step before and of the result
  std::shared_ptr<Tape> tape;
};

Step step_of(const ops::TapeStep& from, std::int64_t n, std::span<Floats> leaves) {
  Step step;
  step.args.dim[0] = n;
  switch (from.code) {
    case TapeCode::clip:
    case TapeCode::leaky_relu:
      step.op = from.code == TapeCode::clip ? "clip" : "leaky_relu";
      step.args.scalar[0].f = from.p;
      step.args.scalar[1].f = from.q;
      return step;
    case TapeCode::gelu:
      step.op = "gelu";
      return step;
    case TapeCode::add:
      if (from.a == ops::kTapeConst) break;
      step.op = "vec_add";
      step.args.dim[1] = 1;
      step.args.ptr[1] = leaves[from.a].data();
      step.out = 3;
      return step;
    default:
      break;
  }
  step.op = "expression";
  step.out = ops::kTapeResult;
  step.tape = std::make_shared<Tape>(Tape{.length = 2, .leaves = 1});
  step.tape->step[1] = from;
  if (from.a != ops::kTapeConst) {
    step.args.ptr[1] = leaves[from.a].data();
    step.tape->leaves = 2;
    step.tape->step[1].a = 1;
  }
  step.args.scalar[0].i = static_cast<std::int64_t>(ops::Program::custom);
  step.args.prepared = step.tape.get();
  return step;
}

double seconds_of(backends::Call& call) {
  double best = 1e9;
  for (int i = 0; i < 6; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (call.run().code != FULCRUM_OK) std::abort();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

/// The op in the faster of its variants with ordinary and with streaming stores.
Result<backends::Call> fastest(const std::string& op, const char* backend, const Args& args,
                               std::string& names) {
  std::optional<backends::Call> best;
  std::string name;
  double least = 1e9;
  for (const char* variant : {"default", "stream"}) {
    FULCRUM_TRY(const backends::Kernel kernel, backends::kernel(op, backend, variant));
    FULCRUM_TRY(backends::Call call, backends::Call::make(kernel, args));
    if (const double seconds = seconds_of(call); seconds < least) {
      least = seconds;
      best.emplace(std::move(call));
      name = kernel.name();
    }
  }
  names += (names.empty() ? "" : ", ") + name;
  return std::move(*best);
}

measure::Subject subject(std::string name, std::vector<backends::Call>& calls) {
  return measure::Subject{.name = std::move(name), .run = [&calls](std::int64_t count) -> Status {
                            for (std::int64_t i = 0; i < count; ++i) {
                              for (backends::Call& call : calls) FULCRUM_CHECK(to_status(call.run()));
                            }
                            return {};
                          }};
}

/// Floats that a step reads: the result of the one before, and leaves.
int reads_of(const ops::TapeStep& step) {
  int reads = 1;
  for (int k = 0; k < ops::operands_of(step.code); ++k)
    reads += (k == 0 ? step.a : step.b) != ops::kTapeConst;
  return reads;
}

/// What a pass over `n` floats of a chain can hope for.
struct Bound {
  double bytes = 0, op_by_op_bytes = 0;
  double memory_seconds = 0, compute_seconds = 0;
  double seconds() const { return std::max(memory_seconds, compute_seconds); }
};

struct Chain {
  const char* name;
  ops::Program program;
};

class Check {
 public:
  Check(std::int64_t n, double budget_seconds) : n_(n), budget_seconds_(budget_seconds), buffers_(6) {
    for (std::size_t b = 0; b < buffers_.size(); ++b) {
      buffers_[b].resize(static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < buffers_[b].size(); ++i)
        buffers_[b][i] = ops::random_uniform(ops::tensor_key(static_cast<int>(b)), i, -4, 4);
    }
  }

  Status run(const Chain& chain, const char* backend, Json& rows) {
    Args args{};
    args.dim[0] = n_;
    args.scalar[0].i = static_cast<std::int64_t>(chain.program);
    const Tape& tape = *ops::tape_of(args);
    for (int leaf = 0; leaf < tape.leaves; ++leaf)
      args.ptr[leaf] = buffers_[static_cast<std::size_t>(leaf)].data();
    args.ptr[ops::kTapeResult] = buffers_[5].data();
    std::string fused_name;
    std::vector<backends::Call> fused;
    FULCRUM_TRY(backends::Call one, fastest("expression", backend, args, fused_name));
    fused.push_back(std::move(one));
    FULCRUM_TRY(const Bound bound, bound_of(tape, args, backend));
    for (const bool in_place : {false, true}) {
      std::string names;
      std::vector<backends::Call> calls;
      FULCRUM_CHECK(op_by_op(tape, backend, in_place, calls, names));
      measure::Config config;
      config.budget_seconds = budget_seconds_;
      FULCRUM_TRY(const Comparison compared,
                  measure::compare(subject("fused", fused), subject("op by op", calls), config));
      const std::string how = in_place ? "in place" : "own buffers";
      const double best = stats::median(compared.seconds_b) / bound.seconds();
      fmt::print("{:<12} {:<8} {:<12} {:>9} {:>9}   {:.2f} x [{:.2f}, {:.2f}] {:>8.2f} {:>8.2f} {:>6.0f} %\n",
                 chain.name, backend, how, human_seconds(stats::median(compared.seconds_a)),
                 human_seconds(stats::median(compared.seconds_b)), compared.speedup, compared.ci_low,
                 compared.ci_high, bound.op_by_op_bytes / bound.bytes, best, 100 * compared.speedup / best);
      std::fflush(stdout);
      rows.push_back({{"program", chain.name},
                      {"backend", backend},
                      {"n", n_},
                      {"intermediates", how},
                      {"fused", fused_name},
                      {"op_by_op", names},
                      {"ratio", compared.speedup},
                      {"low", compared.ci_low},
                      {"high", compared.ci_high},
                      {"rounds", compared.rounds},
                      {"bytes_ratio", bound.op_by_op_bytes / bound.bytes},
                      {"memory_seconds", bound.memory_seconds},
                      {"compute_seconds", bound.compute_seconds},
                      {"bound_ratio", best},
                      {"fused_seconds", stats::median(compared.seconds_a)},
                      {"op_by_op_seconds", stats::median(compared.seconds_b)}});
    }
    return {};
  }

 private:
  /// `args`: of the whole pass.
  Result<Bound> bound_of(const Tape& tape, Args args, const char* backend) {
    Bound bound;
    const double bytes = 4.0 * static_cast<double>(n_);
    bound.bytes = bytes * (tape.leaves + 1);
    for (int i = 1; i < tape.length; ++i) bound.op_by_op_bytes += bytes * (reads_of(tape.step[i]) + 1);
    Args copy{};
    copy.dim[0] = n_;
    copy.ptr[0] = buffers_[0].data();
    copy.ptr[1] = buffers_[4].data();
    std::string ignored;
    FULCRUM_TRY(backends::Call relu, fastest("relu", backend, copy, ignored));
    bound.memory_seconds = seconds_of(relu) * bound.bytes / (2 * bytes);
    constexpr std::int64_t kInCache = 4096, kTimes = 256;
    args.dim[0] = kInCache;
    FULCRUM_TRY(const backends::Kernel kernel, backends::kernel("expression", "simd", "default"));
    FULCRUM_TRY(backends::Call pass, backends::Call::make(kernel, args));
    double least = 1e9;
    for (int round = 0; round < 16; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      if (pass.run(kTimes).code != FULCRUM_OK) std::abort();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      least = std::min(least, took.count() / kTimes);
    }
    const int threads = std::string_view(backend) == "simd" ? 1 : backends::usable_threads();
    bound.compute_seconds = least * static_cast<double>(n_) / kInCache / threads;
    return bound;
  }

  Status op_by_op(const Tape& tape, const char* backend, bool in_place, std::vector<backends::Call>& calls,
                  std::string& names) {
    float* from = buffers_[0].data();
    for (int i = 1; i < tape.length; ++i) {
      Step step = step_of(tape.step[i], n_, buffers_);
      float* to = in_place || i % 2 == 1 ? buffers_[4].data() : buffers_[5].data();
      step.args.ptr[step.in] = from;
      step.args.ptr[step.out] = to;
      FULCRUM_TRY(backends::Call call, fastest(step.op, backend, step.args, names));
      calls.push_back(std::move(call));
      if (step.tape) tapes_.push_back(step.tape);
      from = to;
    }
    return {};
  }

  std::int64_t n_;
  double budget_seconds_;
  std::vector<Floats> buffers_;  // leaves at 0 to 3, results at 4 and 5
  std::vector<std::shared_ptr<Tape>> tapes_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == '-') {
    fmt::print(stderr, "expression_check [N [SECONDS [PROGRAM]]]\n");
    return 2;
  }
  const std::int64_t n = argc > 1 ? std::atoll(argv[1]) : 1 << 24;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 5;
  const std::string_view only = argc > 3 ? argv[3] : "";
  const CpuTopology cpu = machine::discover_cpu();
  Json document = {{"schema", "fulcrum.expression_check/1"},
                   {"version", build_info().version},
                   {"commit", fmt::format("{}{}", build_info().commit, build_info().dirty ? "+changed" : "")},
                   {"machine", {{"cpu", cpu.model}, {"threads", cpu.usable_threads}}},
                   {"date", utc_now()},
                   {"rows", Json::array()}};
  Check check(n, seconds);
  fmt::print("{:<12} {:<8} {:<12} {:>9} {:>9}   {:<21} {:>8} {:>8} {:>8}\n", "program", "backend",
             "intermediate", "fused", "op by op", "op by op / fused", "bytes", "bound", "reached");
  constexpr Chain kChains[] = {{"unary4", ops::Program::unary4},
                               {"activation4", ops::Program::activation4},
                               {"chain4", ops::Program::chain4}};
  for (const Chain& chain : kChains) {
    if (!only.empty() && only != chain.name) continue;
    for (const char* backend : {"simd", "threads"}) {
      if (const Status status = check.run(chain, backend, document["rows"]); !status.ok()) {
        fmt::print(stderr, "{}: {}\n", chain.name, status.error().message);
        return 3;
      }
    }
  }
  std::FILE* file = std::fopen("expression_check.json", "w");
  if (!file) return 3;
  fmt::print(file, "{}\n", document.dump(1));
  std::fclose(file);
  return 0;
}
