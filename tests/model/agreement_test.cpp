// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The verdict of a plan's row and the break-even of the same op at the same sizes say the same: the ops of a memory that
// recalls, and some others, from small to large.
#include <gtest/gtest.h>

#include "model_support.h"

namespace fulcrum::model {
namespace {

struct Subject {
  const char* op;
  const char* shape;
  const char* dim;
};
constexpr Subject kSubjects[] = {
    {"cosine_topk", "Q=1000,N=10000,D=128,k=10", "N"},
    {"cosine_similarity", "N=10000,D=128", "N"},
    {"activation_spreading", "n=10000,nnz=50000,hops=3", "n"},
    {"hnsw_search", "Q=1000,N=10000,D=128,k=10,ef=64", "N"},
    {"softmax", "rows=64,cols=1024", "rows"},
    {"vec_add", "n=100000", "n"},
    {"dot", "n=100000", "n"},
};

bool wins_at(const BreakEven& breakeven, double n) {
  if (breakeven.kind == BreakEven::Kind::always) return true;
  for (const BreakEven::Window& window : breakeven.windows) {
    if (n >= window.from && n <= window.to) return true;
  }
  return false;
}
/// Between two points of its curves a break-even is interpolated.
bool near_an_edge(const BreakEven& breakeven, double n) {
  for (const BreakEven::Window& window : breakeven.windows) {
    for (const double edge : {window.from, window.to}) {
      if (n > edge / 1.3 && n < edge * 1.3) return true;
    }
  }
  return false;
}

int check(const Model& model, const Subject& subject, double size) {
  const auto op = ops::find(subject.op);
  const auto shape = parse_shape(subject.shape);
  if (!op.ok() || !shape.ok()) return 0;
  auto sized = *shape;
  sized.set(subject.dim, static_cast<std::int64_t>(size));
  const auto complete = ops::complete(**op, sized);
  if (!complete.ok()) return 0;
  PlanInput input;
  PlanItem item;
  item.name = subject.op;
  item.op = subject.op;
  item.shape = *complete;
  item.dim = subject.dim;
  item.share = test::sure(0.5);
  input.items = {item};
  input.cpu_rows = false;
  const Plan made = plan(model, input);
  EXPECT_EQ(made.rows.size(), 1u);
  if (made.rows.size() != 1) return 0;
  const PlanRow& row = made.rows.front();
  Sizes sizes;
  sizes.op = subject.op;
  sizes.dim = subject.dim;
  sizes.shape = *complete;
  sizes.to = std::max(64 * size, 67108864.0);
  const auto alone = breakeven(model, sizes, input.use);
  EXPECT_TRUE(alone.ok()) << subject.op;
  if (!alone.ok() || !row.best_gpu.valid() || !row.best_cpu.valid() || near_an_edge(*alone, size)) return 0;
  const bool wins = wins_at(*alone, size);
  EXPECT_EQ(row.best_gpu.seconds < row.best_cpu.seconds, wins)
      << subject.op << " " << size << ": " << alone->text;
  EXPECT_EQ(row.breakeven.text, alone->text) << subject.op << " " << size;
  const bool kept = row.verdict == PlanVerdict::keep_on_cpu;
  EXPECT_TRUE(wins || kept) << subject.op << " " << size << ": " << row.why << " against " << alone->text;
  return 1;
}

TEST(Agreement, PlanAndBreakEvenSayTheSameOfAnOpAtASize) {
  const Model model = test::reference();
  int checked = 0;
  for (const Subject& subject : kSubjects) {
    for (const double size : {10.0, 100.0, 1000.0, 10000.0, 100000.0, 1e6})
      checked += check(model, subject, size);
  }
  EXPECT_GT(checked, 20);
}

}  // namespace
}  // namespace fulcrum::model
