// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One function an op: exec.sigmoid(x, y). Sizes follow from the operands where they can; those that do not fit are an
// error that names both numbers. Small element-wise calls on host memory are decided here, by one comparison, before
// any arguments are put together. exec.async().sigmoid(x, y) is the same call as a Future.
#pragma once

#include <fulcrum/executor/guards.h>
#include <fulcrum/executor/values.h>

#include <cmath>
#include <optional>

namespace fulcrum::executor {

class Engine;
class Future;
/// Makes it one that is ready and holds an error.
void fail(Future& future, Error error);
/// Runs what waits in the batching queue.
void flush_batches(Engine& engine);

template <class Owner>
class AsyncCalls;

/// Self has guards() and run(op, args, operands, dtype), which returns a Return: Status or Future.
template <class Self, class Return = Status>
class Calls {
 public:
  /// The same functions, which return at once. Buffers are kept alive; plain memory, graphs and indexes must outlive
  /// the call.
  AsyncCalls<Self> async() const { return AsyncCalls<Self>(self()); }

  // Element-wise. The output may be an input.

  Return vec_add(const In& a, const In& b, const Out& out) const {
    const std::int64_t n = out.count();
    if constexpr (kNow) {
      const GuardEntry& guard = guard_of<Known::vec_add>();
      if (n < guard.below.load(std::memory_order_acquire) && a.count() == n && b.count() == n &&
          same_or_apart(a, out, n) && same_or_apart(b, out, n)) {
        Args args;
        args.ptr[0] = a.host(), args.ptr[1] = b.host(), args.ptr[2] = nullptr, args.ptr[3] = out.host();
        args.dim[0] = n, args.dim[1] = 1, args.scalar[0].i = 0;
        if (run_guarded(guard, args)) return Return();
      }
    }
    Args args{};
    args.dim[0] = n, args.dim[1] = 1;
    return call(Known::vec_add, args, {a, b, Operand(), out});
  }
  Return relu(const In& x, const Out& out) const { return unary<Known::relu>(x, out); }
  Return sigmoid(const In& x, const Out& out) const { return unary<Known::sigmoid>(x, out); }
  Return tanh(const In& x, const Out& out) const { return unary<Known::tanh>(x, out); }
  Return swish(const In& x, const Out& out) const { return unary<Known::swish>(x, out); }
  Return gelu(const In& x, const Out& out) const { return unary<Known::gelu>(x, out); }
  Return leaky_relu(const In& x, const Out& out, double al = 0.01) const {
    return unary<Known::leaky_relu>(x, out, al >= 0 && al < 1, al);
  }
  Return elu(const In& x, const Out& out, double al = 1) const {
    return unary<Known::elu>(x, out, al > 0 && std::isfinite(static_cast<float>(al)), al);
  }
  Return clip(const In& x, const Out& out, double lo, double hi) const {
    return unary<Known::clip>(x, out, lo <= hi, lo, hi);
  }

  // Reductions and rows.

  Return dot(const In& a, const In& b, const Out& out) const {
    const std::int64_t n = a.count();
    if constexpr (kNow) {
      const GuardEntry& guard = guard_of<Known::dot>();
      if (n < guard.below.load(std::memory_order_acquire) && b.count() == n && out.count() == 1 &&
          outside(a, out, n) && outside(b, out, n)) {
        Args args;
        args.ptr[0] = a.host(), args.ptr[1] = b.host(), args.ptr[2] = out.host();
        args.dim[0] = n;
        if (run_guarded(guard, args)) return Return();
      }
    }
    Args args{};
    args.dim[0] = n;
    return call(Known::dot, args, {a, b, out});
  }
  /// Of each of `rows` rows.
  Return softmax(const In& x, const Out& out, std::int64_t rows = 1) const {
    return by_rows(Known::softmax, x, out, rows);
  }
  Return log_softmax(const In& x, const Out& out, std::int64_t rows = 1) const {
    return by_rows(Known::log_softmax, x, out, rows);
  }
  /// Every row of q (length d) with every row of t: out[Q, N].
  Return cosine_similarity(const In& q, const In& t, const Out& out, std::int64_t d,
                           const CosineOptions& options = {}) const {
    const Args args = cosine_args(q, t, d, options);
    return call(Known::cosine_similarity, args, {q, t, options.inverse_norms, out});
  }
  /// The k rows of t nearest to each row of q: ids[Q, k] and scores[Q, k], best first.
  Return cosine_topk(const In& q, const In& t, const Ids& ids, const Out& scores, std::int64_t d,
                     std::int64_t k = 10, const CosineOptions& options = {}) const {
    Args args = cosine_args(q, t, d, options);
    args.dim[3] = k;
    return call(Known::cosine_topk, args, {q, t, options.inverse_norms, ids, scores});
  }
  /// in and w [N, dendrites, S], state and out [N].
  Return dendritic_integration(const In& in, const In& w, const In& state, const Out& out,
                               std::int64_t dendrites, Dendrite type = Dendrite::sigmoid) const {
    Args args{};
    args.dim[0] = state.count(), args.dim[1] = dendrites;
    args.dim[2] = share(in.count(), state.count() * dendrites);
    args.scalar[0].i = static_cast<std::int64_t>(type);
    return call(Known::dendritic_integration, args, {in, w, state, out});
  }

  // Dense.

  /// c[M, N] = epilogue(a[M, K] b[K, N] + bias).
  Return matmul(const In& a, const In& b, const Out& c, std::int64_t m, std::int64_t n, std::int64_t k,
                const MatmulOptions& options = {}) const {
    return call(Known::matmul, matmul_args(m, n, k, options), {a, b, options.bias, c});
  }
  /// The same on f16 or bf16.
  Return matmul(const HalfIn& a, const HalfIn& b, const HalfOut& c, std::int64_t m, std::int64_t n,
                std::int64_t k, DType dtype, const MatmulOptions& options = {}) const {
    return call(Known::matmul, matmul_args(m, n, k, options), {a, b, options.bias, c}, dtype);
  }
  /// c[B, M, N] = a[B, M, K] times b[B, K, N], or b[K, N] for all.
  Return batched_matmul(const In& a, const In& b, const Out& c, std::int64_t batch, std::int64_t m,
                        std::int64_t n, std::int64_t k) const {
    return call(Known::batched_matmul, batched_args(b.count(), batch, m, n, k), {a, b, c});
  }
  Return batched_matmul(const HalfIn& a, const HalfIn& b, const HalfOut& c, std::int64_t batch,
                        std::int64_t m, std::int64_t n, std::int64_t k, DType dtype) const {
    return call(Known::batched_matmul, batched_args(b.count(), batch, m, n, k), {a, b, c}, dtype);
  }
  /// q and out [batch, heads, Sq, d], k and v [batch, heads, Skv, d], or with heads and positions exchanged.
  Return attention(const HalfIn& q, const HalfIn& k, const HalfIn& v, const HalfOut& out,
                   const AttentionOptions& options) const {
    Args args{};
    const std::int64_t row = options.batch * options.heads * options.d;
    args.dim[0] = options.batch, args.dim[1] = options.heads;
    args.dim[2] = share(q.count(), row), args.dim[3] = share(k.count(), row), args.dim[4] = options.d;
    args.scalar[0].i = options.causal ? 1 : 0;
    args.scalar[1].f = options.scale;
    args.scalar[2].i = static_cast<std::int64_t>(options.layout);
    return call(Known::attention, args, {q, k, v, out, options.log_sum_exp}, options.dtype);
  }
  /// x[N, in_channels, h, w], k[Cout, in_channels, kh, kw] -> y[N, Cout, ...].
  Return conv2d_channels(const In& x, const In& k, const Out& y, const ConvChannelsOptions& o) const {
    Args args{};
    args.dim[0] = share(x.count(), o.in_channels * o.h * o.w), args.dim[1] = o.in_channels;
    args.dim[2] = o.h, args.dim[3] = o.w, args.dim[4] = share(k.count(), o.in_channels * o.kh * o.kw);
    args.dim[5] = o.kh, args.dim[6] = o.kw;
    set_stride(args, o);
    return call(Known::conv2d_channels, args, {x, k, y});
  }

  // Recurrent. Sizes follow from b (4 H values), h and w_ih.

  Return lstm_cell(const In& x, const In& h, const In& c, const In& w_ih, const In& w_hh, const In& b,
                   const Out& next_h, const Out& next_c) const {
    Args args{};
    const std::int64_t hidden = b.count() / 4;
    args.dim[0] = share(h.count(), hidden), args.dim[1] = share(w_ih.count(), 4 * hidden),
    args.dim[2] = hidden;
    return call(Known::lstm_cell, args, {x, h, c, w_ih, w_hh, b, next_h, next_c});
  }
  /// All steps of x[T, B, I]; y[T, B, H] are the hidden states.
  Return lstm_sequence(const In& x, const In& h, const In& c, const In& w_ih, const In& w_hh, const In& b,
                       const Out& y, const Out& next_c) const {
    Args args{};
    const std::int64_t hidden = b.count() / 4;
    const std::int64_t batch = share(h.count(), hidden), inputs = share(w_ih.count(), 4 * hidden);
    args.dim[0] = share(x.count(), batch * inputs);
    args.dim[1] = batch, args.dim[2] = inputs, args.dim[3] = hidden;
    return call(Known::lstm_sequence, args, {x, h, c, w_ih, w_hh, b, y, next_c});
  }
  /// history[series, H] and coefficients[series or 1, order] -> out[series, T].
  Return ar_forecast(const In& history, const In& coefficients, const Out& out, std::int64_t series,
                     std::int64_t order) const {
    Args args{};
    args.dim[0] = series, args.dim[1] = share(history.count(), series), args.dim[2] = order;
    args.dim[3] = share(out.count(), series), args.dim[4] = share(coefficients.count(), order);
    return call(Known::ar_forecast, args, {history, coefficients, out});
  }

  // Images.

  Return conv2d(const In& x, const In& k, const Out& y, const Conv2dOptions& o) const {
    Args args{};
    args.dim[0] = share(x.count(), o.h * o.w), args.dim[1] = o.h, args.dim[2] = o.w;
    args.dim[3] = o.kh, args.dim[4] = o.kw;
    set_stride(args, o);
    return call(Known::conv2d, args, {x, k, y});
  }
  /// `clamped`: one value, the pixels outside of the range.
  Return pixel_entropy(const In& x, const Out& out, const Values<std::int64_t>& clamped,
                       const EntropyOptions& o) const {
    return call(Known::pixel_entropy, entropy_args(o), {x, out, clamped});
  }
  /// The same of 8-bit pixels, which are their own bins: the range says nothing about them, and none is clamped.
  Return pixel_entropy(const Pixels& x, const Out& out, const Values<std::int64_t>& clamped,
                       const EntropyOptions& o) const {
    return call(Known::pixel_entropy, entropy_args(o), {x, out, clamped}, DType::u8);
  }
  Return image_segmentation(const In& x, const Values<std::uint8_t>& labels, const SegmentOptions& o) const {
    Args args{};
    args.dim[0] = o.h, args.dim[1] = o.w;
    args.scalar[0].f = o.threshold, args.scalar[1].i = o.smooth ? 0 : 1;
    return call(Known::image_segmentation, args, {x, labels});
  }
  /// The three above in one pass.
  Return conv_entropy_segment(const In& x, const In& k, const Values<std::uint8_t>& labels,
                              const Values<std::int64_t>& clamped, const PipelineOptions& o) const {
    Args args{};
    args.dim[0] = o.h, args.dim[1] = o.w, args.dim[2] = o.kh, args.dim[3] = o.kw;
    args.scalar[0].i = o.pad_y, args.scalar[1].i = o.pad_x, args.scalar[2].i = o.window;
    args.scalar[3].i = static_cast<std::int64_t>(o.range);
    args.scalar[4].f = o.lo, args.scalar[5].f = o.hi, args.scalar[6].f = o.threshold;
    return call(Known::conv_entropy_segment, args, {x, k, labels, clamped});
  }

  // Graphs, on what ops::make_graph and ops::make_hnsw_index return.

  Return activation_spreading(const std::shared_ptr<const ops::SpreadingGraph>& graph, const In& x,
                              const Out& out, const SpreadingOptions& o = {}) const {
    if (!graph) return refused(Known::activation_spreading);
    Args args = spreading_args(*graph);
    args.scalar[0].i = o.hops;
    args.scalar[1].f = o.lambda, args.scalar[2].f = o.theta, args.scalar[3].f = o.cap;
    args.scalar[4].i = o.include_source ? 0 : 1;
    return call(Known::activation_spreading, args, {x, out});
  }
  /// The k stored vectors nearest to each query: ids[Q, k] and distances[Q, k].
  Return hnsw_search(const std::shared_ptr<const ops::HnswIndex>& index, const In& queries, const Ids& ids,
                     const Out& distances, std::int64_t k, const HnswOptions& o = {}) const {
    if (!index) return refused(Known::hnsw_search);
    Args args = hnsw_args(*index, queries.count(), k);
    args.scalar[0].i = o.ef, args.scalar[1].f = o.recall_target;
    return call(Known::hnsw_search, args, {queries, ids, distances});
  }

 private:
  static constexpr bool kNow = std::is_same_v<Return, Status>;

  const Self& self() const { return static_cast<const Self&>(*this); }
  template <Known kOp>
  const GuardEntry& guard_of() const {
    return self().guards().of[number_of(kOp)];
  }

  /// Both on the host, and equal or disjoint. Buffers and null pointers are not: the long way deals with them.
  static bool same_or_apart(const Operand& in, const Operand& out, std::int64_t n) {
    const auto* a = static_cast<const float*>(in.host());
    const auto* b = static_cast<const float*>(out.host());
    return a != nullptr && b != nullptr && (a == b || a + n <= b || b + n <= a);
  }
  static bool outside(const Operand& in, const Operand& out, std::int64_t n) {
    const auto* a = static_cast<const float*>(in.host());
    const auto* b = static_cast<const float*>(out.host());
    return a != nullptr && b != nullptr && (a + n <= b || b + 1 <= a);
  }
  /// Only what the kernel reads is set: clearing all slots would take longer than the decision.
  static bool run_guarded(const GuardEntry& guard, Args& args) {
    args.prepared = nullptr, args.plan = nullptr;
    const fulcrum_kernel* kernel = guard.kernel.load(std::memory_order_relaxed);
    return kernel != nullptr && kernel->run(&args, nullptr, 1).code == FULCRUM_OK;
  }

  template <Known kOp>
  Return unary(const In& x, const Out& out, bool parameters_fit = true, double first = 0,
               double second = 0) const {
    const std::int64_t n = x.count();
    if constexpr (kNow) {
      const GuardEntry& guard = guard_of<kOp>();
      if (n < guard.below.load(std::memory_order_acquire) && out.count() == n && parameters_fit &&
          same_or_apart(x, out, n)) {
        Args args;
        args.ptr[0] = x.host(), args.ptr[1] = out.host(), args.dim[0] = n;
        args.scalar[0].f = first, args.scalar[1].f = second;
        if (run_guarded(guard, args)) return Return();
      }
    }
    Args args{};
    args.dim[0] = n;
    args.scalar[0].f = first, args.scalar[1].f = second;
    return call(kOp, args, {x, out});
  }

  Return by_rows(Known op, const In& x, const Out& out, std::int64_t rows) const {
    Args args{};
    args.dim[0] = rows, args.dim[1] = share(x.count(), rows);
    return call(op, args, {x, out});
  }

  /// What is left for the last size; a remainder shows up as a count that does not fit.
  static std::int64_t share(std::int64_t count, std::int64_t by) { return by > 0 ? count / by : 0; }
  static Args cosine_args(const In& q, const In& t, std::int64_t d, const CosineOptions& options) {
    Args args{};
    args.dim[0] = share(q.count(), d), args.dim[1] = share(t.count(), d), args.dim[2] = d;
    args.scalar[0].i = options.normalized ? 1 : 0;
    return args;
  }
  static Args matmul_args(std::int64_t m, std::int64_t n, std::int64_t k, const MatmulOptions& options) {
    Args args{};
    args.dim[0] = m, args.dim[1] = n, args.dim[2] = k;
    args.scalar[0].i = static_cast<std::int64_t>(options.epilogue);
    return args;
  }
  static Args batched_args(std::int64_t right_values, std::int64_t batch, std::int64_t m, std::int64_t n,
                           std::int64_t k) {
    Args args{};
    args.dim[0] = batch, args.dim[1] = m, args.dim[2] = n, args.dim[3] = k;
    args.dim[4] = right_values == k * n ? 1 : batch;
    return args;
  }
  static Args entropy_args(const EntropyOptions& o) {
    Args args{};
    args.dim[0] = o.h, args.dim[1] = o.w;
    args.scalar[0].i = o.window != 0 ? o.window : 9;
    args.scalar[1].i = o.window == 0 ? 1 : 0;
    args.scalar[2].i = static_cast<std::int64_t>(o.range);
    args.scalar[3].f = o.lo, args.scalar[4].f = o.hi;
    return args;
  }
  template <class Options>
  static void set_stride(Args& args, const Options& o) {
    args.scalar[0].i = o.stride_y, args.scalar[1].i = o.stride_x;
    args.scalar[2].i = o.pad_y, args.scalar[3].i = o.pad_x;
  }

  Return call(Known known, const Args& args, std::initializer_list<Operand> operands,
              DType dtype = DType::f32) const {
    const ops::Op& op = *self().guards().op[number_of(known)];
    const std::span<const Operand> all(operands.begin(), operands.size());
    Status fits = check_counts(op, args, all);
    if (!fits.ok()) return as_return(std::move(fits).take_error());
    return self().run(op, args, all, dtype);
  }
  static Return refused(Known known) {
    return as_return(Error{Code::invalid_argument,
                           std::string(kKnownNames[number_of(known)]) + " was given no graph or index",
                           "make one with ops::make_graph or ops::make_hnsw_index"});
  }
  static Return as_return(Error error) {
    if constexpr (kNow) {
      return error;
    } else {
      Return future;
      fail(future, std::move(error));
      return future;
    }
  }
};

/// exec.async(): a handle of its own on the executor.
template <class Owner>
class AsyncCalls : public Calls<AsyncCalls<Owner>, Future> {
 public:
  explicit AsyncCalls(const Owner& owner) : owner_(owner) {}
  const Guards& guards() const { return owner_.guards(); }
  auto run(const ops::Op& op, const Args& args, std::span<const Operand> operands,
           std::optional<DType> dtype = {}) const {
    return owner_.run_async(op, args, operands, dtype);
  }
  /// No more calls are coming for now: those that wait for others of their kind (Policy::batch_latency_seconds) run.
  void flush() const { flush_batches(owner_.engine()); }

 private:
  Owner owner_;
};

}  // namespace fulcrum::executor
