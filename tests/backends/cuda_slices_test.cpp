// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How a call on host data is cut into pieces, and how the fastest of several ways is found: the arithmetic of the CUDA
// module's trips, which needs no device.
#include <gtest/gtest.h>

#include "backends/cuda/trips/batch.h"
#include "backends/cuda/trips/itinerary.h"
#include "backends/cuda/trips/race.h"

namespace fulcrum::backends::cuda::trips {
namespace {

float memory[4][4];

/// out[n] = f(a[n], b[n]).
struct Elementwise {
  fulcrum_kernel kernel{};
  fulcrum_operand operands[3];
  fulcrum_call call{};

  explicit Elementwise(std::int64_t n, std::int64_t unit = 1)
      : operands{{0, FULCRUM_IN, 4 * n, 4}, {1, FULCRUM_IN, 4 * n, 4}, {2, FULCRUM_OUT, 4 * n, 4}} {
    for (int i = 0; i < 3; ++i) call.args.ptr[i] = memory[i];
    call.args.dim[0] = n;
    call.operands = operands;
    call.operand_count = 3;
    call.kernel = &kernel;
    call.slice_dim = 0;
    call.slice_unit = unit;
  }
};

/// Every element once, in order, no piece empty, cuts at multiples of the unit.
void expect_covered(const std::vector<Slice>& slices, std::int64_t length, std::int64_t unit) {
  std::int64_t next = 0;
  for (const Slice& slice : slices) {
    EXPECT_EQ(slice.begin, next);
    EXPECT_GT(slice.length, 0);
    EXPECT_EQ(slice.begin % unit, 0);
    EXPECT_LE(slice.length, slices.front().length) << "the first is to be the longest";
    next += slice.length;
  }
  EXPECT_EQ(next, length);
}

TEST(CudaSlices, CoverTheCallOnceWhateverTheLengthAndTheUnit) {
  for (const std::int64_t length : {1, 2, 7, 63, 64, 65, 1000, 1000003}) {
    for (const std::int64_t unit : {1, 3, 64}) {
      for (const std::int64_t pieces : {1, 2, 3, 8, 1000}) {
        SCOPED_TRACE(testing::Message() << length << " in " << pieces << " by " << unit);
        const auto slices = cut(length, unit, pieces);
        expect_covered(slices, length, unit);
        EXPECT_LE(static_cast<std::int64_t>(slices.size()), pieces);
        const std::int64_t units = (length + unit - 1) / unit;
        EXPECT_EQ(static_cast<std::int64_t>(slices.size()), std::min(pieces, units));
        EXPECT_LT(slices.front().length - slices[slices.size() / 2].length, 2 * unit);
      }
    }
  }
}

TEST(CudaSlices, OfACallHaveItsArgumentsButForTheSlicedDim) {
  Elementwise elementwise(1000);
  elementwise.call.args.dim[1] = 5;
  elementwise.call.args.scalar[0].f = 0.5;
  const Cargo cargo = cargo_of(elementwise.call);
  const fulcrum_args args = sliced(cargo, Slice{300, 200});
  EXPECT_EQ(args.dim[0], 200);
  EXPECT_EQ(args.dim[1], 5);
  EXPECT_EQ(args.scalar[0].f, 0.5);
}

TEST(CudaSlices, BeginAtLinesWhenTheCallIsLongEnough) {
  EXPECT_EQ(grain(cargo_of(Elementwise(1 << 20).call)), 64) << "256 bytes of floats";
  EXPECT_EQ(grain(cargo_of(Elementwise(100).call)), 1) << "there would be one piece only";
  EXPECT_EQ(grain(cargo_of(Elementwise(1 << 20, 48).call)) % 48, 0);
}

TEST(CudaCargo, KeepsWhatGoesInAndWhatComesOutApart) {
  const Cargo cargo = cargo_of(Elementwise(1000).call);
  ASSERT_EQ(cargo.buffers.size(), 3u);
  EXPECT_TRUE(cargo.buffers[0].in && !cargo.buffers[0].out);
  EXPECT_TRUE(cargo.buffers[2].out && !cargo.buffers[2].in);
  EXPECT_EQ(cargo.bytes(), 12000);
  EXPECT_EQ(cargo.slice_bytes(), 12);
  EXPECT_EQ(cargo.whole_bytes(), 0);
  EXPECT_EQ(cargo.calls, 1) << "none given means one";
}

TEST(CudaCargo, JoinsAnOutputThatIsAlsoAnInput) {
  Elementwise in_place(1000);
  in_place.call.args.ptr[2] = memory[0];
  const Cargo cargo = cargo_of(in_place.call);
  ASSERT_EQ(cargo.buffers.size(), 2u);
  EXPECT_TRUE(cargo.buffers[0].in && cargo.buffers[0].out);
  EXPECT_EQ(cargo.buffers[0].slots, (std::vector<int>{0, 2}));
  EXPECT_TRUE(cargo.sliceable());
  fulcrum_args args{};
  place(args, cargo.buffers[0], memory[3]);
  EXPECT_EQ(args.ptr[0], memory[3]);
  EXPECT_EQ(args.ptr[2], memory[3]);
  EXPECT_EQ(args.ptr[1], nullptr);
}

TEST(CudaCargo, ReadAndWrittenByRoleIsBoth) {
  Elementwise updated(8);
  updated.operands[0].role = FULCRUM_INOUT;
  const Cargo cargo = cargo_of(updated.call);
  EXPECT_TRUE(cargo.buffers[0].in && cargo.buffers[0].out);
}

TEST(CudaCargo, IsNotCutWhereThatWouldBeWrong) {
  EXPECT_TRUE(cargo_of(Elementwise(8).call).sliceable());
  Elementwise undivided(8);
  undivided.call.slice_dim = -1;
  EXPECT_FALSE(cargo_of(undivided.call).sliceable());
  Elementwise shared_output(8);  // every piece would write all of it
  shared_output.operands[2].slice_bytes = 0;
  EXPECT_FALSE(cargo_of(shared_output.call).sliceable());
  Elementwise uneven(8);  // more bytes than units: pieces would miss some
  uneven.operands[1].bytes += 4;
  EXPECT_FALSE(cargo_of(uneven.call).sliceable());
  Elementwise two_views(8);  // one memory, cut and whole
  two_views.call.args.ptr[1] = memory[0];
  two_views.operands[1].slice_bytes = 0;
  EXPECT_FALSE(cargo_of(two_views.call).sliceable());
  EXPECT_FALSE(cargo_of(Elementwise(0).call).sliceable());
}

TEST(CudaPieces, AreNotSmallerThanACopyIsWorth) {
  EXPECT_TRUE(piece_counts(cargo_of(Elementwise(1000).call)).empty());
  EXPECT_EQ(piece_counts(cargo_of(Elementwise(1 << 20).call)), (std::vector<std::int64_t>{2, 3, 4, 6, 8}));
  EXPECT_EQ(piece_counts(cargo_of(Elementwise(100'000).call)), (std::vector<std::int64_t>{2, 3}));
  const auto large = piece_counts(cargo_of(Elementwise(std::int64_t{1} << 28).call));
  ASSERT_EQ(large.size(), 1u) << "nothing to time where a trip takes long";
  EXPECT_EQ(large[0], (std::int64_t{12} << 28) / kLargePiece);
  EXPECT_TRUE(piece_counts(cargo_of(Elementwise(1 << 20, 1 << 20).call)).empty()) << "one unit only";
}

TEST(CudaPieces, OfARingFitIntoItsBytes) {
  for (const std::int64_t unit : {1, 64}) {
    const Cargo cargo = cargo_of(Elementwise(1'000'003, unit).call);
    for (const std::int64_t cap : {100'000, 1'000'000, 36'000'000, 100'000'000}) {
      const std::int64_t pieces = pieces_within(cargo, cap, 3);
      ASSERT_GE(pieces, 1) << cap;
      const auto slices = cut(cargo.length(), unit, pieces);
      EXPECT_LE(3 * slices.front().length * cargo.slice_bytes(), cap) << unit;
      expect_covered(slices, cargo.length(), unit);
    }
    EXPECT_EQ(pieces_within(cargo, 12 * 3 * unit - 1, 3), 0) << "not one unit fits";
    EXPECT_GT(pieces_within(cargo, 12 * 3 * unit, 3), 0);
  }
}

TEST(CudaPieces, LeaveRoomForWhatAllOfThemNeed) {
  Elementwise with_table(1000);
  with_table.operands[1] = fulcrum_operand{1, FULCRUM_IN, 5000, 0};
  const Cargo cargo = cargo_of(with_table.call);
  ASSERT_TRUE(cargo.sliceable());
  EXPECT_EQ(cargo.whole_bytes(), 5000);
  EXPECT_EQ(pieces_within(cargo, 4999, 3), 0);
  EXPECT_EQ(pieces_within(cargo, 5000 + 3 * 8 * 100, 3), 10);
}

/// All of the call, piece by piece, whatever their sizes.
void expect_all(const std::vector<Leg>& legs, std::int64_t length, std::int64_t unit) {
  std::int64_t next = 0;
  for (const Leg& leg : legs) {
    EXPECT_EQ(leg.slice.begin, next);
    EXPECT_GT(leg.slice.length, 0);
    EXPECT_EQ(leg.slice.begin % unit, 0);
    next += leg.slice.length;
  }
  EXPECT_EQ(next, length);
}

TEST(CudaItinerary, CoversTheCallOnceInTheProportionsAskedFor) {
  const Shares shares{{12, Way::mapped}, {56}, {24}, {8, Way::through}};
  for (const std::int64_t length : {1, 2, 7, 65, 1000, 1'000'003}) {
    for (const std::int64_t unit : {1, 3, 64}) {
      SCOPED_TRACE(testing::Message() << length << " by " << unit);
      expect_all(legs_of(length, unit, shares), length, unit);
      expect_all(legs_of(length, unit, std::int64_t{5}), length, unit);
    }
  }
  const auto legs = legs_of(1000, 1, shares);
  ASSERT_EQ(legs.size(), 4u);
  EXPECT_EQ(legs[0].slice.length, 120);
  EXPECT_EQ(legs[0].way, Way::mapped);
  EXPECT_EQ(legs[1].slice.length, 560);
  EXPECT_EQ(legs[3].slice.length, 80);
  EXPECT_EQ(legs[3].way, Way::through);
  const auto few = legs_of(10, 5, shares);  // two units: no more than two pieces
  EXPECT_EQ(few.size(), 2u);
}

TEST(CudaItinerary, CutsAreWholeAndTheCopyEnginesHaveAPart) {
  for (const std::int64_t n : {200'000, 1 << 20, 5 << 20, 20 << 20}) {
    const Elementwise two(n);
    Elementwise one(n);
    one.call.operand_count = 2;
    one.operands[1] = one.operands[2];
    for (const Cargo& cargo : {cargo_of(two.call), cargo_of(one.call)}) {
      const auto cuts = uneven_cuts(cargo);
      EXPECT_EQ(cuts.empty(), cargo.bytes() < kUnevenFrom) << n;
      for (const Shares& shares : cuts) {
        int percent = 0, copied = 0;
        for (const Share& share : shares) {
          percent += share.percent;
          copied += share.way != Way::mapped;
        }
        EXPECT_EQ(percent, 100);
        EXPECT_GT(copied, 1);
      }
      EXPECT_LE(even_cuts(cargo).size(), 2u);
    }
  }
}

TEST(CudaItinerary, KernelsTouchTheHostOnlyWhereEachByteCrossesOnce) {
  const auto on_host = [](const Cargo& cargo) {
    int count = 0;
    for (const Shares& shares : uneven_cuts(cargo)) {
      for (const Share& share : shares) count += share.way != Way::copied;
    }
    return count;
  };
  Elementwise plain(1 << 20);
  EXPECT_GT(on_host(cargo_of(plain.call)), 0);
  plain.call.calls = 3;
  EXPECT_EQ(on_host(cargo_of(plain.call)), 0) << "each call would write the results";
  Elementwise updated(1 << 20);
  updated.operands[0].role = FULCRUM_INOUT;
  EXPECT_FALSE(uneven_cuts(cargo_of(updated.call)).empty());
  EXPECT_EQ(on_host(cargo_of(updated.call)), 0);
  Elementwise table(1 << 20);
  table.operands[1] = fulcrum_operand{1, FULCRUM_IN, 5000, 0};
  EXPECT_EQ(on_host(cargo_of(table.call)), 0) << "each piece would read the table";
}

/// Calls of out[n] = f(a[n], b[n]) on memory of their own, but for b, which is the same one.
std::vector<Cargo> calls_on(std::vector<std::vector<float>>& rows, std::int64_t n) {
  std::vector<Cargo> calls;
  for (std::size_t i = 0; i + 2 < rows.size(); i += 2) {
    Elementwise one(n);
    one.call.args.ptr[0] = rows[i].data();
    one.call.args.ptr[1] = rows.back().data();
    one.call.args.ptr[2] = rows[i + 1].data();
    one.call.kernel = nullptr;
    calls.push_back(cargo_of(one.call));
  }
  return calls;
}

TEST(CudaBatch, SendsWhatAllCallsReadOnceAndTheRestWithEachCall) {
  std::vector<std::vector<float>> rows(7, std::vector<float>(10));
  const std::vector<Cargo> calls = calls_on(rows, 10);
  ASSERT_EQ(unlike(calls), nullptr);
  const Batch batch = batch_of(calls);
  EXPECT_EQ(batch.calls(), 3);
  EXPECT_EQ(batch.buffers.size(), 7u) << "b once";
  EXPECT_EQ(batch.shared, (std::vector<bool>{false, true, false}));
  EXPECT_EQ(batch.bytes_each(), 80);
  EXPECT_EQ(batch.shared_bytes(), 40);
  EXPECT_TRUE(independent(batch));
  for (std::size_t call = 0; call < 3; ++call) {
    for (std::size_t i = 0; i < 3; ++i) {
      const Buffer& found = batch.buffers[batch.where[call][i]];
      EXPECT_EQ(found.host, calls[call].buffers[i].host);
      EXPECT_EQ(found.bytes, 40);
      EXPECT_EQ(found.out, i == 2);
    }
  }
}

TEST(CudaBatch, OfOneCallSharesNothing) {
  std::vector<std::vector<float>> rows(3, std::vector<float>(10));
  const Batch batch = batch_of(calls_on(rows, 10));
  EXPECT_EQ(batch.calls(), 1);
  EXPECT_FALSE(batch.shares());
  EXPECT_EQ(batch.bytes_each(), 120);
}

TEST(CudaBatch, RefusesCallsThatAreNotAlike) {
  EXPECT_NE(unlike({}), nullptr);
  std::vector<std::vector<float>> rows(5, std::vector<float>(10));
  std::vector<Cargo> calls = calls_on(rows, 10);
  calls[1].args.dim[3] = 1;
  EXPECT_NE(unlike(calls), nullptr) << "another size";
  calls = calls_on(rows, 10);
  calls[1].args.scalar[0].f = 1;
  EXPECT_NE(unlike(calls), nullptr) << "another parameter";
  calls = calls_on(rows, 10);
  calls[1].buffers[0].out = true;
  EXPECT_NE(unlike(calls), nullptr) << "one updates in place, the other does not";
}

TEST(CudaBatch, SeesCallsThatNeedEachOther) {
  std::vector<std::vector<float>> rows(5, std::vector<float>(20));
  EXPECT_TRUE(independent(batch_of(calls_on(rows, 10))));
  for (const std::ptrdiff_t offset : {0, 5, -5}) {
    std::vector<Cargo> calls = calls_on(rows, 10);
    for (Cargo& call : calls) {
      for (Buffer& buffer : call.buffers) buffer.host += 20;  // room on both sides
    }
    calls[1].buffers[0].host = calls[0].buffers[2].host + offset * 4;
    EXPECT_FALSE(independent(batch_of(calls))) << "reads what the first one writes, " << offset;
    calls[1].buffers[0].host = calls[0].buffers[0].host + offset * 4;
    EXPECT_TRUE(independent(batch_of(calls))) << "both only read, " << offset;
    calls[1].buffers[2].host = calls[0].buffers[2].host + offset * 4;
    EXPECT_FALSE(independent(batch_of(calls))) << "both write, " << offset;
  }
}

TEST(CudaBatch, HasAsManySetsAsFitAndNoFewerThanTwo) {
  std::vector<std::vector<float>> rows(7, std::vector<float>(10));
  const Batch small = batch_of(calls_on(rows, 10));
  EXPECT_EQ(sets_within(small, 1 << 30), kSetsOfSmallCalls);
  EXPECT_EQ(sets_within(small, 40 + 3 * 80), 3);
  EXPECT_EQ(sets_within(small, 40 + 2 * 80 - 1), 0);
  EXPECT_EQ(sets_within(batch_of({cargo_of(Elementwise(1 << 20).call)}), std::int64_t{1} << 40), kSets);
}

TEST(CudaRace, IsWonByTheSmallestMedianNotByTheLuckiestRun) {
  int runs[3] = {};
  const int winner =
      race(3, RaceRules{.warm_ups = 1, .rounds = 9, .seconds_each = 1e9, .hopeless = 100}, [&](int i) {
        const int run = runs[i]++;
        if (i == 0) return run % 4 == 3 ? 0.1 : 3.0;  // now and then very fast
        return i == 1 ? 2.0 : 2.5;
      });
  EXPECT_EQ(winner, 1);
  EXPECT_EQ(runs[0], 10);
}

TEST(CudaRace, SendsOffTheHopelessAndTheEndless) {
  int runs[3] = {};
  const double seconds[3] = {1e-5, 1e-4, 1.0};
  EXPECT_EQ(race(3, RaceRules{}, [&](int i) { return ++runs[i], seconds[i]; }), 0);
  EXPECT_EQ(runs[0], 22);
  EXPECT_EQ(runs[1], 2) << "hopeless after the warm-ups";
  EXPECT_EQ(runs[2], 1) << "endless at once";
}

TEST(CudaRace, ForgivesOneSlowWarmUp) {
  int runs = 0;
  const RaceRules rules{.warm_ups = 3, .hopeless = 1.15};
  EXPECT_EQ(race(2, rules, [&](int i) { return i == 0 ? (++runs == 3 ? 3e-4 : 2e-4) : 2.1e-4; }), 0);
}

TEST(CudaRace, StopsRunningWhoHasHadHisTime) {
  int runs = 0;
  EXPECT_EQ(race(1, RaceRules{.seconds_each = 0.5}, [&](int) { return ++runs, 0.2; }), 0);
  EXPECT_EQ(runs, 3);
}

TEST(CudaRace, LeavesOutWhoFailsAndSaysWhenAllDo) {
  int runs = 0;
  EXPECT_EQ(race(2, RaceRules{}, [&](int i) { return i == 0 && ++runs > 5 ? -1.0 : 1e-5 + 5e-6 * i; }), 1);
  EXPECT_EQ(race(2, RaceRules{}, [](int) { return -1.0; }), -1);
  EXPECT_EQ(race(0, RaceRules{}, [](int) { return 1.0; }), -1);
}

}  // namespace
}  // namespace fulcrum::backends::cuda::trips
