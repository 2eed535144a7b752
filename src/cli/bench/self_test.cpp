// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// bench --self-test: the harness compares a kernel with itself and with known slow-downs; then this very program and
// a copy of it, relinked where the build made one, compare one kernel with itself in fresh processes.
#include <fmt/format.h>
#include <fulcrum/measure.h>
#include <fulcrum/report.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/bench/kernels.h"
#include "cli/bench/plan.h"
#include "cli/bench/workers.h"

namespace fulcrum::cli {
namespace {

constexpr int kCopyComparisons = 8;
constexpr int kCopyPairs = 12;  // process pairs behind one comparison: the fewest that decide at 5 %
constexpr double kWorkerBudgetSeconds = 0.12;

/// Two copies of the program under paths of unlike length; the folder goes with the object.
class Copies {
 public:
  static Result<Copies> make() {
    FULCRUM_TRY(const std::filesystem::path program, own_program());
    std::error_code error;
    const auto folder =
        std::filesystem::temp_directory_path(error) / fmt::format("fulcrum-self-test-{}", getpid());
    Copies copies(folder, program.parent_path());
    const auto other = program.parent_path() / "fulcrum-relinked";
    copies.relinked_ = program.filename() == "fulcrum" && std::filesystem::exists(other, error);
    for (const int which : {0, 1}) {
      const auto path = copies.path(which);
      std::filesystem::create_directories(path.parent_path(), error);
      if (!error) {
        std::filesystem::copy_file(which == 1 && copies.relinked_ ? other : program, path, error);
      }
      if (error)
        return Error{Code::environment,
                     fmt::format("cannot copy the program to {}: {}", path.string(), error.message()),
                     "make room in the temporary folder"};
    }
    return copies;
  }
  Copies(Copies&& other) noexcept
      : folder_(std::exchange(other.folder_, {})),
        home_(std::move(other.home_)),
        relinked_(other.relinked_) {}
  Copies(const Copies&) = delete;
  ~Copies() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  /// Whether the second one is linked in another order, not only stored elsewhere.
  bool relinked() const { return relinked_; }
  std::filesystem::path path(int which) const {
    return folder_ / (which == 0 ? "a" : "b-under-a-much-longer-name-than-the-first") / "fulcrum";
  }
  /// Environments of unlike size move the stack; a copy finds its libraries where the original has them.
  ProcessOptions process(int which) const {
    ProcessOptions options;
    const std::string lib = (home_ / ".." / "lib").string();
    options.environment = {{"LD_LIBRARY_PATH", fmt::format("{}/fulcrum:{}:{}", lib, lib, home_.string())},
                           {"FULCRUM_SELF_TEST_PADDING", std::string(which == 0 ? 1 : 3000, 'x')}};
    return options;
  }

 private:
  Copies(std::filesystem::path folder, std::filesystem::path home)
      : folder_(std::move(folder)), home_(std::move(home)) {}
  std::filesystem::path folder_, home_;
  bool relinked_ = false;
};

struct CopyTest {
  bool relinked = false;
  int comparisons = 0, flagged = 0;
  double spread = 0;  // median |ln ratio| of single process pairs
};

Result<CopyTest> compare_copies(Context& context) {
  FULCRUM_TRY(const ops::Op* op, ops::find("vec_add"));
  FULCRUM_TRY(const backends::Kernel kernel, backends::kernel("vec_add", "simd"));
  FULCRUM_TRY(const Shape given, parse_shape("n=4096"));
  FULCRUM_TRY(const Shape shape, ops::complete(*op, given));
  const Group group{.op = op, .shape = shape};
  measure::Config config;
  config.budget_seconds = kWorkerBudgetSeconds;
  FULCRUM_TRY(const Copies copies, Copies::make());
  CopyTest test{.relinked = copies.relinked()};
  std::vector<double> spreads;
  for (; test.comparisons < kCopyComparisons && !interrupted(); ++test.comparisons) {
    std::vector<double> seconds[2];
    for (int pair = 0; pair < kCopyPairs && !interrupted(); ++pair) {
      context.progress(fmt::format("two copies in fresh processes: comparison {} of {}, pair {}",
                                   test.comparisons + 1, kCopyComparisons, pair + 1));
      for (int turn = 0; turn < 2; ++turn) {
        const int which = (pair + turn) % 2;  // ABBA: neither copy always comes first
        FULCRUM_TRY(
            const Measurement row,
            run_worker(worker_command(copies.path(which), group, kernel, config), copies.process(which)));
        seconds[which].push_back(row.seconds.median);
      }
      spreads.push_back(std::fabs(std::log(seconds[0].back() / seconds[1].back())));
    }
    if (interrupted()) break;
    test.flagged += stats::compare_paired(seconds[0], seconds[1]).excludes_one ? 1 : 0;
  }
  test.spread = stats::median(spreads);
  return test;
}

Json to_document(const measure::SelfTest& test, const Result<CopyTest>& copies) {
  Json json{{"schema", "fulcrum.self_test/1"},
            {"version", build_info().version},
            {"commit", fmt::format("{}{}", build_info().commit, build_info().dirty ? "+changed" : "")},
            {"passed", test.passed},
            {"failures", test.failures},
            {"same_kernel", {{"comparisons", test.comparisons}, {"flagged", test.flagged}}},
            {"coverage", test.coverage},
            {"minimum_detectable", test.minimum_detectable},
            {"clock_resolution_seconds", test.clock_resolution_seconds},
            {"clock_read_seconds", test.clock_read_seconds},
            {"wall_seconds", test.wall_seconds}};
  json["injected"] = Json::array();
  for (const auto& injected : test.injected) {
    json["injected"].push_back(Json{{"effect", injected.effect},
                                    {"comparisons", injected.comparisons},
                                    {"found", injected.found},
                                    {"covered", injected.covered}});
  }
  json["two_copies"] = copies.ok() ? Json{{"comparisons", copies->comparisons},
                                          {"flagged", copies->flagged},
                                          {"relinked", copies->relinked},
                                          {"pair_spread", copies->spread}}
                                   : Json(nullptr);
  return json;
}

std::string in_words(const measure::SelfTest& test, bool colour) {
  std::string text = fmt::format(
      "same kernel twice: {} of {} comparisons flagged as different\n"
      "  ({:.1f} %; nominal 5 %, at most 8 % allowed)\n\n",
      test.flagged, test.comparisons, 100.0 * test.flagged / std::max(1, test.comparisons));
  report::Table table({{"injected slow-down", report::Align::right},
                       {"found", report::Align::right},
                       {"interval covers it", report::Align::right}});
  for (const auto& injected : test.injected) {
    table.add({fmt::format("{:.0f} %", 100 * injected.effect),
               fmt::format("{} of {}", injected.found, injected.comparisons),
               fmt::format("{} of {}", injected.covered, injected.comparisons)});
  }
  text += table.text(colour);
  text += fmt::format("\ncoverage of the known effects: {:.1f} % (nominal 95 %)\n", 100 * test.coverage);
  text += test.minimum_detectable > 0
              ? fmt::format("smallest slow-down found in 80 % of comparisons: {:.0f} %\n",
                            100 * test.minimum_detectable)
              : "no slow-down tried was found in 80 % of comparisons\n";
  text += fmt::format("clock: resolution {}, one read {}\n", human_seconds(test.clock_resolution_seconds),
                      human_seconds(test.clock_read_seconds));
  return text;
}

std::string in_words(const Result<CopyTest>& copies) {
  if (!copies.ok()) return fmt::format("two copies of this program: not run, {}", copies.error().message);
  const std::string_view what =
      copies->relinked ? "this program and a relinked copy, in fresh processes"
                       : "two copies of this program (no relinked one is there), in fresh processes";
  return fmt::format(
      "{}: {} of {} comparisons flagged, single pairs differ by {:.1f} % (for information: --vs compares in "
      "one process)",
      what, copies->flagged, copies->comparisons, 100 * copies->spread);
}

}  // namespace

Result<Exit> bench_self_test(const Options& options, Context& context) {
  measure::SelfTestConfig config;
  if (options.has("budget")) config.budget_seconds = options.number("budget");
  config.interrupted = interrupted;
  config.progress = [&context](std::string_view stage, int done, int total) {
    context.progress(fmt::format("{}: {} of {}", stage, done, total));
  };
  FULCRUM_TRY(const measure::SelfTest test, measure::self_test(config));
  context.print(in_words(test, context.colour()));
  if (interrupted()) return Exit::interrupted;
  const Result<CopyTest> copies = compare_copies(context);
  context.progress("");
  context.print(report::wrap(in_words(copies), context.width(), 2) + "\n");
  FULCRUM_CHECK(context.write_json(to_document(test, copies)));
  if (interrupted()) return Exit::interrupted;
  for (const std::string& failure : test.failures) context.print("failed: " + failure + "\n");
  context.print(test.passed ? "passed\n"
                            : "not passed: do not trust small differences measured on this machine now\n");
  return test.passed ? Exit::ok : Exit::finding;
}

}  // namespace fulcrum::cli
