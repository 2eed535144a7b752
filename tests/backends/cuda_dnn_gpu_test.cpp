// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cuDNN on a device: attention in both layouts, with and without mask and lse, for short and long sequences of equal
// and unequal lengths, and convolutions in both precisions. Each configuration is tried by itself and prints a line,
// so that one run tells which of them a version of the library does not take.
#include <fmt/format.h>
#include <fulcrum/backends/device.h>
#include <fulcrum/ops/half.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>

#include "support/instances.h"
#include "support/on_device.h"

namespace fulcrum::test {
namespace {

using Special = ops::Problem::Special;

/// Why there is nothing to test here, or nothing.
std::string why_not() {
  const auto found = backends::find("cuda");
  if (!found.ok()) return fmt::format("SKIPPED: no GPU backend: {}", found.error().message);
  if (!(*found)->available()) return fmt::format("SKIPPED: no GPU: {}", (*found)->why_not());
  return {};
}

/// One line for one configuration; false where the result is wrong or a call fails.
bool tried(const backends::Kernel& kernel, const std::string& text, Special special, bool optional_outputs,
           bool& ran) {
  const ops::Op& op = op_of(kernel.op());
  Shape given = parse_shape(text).value();
  given.dtype = parse_enum<DType>("dtype", kernel.dtype()).value();
  auto problem = ops::Problem::make(op, ops::complete(op, given).value(),
                                    {.special = special, .optional_inputs = optional_outputs});
  if (!problem.ok()) {
    ADD_FAILURE() << text << ": " << problem.error().message;
    return false;
  }
  const std::string where = fmt::format("{} {} special={} optional={}", kernel.name(), text,
                                        static_cast<int>(special), optional_outputs);
  const auto tell = [&](const std::string& outcome) {
    std::cout << "  " << where << ": " << outcome << '\n';
  };
  auto call = backends::DeviceCall::make(kernel, problem->args());
  if (!call.ok()) {
    tell("refused: " + call.error().message);
    return call.error().code == Code::unsupported;
  }
  const Status uploaded = call->upload();
  const Status status = uploaded.ok() ? call->run(2) : uploaded;
  const Status back = status.ok() ? call->download() : status;
  if (!back.ok()) {
    tell("failed: " + back.error().message);
    return false;
  }
  const Oracle oracle = problem->check(kernel.precision());
  tell(oracle.passed ? fmt::format("worst error {:.2f} of what is allowed", oracle.max_error_share)
                     : "wrong: " + oracle.detail);
  ran |= oracle.passed;
  return oracle.passed;
}

TEST(CudaDnn, AttentionIsRightInEveryConfiguration) {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  auto kernels = backends::kernels("attention");
  ASSERT_TRUE(kernels.ok());
  bool ran = false;
  int found = 0;
  for (const backends::Kernel& kernel : *kernels) {
    if (kernel.backend().name() != "cuda" || kernel.name().find("cudnn") == std::string::npos) continue;
    ++found;
    for (const char* sizes : {"B=2,H=3,Sq=128,Skv=128,D=64", "B=1,H=2,Sq=100,Skv=300,D=128",
                              "B=1,H=1,Sq=17,Skv=17,D=256", "B=1,H=2,Sq=1024,Skv=1024,D=64"}) {
      for (const char* rest : {"causal=no,layout=bshd", "causal=yes,layout=bhsd", "causal=yes,layout=bshd"}) {
        const std::string text = fmt::format("{},{}", sizes, rest);
        EXPECT_TRUE(tried(kernel, text, Special::none, false, ran)) << text;
        EXPECT_TRUE(tried(kernel, text, Special::mixed, true, ran)) << text << " with lse";
      }
    }
    // Long enough for engines and guards to be chosen by trial.
    for (const char* text :
         {"B=2,H=12,Sq=2048,Skv=2048,D=64", "B=1,H=12,Sq=2048,Skv=2048,D=128,causal=yes"}) {
      EXPECT_TRUE(tried(kernel, text, Special::none, false, ran)) << text;
      EXPECT_TRUE(tried(kernel, text, Special::infinity, true, ran)) << text << " with lse";
    }
  }
  if (found == 0) GTEST_SKIP() << "SKIPPED: no GPU kernel of attention is built on cuDNN";
  EXPECT_TRUE(ran) << "cuDNN took none of the configurations; `fulcrum doctor` tells whether it was found";
}

constexpr float kInfinite = std::numeric_limits<float>::infinity();

/// One element that is not finite, and what the others are so that nothing but the element shows it.
struct Spot {
  const char* name;
  int tensor;    // Q, K, V
  double place;  // of its row: share of the rows
  float value;
  int query_sign;  // of all queries; 0: both
  int key_sign = 0;
};

constexpr Spot kSpots[] = {
    {"a key that all queries score -Inf", 1, 0.4, -kInfinite, 1},
    {"the same the other way round", 1, 0.4, kInfinite, -1},
    {"the last key, scored -Inf", 1, 1, -kInfinite, 1},
    {"the last key", 1, 1, -kInfinite, 0},
    {"the last key with the other sign", 1, 1, kInfinite, 0},
    {"the first key", 1, 0, kInfinite, 0},
    {"a key that is NaN", 1, 0.6, std::numeric_limits<float>::quiet_NaN(), 1},
    {"the first value", 2, 0, kInfinite, 0},
    {"a value", 2, 0.5, std::numeric_limits<float>::quiet_NaN(), 1},
    {"the last value", 2, 1, -kInfinite, 0},
    {"a query that scores -Inf everywhere", 0, 0.5, kInfinite, 0, -1},
    {"the first query", 0, 0, -kInfinite, 0, 1},
};

struct Heads {
  std::int64_t queries, keys, d;
  bool causal, by_head;
};

class CudaDnnRows : public backends::OnDevice {
 protected:
  static constexpr std::int64_t kHeads = 2, kColumn = 5;

  static std::size_t element(const Heads& c, std::int64_t length, std::int64_t head, std::int64_t row) {
    return static_cast<std::size_t>((c.by_head ? head * length + row : row * kHeads + head) * c.d);
  }
  /// Elements are halves, or bfloats where a test says so.
  std::uint16_t bits_of(float value) const {
    return is_bf16_ ? ops::bfloat_from_float(value) : ops::half_from_float(value);
  }
  float value_of(std::uint16_t bits) const {
    return is_bf16_ ? ops::float_from_bfloat(bits) : ops::float_from_half(bits);
  }
  std::vector<std::uint16_t> halves(const Heads& c, std::int64_t length, int tensor, int sign) const {
    std::vector<std::uint16_t> result(static_cast<std::size_t>(kHeads * length * c.d));
    for (std::size_t i = 0; i < result.size(); ++i) {
      const float value = ops::random_uniform(ops::tensor_key(tensor), i, -1, 1);
      result[i] = bits_of(sign == 0 ? value : static_cast<float>(sign) * (std::abs(value) + 0.1F));
    }
    return result;
  }
  static fulcrum_args args_of(const Heads& c) {
    fulcrum_args args = {};
    args.dim[0] = 1, args.dim[1] = kHeads, args.dim[2] = c.queries, args.dim[3] = c.keys, args.dim[4] = c.d;
    args.scalar[0].i = c.causal ? 1 : 0, args.scalar[2].i = c.by_head ? 0 : 1;
    return args;
  }
  /// Three calls in one recording, twice: the guard then begins beside the attention, and still comes behind it.
  void replay(const fulcrum_kernel& kernel, fulcrum_args args) {
    const fulcrum_backend& table = backend_->table();
    void* graph = nullptr;
    if (kernel.plan) {
      ASSERT_EQ(kernel.plan(&kernel, &args, &args.plan).code, FULCRUM_OK);
    }
    ASSERT_EQ(table.graph_open(&kernel, &args, 1, 3, &graph).code, FULCRUM_OK) << kernel.variant;
    for (int i = 0; i < 2; ++i) EXPECT_EQ(table.graph_run(graph, nullptr).code, FULCRUM_OK);
    EXPECT_EQ(table.stream_wait(nullptr).code, FULCRUM_OK) << kernel.variant;
    table.graph_close(graph);
    if (kernel.drop) kernel.drop(args.plan);
  }
  /// Rows of the last head that see the spot are NaN in every column; the other head is finite.
  void expect_rows(const Heads& c, const Spot& spot, std::int64_t at, const std::vector<std::uint16_t>& o,
                   const std::string& text) {
    for (std::int64_t head = 0; head < kHeads; ++head) {
      for (std::int64_t row = 0; row < c.queries; ++row) {
        const std::int64_t visible = c.causal ? row + 1 + c.keys - c.queries : c.keys;
        const bool sees = head == kHeads - 1 && (spot.tensor == 0 ? row == at : at < visible);
        if (!sees && head == kHeads - 1) continue;  // unspecified next to it
        int nans = 0;
        for (std::int64_t i = 0; i < c.d; ++i)
          nans += std::isnan(value_of(o[element(c, c.queries, head, row) + i])) ? 1 : 0;
        ASSERT_EQ(nans, sees ? c.d : 0) << text << " head " << head << " row " << row;
      }
    }
  }

  /// The library's variant alone on operands with this spot. Counts the calls in `ran`.
  void check_form(const Heads& c, const Spot& spot, bool has_lse, int& ran) {
    const std::int64_t lengths[3] = {c.queries, c.keys, c.keys};
    const bool is_bad = !std::isfinite(spot.value);
    const auto at = static_cast<std::int64_t>(spot.place * static_cast<double>(lengths[spot.tensor] - 1));
    fulcrum_args args = args_of(c);
    for (int slot = 0; slot < 3; ++slot) {
      std::vector<std::uint16_t> values = halves(c, lengths[slot], slot, slot == 0 ? spot.query_sign : 0);
      if (slot == spot.tensor)
        values[element(c, lengths[slot], kHeads - 1, at) + kColumn] = bits_of(spot.value);
      args.ptr[slot] = place(values, 0);
    }
    const std::int64_t places = kHeads * c.queries * c.d, rows = kHeads * c.queries;
    auto* o = place(std::vector<std::uint16_t>(static_cast<std::size_t>(places), 0x1234), 0);
    auto* lse = has_lse ? place(std::vector<float>(static_cast<std::size_t>(rows), -7.0F), 0) : nullptr;
    args.ptr[3] = o, args.ptr[4] = lse;
    for (const fulcrum_kernel* kernel : kernels_of("attention", args)) {
      if (std::string_view(kernel->variant) != "cudnn") continue;
      if (std::string_view(kernel->dtype) != (is_bf16_ ? "bf16" : "f16")) continue;
      run(*kernel, args);
      const std::string text = fmt::format("{} {} Sq={} Skv={} D={} lse={}", kernel->dtype, spot.name,
                                           c.queries, c.keys, c.d, has_lse);
      const std::vector<std::uint16_t> got = fetch(o, places);
      ASSERT_NO_FATAL_FAILURE(expect_rows(c, spot, is_bad ? at : c.keys, got, text));
      const auto finite = [&](std::uint16_t bits) { return std::isfinite(value_of(bits)); };
      ASSERT_TRUE(is_bad || std::all_of(got.begin(), got.end(), finite)) << text;
      // Of the head without the spot.
      for (const float sum : has_lse ? fetch(lse, c.queries) : std::vector<float>{})
        ASSERT_TRUE(std::isfinite(sum)) << text;
      ++ran;
    }
    release();
  }

  bool is_bf16_ = false;
};

TEST_F(CudaDnnRows, ThatSeeAnInfAreNaNWhereverItStands) {
  int ran = 0;
  for (const Heads& c : {Heads{256, 256, 64, true, true}, Heads{2200, 2300, 64, true, false},
                         Heads{192, 100, 128, false, true}, Heads{130, 131, 80, true, true}}) {
    for (const Spot& spot : kSpots) {
      const std::int64_t lengths[3] = {c.queries, c.keys, c.keys};
      const auto at = static_cast<std::int64_t>(spot.place * static_cast<double>(lengths[spot.tensor] - 1));
      std::vector<std::uint16_t> values[3] = {halves(c, c.queries, 0, spot.query_sign),
                                              halves(c, c.keys, 1, spot.key_sign), halves(c, c.keys, 2, 0)};
      values[spot.tensor][element(c, lengths[spot.tensor], kHeads - 1, at) + kColumn] = bits_of(spot.value);
      for (const std::int64_t shift : {0, 1}) {
        fulcrum_args args = args_of(c);
        for (int slot = 0; slot < 3; ++slot) args.ptr[slot] = place(values[slot], shift);
        const std::vector<std::uint16_t> nothing(values[0].size(), 0x1234);
        for (const fulcrum_kernel* kernel : kernels_of("attention", args)) {
          if (std::string_view(kernel->dtype) != "f16") continue;
          auto* o = place(nothing, shift);
          args.ptr[3] = o;
          run(*kernel, args);
          const std::string text = fmt::format("{} {} Sq={} Skv={} D={} shift={}", kernel->variant, spot.name,
                                               c.queries, c.keys, c.d, shift);
          const std::vector<std::uint16_t> alone = fetch(o, static_cast<std::int64_t>(nothing.size()));
          expect_rows(c, spot, at, alone, text);
          if (HasFatalFailure()) return;
          ++ran;
          if (shift != 0 || std::string_view(kernel->variant) != "cudnn") continue;
          args.ptr[3] = place(nothing, shift);
          replay(*kernel, args);
          const auto* recorded = static_cast<const std::uint16_t*>(args.ptr[3]);
          expect_rows(c, spot, at, fetch(recorded, static_cast<std::int64_t>(nothing.size())),
                      text + " recorded");
          if (HasFatalFailure()) return;
        }
        release();
      }
    }
  }
  EXPECT_GT(ran, 0);
}

TEST_F(CudaDnnRows, OfFirstQueriesAreNaNHoweverFewKeysTheySee) {
  const Heads c{512, 512, 64, true, true};
  constexpr std::int64_t kAt = 5;
  const Spot spot{"a query that scores -Inf with the first keys", 0, 0, kInfinite, 0};
  std::vector<std::uint16_t> values[3] = {halves(c, c.queries, 0, 0), halves(c, c.keys, 1, 0),
                                          halves(c, c.keys, 2, 0)};
  values[0][element(c, c.queries, kHeads - 1, kAt) + kColumn] = bits_of(kInfinite);
  for (std::int64_t key = 0; key <= kAt; ++key)
    values[1][element(c, c.keys, kHeads - 1, key) + kColumn] = bits_of(-0.5F);
  fulcrum_args args = args_of(c);
  for (int slot = 0; slot < 3; ++slot) args.ptr[slot] = place(values[slot], 0);
  int ran = 0;
  for (const fulcrum_kernel* kernel : kernels_of("attention", args)) {
    if (std::string_view(kernel->dtype) != "f16") continue;
    const std::vector<std::uint16_t> nothing(values[0].size(), 0x1234);
    auto* o = place(nothing, 0);
    args.ptr[3] = o;
    run(*kernel, args);
    expect_rows(c, spot, kAt, fetch(o, static_cast<std::int64_t>(nothing.size())), kernel->variant);
    ++ran;
  }
  EXPECT_GT(ran, 0);
}

/// Every form of the check behind the library's attention: both types, the vectors of a row known and not, several CTAs a
/// head, with and without lse, and each of its ways: nothing to do, a second look that finds nothing, rows to be made NaN.
/// Nothing is recorded and nothing chosen by trial, so that a tool can watch the check by itself.
TEST_F(CudaDnnRows, AreRightByEveryFormOfTheCheck) {
  constexpr Spot kForms[] = {{"nothing", 2, 0.3, 0.5F, 0},
                             {"nothing, queries of one sign", 2, 0.3, 0.5F, 1},
                             {"a key that all queries score -Inf", 1, 0.4, -kInfinite, 1},
                             {"a value", 2, 0.3, std::numeric_limits<float>::quiet_NaN(), 0}};
  int ran = 0;
  for (const bool is_bf16 : {false, true}) {
    is_bf16_ = is_bf16;
    for (const Heads& c : {Heads{256, 256, 64, true, true}, Heads{2200, 2200, 64, false, false},
                           Heads{192, 100, 128, false, true}, Heads{130, 131, 80, true, true}}) {
      for (const Spot& spot : kForms) {
        for (const bool has_lse : {false, true}) ASSERT_NO_FATAL_FAILURE(check_form(c, spot, has_lse, ran));
      }
    }
  }
  if (ran == 0) GTEST_SKIP() << "SKIPPED: no GPU kernel of attention is built on cuDNN";
}

TEST(CudaDnn, ConvolutionsAreRightInBothPrecisions) {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  auto kernels = backends::kernels("conv2d_channels");
  ASSERT_TRUE(kernels.ok());
  bool ran = false;
  for (const backends::Kernel& kernel : *kernels) {
    if (kernel.backend().name() != "cuda") continue;
    for (const char* text : {"N=1,Cin=3,h=64,w=64,Cout=32,kh=3,kw=3,pad_y=1,pad_x=1",
                             "N=2,Cin=64,h=28,w=28,Cout=64,kh=3,kw=3,pad_y=1,pad_x=1",
                             "N=3,Cin=20,h=31,w=29,Cout=70,kh=5,kw=2,stride_y=2,stride_x=3,pad_y=2,pad_x=1",
                             "N=1,Cin=17,h=40,w=40,Cout=130,kh=1,kw=1",
                             "N=5,Cin=3,h=15,w=15,Cout=4,kh=7,kw=7,pad_y=3,pad_x=3"}) {
      EXPECT_TRUE(tried(kernel, text, Special::none, false, ran)) << kernel.name() << ' ' << text;
      EXPECT_TRUE(tried(kernel, text, Special::mixed, false, ran)) << kernel.name() << ' ' << text;
    }
  }
  EXPECT_TRUE(ran) << "no variant of conv2d_channels ran on the device";
}

}  // namespace
}  // namespace fulcrum::test
