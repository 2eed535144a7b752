// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// attention: O = softmax(scale Q K^T + mask) V on f16 or bf16 tensors, sums in f32. With causal=yes query i sees the keys up
// to its own place, both counted from the end. A NaN or Inf in the query or in a key or value that a row sees makes
// the whole row NaN. lse, when asked for, is the logarithm of the sum of exp of the row's scores.
#include <fulcrum/ops/attention.h>

#include <fmt/format.h>

#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

enum Pointer { kQ, kK, kV, kO, kLse };
enum Dim { kB, kH, kSq, kSkv, kD };

constexpr double kRoundoff = 0x1p-24;
constexpr double kFrobenius = 5e-4;

std::int64_t extent(const Args& args, int slot) {
  const std::int64_t pairs = product(args.dim[kB], args.dim[kH]);
  switch (slot) {
    case kK:
    case kV:
      return product(product(pairs, args.dim[kSkv]), args.dim[kD]);
    case kLse:
      return product(pairs, args.dim[kSq]);
    default:
      return product(product(pairs, args.dim[kSq]), args.dim[kD]);
  }
}

Status validate(const Args& args) {
  const std::int64_t sq = args.dim[kSq], skv = args.dim[kSkv], d = args.dim[kD];
  const double scale = args.scalar[1].f;
  if (d < 1 || d > kAttentionMostD) {
    return Error{Code::invalid_shape, fmt::format("D={} of attention", d),
                 fmt::format("D lies between 1 and {}", kAttentionMostD)};
  }
  if (skv < 1) {
    return Error{Code::invalid_shape, "Skv=0 of attention: a query needs a key", "use Skv=1 or more"};
  }
  if (args.scalar[0].i == 1 && skv < sq) {
    return Error{
        Code::invalid_shape,
        fmt::format("Skv={} of attention is below Sq={}: its first queries would see no key", skv, sq),
        "use causal=no, or as many keys as queries"};
  }
  constexpr double kLargestScale = 0x1p60;  // scores of f16 vectors stay in the range of f32
  if (!(scale >= 0 && scale <= kLargestScale)) {
    return Error{Code::invalid_argument, fmt::format("scale={} of attention", scale),
                 "scale is above 0 and at most 2^60; 0 stands for 1/sqrt(D)"};
  }
  return {};
}

Work work(const Args& args) {
  const Attention a(args);
  const double heads = static_cast<double>(a.batches) * static_cast<double>(a.heads);
  const auto sq = static_cast<double>(a.queries), skv = static_cast<double>(a.keys),
             d = static_cast<double>(a.d);
  const double pairs = heads * (a.causal ? sq * (skv - sq) + sq * (sq + 1) / 2 : sq * skv);
  const double lse_bytes = args.ptr[kLse] ? 4 * heads * sq : 0;
  Work work{.flops = 4 * d * pairs,
            .issue_slots = (2 * d + 14) * pairs,  // an exp, a maximum and a sum beside the products
            .read_bytes = 2 * heads * d * (sq + 2 * skv),
            .write_bytes = 2 * heads * d * sq + lse_bytes,
            .link_in_bytes = 2 * heads * d * (sq + 2 * skv),
            .link_out_bytes = 2 * heads * d * sq + lse_bytes};
  work.streaming_bytes = work.bytes() + 8 * heads * sq * skv;
  return work;
}

/// The rows of one head of one tensor as doubles.
std::vector<double> widen(const Attention& a, const float* from, std::int64_t pair, std::int64_t length) {
  std::vector<double> rows(static_cast<std::size_t>(length * a.d));
  for (std::int64_t s = 0; s < length; ++s) {
    const float* row = from + a.row(pair, length, s);
    std::copy_n(row, a.d, &rows[s * a.d]);
  }
  return rows;
}

double dot(const double* a, const double* b, std::int64_t n) {
  double sum[4] = {};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int p = 0; p < 4; ++p) sum[p] += a[i + p] * b[i + p];
  }
  for (; i < n; ++i) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// Roundings of the weights and of the result, from the weighted sum of |v|; other types get more by the checker.
double allowed_in_f16(double magnitude) { return 1.25 * 0x1p-10 * magnitude + kRoundoff; }

/// One row of the result in fp64, for outputs that come in ascending order: what neighbours share is kept.
class Reference {
 public:
  explicit Reference(const Args& args) : args_(args), a_(args), row_(static_cast<std::size_t>(a_.d)) {}

  void move_to(std::int64_t pair, std::int64_t query) {
    if (pair == pair_ && query == query_) return;
    if (pair != pair_) learn_head(pair);
    pair_ = pair;
    query_ = query;
    weigh();
  }

  /// p is not normalised; both sums are.
  Truth output(std::int64_t i) const {
    if (sees_non_finite_) return Truth{.value = NAN};
    const double* v = v_.data() + i * a_.keys;
    const std::int64_t visible = a_.visible(query_);
    const double value = dot(p_.data(), v, visible);
    const double magnitude = dot(p_.data(), magnitude_.data() + i * a_.keys, visible) / sum_;
    return Truth{.value = value / sum_,
                 .allowed = allowed_in_f16(magnitude),
                 .any_non_finite = hides_non_finite_,
                 .magnitude = magnitude};
  }

  /// Each score is a sum of D products of at most |q| |k| in all, and the sum of exp adds a few roundings.
  Truth lse() const {
    if (sees_non_finite_) return Truth{.value = NAN};
    const double value = max_ + std::log(sum_);
    return Truth{.value = value,
                 .allowed = (static_cast<double>(a_.d) + 32) * kRoundoff * largest_ +
                            64 * kRoundoff * (1 + std::abs(value)),
                 .any_non_finite = hides_non_finite_};
  }

 private:
  /// Keys by row, values by column, and where the first key stands that is not finite or has such a value.
  void learn_head(std::int64_t pair) {
    k_ = widen(a_, args_.in<float>(kK), pair, a_.keys);
    const std::vector<double> v = widen(a_, args_.in<float>(kV), pair, a_.keys);
    v_.resize(v.size());
    magnitude_.resize(v.size());
    longest_ = 0;
    bad_.clear();
    for (std::int64_t j = 0; j < a_.keys; ++j) {
      double rest = 0;  // becomes NaN
      for (std::int64_t i = 0; i < a_.d; ++i) {
        const double key = k_[j * a_.d + i], value = v[j * a_.d + i];
        rest += (key - key) + (value - value);
        v_[i * a_.keys + j] = value;
        magnitude_[i * a_.keys + j] = std::abs(value);
      }
      if (std::isnan(rest)) {
        bad_.push_back(j);
      } else {
        longest_ = std::max(longest_, std::sqrt(dot(&k_[j * a_.d], &k_[j * a_.d], a_.d)));
      }
    }
  }

  /// Scores of the visible keys, then exp(score - max).
  void weigh() {
    const float* q = args_.in<float>(kQ) + a_.row(pair_, a_.queries, query_);
    std::copy_n(q, a_.d, row_.begin());
    const double square = dot(row_.data(), row_.data(), a_.d);
    const std::int64_t visible = a_.visible(query_);
    sees_non_finite_ = !std::isfinite(square) || (!bad_.empty() && bad_.front() < visible);
    hides_non_finite_ = !bad_.empty() && bad_.back() >= visible;
    if (sees_non_finite_) return;
    p_.resize(static_cast<std::size_t>(a_.keys));
    max_ = -INFINITY;
    sum_ = 0;
    largest_ = a_.scale * std::sqrt(square) * longest_;
    for (std::int64_t j = 0; j < visible; ++j) {
      p_[j] = a_.scale * dot(row_.data(), &k_[j * a_.d], a_.d);
      max_ = std::max(max_, p_[j]);
    }
    for (std::int64_t j = 0; j < visible; ++j) sum_ += p_[j] = std::exp(p_[j] - max_);
  }

  const Args& args_;
  Attention a_;
  std::int64_t pair_ = -1, query_ = -1;
  std::vector<double> k_, v_, magnitude_, p_, row_;
  std::vector<std::int64_t> bad_;  // keys, ascending
  double max_ = 0, sum_ = 0, largest_ = 0, longest_ = 0;
  bool sees_non_finite_ = false, hides_non_finite_ = false;
};

void reference(const Args& args, int slot, std::span<const std::int64_t> index, Truth* truth) {
  const Attention a(args);
  Reference row(args);
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (slot == kLse) {
      row.move_to(index[i] / a.queries, index[i] % a.queries);
      truth[i] = row.lse();
      continue;
    }
    const std::int64_t number = index[i] / a.d;
    if (a.heads_first) {
      row.move_to(number / a.queries, number % a.queries);
    } else {
      const std::int64_t head = number % a.heads, rest = number / a.heads;
      row.move_to(rest / a.queries * a.heads + head, rest % a.queries);
    }
    truth[i] = row.output(index[i] % a.d);
  }
}

/// Errors of rounding may each be large; their norm may not. What a type may be off more than f16 shows in `allowed`.
std::string check_all(const Args&, std::span<const Checked> checked) {
  double error = 0, size = 0, factor = 1;
  for (const Checked& c : checked) {
    if (c.slot != kO || !std::isfinite(c.truth.value) || !std::isfinite(c.got)) continue;
    error += (c.got - c.truth.value) * (c.got - c.truth.value);
    size += c.truth.value * c.truth.value;
    factor = c.truth.allowed / allowed_in_f16(c.truth.magnitude);
  }
  const double bound = factor * kFrobenius;
  if (error <= bound * bound * size) return {};
  return fmt::format("the norm of all errors is {:.3g} of the norm of O, above {:.3g}",
                     std::sqrt(error / size), bound);
}

Slot optional_out(std::string_view name) {
  Slot slot = out(name);
  slot.optional = true;
  return slot;
}

}  // namespace

Op attention() {
  return Op{
      .name = "attention",
      .summary = "O = softmax(scale Q K^T + mask) V for each batch and head",
      .category = "dense",
      .slots = {typed(in("Q", normal(), DType::f16)), typed(in("K", normal(), DType::f16)),
                typed(in("V", normal(), DType::f16)), typed(out("O", DType::f16)), optional_out("lse"),
                dim("B", 1), dim("H", 1), dim("Sq"), dim("Skv"), dim("D"), choice("causal", {"no", "yes"}),
                real("scale", 0), choice("layout", {"bhsd", "bshd"})},
      .extent = extent,
      .validate = validate,
      .work = work,
      .reference = reference,
      .check_all = check_all,
      .check_all_drawn_only = true,
      .slice_dim = "B",
      .dtypes = {DType::f16, DType::bf16},
      .split = Split{.phases = 1, .pieces = [](const Args& args, int) { return Attention(args).pieces(); }},
      .symbols = {"*attention*", "*Attention*", "*flash_fwd*", "*fmha*", "*sdpa*"},
      .default_sizes = {"Sq=32,Skv=32,D=64", "Sq=64,Skv=64,D=64", "Sq=128,Skv=128,D=64",
                        "Sq=256,Skv=256,D=64", "Sq=512,Skv=512,D=64", "H=8,Sq=128,Skv=128,D=64",
                        "H=8,Sq=512,Skv=512,D=64", "H=8,Sq=512,Skv=512,D=64,causal=yes",
                        "B=8,H=32,Sq=2048,Skv=2048,D=64", "B=8,H=16,Sq=2048,Skv=2048,D=128,causal=yes",
                        "Sq=1,Skv=1,D=64", "Sq=17,Skv=17,D=64", "Sq=65,Skv=65,D=64", "Sq=127,Skv=127,D=64",
                        "Sq=513,Skv=513,D=64"},
      .edge_shapes = {"B=2,H=3,Sq=33,Skv=70,D=20,layout=bshd,causal=yes",
                      "B=2,H=2,Sq=65,Skv=65,D=64,causal=yes,scale=0.5", "Sq=3,Skv=200,D=8,causal=yes",
                      "Sq=40,Skv=129,D=256,layout=bshd", "H=2,Sq=77,Skv=300,D=64,layout=bshd,causal=yes"},
      .reference_cost = [](const Args& args) { return 6.0 * static_cast<double>(args.dim[kSkv]); },
  };
}

}  // namespace fulcrum::ops
