// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What typed calls take: operands that know their element type and whether they may be written, and the rare parameters
// of ops with their defaults.
#pragma once

#include <fulcrum/executor/buffer.h>

#include <concepts>
#include <ranges>
#include <type_traits>

namespace fulcrum::ops {
struct SpreadingGraph;  // <fulcrum/ops/activation_spreading.h> makes one
struct HnswIndex;       // <fulcrum/ops/hnsw_search.h>
}  // namespace fulcrum::ops

namespace fulcrum::executor {

/// Values of T behind a call: a vector, array or span, a pointer and a count, or a Buffer. A const T is read only.
template <class T>
class Values : public Operand {
 public:
  using Element = std::remove_const_t<T>;
  /// Elements of the range lie side by side, are of this very type, and may be written if ours may.
  template <class Range>
  static constexpr bool kHolds = requires(Range& range) {
    { std::ranges::data(range) } -> std::convertible_to<T*>;
    {std::ranges::size(range)};
    requires std::ranges::contiguous_range<Range>;
    requires std::is_same_v<std::ranges::range_value_t<Range>, Element>;
  };
  Values() = default;  // for what may be absent
  Values(T* data, std::int64_t count) : Operand(std::span<T>(data, static_cast<std::size_t>(count))) {}
  Values(const Buffer<Element>& buffer) : Operand(buffer) {}
  template <class Range>
  requires kHolds<Range> Values(Range& range)
      : Values(std::ranges::data(range), static_cast<std::int64_t>(std::ranges::size(range))) {}
  template <class Range>
  requires kHolds<const Range> Values(const Range& range)
      : Values(std::ranges::data(range), static_cast<std::int64_t>(std::ranges::size(range))) {}
  /// One value: float sum; exec.dot(a, b, sum).
  Values(T& one) requires(!std::is_const_v<T>) : Values(&one, 1) {}
};

using In = Values<const float>;
using Out = Values<float>;
using HalfIn =
    Values<const std::uint16_t>;  // the bits of binary16 or bfloat16: the dtype beside them says which
using HalfOut = Values<std::uint16_t>;
using Ids = Values<std::int32_t>;
using Pixels = Values<const std::uint8_t>;  // of 8 bits

enum class Epilogue : std::int64_t { none, relu, gelu };
struct MatmulOptions {
  In bias = {};  // N values, added to every row
  Epilogue epilogue = Epilogue::none;
};

struct CosineOptions {
  In inverse_norms = {};    // 1 / length of every row of t, where they are known
  bool normalized = false;  // rows of t have length 1
};

struct Conv2dOptions {
  std::int64_t h = 0, w = 0, kh = 0, kw = 0;
  std::int64_t stride_y = 1, stride_x = 1, pad_y = 0, pad_x = 0;
};
struct ConvChannelsOptions {
  std::int64_t in_channels = 0, h = 0, w = 0, kh = 0, kw = 0;
  std::int64_t stride_y = 1, stride_x = 1, pad_y = 0, pad_x = 0;
};

enum class EntropyRange : std::int64_t { fixed, automatic };
struct EntropyOptions {
  std::int64_t h = 0, w = 0;
  std::int64_t window = 9;  // pixels; 0: by the size of the image
  EntropyRange range = EntropyRange::fixed;
  double lo = 0, hi = 1;  // of the fixed range
};
struct SegmentOptions {
  std::int64_t h = 0, w = 0;
  double threshold = 0.5;
  bool smooth = true;
};
enum class PipelineRange : std::int64_t { kernel_bound, fixed, automatic };
struct PipelineOptions {
  std::int64_t h = 0, w = 0, kh = 0, kw = 0, pad_y = 0, pad_x = 0;
  std::int64_t window = 9;
  PipelineRange range = PipelineRange::kernel_bound;
  double lo = 0, hi = 1;
  double threshold = 4;
};

enum class Dendrite : std::int64_t { sigmoid, nmda, active_bp, multiplicative };

enum class HeadLayout : std::int64_t { bhsd, bshd };
struct AttentionOptions {
  std::int64_t d = 0;  // of a head
  std::int64_t batch = 1, heads = 1;
  DType dtype = DType::f16;
  bool causal = false;
  double scale = 0;  // 0: 1 / sqrt(d)
  HeadLayout layout = HeadLayout::bhsd;
  Out log_sum_exp = {};  // where it is wanted
};

struct SpreadingOptions {
  std::int64_t hops = 4;
  double lambda = 0.4965853, theta = 0.01, cap = 1;
  bool include_source = true;
};
struct HnswOptions {
  std::int64_t ef = 0;  // 0: by recall_target
  double recall_target = 0.95;
};

/// Sizes and resource of a call on a graph or an index.
Args spreading_args(const ops::SpreadingGraph& graph);
Args hnsw_args(const ops::HnswIndex& index, std::int64_t query_values, std::int64_t k);
/// Every operand that is there has as many values as its slot; the error names both numbers.
Status check_counts(const ops::Op& op, const Args& args, std::span<const Operand> operands);

}  // namespace fulcrum::executor
