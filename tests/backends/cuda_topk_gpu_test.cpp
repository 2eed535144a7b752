// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cosine_topk on a device: all variants give the same rows and bits on inputs made to defeat their filters, on any
// alignment and in any number of queries, and as often as a recorded call is replayed.
#include <fulcrum/backends.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "support/on_device.h"

namespace fulcrum::backends {
namespace {

struct Search {
  std::int64_t queries, rows, d, k;
};

struct Results {
  std::vector<std::int32_t> ids;
  std::vector<float> scores;
};

class CudaTopk : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    for (const fulcrum_kernel& kernel : backend_->kernels()) {
      if (std::string_view(kernel.op) == "cosine_topk") kernels_.push_back(&kernel);
    }
    ASSERT_FALSE(kernels_.empty());
  }

  fulcrum_args args_of(const Search& c, const std::vector<float>& q, const std::vector<float>& t,
                       std::int64_t shift) {
    const auto places = static_cast<std::size_t>(c.queries * c.k);
    fulcrum_args args = {};
    args.dim[0] = c.queries, args.dim[1] = c.rows, args.dim[2] = c.d, args.dim[3] = c.k;
    args.ptr[0] = place(q, shift), args.ptr[1] = place(t, shift);
    args.ptr[3] = place(std::vector<std::int32_t>(places, -7), 0);
    args.ptr[4] = place(std::vector<float>(places, -7.0F), 0);
    return args;
  }

  Results run(const fulcrum_kernel& kernel, fulcrum_args args) {
    OnDevice::run(kernel, args);
    return fetch_results(args);
  }
  Results fetch_results(const fulcrum_args& args) {
    const std::int64_t places = args.dim[0] * args.dim[3];
    return Results{fetch(args.out<std::int32_t>(3), places), fetch(args.out<float>(4), places)};
  }

  /// Empty when the op's own check accepts the results.
  std::string verdict(const Search& c, std::vector<float>& q, std::vector<float>& t, const float* inverse,
                      bool unit, Results& results) {
    fulcrum_args args = {};
    args.dim[0] = c.queries, args.dim[1] = c.rows, args.dim[2] = c.d, args.dim[3] = c.k;
    args.ptr[0] = q.data(), args.ptr[1] = t.data(), args.ptr[2] = const_cast<float*>(inverse);
    args.ptr[3] = results.ids.data(), args.ptr[4] = results.scores.data();
    args.scalar[0].i = unit ? 1 : 0;
    Oracle oracle;
    return (*ops::find("cosine_topk"))->verify(args, oracle);
  }

  std::vector<const fulcrum_kernel*> kernels_;
};

std::vector<float> topk_values(std::int64_t n, int tensor) {
  std::vector<float> result(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = ops::random_uniform(ops::tensor_key(tensor), i, -1, 1);
  return result;
}

bool same(const Results& a, const Results& b) {
  for (std::size_t i = 0; i < a.ids.size(); ++i) {
    const bool bits =
        std::bit_cast<std::uint32_t>(a.scores[i]) == std::bit_cast<std::uint32_t>(b.scores[i]) ||
        (std::isnan(a.scores[i]) && std::isnan(b.scores[i]));
    if (a.ids[i] != b.ids[i] || !bits) return false;
  }
  return true;
}

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// An input that is hard on one part of the search; `change` works on random queries and rows.
struct Trap {
  const char* name;
  std::function<void(const Search&, std::vector<float>& q, std::vector<float>& t)> change;
};

void set_row(const Search& c, std::vector<float>& t, std::int64_t row,
             const std::function<float(std::int64_t)>& value) {
  for (std::int64_t i = 0; i < c.d; ++i) t[static_cast<std::size_t>(row * c.d + i)] = value(i);
}

/// Row r is the first query times share(r), plus noise: its cosine with the query grows with the share.
void towards_query(const Search& c, const std::vector<float>& q, std::vector<float>& t,
                   const std::function<float(std::int64_t)>& share) {
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const std::size_t at = static_cast<std::size_t>(r * c.d);
    for (std::int64_t i = 0; i < c.d; ++i)
      t[at + static_cast<std::size_t>(i)] += share(r) * q[static_cast<std::size_t>(i)];
  }
}

const Trap kTraps[] = {
    {"random", [](const Search&, auto&, auto&) {}},
    {"all rows equal",
     [](const Search& c, auto&, auto& t) {
       for (std::int64_t r = 1; r < c.rows; ++r)
         set_row(c, t, r, [&](std::int64_t i) { return t[static_cast<std::size_t>(i)]; });
     }},
    {"ascending",
     [](const Search& c, auto& q, auto& t) {
       towards_query(c, q, t, [&](std::int64_t r) {
         return 4.0F * static_cast<float>(r) / static_cast<float>(c.rows);
       });
     }},
    {"descending",
     [](const Search& c, auto& q, auto& t) {
       towards_query(c, q, t, [&](std::int64_t r) {
         return 4.0F - 4.0F * static_cast<float>(r) / static_cast<float>(c.rows);
       });
     }},
    {"nearly equal scores",
     [](const Search& c, auto& q, auto& t) { towards_query(c, q, t, [](std::int64_t) { return 1000.0F; }); }},
    {"duplicates",
     [](const Search& c, auto&, auto& t) {
       for (std::int64_t r = 7; r < c.rows; ++r)
         set_row(c, t, r, [&](std::int64_t i) { return t[static_cast<std::size_t>(r % 7 * c.d + i)]; });
     }},
    {"NaN rows",
     [](const Search& c, auto&, auto& t) {
       for (std::int64_t r = 0; r < c.rows; r += 3) t[static_cast<std::size_t>(r * c.d + r % c.d)] = kNaN;
     }},
    {"few numbers",
     [](const Search& c, auto&, auto& t) {
       for (std::int64_t r = 2; r < c.rows; ++r) t[static_cast<std::size_t>(r * c.d)] = kNaN;
     }},
    {"Inf rows",
     [](const Search& c, auto&, auto& t) {
       for (std::int64_t r = 0; r < c.rows; r += 2)
         t[static_cast<std::size_t>(r * c.d + r % c.d)] = r % 4 == 0 ? kInf : -kInf;
     }},
    {"zero rows",
     [](const Search& c, auto&, auto& t) {
       for (std::int64_t r = 0; r < c.rows; ++r) {
         if (r % 5 != 0) set_row(c, t, r, [](std::int64_t) { return 0.0F; });
       }
     }},
    {"huge and tiny rows",
     [](const Search& c, auto&, auto& t) {
       for (std::int64_t r = 0; r < c.rows; ++r) {
         const float by = r % 3 == 0 ? 1e30F : r % 3 == 1 ? 1e-30F : 1.0F;
         for (std::int64_t i = 0; i < c.d; ++i) t[static_cast<std::size_t>(r * c.d + i)] *= by;
       }
     }},
    {"unusual queries",
     [](const Search& c, auto& q, auto&) {
       for (std::int64_t i = 0; i < c.queries; ++i) {
         const float by = i % 5 == 0 ? 0.0F : i % 5 == 1 ? 1e25F : i % 5 == 2 ? 1e-25F : 1.0F;
         for (std::int64_t j = 0; j < c.d; ++j) q[static_cast<std::size_t>(i * c.d + j)] *= by;
         if (i % 5 == 3) q[static_cast<std::size_t>(i * c.d)] = i % 2 == 0 ? kNaN : kInf;
       }
     }},
};

TEST_F(CudaTopk, VariantsAgreeInEveryBitOnInputsThatDefeatFilters) {
  for (const Search& c :
       {Search{17, 700, 36, 10}, Search{200, 2600, 48, 10}, Search{40, 1300, 33, 32}, Search{70, 900, 40, 17},
        Search{5, 1100, 24, 64}, Search{3, 257, 20, 200}, Search{1, 900, 768, 10}, Search{1, 70, 1024, 32},
        Search{1, 2500, 132, 7}, Search{16, 1023, 768, 10}, Search{14, 961, 100, 32}}) {
    for (const Trap& trap : kTraps) {
      std::vector<float> q = topk_values(c.queries * c.d, 0), t = topk_values(c.rows * c.d, 1);
      trap.change(c, q, t);
      const fulcrum_args args = args_of(c, q, t, 0);
      Results expected;
      for (const fulcrum_kernel* kernel : kernels_) {
        if (kernel->supports && !kernel->supports(&args)) continue;
        Results got = run(*kernel, args);
        const std::string text = std::string(trap.name) + " " + kernel->variant +
                                 " Q=" + std::to_string(c.queries) + " N=" + std::to_string(c.rows) +
                                 " k=" + std::to_string(c.k);
        ASSERT_EQ(verdict(c, q, t, nullptr, false, got), "") << text;
        if (expected.ids.empty()) expected = got;
        ASSERT_TRUE(same(got, expected)) << text;
      }
      release();
    }
  }
}

// So many rows that every CTA has several tiles of them: bounds rise, candidates are thinned out.
TEST_F(CudaTopk, VariantsAgreeOnManyRows) {
  for (const Search& c :
       {Search{260, 36000, 16, 10}, Search{70, 70000, 10, 7}, Search{16, 70000, 12, 32},
        Search{1, 23000, 388, 10}, Search{13, 110000, 12, 10}, Search{16, 60000, 196, 10}}) {
    for (const Trap& trap : kTraps) {
      std::vector<float> q = topk_values(c.queries * c.d, 0), t = topk_values(c.rows * c.d, 1);
      trap.change(c, q, t);
      const fulcrum_args args = args_of(c, q, t, 0);
      Results expected;
      for (const fulcrum_kernel* kernel : kernels_) {
        Results got = run(*kernel, args);
        if (expected.ids.empty()) {
          ASSERT_EQ(verdict(c, q, t, nullptr, false, got), "") << trap.name << " Q=" << c.queries;
          expected = got;
        }
        ASSERT_TRUE(same(got, expected)) << trap.name << " " << kernel->variant << " Q=" << c.queries;
      }
      release();
    }
  }
}

TEST_F(CudaTopk, KnownLengthsAreUsed) {
  for (const auto& [queries, rows, unit] :
       {std::tuple(130, 5000, false), std::tuple(130, 5000, true), std::tuple(1, 5000, false),
        std::tuple(1, 5000, true), std::tuple(16, 990, false), std::tuple(16, 990, true)}) {
    const Search c{queries, rows, 64, 10};
    std::vector<float> q = topk_values(c.queries * c.d, 0), t = topk_values(c.rows * c.d, 1),
                       inverse(static_cast<std::size_t>(rows));
    for (std::int64_t r = 0; r < c.rows; ++r) {
      double square = 0;
      for (std::int64_t i = 0; i < c.d; ++i) square += static_cast<double>(t[r * c.d + i]) * t[r * c.d + i];
      for (std::int64_t i = 0; unit && i < c.d; ++i)
        t[r * c.d + i] = static_cast<float>(t[r * c.d + i] / std::sqrt(square));
      inverse[r] = static_cast<float>(1 / std::sqrt(square));
    }
    t[0] = kNaN, t[64] = kInf, t[2 * 64 + 1] = -kInf;
    fulcrum_args args = args_of(c, q, t, 0);
    args.scalar[0].i = unit ? 1 : 0;
    if (!unit) args.ptr[2] = place(inverse, 0);
    Results expected;
    for (const fulcrum_kernel* kernel : kernels_) {
      Results got = run(*kernel, args);
      ASSERT_EQ(verdict(c, q, t, unit ? nullptr : inverse.data(), unit, got), "") << kernel->variant;
      if (expected.ids.empty()) expected = got;
      ASSERT_TRUE(same(got, expected)) << kernel->variant;
    }
  }
}

TEST_F(CudaTopk, BitsDependNeitherOnTheNumberOfQueriesNorOnTheAlignment) {
  const std::int64_t d = 68, rows = 9001;
  const std::vector<float> q = topk_values(1100 * d, 0), t = topk_values(rows * d, 1);
  for (const std::int64_t k : {1, 10, 32, 33, 1024}) {
    Results first;
    for (const std::int64_t queries : {1, 2, 3, 7, 8, 9, 16, 33, 65, 300, 1100}) {
      for (const std::int64_t shift : {0, 1}) {
        if (k == 1024 && queries > 65) continue;
        const Search c{queries, rows, d, k};
        fulcrum_args args = args_of(c, std::vector<float>(q.begin(), q.begin() + queries * d), t, shift);
        Results got = run(*kernels_[0], args);
        got.ids.resize(static_cast<std::size_t>(k)), got.scores.resize(static_cast<std::size_t>(k));
        if (first.ids.empty()) first = got;
        EXPECT_TRUE(same(got, first)) << "k=" << k << " Q=" << queries << " shift=" << shift;
        release();
      }
    }
  }
}

TEST_F(CudaTopk, AThousandReplaysGiveTheSameBits) {
  constexpr std::int32_t kCalls = 20;
  const fulcrum_backend& table = backend_->table();
  if (!table.graph_open) GTEST_SKIP() << "SKIPPED: no GPU graphs";
  for (const Search& c : {Search{1, 20000, 64, 10}, Search{300, 3000, 64, 10}, Search{2, 5000, 32, 100}}) {
    fulcrum_args args = args_of(c, topk_values(c.queries * c.d, 0), topk_values(c.rows * c.d, 1), 0);
    for (const fulcrum_kernel* kernel : kernels_) {
      if (kernel->supports && !kernel->supports(&args)) continue;
      ASSERT_EQ(kernel->plan(kernel, &args, &args.plan).code, FULCRUM_OK);
      void* graph = nullptr;
      ASSERT_EQ(table.graph_open(kernel, &args, 1, kCalls, &graph).code, FULCRUM_OK);
      Results expected;
      for (int replay = 0; replay < 1000 / kCalls; ++replay) {
        ASSERT_EQ(table.graph_run(graph, nullptr).code, FULCRUM_OK);
        ASSERT_EQ(table.stream_wait(nullptr).code, FULCRUM_OK);
        const Results got = fetch_results(args);
        if (expected.ids.empty()) expected = got;
        ASSERT_TRUE(same(got, expected)) << kernel->variant << " replay " << replay;
      }
      table.graph_close(graph);
      kernel->drop(args.plan);
    }
    release();
  }
}

}  // namespace
}  // namespace fulcrum::backends
