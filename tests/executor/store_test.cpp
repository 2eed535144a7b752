// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calibrations as files: what is written is read, and what cannot be trusted is said and left out.
#include "executor/store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "executor/candidates.h"
#include "executor/named_ops.h"
#include "executor/prior.h"
#include "support/virtual_gpu.h"

namespace fulcrum::executor {
namespace {

std::size_t place_of(std::string_view name) { return static_cast<std::size_t>(index_of(op_named(name))); }

Stored made_up() {
  Stored stored;
  stored.measured_utc = "2026-01-31T12:00:00Z";
  stored.known.resize(ops::all().size());
  stored.data.ops.resize(stored.known.size());
  stored.data.costs.fork_seconds = 4e-6;
  stored.data.costs.forks = {{2, 1e-6}, {4, 2e-6}, {16, 4e-6}};
  stored.data.costs.pinned_home.knots = {{4096, 1e-5}, {65536, 1.5e-5}};
  stored.data.costs.pinned_more.knots = {{4096, 3e-6}, {65536, 5e-6}};
  const ops::Op& op = *ops::find("gelu").value();
  const auto candidates = candidates_of(op, nullptr);
  OpPoints& points = stored.data.ops[place_of("gelu")];
  for (const char* shape : {"n=1000", "n=100000"}) {
    Point point{.args = ops::resolve(op, ops::complete(op, parse_shape(shape).value()).value()).value()};
    for (std::size_t c = 0; c < candidates.size(); ++c)
      point.samples.push_back(
          Sample{.seconds = 1e-6 * static_cast<double>(c + 1), .plan_seconds = 2e-7, .noise = 0.01});
    points.points.push_back(point);
  }
  stored.known[place_of("gelu")] = true;
  return stored;
}

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("fulcrum-store-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    options_.table_file = folder_ / "table.json";
    set_log_sink([this](LogLevel level, std::string_view text) {
      if (level >= LogLevel::warning) said_ += std::string(text) + "\n";
    });
  }
  void TearDown() override {
    set_log_sink({});
    std::filesystem::remove_all(folder_);
  }
  Json written() const { return json_parse(read_file(*options_.table_file).value(), "table").value(); }
  void rewrite(const Json& json) const {
    ASSERT_TRUE(write_file(*options_.table_file, json_text(json)).ok());
  }

  std::filesystem::path folder_;
  Options options_;
  std::string said_;
};

TEST_F(StoreTest, ACalibrationBesideOtherProgramsSaysSo) {
  Stored stored = made_up();
  const auto read = [&] {
    EXPECT_TRUE(save_stored(nullptr, options_, stored).ok());
    return load_stored(nullptr, options_).value();
  };
  EXPECT_EQ(read().data.description.find("other programs"), std::string::npos);
  stored.other_cores = 1.25;
  EXPECT_DOUBLE_EQ(read().other_cores, 1.25);
  EXPECT_NE(read().data.description.find("other programs used 1.2 cores meanwhile"), std::string::npos)
      << read().data.description;
}

TEST_F(StoreTest, WhatIsSavedIsLoaded) {
  ASSERT_TRUE(save_stored(nullptr, options_, made_up()).ok());
  const auto loaded = load_stored(nullptr, options_);
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(loaded->known[place_of("gelu")]);
  EXPECT_FALSE(loaded->known[place_of("matmul")]);
  EXPECT_EQ(loaded->data.costs.fork_seconds, 4e-6);
  EXPECT_EQ(loaded->data.costs.forks, made_up().data.costs.forks);
  EXPECT_EQ(loaded->data.costs.pinned_home.knots, made_up().data.costs.pinned_home.knots);
  EXPECT_EQ(loaded->data.costs.pinned_more.knots, made_up().data.costs.pinned_more.knots);
  const OpPoints& points = loaded->data.ops[place_of("gelu")];
  ASSERT_EQ(points.points.size(), 2u);
  EXPECT_EQ(points.points[1].args.dim[0], 100000);
  EXPECT_EQ(points.points[1].samples[1].seconds, 2e-6);
  EXPECT_EQ(points.points[1].samples[1].plan_seconds, 2e-7);
  EXPECT_EQ(points.grade, Grade::b);
  EXPECT_EQ(said_, "");
}

TEST_F(StoreTest, AFileThatKnowsNoForksOfFewThreadsIsStillRead) {
  ASSERT_TRUE(save_stored(nullptr, options_, made_up()).ok());
  Json json = written();
  for (const char* name : {"forks", "pinned_home", "pageable_home", "pinned_more", "pageable_more"})
    json["costs"].erase(name);
  rewrite(json);
  const auto loaded = load_stored(nullptr, options_);
  ASSERT_TRUE(loaded) << said_;
  EXPECT_TRUE(loaded->data.costs.forks.empty());
  json["costs"]["forks"] = {{2, "soon"}};
  rewrite(json);
  EXPECT_FALSE(load_stored(nullptr, options_)) << "but not one with something else in their place";
}

TEST_F(StoreTest, NoFileIsNoWarning) {
  EXPECT_FALSE(load_stored(nullptr, options_));
  EXPECT_EQ(said_, "");
}

TEST_F(StoreTest, ACutOffFileIsIgnoredLoudlyAndRenewed) {
  ASSERT_TRUE(save_stored(nullptr, options_, made_up()).ok());
  const std::string text = read_file(*options_.table_file).value();
  ASSERT_TRUE(write_file(*options_.table_file, text.substr(0, text.size() / 2)).ok());
  EXPECT_FALSE(load_stored(nullptr, options_));
  EXPECT_NE(said_.find("the calibration cannot be used"), std::string::npos);
  ASSERT_TRUE(load_table(nullptr, options_).ok()) << "a table there is all the same";
  ASSERT_TRUE(save_stored(nullptr, options_, made_up()).ok());
  EXPECT_TRUE(load_stored(nullptr, options_));
}

TEST_F(StoreTest, AnotherMachinesFileIsForeign) {
  ASSERT_TRUE(save_stored(nullptr, options_, made_up()).ok());
  Json json = written();
  json["key"] = "0123456789abcdef";
  json["of"] = "a larger machine";
  rewrite(json);
  EXPECT_FALSE(load_stored(nullptr, options_));
  EXPECT_NE(said_.find("a larger machine"), std::string::npos);
}

TEST_F(StoreTest, EveryWrongFieldIsCorrupt) {
  ASSERT_TRUE(save_stored(nullptr, options_, made_up()).ok());
  const Json right = written();
  const auto broken = [&](const std::function<void(Json&)>& change) {
    Json json = right;
    change(json);
    return !stored_from_json(json, key_of(nullptr), nullptr, "file").ok();
  };
  EXPECT_FALSE(broken([](Json&) {}));
  EXPECT_TRUE(broken([](Json& j) { j["schema"] = "fulcrum.calibration/2"; }));
  EXPECT_TRUE(broken([](Json& j) { j.erase("costs"); }));
  EXPECT_TRUE(broken([](Json& j) { j["ops"][0]["points"][0]["seconds"][0] = -1; }));
  EXPECT_TRUE(broken([](Json& j) { j["ops"][0]["points"][0]["seconds"][0] = "fast"; }));
  EXPECT_TRUE(broken([](Json& j) { j["ops"][0]["points"][0]["seconds"].push_back(1); }));
  EXPECT_TRUE(broken([](Json& j) { j["ops"][0]["points"][0]["looks"][0] = "twice"; }));
  EXPECT_FALSE(broken([](Json& j) { j["ops"][0]["points"][0].erase("looks"); })) << "a file of before";
  EXPECT_TRUE(broken([](Json& j) { j["ops"][0]["points"][0]["shape"] = "q=3"; }));
  EXPECT_TRUE(broken([](Json& j) { j["costs"]["pinned_in"] = {{4096, 1e-5}, {1024, 1e-6}}; }));
  EXPECT_FALSE(broken([](Json& j) { j["ops"][0]["op"] = "unknown_op"; })) << "an op of another program";
}

TEST_F(StoreTest, AnOpWhoseKernelsChangedIsOnlyAPrior) {
  ASSERT_TRUE(save_stored(nullptr, options_, made_up()).ok());
  Json json = written();
  json["ops"][0]["kernels"] = "0000000000000000";
  rewrite(json);
  const auto loaded = load_stored(nullptr, options_);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->data.ops[place_of("gelu")].grade, Grade::c);
  EXPECT_GT(loaded->data.ops[place_of("gelu")].sigma, 0.1);
  EXPECT_NE(loaded->data.description.find("have changed"), std::string::npos);
  Stored other;
  other.measured_utc = "2026-02-01T00:00:00Z";
  other.known.resize(ops::all().size());
  other.data.ops.resize(ops::all().size());
  ASSERT_TRUE(save_stored(nullptr, options_, other).ok());
  const auto again = load_stored(nullptr, options_);
  EXPECT_TRUE(again->known[place_of("gelu")]) << "what one has is better than nothing";
  EXPECT_EQ(again->data.ops[place_of("gelu")].points.size(), 2u);
  EXPECT_EQ(again->data.ops[place_of("gelu")].sigma, loaded->data.ops[place_of("gelu")].sigma)
      << "it must not come back as measured";
  EXPECT_EQ(written()["ops"][0], json["ops"][0]);
  ASSERT_TRUE(save_stored(nullptr, options_, made_up()).ok());
  EXPECT_EQ(load_stored(nullptr, options_)->data.ops[place_of("gelu")].sigma, 0) << "until it is measured";
  EXPECT_EQ(written()["ops"].size(), 1u);
}

TEST_F(StoreTest, AnOpThatHasOtherParametersNowIsMissingAndTheOthersAreNot) {
  Stored both = made_up();
  both.data.ops[place_of("relu")] = both.data.ops[place_of("gelu")];
  const ops::Op& relu = op_named("relu");
  for (Point& point : both.data.ops[place_of("relu")].points)
    point.samples.resize(candidates_of(relu, nullptr).size(), Sample{.seconds = 1e-6});
  both.known[place_of("relu")] = true;
  ASSERT_TRUE(save_stored(nullptr, options_, both).ok());
  Json json = written();
  for (Json& row : json["ops"]) {
    if (row["op"] != "gelu") continue;
    row["kernels"] = "0000000000000000";
    row["points"][1]["shape"] = "rows=3";
  }
  rewrite(json);
  const auto loaded = load_stored(nullptr, options_);
  ASSERT_TRUE(loaded) << said_;
  EXPECT_FALSE(loaded->known[place_of("gelu")]);
  EXPECT_TRUE(loaded->known[place_of("relu")]);
  EXPECT_NE(loaded->data.description.find("kernels of 1 op have changed"), std::string::npos)
      << loaded->data.description;
  const std::vector<std::string> renew = ops_to_renew(nullptr, options_);
  EXPECT_NE(std::find(renew.begin(), renew.end(), "gelu"), renew.end());
  EXPECT_EQ(std::find(renew.begin(), renew.end(), "relu"), renew.end());
}

TEST_F(StoreTest, AnOpThatOnlyAnotherProgramHasStaysInTheFile) {
  ASSERT_TRUE(save_stored(nullptr, options_, made_up()).ok());
  Json json = written();
  json["ops"].push_back(json["ops"][0]);
  json["ops"][1]["op"] = "an_op_of_yours";
  rewrite(json);
  ASSERT_TRUE(save_stored(nullptr, options_, made_up()).ok());
  EXPECT_EQ(written()["ops"][1], json["ops"][1]);
}

TEST_F(StoreTest, OpsToRenewAreThoseThatAreStaleOrMissing) {
  const auto renew = [&](std::string_view op) {
    const std::vector<std::string> names = ops_to_renew(nullptr, options_);
    return std::find(names.begin(), names.end(), op) != names.end();
  };
  EXPECT_TRUE(renew("gelu") && renew("matmul")) << "there is no file";
  EXPECT_FALSE(renew("hnsw_search")) << "nobody has asked for its index";
  ASSERT_TRUE(save_stored(nullptr, options_, made_up()).ok());
  EXPECT_FALSE(renew("gelu"));
  EXPECT_TRUE(renew("matmul"));
  Stored with_index = made_up();
  const std::size_t search = place_of("hnsw_search");
  Point point{.args = args_of(op_named("hnsw_search"), op_named("hnsw_search").default_sizes.front())};
  point.samples.resize(candidates_of(op_named("hnsw_search"), nullptr).size(), Sample{.seconds = 1e-5});
  with_index.data.ops[search].points = {point};
  with_index.known[search] = true;
  ASSERT_TRUE(save_stored(nullptr, options_, with_index).ok());
  EXPECT_FALSE(renew("hnsw_search"));
  Json json = written();
  for (Json& row : json["ops"]) row["kernels"] = "0000000000000000";
  rewrite(json);
  EXPECT_TRUE(renew("gelu") && renew("hnsw_search") && renew("matmul"));
}

TEST_F(StoreTest, SavingOneOpKeepsTheOthers) {
  ASSERT_TRUE(save_stored(nullptr, options_, made_up()).ok());
  Stored other = made_up();
  other.known[place_of("gelu")] = false;
  ASSERT_TRUE(save_stored(nullptr, options_, other).ok());
  EXPECT_TRUE(load_stored(nullptr, options_)->known[place_of("gelu")]);
}

TEST_F(StoreTest, TheKeyIsOfTheHardwareAndNotOfTheProgram) {
  TableKey a{.machine = "epyc-2c", .threads = 2, .device = "NVIDIA H200", .driver = "580.1"};
  TableKey b = a;
  EXPECT_EQ(a.hash(), b.hash());
  b.driver = "590.1";
  EXPECT_NE(a.hash(), b.hash());
  b = a;
  b.threads = 1;
  EXPECT_NE(a.hash(), b.hash());
}

/// A data folder of its own.
class OtherDriver : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    options_.table_file.reset();
    if (const char* data = std::getenv("FULCRUM_DATA")) before_ = data;
    setenv("FULCRUM_DATA", folder_.c_str(), 1);
  }
  void TearDown() override {
    before_ ? setenv("FULCRUM_DATA", before_->c_str(), 1) : unsetenv("FULCRUM_DATA");
    StoreTest::TearDown();
  }
  /// As if this machine had been calibrated with that driver.
  void calibrated_with(const std::string& driver) {
    TableKey key = key_of(&gpu());
    key.driver = driver;
    const std::filesystem::path file = folder_ / "executor" / (key.hash() + ".json");
    std::filesystem::create_directories(file.parent_path());
    ASSERT_TRUE(write_file(file, json_text(to_json(key, made_up(), nullptr))).ok());
  }
  std::string table() { return load_table(&gpu(), options_).value()->describe(); }
  static const backends::Backend& gpu() { return *backends::find(testing::VirtualMachine::kGpu).value(); }

  testing::VirtualMachine::Use machine_;
  std::optional<std::string> before_;
};

TEST_F(OtherDriver, OfTheOnlyCalibrationIsNamedWithWhatToDo) {
  EXPECT_EQ(table().find("driver"), std::string::npos) << table();
  calibrated_with("570.1");
  EXPECT_NE(table().find("measured with driver 570.1"), std::string::npos) << table();
  EXPECT_NE(table().find("run fulcrum calibrate"), std::string::npos) << table();
  EXPECT_NE(said_.find("measured with driver 570.1"), std::string::npos) << said_;
}

TEST_F(OtherDriver, IsNoNewsOnceThisOneHasATable) {
  calibrated_with("570.1");
  ASSERT_TRUE(save_stored(&gpu(), options_, made_up()).ok());
  EXPECT_EQ(table().find("570.1"), std::string::npos) << table();
}

TEST_F(OtherDriver, OfAnotherMachineOrInADamagedFileIsNobodysBusiness) {
  calibrated_with("570.1");
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "executor")) {
    Json json = json_parse(read_file(entry.path()).value(), "table").value();
    json["of"] = "a larger " + json["of"].get<std::string>();
    ASSERT_TRUE(write_file(entry.path(), json_text(json)).ok());
  }
  ASSERT_TRUE(write_file(folder_ / "executor" / "damaged.json", "{").ok());
  ASSERT_TRUE(write_file(folder_ / "executor" / "other.json", "[1]").ok());
  EXPECT_EQ(table().find("driver"), std::string::npos) << table();
  EXPECT_EQ(said_, "");
}

TEST(Prior, EveryOpHasPointsForEveryCandidate) {
  const Prior prior(nullptr);
  for (const ops::Op* op : ops::all()) {
    if (op->is_probe()) continue;
    const auto candidates = candidates_of(*op, nullptr);
    const OpPoints points = prior.points_of(*op, candidates);
    EXPECT_GE(points.points.size(), 5u) << op->name;
    EXPECT_GE(points.grade, Grade::c);
    EXPECT_GT(points.sigma, 0.2);
    for (const Point& point : points.points) {
      for (const Sample& sample : point.samples) EXPECT_GT(sample.seconds, 0) << op->name;
    }
  }
}

}  // namespace
}  // namespace fulcrum::executor
