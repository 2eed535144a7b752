// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Confidence calibration of examples/memory_recall: figures that can be worked out by hand.
#include "../examples/memory_recall/calibration.h"

#include <gtest/gtest.h>

namespace memory_recall {
namespace {

void add(Calibration& calibration, double confidence, int right, int wrong) {
  for (int i = 0; i < right; ++i) calibration.add(confidence, true);
  for (int i = 0; i < wrong; ++i) calibration.add(confidence, false);
}

TEST(Calibration, ConfidenceThatIsRightHasNoErrorButStillAScore) {
  Calibration calibration;
  add(calibration, 0.75, 3, 1);
  add(calibration, 0.5, 1, 1);
  EXPECT_EQ(calibration.expected_error(), 0);
  EXPECT_EQ(calibration.largest_error(), 0);
  EXPECT_NEAR(calibration.brier(), 0.2083333, 1e-7);
  EXPECT_FALSE(calibration.spearman().has_value()) << "two bins";
}

TEST(Calibration, ConfidenceThatIsAlwaysWrongIsHalvedOnceThereAreEnoughSamples) {
  Calibration calibration;
  add(calibration, 0.75, 0, 100);
  EXPECT_DOUBLE_EQ(calibration.expected_error(), 0.75);
  EXPECT_DOUBLE_EQ(calibration.largest_error(), 0.75);
  EXPECT_DOUBLE_EQ(calibration.brier(), 0.5625);
  EXPECT_EQ(calibration.corrected(0.75), 0.75) << "a hundred are not enough";
  calibration.add(0.75, false);
  EXPECT_DOUBLE_EQ(calibration.corrected(0.75), 0.375);
  EXPECT_EQ(calibration.corrected(0.2), 0.2) << "an empty bin knows nothing";
}

TEST(Calibration, CorrelationIsThatOfTheRanksAndCanBeNegative) {
  Calibration falling, rising, flat;
  const double confidence[] = {0.15, 0.55, 0.95};
  const int right[] = {9, 5, 1};
  for (int i = 0; i < 3; ++i) {
    add(falling, confidence[i], right[i], 10 - right[i]);
    add(rising, confidence[i], 10 - right[i], right[i]);
    add(flat, confidence[i], 5, 5);
  }
  EXPECT_DOUBLE_EQ(falling.spearman().value_or(0), -1);
  EXPECT_DOUBLE_EQ(rising.spearman().value_or(0), 1);
  EXPECT_FALSE(flat.spearman().has_value()) << "no variation";
}

TEST(Calibration, EqualSharesGetTheMeanOfTheirRanks) {
  Calibration calibration;
  add(calibration, 0.15, 1, 1);
  add(calibration, 0.55, 1, 1);
  add(calibration, 0.95, 2, 0);
  // Ranks 1 2 3 against 1.5 1.5 3.
  EXPECT_NEAR(calibration.spearman().value_or(0), 0.8660254, 1e-7);
}

TEST(Calibration, BinsForgetWithTheWindow) {
  Calibration calibration;
  for (std::size_t i = 0; i < Calibration::kWindow; ++i) calibration.add(0.95, false);
  EXPECT_NEAR(calibration.largest_error(), 0.95, 1e-9);
  for (std::size_t i = 0; i < Calibration::kWindow; ++i) calibration.add(0.95, true);
  EXPECT_EQ(calibration.size(), Calibration::kWindow);
  EXPECT_NEAR(calibration.largest_error(), 0.05, 1e-6);
}

TEST(Calibration, OutOfRangeIsTakenAsTheNearestEnd) {
  Calibration calibration;
  calibration.add(-1, false);
  calibration.add(2, true);
  EXPECT_EQ(calibration.expected_error(), 0);
  EXPECT_EQ(calibration.brier(), 0);
}

}  // namespace
}  // namespace memory_recall
