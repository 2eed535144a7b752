// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Typed calls against an executor that is none: every function fills the slots of its op, sizes that do not fit are
// refused with both numbers, and the guard takes what it may and nothing else.
#include <fulcrum/backends/dtypes.h>
#include <fulcrum/executor.h>
#include <fulcrum/ops/activation_spreading.h>
#include <fulcrum/ops/hnsw_search.h>
#include <gtest/gtest.h>

#include <array>

namespace fulcrum::executor {
namespace {

/// Runs everything on the scalar backend and remembers the last call.
class Plain : public Calls<Plain> {
 public:
  Plain() : guards_(std::make_shared<Guards>()) { find_known_ops(*guards_); }
  const Guards& guards() const { return *guards_; }
  Guards& mutable_guards() { return *guards_; }

  Status run(const ops::Op& op, const Args& args, std::span<const Operand> operands, DType dtype) const {
    Args full = args;
    EXPECT_EQ(static_cast<int>(operands.size()), op.pointers());
    for (std::size_t i = 0; i < operands.size(); ++i) full.ptr[i] = operands[i].host();
    ++*long_calls_;
    FULCRUM_CHECK(ops::check_args(op, full));
    FULCRUM_CHECK(ops::check_pointers(op, full, dtype));
    FULCRUM_TRY(const std::vector<backends::Kernel> kernels, backends::kernels(op.name, "scalar"));
    for (const backends::Kernel& kernel : kernels) {
      if (!backends::takes_dtype(kernel, op, dtype) || !kernel.supports(full)) continue;
      FULCRUM_TRY(backends::Call call, backends::Call::make(kernel, full));
      return to_status(call.run());
    }
    return Error{Code::unsupported, "no kernel for " + std::string(to_string(dtype)), ""};
  }
  int long_calls() const { return *long_calls_; }

 private:
  std::shared_ptr<Guards> guards_;
  std::shared_ptr<int> long_calls_ = std::make_shared<int>(0);
};

/// A problem of the op and its buffers as typed values.
class OpCall {
 public:
  explicit OpCall(std::string_view op, std::string_view shape, bool optional_inputs = false)
      : problem_(ops::Problem::make(*ops::find(op).value(), parse_shape(shape).value(),
                                    {.optional_inputs = optional_inputs})
                     .value()) {}
  template <class T = float>
  std::span<T> buffer(int slot) {
    const std::span<std::byte> bytes = problem_.buffer(slot);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  const Args& args() const { return problem_.args(); }
  /// The call went through and its results are right.
  void expect_right(const Status& status) {
    ASSERT_TRUE(status.ok()) << status.error().message;
    const Oracle oracle = problem_.check();
    EXPECT_TRUE(oracle.passed) << oracle.detail;
    EXPECT_GT(oracle.checked, 0);
  }

 private:
  ops::Problem problem_;
};

std::string message_of(const Status& status) { return status.ok() ? "fine" : status.error().message; }

TEST(Calls, KnownOpsAreAllOpsOfTheListButProbesAndExpressions) {
  std::vector<std::string_view> known(kKnownNames.begin(), kKnownNames.end());
  constexpr std::string_view kListed[] = {
#define FULCRUM_OP(name) #name,
#include "ops/list.def"
#undef FULCRUM_OP
  };
  for (const std::string_view op : kListed) {
    if (op.starts_with("probe_") || op == "expression") continue;
    const auto found = std::find(known.begin(), known.end(), op);
    EXPECT_NE(found, known.end()) << op << " has no typed call";
    if (found != known.end()) known.erase(found);
  }
  EXPECT_TRUE(known.empty()) << known.front() << " is no op";
  EXPECT_EQ(kKnownNames[number_of(Known::hnsw_search)], "hnsw_search");
  EXPECT_EQ(kKnownNames[number_of(Known::dot)], "dot");
}

TEST(Calls, ElementWiseFunctionsComputeTheirOp) {
  const Plain exec;
  const auto unary = [](std::string_view op, std::string_view shape, auto call) {
    SCOPED_TRACE(op);
    OpCall one(op, shape);
    one.expect_right(call(In(one.buffer(0)), Out(one.buffer(1))));
  };
  unary("relu", "n=37", [&](const In& x, const Out& y) { return exec.relu(x, y); });
  unary("sigmoid", "n=37", [&](const In& x, const Out& y) { return exec.sigmoid(x, y); });
  unary("tanh", "n=37", [&](const In& x, const Out& y) { return exec.tanh(x, y); });
  unary("swish", "n=37", [&](const In& x, const Out& y) { return exec.swish(x, y); });
  unary("gelu", "n=37", [&](const In& x, const Out& y) { return exec.gelu(x, y); });
  unary("leaky_relu", "n=37,al=0.3", [&](const In& x, const Out& y) { return exec.leaky_relu(x, y, 0.3); });
  unary("elu", "n=37,al=0.7", [&](const In& x, const Out& y) { return exec.elu(x, y, 0.7); });
  unary("clip", "n=37,lo=-0.2,hi=0.9", [&](const In& x, const Out& y) { return exec.clip(x, y, -0.2, 0.9); });
  OpCall add("vec_add", "n=37");
  add.expect_right(exec.vec_add(add.buffer(0), add.buffer(1), add.buffer(3)));
}

TEST(Calls, ReductionsAndRowsComputeTheirOp) {
  const Plain exec;
  OpCall dot("dot", "n=100");
  dot.expect_right(exec.dot(dot.buffer(0), dot.buffer(1), dot.buffer(2)));
  OpCall softmax("softmax", "rows=3,n=20");
  softmax.expect_right(exec.softmax(softmax.buffer(0), softmax.buffer(1), 3));
  OpCall log_softmax("log_softmax", "rows=2,n=20");
  log_softmax.expect_right(exec.log_softmax(log_softmax.buffer(0), log_softmax.buffer(1), 2));
  OpCall cosine("cosine_similarity", "Q=3,N=5,D=16,normalized=yes", true);
  cosine.expect_right(exec.cosine_similarity(cosine.buffer(0), cosine.buffer(1), cosine.buffer(3), 16,
                                             {.inverse_norms = cosine.buffer(2), .normalized = true}));
  OpCall topk("cosine_topk", "Q=3,N=50,D=16,k=4");
  topk.expect_right(
      exec.cosine_topk(topk.buffer(0), topk.buffer(1), topk.buffer<std::int32_t>(3), topk.buffer(4), 16, 4));
  OpCall dendrites("dendritic_integration", "N=7,D=3,S=5,type=nmda");
  dendrites.expect_right(exec.dendritic_integration(
      dendrites.buffer(0), dendrites.buffer(1), dendrites.buffer(2), dendrites.buffer(3), 3, Dendrite::nmda));
}

TEST(Calls, DenseFunctionsComputeTheirOp) {
  const Plain exec;
  OpCall matmul("matmul", "M=4,N=6,K=5,epilogue=relu", true);
  matmul.expect_right(exec.matmul(matmul.buffer(0), matmul.buffer(1), matmul.buffer(3), 4, 6, 5,
                                  {.bias = matmul.buffer(2), .epilogue = Epilogue::relu}));
  std::vector<std::uint16_t> half(100);
  const Status refused = exec.matmul(HalfIn(half.data(), 20), HalfIn(half.data() + 20, 30),
                                     HalfOut(half.data() + 60, 24), 4, 6, 5, DType::bf16);
  EXPECT_EQ(message_of(refused), "no kernel for bf16") << "the scalar backend has none";
  OpCall batched("batched_matmul", "B=3,M=4,N=6,K=5,Bb=3");
  batched.expect_right(
      exec.batched_matmul(batched.buffer(0), batched.buffer(1), batched.buffer(2), 3, 4, 6, 5));
  OpCall shared("batched_matmul", "B=3,M=4,N=6,K=5,Bb=1");
  shared.expect_right(exec.batched_matmul(shared.buffer(0), shared.buffer(1), shared.buffer(2), 3, 4, 6, 5));
  OpCall attention("attention", "B=2,H=3,Sq=5,Skv=9,D=8,causal=yes,scale=0.5,layout=bshd,dtype=f16");
  attention.expect_right(exec.attention(
      attention.buffer<std::uint16_t>(0), attention.buffer<std::uint16_t>(1),
      attention.buffer<std::uint16_t>(2), attention.buffer<std::uint16_t>(3),
      {.d = 8, .batch = 2, .heads = 3, .causal = true, .scale = 0.5, .layout = HeadLayout::bshd}));
  OpCall conv("conv2d_channels", "N=2,Cin=3,h=7,w=9,Cout=4,kh=3,kw=2,stride_y=2,pad_x=1");
  conv.expect_right(
      exec.conv2d_channels(conv.buffer(0), conv.buffer(1), conv.buffer(2),
                           {.in_channels = 3, .h = 7, .w = 9, .kh = 3, .kw = 2, .stride_y = 2, .pad_x = 1}));
}

TEST(Calls, RecurrentFunctionsComputeTheirOp) {
  const Plain exec;
  OpCall cell("lstm_cell", "B=3,I=5,H=7");
  cell.expect_right(exec.lstm_cell(cell.buffer(0), cell.buffer(1), cell.buffer(2), cell.buffer(3),
                                   cell.buffer(4), cell.buffer(5), cell.buffer(6), cell.buffer(7)));
  OpCall steps("lstm_sequence", "T=4,B=3,I=5,H=7");
  steps.expect_right(exec.lstm_sequence(steps.buffer(0), steps.buffer(1), steps.buffer(2), steps.buffer(3),
                                        steps.buffer(4), steps.buffer(5), steps.buffer(6), steps.buffer(7)));
  OpCall series("ar_forecast", "S=4,H=10,p=3,T=6,C=4");
  series.expect_right(exec.ar_forecast(series.buffer(0), series.buffer(1), series.buffer(2), 4, 3));
  OpCall one_model("ar_forecast", "S=4,H=10,p=3,T=6,C=1");
  one_model.expect_right(
      exec.ar_forecast(one_model.buffer(0), one_model.buffer(1), one_model.buffer(2), 4, 3));
}

TEST(Calls, EntropyOfBytesIsThatOfTheSameImageAsNumbers) {
  const Plain exec;
  std::vector<std::uint8_t> bytes(20 * 24);
  std::vector<float> numbers, of_bytes(bytes.size()), of_numbers(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(i * i % 251);
    numbers.push_back(static_cast<float>(bytes[i]) / 255);
  }
  std::int64_t clamped = 7, clamped_numbers = 7;
  const EntropyOptions options{.h = 20, .w = 24, .window = 5};
  const Status status = exec.pixel_entropy(bytes, of_bytes, clamped, options);
  ASSERT_TRUE(status.ok()) << message_of(status);
  ASSERT_TRUE(exec.pixel_entropy(numbers, of_numbers, clamped_numbers, options).ok());
  EXPECT_EQ(of_bytes, of_numbers);
  EXPECT_GT(of_bytes[250], 1) << "there is something to see";
  EXPECT_EQ(clamped, 0);
  const std::span<const std::uint8_t> few(bytes.data(), 100);
  const std::string refused = message_of(exec.pixel_entropy(few, of_bytes, clamped, options));
  EXPECT_NE(refused.find("has 100 values"), std::string::npos) << refused;
}

TEST(Calls, ImageFunctionsComputeTheirOp) {
  const Plain exec;
  OpCall conv("conv2d", "B=2,h=11,w=13,kh=3,kw=2,stride_x=2,pad_y=1");
  conv.expect_right(exec.conv2d(conv.buffer(0), conv.buffer(1), conv.buffer(2),
                                {.h = 11, .w = 13, .kh = 3, .kw = 2, .stride_x = 2, .pad_y = 1}));
  OpCall entropy("pixel_entropy", "h=20,w=24,W=5,range=auto");
  entropy.expect_right(exec.pixel_entropy(entropy.buffer(0), entropy.buffer(1),
                                          entropy.buffer<std::int64_t>(2),
                                          {.h = 20, .w = 24, .window = 5, .range = EntropyRange::automatic}));
  OpCall automatic("pixel_entropy", "h=20,w=24,W=auto");
  automatic.expect_right(exec.pixel_entropy(automatic.buffer(0), automatic.buffer(1),
                                            automatic.buffer<std::int64_t>(2),
                                            {.h = 20, .w = 24, .window = 0}));
  OpCall labels("image_segmentation", "h=20,w=24,t=0.4,smooth=off");
  labels.expect_right(exec.image_segmentation(labels.buffer(0), labels.buffer<std::uint8_t>(1),
                                              {.h = 20, .w = 24, .threshold = 0.4, .smooth = false}));
  OpCall fused("conv_entropy_segment", "h=20,w=24,kh=3,kw=3,pad_y=1,pad_x=1,W=5,range=fixed,lo=-1,hi=1,t=3");
  fused.expect_right(exec.conv_entropy_segment(fused.buffer(0), fused.buffer(1),
                                               fused.buffer<std::uint8_t>(2), fused.buffer<std::int64_t>(3),
                                               {.h = 20,
                                                .w = 24,
                                                .kh = 3,
                                                .kw = 3,
                                                .pad_y = 1,
                                                .pad_x = 1,
                                                .window = 5,
                                                .range = PipelineRange::fixed,
                                                .lo = -1,
                                                .hi = 1,
                                                .threshold = 3}));
}

TEST(Calls, GraphFunctionsTakeWhatTheOpsOwnHelpersMake) {
  const Plain exec;
  OpCall spreading("activation_spreading",
                   "n=60,nnz=300,hops=2,lambda=0.7,theta=0.02,cap=3,include_source=no");
  const std::shared_ptr<const ops::SpreadingGraph> graph(
      std::shared_ptr<void>(), static_cast<const ops::SpreadingGraph*>(spreading.args().prepared));
  spreading.expect_right(exec.activation_spreading(
      graph, spreading.buffer(0), spreading.buffer(1),
      {.hops = 2, .lambda = 0.7, .theta = 0.02, .cap = 3, .include_source = false}));
  OpCall search("hnsw_search", "Q=6,N=90,D=8,k=5,ef=20");
  const std::shared_ptr<const ops::HnswIndex> index(
      std::shared_ptr<void>(), static_cast<const ops::HnswIndex*>(search.args().prepared));
  search.expect_right(exec.hnsw_search(index, search.buffer(0), search.buffer<std::int32_t>(1),
                                       search.buffer(2), 5, {.ef = 20}));
  EXPECT_EQ(message_of(exec.hnsw_search(nullptr, search.buffer(0), search.buffer<std::int32_t>(1),
                                        search.buffer(2), 5)),
            "hnsw_search was given no graph or index");
}

TEST(Calls, SizesThatDoNotFitAreNamedBoth) {
  const Plain exec;
  std::vector<float> ten(10), twelve(12), out(15);
  EXPECT_EQ(message_of(exec.sigmoid(ten, twelve)), "out of sigmoid has 12 values, but n=10 asks for 10");
  EXPECT_EQ(message_of(exec.vec_add(ten, twelve, ten)),
            "b of vec_add has 12 values, but n=10,B=1,layout=packed asks for 10");
  EXPECT_EQ(message_of(exec.softmax(ten, ten, 3)), "x of softmax has 10 values, but rows=3,n=3 asks for 9");
  EXPECT_EQ(message_of(exec.matmul(ten, twelve, out, 3, 5, 4)),
            "A of matmul has 10 values, but M=3,N=5,K=4,epilogue=none asks for 12");
  EXPECT_EQ(message_of(exec.matmul(ten, twelve, out, -3, 5, 4)), "M=-3 of matmul is negative");
  EXPECT_EQ(exec.long_calls(), 0);
}

TEST(Calls, ParametersOutOfRangeAreRefused) {
  Plain exec;
  const backends::Kernel kernel = backends::kernel("clip", "scalar").value();
  GuardEntry& guard = exec.mutable_guards().of[number_of(Known::clip)];
  guard.kernel = &kernel.entry();
  guard.below = 1000;
  std::vector<float> x(10), y(10);
  EXPECT_EQ(message_of(exec.clip(x, y, 2, 1)), "lo=2 of clip is not at most hi=1");
  EXPECT_EQ(message_of(exec.leaky_relu(x, y, 1.5)), "al=1.5 of leaky_relu is not in [0, 1)");
  EXPECT_EQ(message_of(exec.elu(x, y, -1)), "al=-1 of elu is not a positive finite f32");
}

/// Counts its calls, and sees the arguments of the last one.
struct Watched {
  static inline int calls = 0;
  static inline Args args;
  static fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
    calls += static_cast<int>(count);
    args.ptr[0] = a->ptr[0], args.ptr[1] = a->ptr[1], args.ptr[3] = a->ptr[3];
    args.dim[0] = a->dim[0];
    args.scalar[0] = a->scalar[0], args.scalar[1] = a->scalar[1];
    args.plan = a->plan;
    return {};
  }
};
const fulcrum_kernel kWatched{.op = "any", .variant = "seen", .run = Watched::run};

class Guarded : public ::testing::Test {
 protected:
  void SetUp() override {
    Watched::calls = 0;
    for (const Known op : {Known::sigmoid, Known::clip, Known::vec_add, Known::dot}) {
      exec.mutable_guards().of[number_of(op)].kernel = &kWatched;
      exec.mutable_guards().of[number_of(op)].below = 64;
    }
  }
  Plain exec;
  std::vector<float> x = std::vector<float>(200, 1.0F), y = std::vector<float>(200, 2.0F);
  In in(std::int64_t n, std::int64_t at = 0) { return {x.data() + at, n}; }
  Out out(std::int64_t n, std::int64_t at = 0) { return {x.data() + at, n}; }
};

TEST_F(Guarded, CallsBelowTheGuardRunOnItsKernelAndNowhereElse) {
  EXPECT_TRUE(exec.sigmoid(in(63), Out(y.data(), 63)).ok());
  EXPECT_EQ(Watched::calls, 1);
  EXPECT_EQ(Watched::args.ptr[0], x.data());
  EXPECT_EQ(Watched::args.ptr[1], y.data());
  EXPECT_EQ(Watched::args.dim[0], 63);
  EXPECT_EQ(Watched::args.plan, nullptr);
  EXPECT_TRUE(exec.clip(in(5), Out(y.data(), 5), -2, 3).ok());
  EXPECT_EQ(Watched::args.scalar[0].f, -2);
  EXPECT_EQ(Watched::args.scalar[1].f, 3);
  EXPECT_TRUE(exec.vec_add(in(5), in(5, 10), Out(y.data(), 5)).ok());
  EXPECT_EQ(Watched::args.ptr[3], y.data());
  float sum = 0;
  EXPECT_TRUE(exec.dot(in(5), in(5), sum).ok());
  EXPECT_EQ(Watched::calls, 4);
  EXPECT_EQ(exec.long_calls(), 0);
}

TEST_F(Guarded, CallsFromTheGuardOnGoTheLongWay) {
  EXPECT_TRUE(exec.sigmoid(in(64), Out(y.data(), 64)).ok());
  EXPECT_TRUE(exec.relu(in(1), Out(y.data(), 1)).ok()) << "relu has no guard here";
  EXPECT_EQ(Watched::calls, 0);
  EXPECT_EQ(exec.long_calls(), 2);
}

TEST_F(Guarded, InPlaceIsTakenAndPartialOverlapIsRefused) {
  EXPECT_TRUE(exec.sigmoid(in(10, 3), out(10, 3)).ok());
  EXPECT_TRUE(exec.sigmoid(in(10), out(10, 10)).ok()) << "next to each other";
  EXPECT_EQ(Watched::calls, 2);
  EXPECT_FALSE(exec.sigmoid(in(10), out(10, 9)).ok());
  EXPECT_FALSE(exec.sigmoid(in(10, 9), out(10)).ok());
  EXPECT_FALSE(exec.vec_add(in(10), in(10, 50), out(10, 51)).ok());
  EXPECT_TRUE(exec.vec_add(in(10), in(10, 50), out(10, 50)).ok());
  EXPECT_FALSE(exec.dot(in(10), in(10, 20), Out(x.data() + 9, 1)).ok());
  EXPECT_FALSE(exec.dot(in(10), in(10, 20), Out(x.data() + 20, 1)).ok());
  EXPECT_TRUE(exec.dot(in(10), in(10, 20), Out(x.data() + 10, 1)).ok());
  EXPECT_EQ(Watched::calls, 4);
}

TEST_F(Guarded, NullPointersAndWrongSizesAreRefused) {
  EXPECT_EQ(message_of(exec.sigmoid(In(nullptr, 10), Out(y.data(), 10))),
            "x of sigmoid is null but has 10 elements");
  EXPECT_FALSE(exec.sigmoid(in(10), Out(nullptr, 10)).ok());
  EXPECT_FALSE(exec.sigmoid(in(10), Out(y.data(), 11)).ok());
  EXPECT_FALSE(exec.dot(in(10), in(10), Out(y.data(), 2)).ok());
  EXPECT_EQ(Watched::calls, 0);
  EXPECT_TRUE(exec.sigmoid(In(), Out()).ok()) << "nothing to do";
}

TEST(Calls, OperandsAreTypedAtCompileTime) {
  static_assert(std::is_convertible_v<std::vector<float>&, Out>);
  static_assert(std::is_convertible_v<const std::vector<float>&, In>);
  static_assert(std::is_convertible_v<std::array<float, 3>&, In>);
  static_assert(std::is_convertible_v<const Buffer<float>&, Out>);
  static_assert(!std::is_convertible_v<const std::vector<float>&, Out>, "a const vector is no output");
  static_assert(!std::is_convertible_v<std::vector<double>&, In>);
  static_assert(!std::is_convertible_v<std::vector<std::int32_t>&, In>);
  static_assert(!std::is_convertible_v<const Buffer<double>&, In>);
  std::array<float, 3> three{1, 2, 3};
  EXPECT_EQ(In(three).count(), 3);
  EXPECT_EQ(Out(three).host(), three.data());
}

}  // namespace
}  // namespace fulcrum::executor
