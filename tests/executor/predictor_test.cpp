// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Predictions from few points: curves, closed forms, what is left over; all from made-up times.
#include "executor/predictor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "executor/candidates.h"
#include "executor/named_ops.h"
#include "executor/shapes.h"

namespace fulcrum::executor {
namespace {

double at(const Curve& curve, double size) { return std::exp(curve.at(size, std::log2(size)).log_seconds); }

TEST(Curve, IsAPowerLawBetweenNeighboursAndALineBeyondTheEnds) {
  const Curve curve({{100, 1e-6}, {400, 4e-6}, {1600, 32e-6}});
  EXPECT_NEAR(at(curve, 200), 2e-6, 1e-12);
  EXPECT_NEAR(at(curve, 800), std::sqrt(4e-6 * 32e-6), 1e-12);
  EXPECT_NEAR(at(curve, 3200), 32e-6 + 1600 * (28e-6 / 1200), 1e-12);
  EXPECT_NEAR(at(curve, 50), 1e-6 - 50 * (3e-6 / 300), 1e-12);
  EXPECT_NEAR(at(curve, 1), 0.2e-6, 1e-12) << "a call is never free";
  EXPECT_EQ(curve.at(800, std::log2(800)).beyond_octaves, 0);
  EXPECT_NEAR(curve.at(3200, std::log2(3200)).beyond_octaves, 1, 1e-9);
}

TEST(Curve, TakesTheMeanOfTimesOfOneSize) {
  const Curve curve({{100, 1e-6}, {100, 4e-6}, {200, 8e-6}});
  EXPECT_EQ(curve.size(), 2u);
  EXPECT_NEAR(at(curve, 100), 2e-6, 1e-12);
}

/// Times of a made-up machine: a fixed part, arithmetic that small dims slow down, and threads that fork.
double made_up(const Features& f, const Candidate& candidate) {
  const double rate = 40e9 * candidate.threads;
  double flops = f.flops;
  for (int i = 0; i < f.dims; ++i) flops += f.flops * 8 / f.dim[static_cast<std::size_t>(i)];
  const double fork = candidate.threads > 1 ? 4e-6 : 0;
  return 2e-7 + fork + flops / rate + f.bytes / 20e9;
}

OpPoints points_of(const ops::Op& op, std::span<const Candidate> candidates, int count) {
  const FeatureMap map(op);
  ShapeSource source(op, 3);
  OpPoints points;
  for (int i = 0; i < count; ++i) {
    const auto args = source.draw(1e-6, 1e-3);
    if (!args) continue;
    Point point{.args = *args};
    for (const Candidate& candidate : candidates)
      point.samples.push_back(Sample{.seconds = made_up(map.of(*args), candidate)});
    points.points.push_back(point);
  }
  return points;
}

TEST(Predictor, KnowsShapesItHasNotSeen) {
  const ops::Op& op = op_named("matmul");
  const auto candidates = candidates_of(op, nullptr);
  const FeatureMap map(op);
  const Predictor predictor(map, candidates, points_of(op, candidates, 24), Caches{});
  ShapeSource source(op, 99);
  double worst = 0;
  for (int i = 0; i < 50; ++i) {
    const auto args = source.draw(1e-6, 1e-3);
    ASSERT_TRUE(args);
    const Features f = map.of(*args);
    Estimates out;
    predictor.predict(f, 0b111, 0, out);
    for (std::size_t c = 0; c < 3; ++c)
      worst = std::max(
          worst, std::abs(static_cast<double>(out.log_seconds[c]) - std::log(made_up(f, candidates[c]))));
  }
  EXPECT_LT(worst, 0.15);
}

TEST(Predictor, OthersSayWhatATimeOfOnePointShouldBe) {
  const ops::Op& op = op_named("matmul");
  const auto candidates = candidates_of(op, nullptr);
  const FeatureMap map(op);
  OpPoints points = points_of(op, candidates, 40);
  constexpr std::size_t kPoint = 17;
  const double truth = points.points[kPoint].samples[1].seconds;
  points.points[kPoint].samples[1].seconds *= 2;
  const Predictor predictor(map, candidates, points, Caches{});
  const std::vector<double> others = predictor.left_out_seconds(1);
  ASSERT_EQ(others.size(), points.points.size());
  EXPECT_NEAR(others[kPoint] / truth, 1, 0.25);
}

/// Candidates of a backend that is not there.
class MadeUpBackend {
 public:
  MadeUpBackend(const char* name, const char* op) : op_(op) {
    table_.name = name;
    table_.kind = "cpu";
  }
  Candidate add(const char* variant, int threads) {
    fulcrum_kernel& kernel = kernels_.emplace_back();
    kernel.op = op_;
    kernel.variant = variant;
    kernel.threads = threads;
    return {backends::Kernel(&backend_, &kernel), Place::host, threads};
  }
  fulcrum_kernel& last() { return kernels_.back(); }

 private:
  const char* op_;
  fulcrum_backend table_{};
  backends::Backend backend_{&table_};
  std::deque<fulcrum_kernel> kernels_;
};

/// One thread and eight of them, as the backends name them.
struct OneAndEight {
  explicit OneAndEight(const char* op) : one("simd", op), many("threads", op) {}
  std::vector<Candidate> candidates() { return {one.add("default", 1), many.add("default", 8)}; }
  MadeUpBackend one, many;
};

/// Nanoseconds in rows of 64 of the first dim, whatever else the call has: nothing that the op's work shows.
double by_rows(const fulcrum_args* args) {
  return 1000 + 500 * std::ceil(static_cast<double>(args->dim[0]) / 64);
}

TEST(Predictor, AKernelThatSaysWhatCallsTakeOfItGoesByThat) {
  const fulcrum_kernel entry{.op = "dendritic_integration",
                             .variant = "rows",
                             .supports = [](const fulcrum_args*) { return 0; },  // nobody else's call runs it
                             .run = [](const fulcrum_args*, void*, std::int64_t) { return fulcrum_status{}; },
                             .effort = by_rows};
  ASSERT_TRUE(backends::add("by_rows", entry).ok());
  const ops::Op& op = op_named("dendritic_integration");
  const FeatureMap map(op);
  const auto kernel = backends::kernel(op.name, "by_rows", "rows");
  ASSERT_TRUE(kernel.ok());
  EXPECT_GT(map.effort_of(*kernel), 0U);
  const std::vector<Candidate> candidates{{*kernel, Place::host, 1}};
  for (const int count : {3, 30}) {  // too few for a surface, and enough
    ShapeSource source(op, 5);
    OpPoints points;
    const auto truth = [](const Args& args) { return 3e-9 * by_rows(&args); };
    while (points.points.size() < static_cast<std::size_t>(count)) {
      if (const auto args = source.draw(1e-6, 1e-3))
        points.points.push_back({.args = *args, .samples = {Sample{.seconds = truth(*args)}}});
    }
    const Predictor predictor(map, candidates, points, Caches{});
    for (int i = 0; i < 50; ++i) {
      const auto args = source.draw(1e-6, 1e-3);
      ASSERT_TRUE(args);
      Estimates out;
      predictor.predict(map.of(*args), 1, 0, out);
      EXPECT_NEAR(static_cast<double>(out.log_seconds[0]), std::log(truth(*args)), 0.05);
    }
  }
}

TEST(Predictor, FindsTheSizeWhereAnotherPathOfAKernelBegins) {
  const ops::Op& op = op_named("image_segmentation");
  OneAndEight ways("image_segmentation");
  const auto candidates = ways.candidates();
  const FeatureMap map(op);
  // Up to 65 columns one thread takes 25 times as long.
  const auto seconds = [](const Features& f, const Candidate& candidate) {
    const double alone = 1e-7 + f.dim[0] * f.dim[1] * (f.dim[1] <= 65 ? 25e-9 : 1e-9);
    return candidate.threads > 1 ? 3e-6 + alone / 8 : alone;
  };
  OpPoints points;
  ShapeSource source(op, 3);
  for (int i = 0; i < 48; ++i) {
    const auto args = source.draw(1e-6, 1e-3);
    ASSERT_TRUE(args);
    Point point{.args = *args};
    for (const Candidate& candidate : candidates)
      point.samples.push_back(Sample{.seconds = seconds(map.of(*args), candidate)});
    points.points.push_back(point);
  }
  const Predictor predictor(map, candidates, points, Caches{});
  for (const char* shape : {"h=900,w=40", "h=900,w=110", "h=60,w=30", "h=60,w=300"}) {
    const Features f = map.of(args_of(op, shape));
    Estimates out;
    predictor.predict(f, 0b11, 0, out);
    for (std::size_t c = 0; c < 2; ++c)
      EXPECT_NEAR(out.log_seconds[c], std::log(seconds(f, candidates[c])), 0.35) << shape << " " << c;
  }
}

TEST(Predictor, WhatBendsOneThreadBendsManyOfThem) {
  const ops::Op& op = op_named("matmul");
  OneAndEight ways("matmul");
  const auto candidates = ways.candidates();
  const FeatureMap map(op);
  // A ripple that no term of the closed form has; the times of many threads are known at few points.
  const auto seconds = [](const Features& f, const Candidate& candidate) {
    const double alone = f.flops / 40e9 * std::exp(0.8 * std::sin(1.5 * std::log2(f.dim[2])));
    return candidate.threads > 1 ? 3e-6 + alone / 8 : 1e-7 + alone;
  };
  OpPoints points;
  ShapeSource source(op, 3);
  for (int i = 0; i < 90; ++i) {
    const auto args = source.draw(1e-4, 1e-3);
    ASSERT_TRUE(args);
    Point point{.args = *args};
    for (const Candidate& candidate : candidates)
      point.samples.push_back(
          Sample{.seconds = candidate.threads > 1 && i % 9 != 0 ? 0 : seconds(map.of(*args), candidate)});
    points.points.push_back(point);
  }
  const Predictor predictor(map, candidates, points, Caches{});
  double one = 0, many = 0;
  for (std::size_t i = 1; i < 90; i += 3) {
    const Features f = map.of(points.points[i].args);
    Estimates out;
    predictor.predict(f, 0b11, 0, out);
    one += std::abs(static_cast<double>(out.log_seconds[0]) - std::log(seconds(f, candidates[0]))) / 30;
    many += std::abs(static_cast<double>(out.log_seconds[1]) - std::log(seconds(f, candidates[1]))) / 30;
  }
  EXPECT_LT(one, 0.2);
  EXPECT_LT(many, one + 0.1) << "at points where one thread was measured and many were not";
}

TEST(Predictor, DoubtsWhatIsFarFromItsPoints) {
  const ops::Op& op = op_named("matmul");
  const auto candidates = candidates_of(op, nullptr);
  const FeatureMap map(op);
  OpPoints points = points_of(op, candidates, 24);
  points.grade = Grade::b;
  const Predictor predictor(map, candidates, points, Caches{});
  Estimates near, far;
  predictor.predict(map.of(points.points[0].args), 1, 0, near);
  predictor.predict(map.of(args_of(op, "M=100000,N=100000,K=100000")), 1, 0, far);
  EXPECT_EQ(near.grade, Grade::b);
  EXPECT_EQ(far.grade, Grade::c);
  EXPECT_GT(far.sigma[0], near.sigma[0]);
}

TEST(Predictor, ACandidateWithOneTimeFollowsItsSibling) {
  const ops::Op& op = op_named("relu");
  MadeUpBackend simd("simd", "relu");
  const std::vector<Candidate> candidates{simd.add("default", 1), simd.add("other", 1)};
  const FeatureMap map(op);
  OpPoints points = points_of(op, candidates, 12);
  for (std::size_t i = 0; i < points.points.size(); ++i) {
    auto& samples = points.points[i].samples;
    samples[1].seconds = i == 5 ? 3 * samples[0].seconds : 0;
  }
  const Predictor predictor(map, candidates, points, Caches{});
  Estimates out;
  predictor.predict(map.of(args_of(op, "n=300000")), 0b11, 0, out);
  EXPECT_NEAR(out.log_seconds[1] - out.log_seconds[0], std::log(3), 1e-3);
  EXPECT_GT(out.sigma[1], out.sigma[0]);
}

TEST(Predictor, CallsThatWereHeldUpOnManyThreadsAreLeftOutAndCostTheirShare) {
  const ops::Op& op = op_named("matmul");
  MadeUpBackend threads("threads", "matmul");
  const std::vector<Candidate> candidates{threads.add("t4", 4), threads.add("default", 16)};
  const FeatureMap map(op);
  OpPoints points = points_of(op, candidates, 24), without = points;
  double lost = 0;
  for (std::size_t i = 0; i < points.points.size(); i += 8) {
    points.points[i].samples[1].seconds += 500e-6;
    lost += std::min(3.0, points.points[i].samples[1].seconds / points.points[i].samples[0].seconds - 1);
    without.points[i].samples[1].seconds = 0;  // never timed there
  }
  const Predictor left_out(map, candidates, without, Caches{}), disturbed(map, candidates, points, Caches{});
  const Features f = map.of(points.points[8].args);
  Estimates expected, found;
  left_out.predict(f, 0b11, 0, expected);
  disturbed.predict(f, 0b11, 0, found);
  // What they lost against few threads is shared by all 24.
  EXPECT_GT(lost, 3);
  EXPECT_NEAR(found.log_seconds[1] - expected.log_seconds[1], std::log1p(lost / 24), 1e-5);
  EXPECT_EQ(found.log_seconds[0], expected.log_seconds[0]);
}

TEST(Predictor, WhatAChoiceCostsIsToldByPointsThatAreLeftOut) {
  const ops::Op& op = op_named("matmul");
  MadeUpBackend library("cpulib", "matmul");
  const std::vector<Candidate> candidates{library.add("onednn_t1", 1), library.add("openblas_t1", 1)};
  const FeatureMap map(op);
  OpPoints points = points_of(op, candidates, 48);
  // One is faster by a factor of two everywhere: whatever is known of the others says so.
  for (Point& point : points.points) point.samples[1].seconds = 2 * point.samples[0].seconds;
  EXPECT_EQ(Predictor(map, candidates, points, Caches{}).left_out_loss(0b11), 0);
  // At every second point it is the other one, without a pattern that points could tell.
  for (std::size_t i = 0; i < points.points.size(); i += 2)
    std::swap(points.points[i].samples[0].seconds, points.points[i].samples[1].seconds);
  const Predictor predictor(map, candidates, points, Caches{});
  EXPECT_GT(predictor.left_out_loss(0b11), 0.25 * std::log(2));
  EXPECT_EQ(predictor.left_out_loss(0b01), 0) << "there is no choice";
}

TEST(Predictor, ThreadsBeyondThePiecesOfACallChangeNothing) {
  const ops::Op& op = op_named("matmul");
  MadeUpBackend threads("threads", "matmul");
  const std::vector<Candidate> candidates{threads.add("t4", 4), threads.add("default", 16)};
  const FeatureMap map(op);
  OpPoints points = points_of(op, candidates, 48);
  const Predictor predictor(map, candidates, points, Caches{});
  for (const char* shape : {"M=64,N=96,K=30", "M=20,N=400,K=64", "M=1,N=512,K=50"}) {
    const Features f = map.of(args_of(op, shape));
    ASSERT_LE(f.pieces, 4) << shape;
    Estimates out;
    predictor.predict(f, 0b11, 0, out);
    EXPECT_EQ(out.log_seconds[0], out.log_seconds[1]) << shape;
  }
  Estimates out;
  predictor.predict(map.of(args_of(op, "M=500,N=500,K=500")), 0b11, 0, out);
  EXPECT_LT(out.log_seconds[1], out.log_seconds[0] - 0.5F) << "64 pieces";
}

TEST(Predictor, ALibraryIsHeldAgainstItselfOnOneThread) {
  const ops::Op& op = op_named("matmul");
  MadeUpBackend library("cpulib", "matmul");
  const std::vector<Candidate> candidates{library.add("onednn_t1", 1), library.add("onednn", 16),
                                          library.add("openblas", 16)};
  const FeatureMap map(op);
  OpPoints points = points_of(op, candidates, 24);
  const Predictor calm(map, candidates, points, Caches{});
  for (std::size_t i = 0; i < points.points.size(); i += 2) {
    points.points[i].samples[1].seconds += 600e-6;
    points.points[i].samples[2].seconds += 600e-6;
  }
  const Predictor disturbed(map, candidates, points, Caches{});
  const Features f = map.of(args_of(op, "M=400,N=400,K=400"));
  Estimates expected, found;
  calm.predict(f, 0b111, 0, expected);
  disturbed.predict(f, 0b111, 0, found);
  // Half of the small calls were held up; large ones, where 600 us is less than the gain, are not known to be.
  const double added = static_cast<double>(found.log_seconds[1] - expected.log_seconds[1]);
  EXPECT_GT(added, std::log(1.3));
  EXPECT_LT(added, std::log(4.0));
  // Once is no habit.
  OpPoints once = points_of(op, candidates, 24);
  once.points[0].samples[1].seconds += 2e-3;
  const Predictor unlucky(map, candidates, once, Caches{});
  unlucky.predict(f, 0b111, 0, found);
  EXPECT_NEAR(found.log_seconds[1], expected.log_seconds[1], 0.05);
}

TEST(Predictor, APlanThatWasTimedSeldomIsNotFree) {
  const ops::Op& op = op_named("matmul");
  MadeUpBackend library("cpulib", "matmul");
  const std::vector<Candidate> candidates{library.add("onednn_winograd_t1", 1)};
  library.last().plan = [](const fulcrum_kernel*, const fulcrum_args*, void**) { return fulcrum_status{}; };
  library.last().plan_reads = 1;
  const FeatureMap map(op);
  OpPoints points = points_of(op, candidates, 24);
  for (std::size_t i = 0; i < 3; ++i) points.points[i].samples[0].plan_seconds = 400e-6 + 100e-6 * i;
  const Predictor predictor(map, candidates, points, Caches{});
  const Features f = map.of(args_of(op, "M=64,N=64,K=64"));
  Estimates kept, made;
  predictor.predict(f, 1, 0, kept);
  predictor.predict(f, 1, 1, made);
  EXPECT_NEAR(std::exp(made.log_seconds[0]) - std::exp(kept.log_seconds[0]), 500e-6, 50e-6);
}

TEST(Predictor, ThreadsAreNoDearerForHowTheyJumpWhereNobodyTakesThem) {
  const ops::Op& op = op_named("relu");
  MadeUpBackend one("simd", "relu"), threads("threads", "relu");
  const std::vector<Candidate> candidates{one.add("default", 1), threads.add("default", 2),
                                          threads.add("other", 2)};
  const FeatureMap map(op);
  OpPoints points;
  ShapeSource source(op);
  // Short calls are forked or not, as it happens; long ones take the default way a tenth less than the other.
  for (int i = 0; i < 24; ++i) {
    const Args args = source.scaled(source.standard().front(), 3e-8 * std::pow(1.6, i));
    const double alone = 1e-8 + 1e-10 * static_cast<double>(args.dim[0]);
    const double fork = alone > 1e-6 ? 4e-7 : i % 2 == 0 ? 1e-7 : 2e-6;
    points.points.push_back(
        Point{.args = args,
              .samples = {
                  {.seconds = alone}, {.seconds = fork + alone / 2}, {.seconds = 1.1 * (fork + alone / 2)}}});
  }
  const Predictor predictor(map, candidates, points, Caches{});
  Estimates out;
  const Args args = points.points[20].args;
  predictor.predict(map.of(args), 0b111, 0, out);
  EXPECT_NEAR(out.log_seconds[1], std::log(points.points[20].samples[1].seconds), 0.02);
  EXPECT_LT(out.log_seconds[1], out.log_seconds[2]);
  // Where they may be taken, what makes them jump is the machine, and no reason to take the other way on as many.
  for (std::size_t i = 14; i < 24; i += 2) points.points[i].samples[1].seconds *= 1.6;
  const Predictor jumping(map, candidates, points, Caches{});
  jumping.predict(map.of(points.points[19].args), 0b111, 0, out);
  EXPECT_NEAR(out.log_seconds[2] - out.log_seconds[1], std::log(1.1), 0.01);
}

TEST(Predictor, WaysThatWritePastTheCachesAreTakenOnlyWhereTheyGainATenth) {
  const ops::Op& op = op_named("relu");
  MadeUpBackend simd("simd", "relu");
  const std::vector<Candidate> candidates{simd.add("default", 1), simd.add("stream", 1)};
  const FeatureMap map(op);
  for (const auto& [gain, taken] : {std::pair{1.05, false}, {1.2, true}}) {
    OpPoints points = points_of(op, candidates, 12);
    for (Point& point : points.points) point.samples[1].seconds = point.samples[0].seconds / gain;
    const Predictor predictor(map, candidates, points, Caches{});
    Estimates out;
    predictor.predict(map.of(args_of(op, "n=3000000")), 0b11, 0, out);
    EXPECT_EQ(out.log_seconds[1] < out.log_seconds[0], taken) << gain;
  }
}

TEST(Predictor, LongCallsInPiecesTakeThreadsLessThanOneOfThem) {
  const ops::Op& op = op_named("matmul");
  OneAndEight ways("matmul");
  const auto candidates = ways.candidates();
  const FeatureMap map(op);
  OpPoints points = points_of(op, candidates, 48);
  for (Point& point : points.points) point.samples[1].seconds = 1.3 * point.samples[0].seconds;
  const Predictor predictor(map, candidates, points, Caches{});
  const auto apart = [&](const char* shape) {
    Estimates out;
    predictor.predict(map.of(args_of(op, shape)), 0b11, 0, out);
    EXPECT_LT(out.sigma[1], 0.2F);
    return out.log_seconds[1] - out.log_seconds[0];
  };
  EXPECT_LT(apart("M=300,N=300,K=300"), -0.1F) << "some 1.4 ms alone";
  EXPECT_GT(apart("M=64,N=100,K=64"), 0.1F) << "some 20 us alone: a fork may cost more than it gains";
  EXPECT_GT(apart("M=16,N=32,K=20000"), 0.1F) << "one piece";
}

TEST(Shapes, AreDrawnAsTheOpAllowsThemAndNearTheWantedWork) {
  for (const ops::Op* op : ops::all()) {
    if (op->is_probe() || op->needs_prepared) continue;
    ShapeSource source(*op, 5);
    int drawn = 0;
    for (int i = 0; i < 20; ++i) {
      const auto args = source.draw(1e-6, 1e-3);
      if (!args) continue;
      ++drawn;
      EXPECT_TRUE(ops::check_args(*op, *args).ok()) << op->name;
      EXPECT_LT(nominal_seconds(*op, *args), 2e-2) << op->name << " " << ops::shape_of(*op, *args).text();
    }
    EXPECT_GE(drawn, 15) << op->name;
  }
}

}  // namespace
}  // namespace fulcrum::executor
