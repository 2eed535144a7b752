// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Multiplies matrices on the host with the layout of the tensor-core product and the fragments of ldmatrix and mma as
// the instruction set defines them: an index that is wrong there gives a wrong product here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "backends/cuda/tensor_layout.h"

namespace fulcrum::backends::cuda::tensor {
namespace {

struct Sizes {
  int m, n, k;
};

/// Whole numbers, so that every order of summation gives the same.
float value_at(int seed, int64_t i) { return static_cast<float>((i * 7 + seed) % 11); }

template <class Tile>
class Emulation {
 public:
  explicit Emulation(const Sizes& sizes) : s_(sizes), a_(sizes.m * sizes.k), b_(sizes.k * sizes.n) {
    for (std::size_t i = 0; i < a_.size(); ++i) a_[i] = value_at(3, static_cast<int64_t>(i));
    for (std::size_t i = 0; i < b_.size(); ++i) b_[i] = value_at(5, static_cast<int64_t>(i));
  }

  void run() {
    c_.assign(static_cast<std::size_t>(s_.m) * s_.n, -1);
    const int down = (s_.m + Tile::kM - 1) / Tile::kM, along = (s_.n + Tile::kN - 1) / Tile::kN;
    for (int tile = 0; tile < down * along; ++tile) {
      const Place place =
          place_of(static_cast<uint32_t>(tile), static_cast<uint32_t>(down), static_cast<uint32_t>(along));
      run_tile(static_cast<int>(place.row) * Tile::kM, static_cast<int>(place.column) * Tile::kN);
    }
  }

  void expect_right() const {
    for (int row = 0; row < s_.m; ++row) {
      for (int column = 0; column < s_.n; ++column) {
        double sum = 0;
        for (int k = 0; k < s_.k; ++k)
          sum += static_cast<double>(a_[row * s_.k + k]) * static_cast<double>(b_[k * s_.n + column]);
        ASSERT_EQ(c_[row * s_.n + column], sum) << row << ", " << column;
      }
    }
  }

 private:
  void run_tile(int row0, int column0) {
    std::vector<double> sums(static_cast<std::size_t>(Tile::kM * Tile::kN));
    for (int k0 = 0; k0 < s_.k; k0 += kDepth) {
      slab_.assign(Tile::kSlab, char{0x7F});
      for (int thread = 0; thread < Tile::kThreads; ++thread) fill(thread, row0, column0, k0);
      for (int warp = 0; warp < Tile::kWarps; ++warp) {
        for (int step = 0; step < kSteps; ++step) multiply(warp, step, sums);
      }
    }
    for (int warp = 0; warp < Tile::kWarps; ++warp) write(warp, row0, column0, sums);
  }

  void fill(int thread, int row0, int column0, int k0) {
    const auto put = [&](int offset, const std::vector<float>& from, int64_t at, bool there) {
      float chunk[kVector] = {};
      if (there) std::copy_n(from.begin() + at, kVector, chunk);
      ASSERT_LE(offset + kChunkBytes, Tile::kSlab);
      std::memcpy(&slab_[static_cast<std::size_t>(offset)], chunk, kChunkBytes);
    };
    const int a_row = Tile::left_row(thread), a_chunk = Tile::left_chunk(thread);
    for (int i = 0; i < Tile::kLeftCopies; ++i) {
      const int row = row0 + a_row + i * Tile::kLeftStep, k = k0 + a_chunk * kVector;
      put(Tile::left_offset(a_row, a_chunk) + i * Tile::kLeftStep * kSlabBytes, a_, row * s_.k + k,
          row < s_.m && k < s_.k);
    }
    const int b_term = Tile::right_term(thread), b_chunk = Tile::right_chunk(thread);
    for (int i = 0; i < Tile::kRightCopies; ++i) {
      const int k = k0 + b_term + i * Tile::kRightStep, column = column0 + b_chunk * kVector;
      put(Tile::right_offset(b_term, b_chunk) + i * Tile::kRightStep * Tile::kRightBytes, b_,
          k * s_.n + column, k < s_.k && column < s_.n);
    }
  }

  float read(int offset) const {
    float value;
    std::memcpy(&value, &slab_[static_cast<std::size_t>(offset)], sizeof(value));
    return value;
  }

  /// Register `r` of a lane after ldmatrix.x4: lane 8r + i names row i of matrix r.
  template <class Address>
  float loaded(const Address& address, int lane, int r) const {
    return read(address(r * 8 + lane / 4) + lane % 4 * 4);
  }

  void multiply(int warp, int step, std::vector<double>& sums) const {
    for (int i = 0; i < Tile::kDown; ++i) {
      double left[16][kStepTerms];
      const auto from = [&](int lane) { return Tile::left_lane(lane, Tile::warp_row(warp) + i * 16, step); };
      for (int lane = 0; lane < 32; ++lane) {
        for (int r = 0; r < 4; ++r) left[lane / 4 + r % 2 * 8][lane % 4 + r / 2 * 4] = loaded(from, lane, r);
      }
      for (int j = 0; j < Tile::kAlong; ++j) {
        double right[kStepTerms][8];
        const int first = Tile::warp_column(warp) + j * 8;
        for (int lane = 0; lane < 32; ++lane) {
          for (int r = 0; r < 2; ++r)
            right[lane % 4 + r * 4][lane / 4] = read(Tile::right_word(lane, first, step, r));
        }
        for (int lane = 0; lane < 32; ++lane) {
          for (int element = 0; element < 4; ++element) {
            const int row = lane / 4 + element / 2 * 8, column = lane % 4 * 2 + element % 2;
            double& sum = sums[place(warp, i, j, lane, element)];
            for (int k = 0; k < kStepTerms; ++k) sum += left[row][k] * right[k][column];
          }
        }
      }
    }
  }

  /// A lane's registers of sums, in the order of the kernel's array.
  static std::size_t place(int warp, int i, int j, int lane, int element) {
    return static_cast<std::size_t>((((warp * Tile::kDown + i) * Tile::kAlong + j) * 32 + lane) * 4 +
                                    element);
  }

  void write(int warp, int row0, int column0, const std::vector<double>& sums) {
    for (int i = 0; i < Tile::kDown; ++i) {
      for (int j = 0; j < Tile::kAlong; ++j) {
        for (int lane = 0; lane < 32; ++lane) {
          for (int element = 0; element < 4; ++element) {
            const int row = row0 + Tile::warp_row(warp) + i * 16 + row_in_fragment(lane, element);
            const int column = column0 + Tile::warp_column(warp) + j * 8 + column_in_fragment(lane, element);
            if (row < s_.m && column < s_.n) c_[row * s_.n + column] = sums[place(warp, i, j, lane, element)];
          }
        }
      }
    }
  }

  Sizes s_;
  std::vector<float> a_, b_;
  std::vector<double> c_;
  std::vector<char> slab_;
};

template <class Tile>
class TensorLayout : public testing::Test {};

using Tiles = testing::Types<Tile<64, 64, 2, 2>, Tile<64, 32, 2, 2>, Tile<32, 32, 2, 2>>;
TYPED_TEST_SUITE(TensorLayout, Tiles);

TYPED_TEST(TensorLayout, GivesTheProduct) {
  for (const Sizes& sizes : {Sizes{128, 128, 64}, Sizes{130, 136, 72}, Sizes{1, 4, 4}, Sizes{33, 200, 136}}) {
    Emulation<TypeParam> emulation(sizes);
    emulation.run();
    emulation.expect_right();
  }
}

/// Eight rows of 16 bytes are read at a time, and 32 words.
TYPED_TEST(TensorLayout, ReadsMeetEveryBankOnce) {
  using T = TypeParam;
  for (int step = 0; step < kSteps; ++step) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      std::set<int> chunks;
      for (int row = 0; row < 8; ++row) chunks.insert(T::left_lane(matrix * 8 + row, 16, step) / 16 % 8);
      EXPECT_EQ(chunks.size(), 8u);
    }
    for (int half = 0; half < 2; ++half) {
      std::set<int> banks;
      for (int lane = 0; lane < 32; ++lane) banks.insert(T::right_word(lane, 8, step, half) / 4 % 32);
      EXPECT_EQ(banks.size(), 32u);
    }
  }
}

TEST(TensorPlaces, CoverEveryTileOnce) {
  for (const auto& [down, along] : {std::pair<uint32_t, uint32_t>{1, 1}, {8, 3}, {9, 5}, {23, 1}, {1, 40}}) {
    std::set<std::pair<uint32_t, uint32_t>> seen;
    for (uint32_t i = 0; i < down * along; ++i) {
      const Place place = place_of(i, down, along);
      EXPECT_TRUE(place.row < down && place.column < along);
      seen.emplace(place.row, place.column);
    }
    EXPECT_EQ(seen.size(), down * along);
  }
}

}  // namespace
}  // namespace fulcrum::backends::cuda::tensor
