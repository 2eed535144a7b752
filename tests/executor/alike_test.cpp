// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Two answers to one call, held against each other: what rounding and ties explain is alike, all else is not.
#include "executor/alike.h"

#include <fulcrum/backends.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "executor/named_ops.h"

namespace fulcrum::executor {
namespace {

/// A call with its right results, and a copy of them that tests change.
class TwoAnswers {
 public:
  TwoAnswers(std::string_view op, std::string_view shape)
      : facts_(facts_of(op_named(op))),
        dtype_(parse_shape(shape).value().dtype),
        problem_(std::move(ops::Problem::make(op_named(op), parse_shape(shape).value())).value()) {
    answer();
  }
  ops::Problem& problem() { return problem_; }
  void answer() {
    const std::string dtype(to_string(dtype_));
    problem_.reset();
    const auto kernel = backends::kernel(problem_.op().name, "scalar");
    EXPECT_TRUE(kernel.ok());
    EXPECT_EQ(kernel.value().entry().run(&problem_.args(), nullptr, 1).code, FULCRUM_OK);
    got_ = problem_.args();
    for (int slot = 0; slot < facts_.pointers; ++slot) {
      if (!facts_.slots[static_cast<std::size_t>(slot)].writes) continue;
      const auto bytes = problem_.buffer(slot);
      auto& copy = copies_[static_cast<std::size_t>(slot)];
      copy.assign(bytes.begin(), bytes.end());
      got_.ptr[slot] = copy.data();
    }
  }
  template <class T>
  T* got(int slot) {
    return static_cast<T*>(got_.ptr[slot]);
  }
  template <class T>
  T* trusted(int slot) {
    return static_cast<T*>(problem_.args().ptr[slot]);
  }
  bool are_alike(bool reduced = false) const { return alike(facts_, dtype_, got_, problem_.args(), reduced); }

 private:
  OpFacts facts_;
  DType dtype_;
  ops::Problem problem_;
  Args got_{};
  std::array<std::vector<std::byte>, FULCRUM_SLOTS> copies_;
};

TEST(Alike, ValuesMayDifferByWhatTheirPrecisionRounds) {
  TwoAnswers calls("gelu", "n=100");
  EXPECT_TRUE(calls.are_alike());
  calls.got<float>(1)[7] += 0.01F;
  EXPECT_FALSE(calls.are_alike());
  EXPECT_TRUE(calls.are_alike(true));
  calls.got<float>(1)[7] = NAN;
  EXPECT_FALSE(calls.are_alike(true));
}

TEST(Alike, OneWrongClassIsSeen) {
  TwoAnswers calls("image_segmentation", "h=40,w=70");
  EXPECT_TRUE(calls.are_alike());
  calls.got<std::uint8_t>(1)[1234] ^= 1;
  EXPECT_FALSE(calls.are_alike());
  TwoAnswers pipeline("conv_entropy_segment", "h=33,w=35,kh=3,kw=3,pad_y=1,pad_x=1,W=3,t=2");
  EXPECT_TRUE(pipeline.are_alike());
  pipeline.got<std::uint8_t>(2)[100] ^= 1;
  EXPECT_FALSE(pipeline.are_alike());
}

TEST(Alike, AClassThatTheDefinitionGivesIsRightWhateverTheOtherKernelSays) {
  TwoAnswers calls("image_segmentation", "h=40,w=70");
  calls.trusted<std::uint8_t>(1)[1234] ^= 1;
  EXPECT_TRUE(calls.are_alike());
}

TEST(Alike, ACountThatIsWrongIsSeenBesideRightValues) {
  for (const char* shape : {"h=20,w=30,W=3", "h=20,w=30,W=3,dtype=u8"}) {
    TwoAnswers calls("pixel_entropy", shape);
    EXPECT_TRUE(calls.are_alike()) << shape;
    calls.got<std::int64_t>(2)[0] += 1;
    EXPECT_FALSE(calls.are_alike()) << shape;
  }
}

TEST(Alike, AnIdIsRightWhereItsRowScoresAsWell) {
  TwoAnswers calls("cosine_topk", "Q=5,N=200,D=16,k=3");
  auto* rows = calls.problem().args().out<float>(1);
  const auto* ids = calls.trusted<std::int32_t>(3);
  // The worst row of all becomes a copy of what query 2 finds last, and comes after it.
  const std::int32_t last = ids[2 * 3 + 2];
  const std::int32_t copy = last == 199 ? 198 : 199;
  std::memcpy(rows + copy * 16, rows + last * 16, 16 * sizeof(float));
  calls.problem().adopt_inputs();
  calls.answer();
  auto* got = calls.got<std::int32_t>(3) + 2 * 3;
  ASSERT_EQ(got[2], std::min(last, copy));
  EXPECT_TRUE(calls.are_alike());
  got[2] = std::max(last, copy);
  EXPECT_TRUE(calls.are_alike()) << "they tie";
  got[2] = (last + 50) % 190;
  ASSERT_NE(got[2], got[0]);
  ASSERT_NE(got[2], got[1]);
  EXPECT_FALSE(calls.are_alike()) << "the score is right, and of another row";
  got[2] = 200;
  EXPECT_FALSE(calls.are_alike()) << "there is no such row";
}

TEST(Alike, ManyQueriesThatDifferAreJudgedTogether) {
  TwoAnswers calls("cosine_topk", "Q=40,N=100,D=8,k=2");
  for (int query = 0; query < 40; ++query)
    std::swap(calls.got<std::int32_t>(3)[2 * query], calls.got<std::int32_t>(3)[2 * query + 1]);
  EXPECT_FALSE(calls.are_alike());
}

TEST(Alike, ANeighbourOfASearchIsHeldAgainstItsOwnDistance) {
  TwoAnswers calls("hnsw_search", "Q=9,N=200,D=33,k=5,ef=300");
  EXPECT_TRUE(calls.are_alike());
  auto* ids = calls.got<std::int32_t>(1);
  const std::int32_t* end = ids + 5;
  std::int32_t stranger = 0;
  while (std::find(static_cast<const std::int32_t*>(ids), end, stranger) != end) ++stranger;
  ids[4] = stranger;
  EXPECT_FALSE(calls.are_alike());
}

}  // namespace
}  // namespace fulcrum::executor
