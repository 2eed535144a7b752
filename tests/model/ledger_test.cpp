// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The prediction ledger: written first, filled by appending, never edited.
#include "model/model_support.h"

namespace fulcrum::model::test {
namespace {

LedgerRow predicted(const char* shape, double factor = 1) {
  const Call c = call("relu", shape);
  const GpuUse use{.path = "copy"};
  Prediction p = closed_form_gpu(c, device(), use);
  p.seconds *= factor;
  return ledger_row(c, &use, p, "2026-01-31T12:00:00Z", "abc");
}

TEST(Ledger, ALineReadsBackAsItWasWritten) {
  LedgerRow row = predicted("n=1000");
  row.measured = 1.5e-5;
  row.samples = 100;
  row.noise = 0.02;
  const std::string line = json_text(to_json(row));
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto back = ledger_row_from_json(json_parse(line, "ledger").value(), "ledger");
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(json_text(to_json(*back)), line);
  EXPECT_EQ(back->shape, "n=1000");
  EXPECT_EQ(back->path, "copy");
}

TEST(Ledger, SaysWhichFieldOfWhichFileIsWrong) {
  const auto broken = [](const char* key, Json value) {
    Json json = to_json(predicted("n=1000"));
    json[key] = std::move(value);
    const auto read = ledger_row_from_json(json, "file.jsonl");
    EXPECT_FALSE(read.ok()) << key;
    EXPECT_EQ(read.error().code, Code::corrupt);
    EXPECT_NE(read.error().message.find("file.jsonl"), std::string::npos);
    EXPECT_NE(read.error().message.find(key), std::string::npos) << read.error().message;
  };
  broken("predicted", "soon");
  broken("predicted", -1);
  broken("measured", 0);
  broken("grade", "E");
  broken("regime", "moon");
  broken("op", 7);
  Json json = to_json(predicted("n=1000"));
  json.erase("low");
  EXPECT_NE(ledger_row_from_json(json, "f").error().message.find("low"), std::string::npos);
  json["schema"] = "fulcrum.plan/1";
  EXPECT_FALSE(ledger_row_from_json(json, "f").ok());
}

TEST(Ledger, FillingAppendsAnAnswerOnceAndLeavesThePredictionAlone) {
  std::vector<LedgerRow> ledger{predicted("n=1000"), predicted("n=2000")};
  const std::string before = json_text(to_json(ledger[0]));
  const std::vector<Measurement> rows{measurement("relu", "n=1000", 2e-5, Regime::roundtrip, "copy"),
                                      measurement("relu", "n=1000", 1e-5, Regime::roundtrip, "duplex"),
                                      measurement("relu", "n=1000", 1e-6)};
  const auto more = fill_measured(ledger, rows, "2026-02-01T00:00:00Z");
  ASSERT_EQ(more.size(), 1U);
  EXPECT_EQ(more[0].measured.value(), 2e-5);  // of the path that was predicted
  EXPECT_EQ(more[0].predicted, ledger[0].predicted);
  EXPECT_EQ(more[0].time_utc, "2026-02-01T00:00:00Z");
  EXPECT_EQ(json_text(to_json(ledger[0])), before);
  ledger.insert(ledger.end(), more.begin(), more.end());
  EXPECT_TRUE(fill_measured(ledger, rows, "later").empty());
}

TEST(Ledger, ErrorsAreSummedUpByOpAndGrade) {
  std::vector<LedgerRow> ledger{predicted("n=1000"), predicted("n=2000")};
  ledger[0].measured = ledger[0].predicted / 1.2;
  const auto by_op = summarise(ledger, "op");
  ASSERT_EQ(by_op.size(), 1U);
  EXPECT_EQ(by_op[0].name, "relu");
  EXPECT_EQ(by_op[0].count, 1);
  EXPECT_NEAR(by_op[0].median, 0.2, 1e-9);
  EXPECT_EQ(summarise(ledger, "grade")[0].name, "C");
}

TEST(Ledger, TheHashChangesWithTheProfileAndTheMeasurements) {
  const Model a(desk(), {}, device(), {});
  Machine other = device();
  other.gpus[0].rates["hbm_read"].value *= 1.001;
  const std::vector<Measurement> rows{measurement("relu", "n=1000", 2e-5, Regime::roundtrip, "copy")};
  EXPECT_EQ(model_hash(a), model_hash(Model(desk(), {}, device(), {})));
  EXPECT_NE(model_hash(a), model_hash(Model(desk(), {}, other, {})));
  EXPECT_NE(model_hash(a), model_hash(Model(desk(), {}, device(), Calibration(device(), rows))));
}

}  // namespace
}  // namespace fulcrum::model::test
