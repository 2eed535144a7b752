// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See product.h. A library's activation may drop a NaN (max(NaN, 0) is 0), make one of -Inf (-Inf * 0) or be an
// approximation: each proposal with one inside proves itself on a product whose pre-activations are known, or is not
// used. Times are of replayed graphs: the host's share of a launch must not decide between kernels.
#include "backends/cuda/product.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>

namespace fulcrum::backends::cuda {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;
constexpr int kProposals = 8;
constexpr int kSplitProposals = 8;      // with a pass of ours behind them
constexpr double kOwnFlops = 1 << 27;   // above it our chains are not even tried
constexpr double kTensorFlops = 4e9;    // above it nor are our tensor-core products
constexpr double kTinyFlops = 1 << 16;  // below it one launch is all the time there is
constexpr int kRounds = 3, kMostCalls = 20;
constexpr float kRoundMs = 0.2F, kLongRoundMs = 4;
constexpr double kLongFlops = 1e10;  // above it a round lasts until the clock has settled under the load
// A recording costs about as much as it saves in this many calls: of the library's, which cost the host more, 7 us each, of
// ours 3. After so many plans of a shape that did not live that long, their operands are taken to change with every call.
constexpr int kPaidReplays = 16, kOurPaidReplays = 48, kIdleRecordings = 4;

double flops_of(const Gemm& g) { return 2.0 * static_cast<double>(g.outputs()) * static_cast<double>(g.k); }

/// What a product of ours in the precision of f32 is made of.
int products_of(Precision precision) { return precision == Precision::fp32 ? 3 : 1; }

bool same(const GemmOperands& x, const GemmOperands& y) {
  return x.a == y.a && x.b == y.b && x.bias == y.bias && x.c == y.c;
}

bool is_plain(const Gemm& g) { return !g.has_bias && g.activation == Activation::none; }

using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int, int, Choice, uint64_t>;

Key key_of(const Gemm& g, Precision precision, Choice choice, const GemmOperands& operands) {
  const auto low_bits = [](const void* pointer) { return reinterpret_cast<uint64_t>(pointer) & 0xFF; };
  const uint64_t alignment = low_bits(operands.a) | low_bits(operands.b) << 8 | low_bits(operands.c) << 16 |
                             low_bits(operands.bias) << 24;
  return Key(g.batch, g.m, g.n, g.k, static_cast<int>(g.element) * 4 + static_cast<int>(precision),
             static_cast<int>(g.activation) * 2 + g.has_bias, choice, alignment);
}

}  // namespace

fulcrum_status Product::take(const Gemm& gemm, Precision precision, const Route& route) {
  gemm_ = gemm;
  route_ = route;
  products_ = products_of(precision);
  if (route.maker != Maker::library) return done();
  FULCRUM_STATUS(LtForm::make(gemm, precision, route.fused, &form_));
  if (route.workspace_bytes > 0) FULCRUM_STATUS(workspace_.take(route.workspace_bytes));
  if (form_->widened()) FULCRUM_STATUS(sums_.take(static_cast<std::size_t>(gemm.outputs()) * sizeof(float)));
  return done();
}

Product::~Product() {
  const int paid = route_.maker == Maker::library ? kPaidReplays : kOurPaidReplays;
  if (known_ && replays_.load(std::memory_order_relaxed) < paid) ++known_->idle_recordings;
}

void Product::record(const GemmOperands& operands, KnownRoute& known) {
  if (flops_of(gemm_) > kLongFlops ||
      known.idle_recordings.load(std::memory_order_relaxed) >= kIdleRecordings)
    return;
  trips::Stream stream;  // of its own: an error leaves nobody else's recording
  if (stream.open().code != FULCRUM_OK) return;
  const auto call = [&] { return enqueue(operands, stream); };
  if (recording_.record(stream, call).code != FULCRUM_OK) return;
  recorded_ = operands;
  known_ = &known;
}

/// Not into somebody's recording: there the library's own nodes are wanted.
bool Product::may_replay(const GemmOperands& operands, cudaStream_t stream) const {
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  return known_ && same(operands, recorded_) && cudaStreamIsCapturing(stream, &capturing) == cudaSuccess &&
         capturing == cudaStreamCaptureStatusNone;
}

fulcrum_status Product::run(const GemmOperands& operands, cudaStream_t stream) const {
  if (gemm_.outputs() == 0) return done();
  if (!may_replay(operands, stream)) return enqueue(operands, stream);
  replays_.fetch_add(1, std::memory_order_relaxed);
  return recording_.launch(stream);
}

fulcrum_status Product::enqueue(const GemmOperands& operands, cudaStream_t stream) const {
  if (route_.maker == Maker::tensor)
    return enqueue_tensor(gemm_, operands, static_cast<TensorTile>(route_.tile), stream);
  if (route_.maker == Maker::group)
    return enqueue_group(gemm_, operands, GroupWay{route_.tile, products_}, stream);
  if (route_.maker == Maker::chains) {
    enqueue_tiles(gemm_, operands, route_.tile, stream);
    return launched("a matrix product");
  }
  void* output = form_->widened() ? sums_.as<void>() : operands.c;
  FULCRUM_STATUS(form_->enqueue(operands, output, route_.algorithm, workspace_.as<void>(),
                                route_.workspace_bytes, stream));
  if (route_.fused) return done();
  enqueue_finish(gemm_, static_cast<const float*>(output), operands.bias, operands.c, stream);
  return launched("the epilogue of a matrix product");
}

/// Finds the route of one shape.
class RouteSearch {
 public:
  RouteSearch(const Gemm& gemm, Precision precision, const GemmOperands& operands)
      : gemm_(gemm), precision_(precision), operands_(operands), stream_(stream_of(nullptr)) {}
  ~RouteSearch() {
    if (begin_) cudaEventDestroy(begin_);
    if (end_) cudaEventDestroy(end_);
  }
  RouteSearch(const RouteSearch&) = delete;
  RouteSearch& operator=(const RouteSearch&) = delete;

  fulcrum_status run(Choice choice, Route* best) {
    *best = Route{.tile = tile_for(gemm_)};
    if (flops_of(gemm_) == 0 || (choice == Choice::fastest && flops_of(gemm_) < kTinyFlops)) return done();
    collect(choice);
    // Scratch operands may not fit beside the caller's: then the library's word is taken.
    const bool may_try = take_scratch();
    if (may_try && choice != Choice::heuristic)
      take_fastest(best);
    else
      take_first_right(may_try, best);
    // What goes by the library's name is never our own kernel.
    if (choice == Choice::fastest || best->maker == Maker::library) return done();
    return failed(FULCRUM_UNSUPPORTED, "cuBLASLt proposes nothing for this product");
  }

 private:
  void collect(Choice choice) {
    if (blas_lt().complete) {
      if (choice != Choice::unfused) propose(true, kProposals);
      if (!is_plain(gemm_)) propose(false, choice == Choice::heuristic ? 1 : kSplitProposals);
    }
    if (choice != Choice::fastest) return;
    if (precision_ == Precision::tf32 && flops_of(gemm_) < kTensorFlops && tensor_takes(gemm_, operands_)) {
      for (const TensorTile tile : kTensorTiles)
        routes_.push_back(Route{.maker = Maker::tensor, .tile = static_cast<int>(tile)});
    }
    // Nothing multiplies f32 faster, however much of it there is.
    if ((precision_ == Precision::fp32 || flops_of(gemm_) < kTensorFlops) &&
        group_takes(gemm_, operands_, products_of(precision_))) {
      for (const int split : kGroupSplits) routes_.push_back(Route{.maker = Maker::group, .tile = split});
    }
    if (flops_of(gemm_) > kOwnFlops) return;
    for (const int tile : kTiles) routes_.push_back(Route{.tile = tile});
  }

  void propose(bool fused, int count) {
    std::unique_ptr<LtForm> form;
    if (LtForm::make(gemm_, precision_, fused, &form).code != FULCRUM_OK) return;
    for (const auto& proposal : form->propose(operands_, kWorkspaceBytes, count)) {
      routes_.push_back(Route{.maker = Maker::library,
                              .fused = fused,
                              .algorithm = proposal.algo,
                              .workspace_bytes = proposal.workspaceSize});
    }
  }

  bool take_scratch() {
    const std::size_t size = bytes_of(gemm_.element);
    const std::size_t a = static_cast<std::size_t>(gemm_.left_elements()) * size,
                      b = static_cast<std::size_t>(gemm_.right_elements()) * size,
                      c = static_cast<std::size_t>(gemm_.outputs()) * size;
    std::size_t free_bytes = 0, total_bytes = 0;
    const bool fits = cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess &&
                      a + b + 3 * c + kWorkspaceBytes < free_bytes / 2;
    const bool taken = fits && a_.take(a + 1).code == FULCRUM_OK && b_.take(b + 1).code == FULCRUM_OK &&
                       c_.take(c + 1).code == FULCRUM_OK &&
                       bias_.take(static_cast<std::size_t>(gemm_.n) * sizeof(float)).code == FULCRUM_OK &&
                       wrong_.take(sizeof(unsigned)).code == FULCRUM_OK &&
                       cudaEventCreate(&begin_) == cudaSuccess && cudaEventCreate(&end_) == cudaSuccess;
    cudaGetLastError();
    scratch_ = GemmOperands{a_.as<void>(), b_.as<void>(), gemm_.has_bias ? bias_.as<float>() : nullptr,
                            c_.as<void>()};
    return taken;
  }

  void fill() {
    enqueue_random(gemm_.element, a_.as<void>(), gemm_.left_elements(), stream_);
    enqueue_random(gemm_.element, b_.as<void>(), gemm_.right_elements(), stream_);
    if (gemm_.has_bias) enqueue_random(Element::f32, bias_.as<void>(), gemm_.n, stream_);
  }

  /// What only a trial can show. A bias of the operands' own type is plain addition, which nobody gets wrong.
  bool needs_proof(const Route& route) const {
    return route.maker == Maker::library && route.fused &&
           (gemm_.activation != Activation::none || (gemm_.has_bias && gemm_.element != Element::f32));
  }

  bool is_right(const Route& route) {
    if (!needs_proof(route)) return true;
    if (gemm_.batch != 1 || gemm_.n < kGaugeColumns) return false;
    Product product;
    if (product.take(gemm_, precision_, route).code != FULCRUM_OK) return false;
    enqueue_gauge(gemm_, a_.as<void>(), b_.as<void>(), bias_.as<float>(), stream_);
    unsigned wrong = 1;
    const bool ran = cudaMemsetAsync(wrong_.as<void>(), 0, sizeof(unsigned), stream_) == cudaSuccess &&
                     product.run(scratch_, stream_).code == FULCRUM_OK;
    if (ran) enqueue_gauge_check(gemm_, c_.as<void>(), wrong_.as<unsigned>(), stream_);
    const bool read = cudaMemcpyAsync(&wrong, wrong_.as<void>(), sizeof(wrong), cudaMemcpyDeviceToHost,
                                      stream_) == cudaSuccess &&
                      cudaStreamSynchronize(stream_) == cudaSuccess;
    cudaGetLastError();
    return ran && read && wrong == 0;
  }

  /// The first unless another is faster by more than what timing is off. Those near the best are timed in turns: under a
  /// power limit the device slows down as the search goes on.
  void take_fastest(Route* into) {
    constexpr float kNear = 1.1F, kGain = 0.985F;
    constexpr int kPasses = 3;
    std::erase_if(routes_, [this](const Route& route) { return !is_right(route); });
    if (routes_.empty()) return;
    fill();
    (void)time(routes_.front());  // so that the first is not timed on idle clocks
    std::vector<float> least;
    for (const Route& route : routes_) least.push_back(time(route));
    for (int pass = 1; pass < kPasses; ++pass) {
      const float near = kNear * *std::min_element(least.begin(), least.end());
      for (std::size_t i = 0; i < routes_.size(); ++i) {
        if (least[i] <= near) least[i] = std::min(least[i], time(routes_[i]));
      }
    }
    const auto best = std::min_element(least.begin(), least.end());
    if (*best == std::numeric_limits<float>::infinity()) return;
    *into = *best < kGain * least.front() ? routes_[static_cast<std::size_t>(best - least.begin())]
                                          : routes_.front();
  }

  void take_first_right(bool may_try, Route* into) {
    for (const Route& route : routes_) {
      if (route.maker != Maker::library || (needs_proof(route) && !may_try) || !is_right(route)) continue;
      // Its code is on the device before anyone records it.
      if (may_try && !needs_proof(route) && run_once(route).code != FULCRUM_OK) continue;
      *into = route;
      return;
    }
  }

  fulcrum_status run_once(const Route& route) {
    Product product;
    FULCRUM_STATUS(product.take(gemm_, precision_, route));
    fill();
    FULCRUM_STATUS(product.run(scratch_, stream_));
    FULCRUM_CUDA(cudaStreamSynchronize(stream_));
    return done();
  }

  /// Milliseconds of one call; infinite when the route does not work.
  float time(const Route& route) {
    constexpr float kNever = std::numeric_limits<float>::infinity();
    Product product;
    float once = 0;
    const auto call = [&] { return product.run(scratch_, stream_).code == FULCRUM_OK; };
    const bool works = product.take(gemm_, precision_, route).code == FULCRUM_OK && call() &&
                       elapsed(call, &once);  // the first call may load code
    const float round_ms = flops_of(gemm_) < kLongFlops ? kRoundMs : kLongRoundMs;
    const int calls = works ? static_cast<int>(std::clamp(round_ms / std::max(once, 1e-4F), 1.0F,
                                                          static_cast<float>(kMostCalls)))
                            : 0;
    cudaGraphExec_t graph = works ? record(call, calls) : nullptr;
    float least = kNever;
    for (int round = 0; works && round < kRounds; ++round) {
      float milliseconds = 0;
      const auto replay = [&] { return cudaGraphLaunch(graph, stream_) == cudaSuccess; };
      const bool timed = graph ? elapsed(replay, &milliseconds) : elapsed(call, &milliseconds);
      if (timed) least = std::min(least, milliseconds / static_cast<float>(graph ? calls : 1));
    }
    if (graph) cudaGraphExecDestroy(graph);
    cudaStreamSynchronize(stream_);  // the product's workspace goes back to the pool
    cudaGetLastError();
    return least;
  }

  template <class Work>
  bool elapsed(const Work& work, float* milliseconds) {
    return cudaEventRecord(begin_, stream_) == cudaSuccess && work() &&
           cudaEventRecord(end_, stream_) == cudaSuccess && cudaEventSynchronize(end_) == cudaSuccess &&
           cudaEventElapsedTime(milliseconds, begin_, end_) == cudaSuccess;
  }

  /// Null when the calls cannot be recorded.
  template <class Call>
  cudaGraphExec_t record(const Call& call, int calls) {
    if (cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal) != cudaSuccess) return nullptr;
    bool recorded = true;
    for (int i = 0; i < calls && recorded; ++i) recorded = call();
    cudaGraph_t graph = nullptr;
    const bool ended = cudaStreamEndCapture(stream_, &graph) == cudaSuccess && graph;
    cudaGraphExec_t executable = nullptr;
    if (ended && recorded && cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess)
      (void)cudaGraphLaunch(executable, stream_);  // the first launch uploads it
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
    return executable;
  }

  Gemm gemm_;
  Precision precision_;
  GemmOperands operands_, scratch_;
  cudaStream_t stream_;
  std::vector<Route> routes_;
  Scratch a_, b_, c_, bias_, wrong_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

fulcrum_status Product::make(const Gemm& gemm, Precision precision, Choice choice,
                             const GemmOperands& operands, Product** into) {
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<Key, KnownRoute>;
  const Key key = key_of(gemm, precision, choice, operands);
  KnownRoute* found = nullptr;
  {
    // One search at a time: two would time each other.
    const std::lock_guard lock(mutex);
    const auto at = known.find(key);
    if (at == known.end()) {
      Route route;
      FULCRUM_STATUS(RouteSearch(gemm, precision, operands).run(choice, &route));
      found = &known[key];
      found->route = route;
    } else {
      found = &at->second;
    }
  }
  auto product = std::make_unique<Product>();
  FULCRUM_STATUS(product->take(gemm, precision, found->route));
  // What goes by the library's name is called as it comes.
  if (choice == Choice::fastest && gemm.outputs() > 0) product->record(operands, *found);
  *into = product.release();
  return done();
}

}  // namespace fulcrum::backends::cuda
