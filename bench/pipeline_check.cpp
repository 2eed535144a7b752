// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What fusing gains, paired and interleaved: conv_entropy_segment against conv2d, pixel_entropy and image_segmentation
// one after the other on the same image, whose labels must be the same bytes. Also how the time of pixel_entropy grows
// from a window of 9 to one of 25. Prints a table and writes pipeline_check.json.
//   pipeline_check [SECONDS A PAIR]
#include <fmt/format.h>
#include <fulcrum/machine.h>
#include <fulcrum/measure.h>
#include <fulcrum/ops/conv_entropy_segment.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace {

using namespace fulcrum;

constexpr std::string_view kImage = "h=1080,w=1920";

// A problem and the call on it; pointers may be bent to the buffers of another before the call is made.
struct Step {
  ops::Problem problem;
  std::optional<backends::Call> call = {};

  static Result<Step> make(std::string_view op, const std::string& shape) {
    FULCRUM_TRY(const ops::Op* found, ops::find(op));
    FULCRUM_TRY(const Shape parsed, parse_shape(shape));
    FULCRUM_TRY(ops::Problem problem, ops::Problem::make(*found, parsed));
    return Step{std::move(problem)};
  }
  Status bind(std::string_view backend) {
    FULCRUM_TRY(const backends::Kernel kernel, backends::kernel(problem.op().name, backend));
    FULCRUM_TRY(backends::Call made, backends::Call::make(kernel, problem.args()));
    call.emplace(std::move(made));
    return {};
  }
};

measure::Subject one_after_the_other(std::string name, std::vector<Step*> steps) {
  return {.name = std::move(name), .run = [steps = std::move(steps)](std::int64_t count) -> Status {
            for (std::int64_t i = 0; i < count; ++i) {
              for (Step* step : steps) {
                if (step->call->run().code != FULCRUM_OK) return Error{Code::internal, "a kernel failed", ""};
              }
            }
            return {};
          }};
}

Status report(const std::string& what, std::string_view backend, const Comparison& x, Json& document) {
  fmt::print("{:<52} {:<8} {:.3f} [{:.3f}, {:.3f}], {} rounds, {} against {}\n", what, backend, x.speedup,
             x.ci_low, x.ci_high, x.rounds, human_seconds(stats::median(x.seconds_a)),
             human_seconds(stats::median(x.seconds_b)));
  std::fflush(stdout);
  document["ratios"].push_back({{"what", what},
                                {"backend", backend},
                                {"ratio", x.speedup},
                                {"low", x.ci_low},
                                {"high", x.ci_high},
                                {"rounds", x.rounds},
                                {"seconds_a", stats::median(x.seconds_a)},
                                {"seconds_b", stats::median(x.seconds_b)}});
  return {};
}

Status fused(int window, std::string_view backend, const measure::Config& config, Json& document) {
  const std::string conv = fmt::format("{},kh=3,kw=3,pad_y=1,pad_x=1", kImage);
  FULCRUM_TRY(Step whole, Step::make("conv_entropy_segment", fmt::format("{},W={},t=1", conv, window)));
  const Args& args = whole.problem.args();
  const ops::EntropyBins bins = ops::Pipeline(args).bins(args.in<float>(ops::Pipeline::kK));
  const double lo = bins.lo, hi = bins.hi;
  FULCRUM_TRY(Step first, Step::make("conv2d", conv));
  FULCRUM_TRY(Step second,
              Step::make("pixel_entropy", fmt::format("{},W={},lo={},hi={}", kImage, window, lo, hi)));
  FULCRUM_TRY(Step third, Step::make("image_segmentation", fmt::format("{},t=1", kImage)));
  first.problem.args().ptr[0] = args.ptr[ops::Pipeline::kX];
  first.problem.args().ptr[1] = args.ptr[ops::Pipeline::kK];
  second.problem.args().ptr[0] = first.problem.args().ptr[2];
  third.problem.args().ptr[0] = second.problem.args().ptr[1];
  for (Step* step : {&whole, &first, &second, &third}) FULCRUM_CHECK(step->bind(backend));
  const measure::Subject a = one_after_the_other("fused", {&whole});
  const measure::Subject b = one_after_the_other("unfused", {&first, &second, &third});
  FULCRUM_CHECK(a.run(1));
  FULCRUM_CHECK(b.run(1));
  if (!std::ranges::equal(whole.problem.buffer(2), third.problem.buffer(1)))
    return Error{Code::wrong_result, "the labels of the two ways differ", ""};
  FULCRUM_TRY(const Comparison comparison, measure::compare(a, b, config));
  return report(fmt::format("fused, W={}, speed over the three ops", window), backend, comparison, document);
}

Status windows(std::string_view backend, const measure::Config& config, Json& document) {
  FULCRUM_TRY(Step small, Step::make("pixel_entropy", fmt::format("{},W=9", kImage)));
  FULCRUM_TRY(Step large, Step::make("pixel_entropy", fmt::format("{},W=25", kImage)));
  for (Step* step : {&small, &large}) FULCRUM_CHECK(step->bind(backend));
  FULCRUM_TRY(const Comparison comparison, measure::compare(one_after_the_other("W=9", {&small}),
                                                            one_after_the_other("W=25", {&large}), config));
  return report("pixel_entropy, time of W=25 over that of W=9", backend, comparison, document);
}

Status run(const measure::Config& config, Json& document) {
  for (const std::string_view backend : {"simd", "threads"}) {
    for (const int window : {8, 9}) FULCRUM_CHECK(fused(window, backend, config, document));
    FULCRUM_CHECK(windows(backend, config, document));
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == '-') {
    fmt::print(stderr, "pipeline_check [SECONDS A PAIR]\n");
    return 2;
  }
  const measure::Config config{.precision = 0.002, .budget_seconds = argc > 1 ? std::atof(argv[1]) : 3.0};
  const CpuTopology cpu = machine::discover_cpu();
  Json document = {{"schema", "fulcrum.pipeline_check/1"},
                   {"version", build_info().version},
                   {"commit", fmt::format("{}{}", build_info().commit, build_info().dirty ? "+changed" : "")},
                   {"machine", {{"cpu", cpu.model}, {"threads", cpu.usable_threads}}},
                   {"date", utc_now()},
                   {"image", kImage},
                   {"ratios", Json::array()}};
  if (const Status status = run(config, document); !status.ok()) {
    fmt::print(stderr, "{}\n", status.error().message);
    return 3;
  }
  std::FILE* file = std::fopen("pipeline_check.json", "w");
  if (!file) return 3;
  fmt::print(file, "{}\n", document.dump(1));
  std::fclose(file);
  return 0;
}
