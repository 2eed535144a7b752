// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels over rows of the CUDA module on a device: the bits of a row, or of a score, depend neither on the variant
// nor on the alignment, on what else is in the call, or on how often a recorded call is replayed.
#include <fulcrum/backends.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "support/on_device.h"

namespace fulcrum::backends {
namespace {

class CudaRows : public OnDevice {
 protected:
  float* place_empty(std::int64_t n, std::int64_t shift) {
    return place(std::vector<float>(static_cast<std::size_t>(n), -77.0F), shift);
  }
};

std::vector<float> values(std::int64_t n, int tensor) {
  std::vector<float> result(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = ops::random_uniform(ops::tensor_key(tensor), i, -4, 4);
  return result;
}

/// Elements whose bits differ; the payload of a NaN is free.
std::int64_t differences(std::span<const float> a, std::span<const float> b) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same = std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i]);
    count += !same && !(std::isnan(a[i]) && std::isnan(b[i]));
  }
  return count;
}

struct Rows {
  std::int64_t rows, n;
};

TEST_F(CudaRows, SoftmaxHasTheSameBitsInEveryVariantAndAlignment) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const char* op : {"softmax", "log_softmax"}) {
    for (const Rows shape :
         {Rows{70, 5},      Rows{70, 16},    Rows{80, 16},    Rows{80, 32},     Rows{70, 64},
          Rows{72, 64},     Rows{65, 129},   Rows{9001, 100}, Rows{20000, 128}, Rows{20001, 128},
          Rows{67, 256},    Rows{67, 512},   Rows{66, 1000},  Rows{3001, 1024}, Rows{3, 1025},
          Rows{130, 32768}, Rows{300, 8196}, Rows{70, 65536}, Rows{2, 8193},    Rows{1, 10000},
          Rows{3, 32768},   Rows{1, 100003}, Rows{2, 262144}, Rows{1, 1000003}, Rows{1, 5000001},
          Rows{2, 9000000}, Rows{9001, 1024}}) {
      std::vector<float> x = values(shape.rows * shape.n, 0);
      x[0] = -kInf;
      if (shape.rows > 2) x[x.size() - 1] = kInf;
      std::vector<float> expected;
      for (int shift = 0; shift < 2; ++shift) {
        fulcrum_args args = {};
        args.dim[0] = shape.rows, args.dim[1] = shape.n;
        args.ptr[0] = place(x, shift);
        for (const fulcrum_kernel* kernel : kernels_of(op, args)) {
          float* out = place_empty(shape.rows * shape.n, shift);
          args.ptr[1] = out;
          run(*kernel, args);
          const std::vector<float> got = fetch(out, shape.rows * shape.n);
          if (expected.empty()) expected = got;
          EXPECT_EQ(differences(got, expected), 0) << op << " " << kernel->variant << " rows=" << shape.rows
                                                   << " n=" << shape.n << " shift=" << shift;
        }
      }
      release();
    }
  }
}

TEST_F(CudaRows, SoftmaxOfARowDoesNotDependOnTheNumberOfRows) {
  for (const std::int64_t n : {100, 1000, 4100, 20000, 150000}) {
    const std::vector<float> x = values(80 * n, 0);
    std::vector<float> expected;
    for (const std::int64_t rows : {80, 3, 1}) {
      fulcrum_args args = {};
      args.dim[0] = rows, args.dim[1] = n;
      args.ptr[0] = place(x, 0);
      float* out = place_empty(rows * n, 0);
      args.ptr[1] = out;
      run(*kernels_of("softmax", args).at(0), args);
      const std::vector<float> got = fetch(out, n);
      if (expected.empty()) expected = got;
      EXPECT_EQ(differences(got, expected), 0) << "rows=" << rows << " n=" << n;
    }
    release();
  }
}

TEST_F(CudaRows, AThousandReplaysOfALongRowGiveTheSameBits) {
  constexpr std::int64_t kN = 1000003, kCalls = 20, kReplays = 50;
  fulcrum_args args = {};
  args.dim[0] = 1, args.dim[1] = kN;
  args.ptr[0] = place(values(kN, 0), 0);
  const fulcrum_backend& table = backend_->table();
  if (!table.graph_open) GTEST_SKIP() << "SKIPPED: no GPU graphs";
  for (const fulcrum_kernel* kernel : kernels_of("softmax", args)) {
    float* out = place_empty(kN, 0);
    args.ptr[1] = out;
    args.plan = nullptr;
    ASSERT_EQ(kernel->plan(kernel, &args, &args.plan).code, FULCRUM_OK);
    void* graph = nullptr;
    ASSERT_EQ(table.graph_open(kernel, &args, 1, kCalls, &graph).code, FULCRUM_OK);
    std::vector<float> expected;
    for (std::int64_t i = 0; i < kReplays; ++i) {
      ASSERT_EQ(table.graph_run(graph, nullptr).code, FULCRUM_OK);
      ASSERT_EQ(table.stream_wait(nullptr).code, FULCRUM_OK);
      const std::vector<float> got = fetch(out, kN);
      if (expected.empty()) expected = got;
      ASSERT_EQ(differences(got, expected), 0) << kernel->variant << " replay " << i;
    }
    table.graph_close(graph);
    kernel->drop(args.plan);
  }
}

// Each call's input is the result of the one before it, and a constant until then: a call that read too early would
// write -ln n everywhere.
TEST_F(CudaRows, ACallSeesWhatTheCallBeforeItWrote) {
  constexpr std::size_t kSteps = 4;
  for (const Rows shape : {Rows{20000, 128}, Rows{3000, 1024}, Rows{9000, 1024}, Rows{130, 32768},
                           Rows{1, 1024}, Rows{1, 100000}}) {
    const std::int64_t n = shape.rows * shape.n;
    const std::vector<float> x = values(n, 0);
    std::vector<float> expected;
    fulcrum_args args = {};
    args.dim[0] = shape.rows, args.dim[1] = shape.n;
    for (const fulcrum_kernel* kernel : kernels_of("log_softmax", args)) {
      std::vector<float*> buffers = {place(x, 0)};
      while (buffers.size() <= kSteps) buffers.push_back(place_empty(n, 0));
      std::vector<fulcrum_args> steps(kSteps, args);
      for (std::size_t i = 0; i < kSteps; ++i) {
        steps[i].ptr[0] = buffers[i], steps[i].ptr[1] = buffers[i + 1];
        ASSERT_EQ(kernel->plan(kernel, &steps[i], &steps[i].plan).code, FULCRUM_OK) << kernel->variant;
      }
      for (const fulcrum_args& step : steps)
        EXPECT_EQ(kernel->run(&step, nullptr, 1).code, FULCRUM_OK) << kernel->variant;
      EXPECT_EQ(backend_->table().stream_wait(nullptr).code, FULCRUM_OK) << kernel->variant;
      const std::vector<float> got = fetch(buffers[kSteps], n);
      if (expected.empty()) {
        for (const fulcrum_args& step : steps) run(*kernel, step);  // waits behind each
        expected = fetch(buffers[kSteps], n);
      }
      EXPECT_EQ(differences(got, expected), 0)
          << kernel->variant << " rows=" << shape.rows << " n=" << shape.n;
      for (const fulcrum_args& step : steps) kernel->drop(step.plan);
      release();
    }
  }
}

TEST_F(CudaRows, AScoreDoesNotDependOnTheOtherQueriesAndRows) {
  constexpr std::int64_t kQueries = 20, kRows = 9001;
  for (const std::int64_t d : {1, 127, 768}) {
    std::vector<float> t = values(kRows * d, 1);
    std::fill_n(t.begin(), d, 0.0F);
    for (std::int64_t i = d; i < 2 * d; ++i) t[static_cast<std::size_t>(i)] *= 1e30F;
    const std::vector<float> q = values(kQueries * d, 0);
    std::vector<float> expected;
    for (const std::int64_t queries : {kQueries, std::int64_t{5}, std::int64_t{2}, std::int64_t{1}}) {
      for (const std::int64_t rows : {kRows, std::int64_t{40}, std::int64_t{1}}) {
        fulcrum_args args = {};
        args.dim[0] = queries, args.dim[1] = rows, args.dim[2] = d;
        args.ptr[0] = place(q, rows % 2), args.ptr[1] = place(t, queries % 2);
        float* out = place_empty(queries * rows, 1);
        args.ptr[3] = out;
        run(*kernels_of("cosine_similarity", args).at(0), args);
        const std::vector<float> got = fetch(out, rows);
        if (expected.empty()) expected = got;
        EXPECT_EQ(differences(got, std::span(expected).first(got.size())), 0)
            << "Q=" << queries << " N=" << rows << " D=" << d;
      }
    }
    release();
  }
}

}  // namespace
}  // namespace fulcrum::backends
