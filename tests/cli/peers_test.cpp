// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// `bench --vs peers` with a module of the tests' own: no library is needed, and what is slow or fast does not matter.
#include <algorithm>

#include "cli/program.h"

namespace fulcrum::cli {
namespace {

const Variables kFake = {{"FULCRUM_MODULE_PATH", std::string(FULCRUM_TEST_MODULE_DIR) + "/peers"}};

struct PeerRun {
  Outcome outcome;
  Json document;
};

PeerRun bench(const std::string& op, std::vector<std::string> more) {
  const Folder data;
  const std::string file = data / "out.json";
  std::vector<std::string> arguments = {"bench",       op,    "--shape", "n=1000", "--budget", "0.1",
                                        "--precision", "0.5", "--json",  file};
  arguments.insert(arguments.end(), more.begin(), more.end());
  PeerRun ran{fulcrum_in(data, arguments, kFake), {}};
  const auto document = json_parse(content(file), file);
  if (document.ok()) ran.document = *document;
  return ran;
}

/// The comparison with a peer; null when there is none.
Json with_peer(const Json& document, const std::string& peer) {
  for (const Json& comparison : document.value("comparisons", Json::array())) {
    if (comparison.value("b", "") == peer) return comparison;
  }
  return nullptr;
}

TEST(VsPeers, ComparesOurKernelOfAsManyThreadsWithEachPeer) {
  const PeerRun ran = bench("relu", {"--vs", "peers"});
  ASSERT_EQ(ran.outcome.code, 0) << ran.outcome.error;
  const Json exact = with_peer(ran.document, "relu/peers/exact");
  ASSERT_FALSE(exact.is_null()) << ran.document.dump(1);
  EXPECT_EQ(exact["a"].get<std::string>().rfind("relu/simd/", 0), 0U) << exact["a"];
  const Json pair = with_peer(ran.document, "relu/peers/pair");
  if (!pair.is_null()) {
    EXPECT_EQ(pair["a"].get<std::string>().rfind("relu/threads/", 0), 0U) << pair["a"];
  }
  EXPECT_NE(ran.outcome.output.find("the speed of peers/exact"), std::string::npos) << ran.outcome.output;
}

TEST(VsPeers, MeasuresOnTheBackendAskedFor) {
  const PeerRun ran = bench("relu", {"--vs", "peers", "--backend", "scalar"});
  ASSERT_EQ(ran.outcome.code, 0) << ran.outcome.error;
  const Json exact = with_peer(ran.document, "relu/peers/exact");
  ASSERT_FALSE(exact.is_null()) << ran.document.dump(1);
  EXPECT_EQ(exact["a"].get<std::string>().rfind("relu/scalar/", 0), 0U) << exact["a"];
  EXPECT_TRUE(with_peer(ran.document, "relu/peers/pair").is_null());  // scalar has one thread
}

TEST(VsPeers, APeerThatMissesTheToleranceIsTimedAndSaysSo) {
  const PeerRun ran = bench("sigmoid", {"--vs", "peers", "--backend", "simd"});
  ASSERT_EQ(ran.outcome.code, 0) << ran.outcome.error;
  const Json sloppy = with_peer(ran.document, "sigmoid/peers/sloppy");
  ASSERT_FALSE(sloppy.is_null()) << ran.document.dump(1);
  EXPECT_NE(sloppy["reason"].get<std::string>().find("misses the tolerance"), std::string::npos);
  bool flagged = false;
  for (const Json& row : ran.document["results"]) {
    const Json& flags = row["flags"];
    const bool inaccurate = std::find(flags.begin(), flags.end(), "inaccurate") != flags.end();
    EXPECT_EQ(inaccurate, row["backend"] == "peers") << row.dump(1);
    flagged = flagged || inaccurate;
  }
  EXPECT_TRUE(flagged);
  EXPECT_NE(ran.outcome.output.find("x allowed"), std::string::npos) << ran.outcome.output;
}

TEST(VsPeers, APeerThatLeavesAnOutputOutIsWrong) {
  const PeerRun ran = bench("tanh", {"--vs", "peers", "--backend", "simd"});
  EXPECT_NE(ran.outcome.code, 0);
  EXPECT_NE(ran.outcome.output.find("was never written"), std::string::npos) << ran.outcome.output;
}

TEST(VsPeers, AnOpWithoutAPeerIsStillMeasured) {
  const PeerRun ran = bench("dot", {"--vs", "peers", "--backend", "simd"});
  EXPECT_EQ(ran.outcome.code, 0) << ran.outcome.error;
  EXPECT_FALSE(ran.document["results"].empty());
  EXPECT_TRUE(ran.document["comparisons"].empty());
  EXPECT_NE(ran.outcome.output.find("no peer"), std::string::npos) << ran.outcome.output;
}

TEST(VsPeers, OnePeerCanBeNamedAsABaselineOrABackend) {
  const PeerRun baseline = bench("relu", {"--vs", "peers/exact", "--backend", "scalar"});
  EXPECT_EQ(baseline.outcome.code, 0) << baseline.outcome.error;
  EXPECT_FALSE(with_peer(baseline.document, "relu/peers/exact").is_null());
  const PeerRun row = bench("relu", {"--backend", "peers", "--variant", "exact"});
  EXPECT_EQ(row.outcome.code, 0) << row.outcome.error;
  ASSERT_EQ(row.document["results"].size(), 1U);
  EXPECT_EQ(row.document["results"][0]["variant"], "exact");
}

TEST(VsPeers, RunsThatDoNotAskForPeersDoNotShowThem) {
  const PeerRun plain = bench("relu", {});
  ASSERT_EQ(plain.outcome.code, 0) << plain.outcome.error;
  for (const Json& row : plain.document["results"]) EXPECT_NE(row["backend"], "peers");
}

}  // namespace
}  // namespace fulcrum::cli
