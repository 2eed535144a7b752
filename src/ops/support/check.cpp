// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Is a result right? Every output, or a subset when the fp64 reference would take too long, is compared with its
// truth; poison, guard bytes and untouched inputs cover the rest.
#include <fmt/format.h>
#include <fulcrum/ops/check.h>
#include <fulcrum/ops/half.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "ops/support/problem_state.h"

namespace fulcrum::ops {
namespace {

constexpr double kFullCheckFlops = 1e9;  // about a second of the reference
constexpr std::int64_t kRandomOutputs = 1024;
constexpr std::int64_t kSeams[] = {16, 64, 4096, 8192};  // vectors, tiles, chunks
constexpr std::int64_t kSeamsEach = 8;
constexpr std::int64_t kBlock = 65536;
constexpr std::uint64_t kSubsetSeed = 1000;                              // other numbers than the inputs'
constexpr std::string_view kOutputsWrong = "checked outputs are wrong";  // how that kind of failure ends

std::vector<std::int64_t> range(std::int64_t from, std::int64_t count) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(count));
  std::iota(index.begin(), index.end(), from);
  return index;
}

/// The first, the last, random ones, and both sides of seams.
std::vector<std::int64_t> some(std::int64_t elements, std::uint64_t key) {
  std::vector<std::int64_t> index = {0, elements - 1};
  auto draw = [key, counter = std::uint64_t{0}](std::int64_t below) mutable {
    return static_cast<std::int64_t>(random_bits(key, counter++) % static_cast<std::uint64_t>(below));
  };
  for (std::int64_t i = 0; i < kRandomOutputs; ++i) index.push_back(draw(elements));
  for (const std::int64_t seam : kSeams) {
    const std::int64_t count = elements / seam;
    for (std::int64_t i = 0; i < kSeamsEach && count > 0; ++i) {
      const std::int64_t at = seam * (i == 0 ? 1 : i == 1 ? count : 1 + draw(count));
      for (const std::int64_t near : {at - 1, at, at + 1}) {
        if (near < elements) index.push_back(near);
      }
    }
  }
  std::sort(index.begin(), index.end());
  index.erase(std::unique(index.begin(), index.end()), index.end());
  return index;
}

template <class T>
T load(const std::byte* data, std::int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

double value_at(const std::byte* data, std::int64_t index, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return load<float>(data, index);
    case DType::f16:
      return float_from_half(load<std::uint16_t>(data, index));
    case DType::bf16:
      return float_from_bfloat(load<std::uint16_t>(data, index));
    case DType::u8:
      return load<std::uint8_t>(data, index);
    case DType::i32:
      return load<std::int32_t>(data, index);
    case DType::i64:
      return static_cast<double>(load<std::int64_t>(data, index));
  }
  return NAN;
}

double largest(DType dtype) {
  if (dtype == DType::f16) return 65504.0;
  if (dtype == DType::bf16) return 0x1.FEp127;
  return static_cast<double>(std::numeric_limits<float>::max());
}

/// Half the spacing of a 16-bit type at `value`.
double half_ulp(DType dtype, double value) {
  const int bits = dtype == DType::f16 ? 11 : 8, least = dtype == DType::f16 ? -14 : -126;
  const int exponent = value == 0 || !std::isfinite(value) ? least : std::max(std::ilogb(value), least);
  return std::ldexp(1, exponent - bits);
}

/// How much more than f32 arithmetic on the operands as they are a call may be off.
struct Slack {
  double share =
      0;  // of Truth::magnitude: both factors of every product were rounded to the kernel's precision
  bool is_16_bit =
      false;  // the shape's type is: tensor cores cut terms off where f32 rounds, and outputs round again
  double factor = 1;  // the op's types are all of 16 bits, and its bounds are those of f16

  bool none() const { return share == 0 && !is_16_bit; }
};

/// Hardware takes tf32 from f32 by rounding or by cutting off 13 bits; the larger error counts.
Slack slack_of(const Op& op, DType dtype, std::string_view precision) {
  struct Rounding {
    std::string_view precision;
    DType exact_for;  // operands that have it already
    double relative;
  };
  constexpr Rounding kRoundings[] = {
      {"tf32", DType::f16, 0x1p-10}, {"fp16", DType::f16, 0x1p-11}, {"bf16", DType::bf16, 0x1p-8}};
  constexpr double kBfloatFactor = 8;  // three bits less
  Slack slack;
  const bool has_f32 = std::find(op.dtypes.begin(), op.dtypes.end(), DType::f32) != op.dtypes.end();
  slack.is_16_bit = has_f32 && (dtype == DType::f16 || dtype == DType::bf16);
  if (!op.dtypes.empty() && !has_f32 && dtype == DType::bf16) slack.factor = kBfloatFactor;
  if (op.dtypes.empty() && !op.slots.empty()) dtype = op.slots[0].dtype;
  for (const Rounding& rounding : kRoundings) {
    if (rounding.precision == precision && rounding.exact_for != dtype) slack.share = 2 * rounding.relative;
  }
  return slack;
}

Truth loosen(Truth truth, const Slack& slack, DType dtype) {
  truth.allowed += slack.share * truth.magnitude;
  if (dtype == DType::bf16) truth.allowed *= slack.factor;  // of an output in f32 nothing was rounded
  if (!slack.is_16_bit) return truth;
  truth.allowed *= 2;
  truth.allowed += half_ulp(dtype, std::abs(truth.value) + truth.allowed);
  return truth;
}

struct Judgement {
  bool right = false;
  double error = 0;  // absolute; 0 where a value is not finite
};

Judgement judge(const Truth& truth, double got, DType dtype) {
  if (std::isnan(truth.value)) return {std::isnan(got), 0};
  if (truth.any_non_finite && !std::isfinite(got)) return {true, 0};
  if (std::isinf(truth.value)) return {got == truth.value, 0};
  if (std::isinf(got)) {  // rounding up past the largest number is rounding
    return {std::abs(truth.value) + truth.allowed > largest(dtype) &&
                std::signbit(got) == std::signbit(truth.value),
            0};
  }
  if (std::isnan(got)) return {false, 0};
  const double error = std::abs(got - truth.value);
  return {error <= truth.allowed, error};
}

/// Comparison of one output slot with its truth; adds to the oracle.
struct SlotCheck {
  const Op& op;
  const Args& truth_args;
  const Slot& slot;
  DType dtype;
  Slack slack;
  int number;  // of the pointer slot
  Oracle& oracle;
  std::vector<Checked>& checked;
  std::int64_t wrong = 0;
  std::string first_wrong = {};

  void compare(const std::byte* data, std::span<const std::int64_t> index) {
    std::vector<Truth> truth(index.size());
    op.reference(truth_args, number, index, truth.data());
    for (std::size_t i = 0; i < index.size(); ++i) {
      const double got = value_at(data, index[i], dtype);
      truth[i] = loosen(truth[i], slack, dtype);
      if (op.check_all) checked.push_back(Checked{number, index[i], truth[i], got});
      const Judgement judgement = judge(truth[i], got, dtype);
      oracle.max_error_ulp = std::max(oracle.max_error_ulp, judgement.error / ulp_of(truth[i].value));
      if (truth[i].allowed > 0) {
        oracle.max_error_share = std::max(oracle.max_error_share, judgement.error / truth[i].allowed);
      }
      if (!judgement.right && wrong++ == 0) {
        first_wrong = fmt::format("{}[{}] is {:.9g}, not {:.9g} (allowed error {:.3g})", slot.name, index[i],
                                  got, truth[i].value, truth[i].allowed);
      }
    }
    oracle.checked += static_cast<std::int64_t>(index.size());
  }

  /// Empty: fine; else what is wrong.
  std::string run(const std::byte* data, std::int64_t elements, std::uint64_t key) {
    const double cost = op.reference_cost ? op.reference_cost(truth_args) : 1;
    const bool full = cost * static_cast<double>(elements) <= kFullCheckFlops;
    // Ops that are checked as a whole share work between outputs; all others go in blocks, to save memory.
    const std::int64_t block = op.check_all ? elements : kBlock;
    if (!full) compare(data, some(elements, key));
    for (std::int64_t from = 0; full && from < elements; from += block) {
      compare(data, range(from, std::min(block, elements - from)));
    }
    if (wrong == 0) return {};
    return fmt::format("{}; {} of {} {}", first_wrong, wrong, oracle.checked, kOutputsWrong);
  }
};

/// The first element of floating type that nobody wrote; -1: none.
std::int64_t first_poisoned(std::span<const std::byte> bytes, DType dtype) {
  const auto is_poison = [](std::byte byte) { return byte == std::byte{0xFF}; };
  const bool floating = dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  const auto width = static_cast<std::size_t>(bytes_of(dtype));
  for (std::size_t at = 0; floating && at < bytes.size(); at += width) {
    if (bytes[at] == std::byte{0xFF} && std::all_of(&bytes[at], &bytes[at] + width, is_poison)) {
      return static_cast<std::int64_t>(at / width);
    }
  }
  return -1;
}

}  // namespace

bool only_inaccurate(const Oracle& oracle) {
  return !oracle.passed && oracle.detail.ends_with(kOutputsWrong);
}

Oracle Problem::check(std::string_view precision) {
  State& state = *state_;
  const Slack slack = slack_of(*state.op, state.shape.dtype, precision);
  Oracle oracle;
  std::string wrong;
  const auto note = [&wrong](std::string what) {
    if (wrong.empty()) wrong = std::move(what);
  };
  std::vector<Checked> checked;
  for (std::size_t p = 0; p < state.pointers.size(); ++p) {
    const State::Pointer& pointer = state.pointers[p];
    const std::string_view name = pointer.slot->name;
    if (!pointer.buffer.guards_intact()) note(fmt::format("bytes outside of {} were written", name));
    if (pointer.slot->kind == SlotKind::in) {
      if (!pointer.buffer.empty() && pointer.pristine.empty() &&
          fingerprint(pointer.buffer.span()) != pointer.hash) {
        note(fmt::format("the input {} was changed", name));
      }
      continue;
    }
    const std::span<const std::byte> bytes = buffer(static_cast<int>(p));
    if (!bytes.data() && pointer.slot->optional) continue;
    if (!bytes.data()) {
      note(fmt::format("{} has no memory: this problem is for the reference only", name));
      continue;
    }
    const std::int64_t poisoned = pointer.shares >= 0 ? -1 : first_poisoned(bytes, pointer.dtype);
    if (poisoned >= 0) note(fmt::format("{}[{}] was never written", name, poisoned));
    const auto slot = static_cast<int>(p);
    const std::int64_t elements = state.op->extent(state.args, slot);
    if (elements == 0 || !state.op->reference || state.op->verify) continue;
    SlotCheck slot_check{*state.op, state.truth_args, *pointer.slot, pointer.dtype, slack,
                         slot,      oracle,           checked};
    note(slot_check.run(bytes.data(), elements, tensor_key(slot, state.options.seed + kSubsetSeed)));
  }
  const bool holds =  // norms are of f32 arithmetic, or of the one type that an op has
      slack.none() &&
      (!state.op->check_all_drawn_only || (state.drawn && state.options.special == Special::none));
  if (state.op->check_all && holds && !checked.empty()) note(state.op->check_all(state.truth_args, checked));
  if (state.op->verify && wrong.empty() && outputs(*state.op, state.args) > 0) {
    wrong = state.op->verify(state.args, oracle);
  }
  oracle.passed = wrong.empty();
  oracle.detail = std::move(wrong);
  return oracle;
}

}  // namespace fulcrum::ops
