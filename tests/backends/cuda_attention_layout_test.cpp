// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Attends on the host with the layout of the CUDA kernels and the fragments of m16n8k16 as the instruction set defines
// them: an index that is wrong there gives a wrong product here.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "backends/cuda/attention_layout.h"

namespace fulcrum::backends::cuda::attention {
namespace {

constexpr int kLanes = 32, kKeys = 32;

/// Two elements of a row.
struct Word {
  int low = 0, high = 0;
};

/// One product of a warp: 16 rows by 16 terms times 16 terms by 8 columns, added to `sum`.
void multiply(int64_t (&sum)[kLanes][4], const Word (&left)[kLanes][4], const Word (&right)[kLanes][2]) {
  int64_t a[16][16] = {}, b[16][8] = {};
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4, c = lane % 4;
    for (int i = 0; i < 4; ++i) {
      a[g + i % 2 * 8][2 * c + i / 2 * 8] = left[lane][i].low;
      a[g + i % 2 * 8][2 * c + i / 2 * 8 + 1] = left[lane][i].high;
    }
    for (int i = 0; i < 2; ++i) {
      b[2 * c + i * 8][g] = right[lane][i].low;
      b[2 * c + i * 8 + 1][g] = right[lane][i].high;
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4, c = lane % 4;
    for (int i = 0; i < 4; ++i) {
      for (int k = 0; k < 16; ++k) sum[lane][i] += a[g + i / 2 * 8][k] * b[k][2 * c + i % 2];
    }
  }
}

/// Rows of small whole numbers, so that every order of summation gives the same.
struct Rows {
  int d;
  std::vector<int> values;

  Rows(int rows, int d_, int seed) : d(d_), values(static_cast<std::size_t>(rows * d_)) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<int>((i * 7 + i / 13 + static_cast<std::size_t>(seed)) % 11) - 5;
  }
  int at(int row, int i) const { return values[static_cast<std::size_t>(row * d + i)]; }
  Word word(int row, int vector, int number) const {
    return Word{at(row, vector * 8 + number * 2), at(row, vector * 8 + number * 2 + 1)};
  }
};

class Layout : public ::testing::TestWithParam<int> {
 protected:
  int d() const { return GetParam(); }
  const Rows q_{kTileRows, GetParam(), 1}, k_{kKeys, GetParam(), 5}, v_{kKeys, GetParam(), 3};
  int64_t scores_[kKeys / 8][kLanes][4] = {};

  void score() {
    for (int i = 0; i < d() / 32; ++i) {
      for (int half = 0; half < 2; ++half) {
        for (int n = 0; n < kKeys / 8; ++n) {
          Word left[kLanes][4], right[kLanes][2];
          for (int lane = 0; lane < kLanes; ++lane) {
            const int vector = score_vector(lane, i);
            for (int r = 0; r < 2; ++r) {
              left[lane][r] = q_.word(score_row(lane, r), vector, lower_word(half));
              left[lane][2 + r] = q_.word(score_row(lane, r), vector, upper_word(half));
            }
            right[lane][0] = k_.word(score_row(lane, n), vector, lower_word(half));
            right[lane][1] = k_.word(score_row(lane, n), vector, upper_word(half));
          }
          multiply(scores_[n], left, right);
        }
      }
    }
  }
  int64_t score_at(int row, int key) const {
    int64_t sum = 0;
    for (int i = 0; i < d(); ++i) sum += q_.at(row, i) * k_.at(key, i);
    return sum;
  }
};
INSTANTIATE_TEST_SUITE_P(RowsOf, Layout, ::testing::Values(64, 128, 256),
                         ::testing::PrintToStringParamName());

TEST_P(Layout, ScoresStandWhereTheMaskLooksForThem) {
  score();
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int n = 0; n < kKeys / 8; ++n) {
      for (int i = 0; i < 4; ++i) {
        ASSERT_EQ(scores_[n][lane][i], score_at(score_row(lane, i / 2), score_column(lane, n) + i % 2))
            << lane << ", " << n << ", " << i;
      }
    }
  }
}

TEST_P(Layout, WeightedValuesComeOutAsRunsOfNeighbours) {
  score();
  const auto half_of = [](const Word& word, unsigned halves) {
    return halves == 0x5410u ? word.low : word.high;
  };
  for (int h = 0; h < d() / 64; ++h) {
    int64_t sums[8][kLanes][4] = {};
    for (int n = 0; n < kKeys / 16; ++n) {
      for (int j = 0; j < 8; ++j) {
        Word left[kLanes][4], right[kLanes][2];
        for (int lane = 0; lane < kLanes; ++lane) {
          for (int i = 0; i < 4; ++i) {
            const int64_t* pair = scores_[2 * n + i / 2][lane] + i % 2 * 2;
            left[lane][i] = Word{static_cast<int>(pair[0]), static_cast<int>(pair[1])};
          }
          for (int i = 0; i < 2; ++i) {
            const auto value = [&](int number) {
              return half_of(v_.word(value_row(lane, n, number), value_vector(lane, h), value_word(j)),
                             value_halves(j));
            };
            right[lane][i] = Word{value(2 * i), value(2 * i + 1)};
          }
        }
        multiply(sums[j], left, right);
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int r = 0; r < 2; ++r) {
        for (int i = 0; i < kLaneRun; ++i) {
          int64_t expected = 0;
          for (int key = 0; key < kKeys; ++key)
            expected += score_at(score_row(lane, r), key) * v_.at(key, run_element(lane, h, i));
          ASSERT_EQ(sums[run_product(i)][lane][run_number(i, r)], expected) << lane << ", " << r << ", " << i;
        }
      }
    }
  }
}

TEST_P(Layout, RowsSumsAndMaximaOfAPartDoNotOverlap) {
  const int rows = 8;
  std::set<int> taken;
  const auto take = [&](int offset, int count) {
    for (int i = 0; i < count; ++i) EXPECT_TRUE(taken.insert(offset + i).second) << offset + i;
  };
  for (int row = 0; row < rows; ++row) {
    for (int element = 0; element < d(); element += 4) {
      EXPECT_EQ(part_offset(row, element, rows) % 4, 0);
      take(part_offset(row, element, rows), 4);
    }
    EXPECT_EQ(sums_offset(row, d(), rows) % 4, 0);
    take(sums_offset(row, d(), rows), 4);
    take(max_offset(row, d(), rows), 1);
  }
  EXPECT_GE(*taken.begin(), 0);
  EXPECT_LT(*taken.rbegin(), part_floats(d(), rows));
  EXPECT_EQ(part_floats(d(), rows) % 4, 0);
}

/// Vectors of 16 bytes that eight neighbouring lanes touch together must lie in eight groups of banks.
template <class Offset>
void expect_all_banks(const Offset& vector_offset) {
  for (int first = 0; first < kLanes; first += 8) {
    std::set<int> banks;
    for (int lane = first; lane < first + 8; ++lane) banks.insert(vector_offset(lane) % 8);
    EXPECT_EQ(banks.size(), 8U) << first;
  }
}

TEST_P(Layout, LanesThatGoToSharedMemoryTogetherMeetAllBanks) {
  for (int i = 0; i < kLaneRun; i += 4) {
    expect_all_banks(
        [&](int lane) { return part_offset(score_row(lane, 0), run_element(lane, 0, i), kTileRows) / 4; });
  }
  for (int i = 0; i < d() / 32; ++i) {
    expect_all_banks([&](int lane) { return score_row(lane, 1) * key_stride(d()) + score_vector(lane, i); });
  }
  for (int i = 0; i < 4; ++i) {
    expect_all_banks(
        [&](int lane) { return value_row(lane, 1, i) * value_stride(d()) + value_vector(lane, 0); });
  }
}

}  // namespace
}  // namespace fulcrum::backends::cuda::attention
