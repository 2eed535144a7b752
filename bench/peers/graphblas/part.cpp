// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// SuiteSparse:GraphBLAS: one hop of activation_spreading without decay, threshold, cap and source is a matrix-vector
// product. `graphblas` is the op as defined, from a plain array to a plain array; `graphblas_mxv` is the product alone,
// for who keeps vectors as objects of GraphBLAS. The matrix is made in plan() for both.
#include <fulcrum/ops/activation_spreading.h>
extern "C" {  // version 7 does not say so itself
#include <GraphBLAS.h>
}

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "part.h"

namespace fulcrum::peers::graphblas {
namespace {

/// A cap that no drawn graph reaches.
constexpr double kNoCap = 1e17;

/// Two ways that GraphBLAS has: pull, over rows with a vector that is full; and push, over the columns of those nodes
/// that have something to pass on. Which is faster depends on the input, so plan() tries both.
struct Product {
  GrB_Matrix by_row = nullptr, by_column = nullptr;
  GrB_Vector full = nullptr, sparse = nullptr, y = nullptr;
  std::vector<GrB_Index> index;   // 0, 1, ... n - 1
  std::vector<GrB_Index> places;  // of entries on their way in or out
  std::vector<float> values;
  bool push = false;
  const float* copied_to = nullptr;
  std::array<float, 3> copied{};
  ~Product() {
    for (GrB_Matrix* matrix : {&by_row, &by_column}) GrB_Matrix_free(matrix);
    for (GrB_Vector* vector : {&full, &sparse, &y}) GrB_Vector_free(vector);
  }
};

bool ok(GrB_Info info) { return info == GrB_SUCCESS; }

bool started() {
  static const bool done_once = ok(GrB_init(GrB_NONBLOCKING));
  return done_once;
}

bool use_threads(int count) { return ok(GxB_Global_Option_set(GxB_GLOBAL_NTHREADS, count)); }

struct Edges {
  std::vector<GrB_Index> rows, columns;
  explicit Edges(const ops::SpreadingGraph& graph)
      : rows(static_cast<std::size_t>(graph.edges)), columns(rows.size()) {
    for (std::int64_t row = 0; row < graph.nodes; ++row) {
      for (std::int32_t e = graph.row_begin[row]; e < graph.row_begin[row + 1]; ++e) {
        rows[e] = static_cast<GrB_Index>(row);
        columns[e] = static_cast<GrB_Index>(graph.source[e]);
      }
    }
  }
};

bool build(GrB_Matrix* matrix, GxB_Format_Value format, const ops::SpreadingGraph& graph,
           const Edges& edges) {
  const auto n = static_cast<GrB_Index>(graph.nodes);
  return ok(GrB_Matrix_new(matrix, GrB_FP32, n, n)) &&
         ok(GxB_Matrix_Option_set(*matrix, GxB_FORMAT, format)) &&
         ok(GrB_Matrix_build_FP32(*matrix, edges.rows.data(), edges.columns.data(), graph.weight,
                                  static_cast<GrB_Index>(graph.edges), GrB_PLUS_FP32)) &&
         ok(GrB_Matrix_wait(*matrix, GrB_MATERIALIZE));
}

bool fill(Product& product, const ops::SpreadingGraph& graph) {
  const auto n = static_cast<GrB_Index>(graph.nodes);
  const Edges edges(graph);
  for (GrB_Index i = 0; i < n; ++i) product.index.push_back(i);
  product.places.resize(n);
  product.values.resize(n);
  for (GrB_Vector* vector : {&product.full, &product.sparse, &product.y}) {
    if (!ok(GrB_Vector_new(vector, GrB_FP32, n))) return false;
  }
  return build(&product.by_row, GxB_BY_ROW, graph, edges) &&
         build(&product.by_column, GxB_BY_COL, graph, edges);
}

/// The input as the way wants it.
bool take_input(Product& product, const float* x) {
  const auto n = static_cast<GrB_Index>(product.index.size());
  if (!product.push) {
    return ok(GrB_Vector_clear(product.full)) &&
           ok(GrB_Vector_build_FP32(product.full, product.index.data(), x, n, GrB_PLUS_FP32)) &&
           ok(GrB_Vector_wait(product.full, GrB_MATERIALIZE));
  }
  GrB_Index count = 0;
  for (GrB_Index i = 0; i < n; ++i) {
    product.places[count] = i;
    product.values[count] = x[i];
    count += x[i] != 0;
  }
  return ok(GrB_Vector_clear(product.sparse)) &&
         ok(GrB_Vector_build_FP32(product.sparse, product.places.data(), product.values.data(), count,
                                  GrB_PLUS_FP32)) &&
         ok(GrB_Vector_wait(product.sparse, GrB_MATERIALIZE));
}

bool multiply(Product& product) {
  return ok(GrB_mxv(product.y, nullptr, nullptr, GrB_PLUS_TIMES_SEMIRING_FP32,
                    product.push ? product.by_column : product.by_row,
                    product.push ? product.sparse : product.full, nullptr)) &&
         ok(GrB_Vector_wait(product.y, GrB_MATERIALIZE));
}

/// Nodes that heard of nothing have no entry in y: their value is 0.
bool copy_out(Product& product, float* out) {
  GrB_Index count = product.index.size();
  std::fill(out, out + count, 0.0f);
  if (!ok(GrB_Vector_extractTuples_FP32(product.places.data(), product.values.data(), &count, product.y)))
    return false;
  for (GrB_Index i = 0; i < count; ++i) out[product.places[i]] = product.values[i];
  return true;
}

/// The fastest of a few calls, array to array, into memory of its own.
double seconds_of(Product& product, const float* x) {
  std::vector<float> out(product.index.size());
  double best = 1e30;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (!take_input(product, x) || !multiply(product) || !copy_out(product, out.data())) return 1e30;
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

fulcrum_status plan(const fulcrum_kernel* self, const fulcrum_args* a, void** plan) {
  const auto* graph = static_cast<const ops::SpreadingGraph*>(a->prepared);
  auto product = std::make_unique<Product>();
  const bool made =
      graph && started() && use_threads(self->threads > 1 ? self->threads : 1) && fill(*product, *graph);
  if (!made) return {FULCRUM_DEVICE_ERROR, "GraphBLAS could not take the graph"};
  const auto* x = a->in<float>(0);
  const double pull_seconds = seconds_of(*product, x);
  product->push = true;
  product->push = seconds_of(*product, x) < pull_seconds;
  if (!take_input(*product, x)) return {FULCRUM_DEVICE_ERROR, "GraphBLAS could not take the input"};
  *plan = product.release();
  return done();
}
void drop(void* plan) { delete static_cast<Product*>(plan); }

fulcrum_status failed() { return {FULCRUM_DEVICE_ERROR, "GraphBLAS failed"}; }

/// The op as defined.
template <bool kAll>
fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  auto& product = *static_cast<Product*>(a->plan);
  bool good = use_threads(kAll ? usable_threads() : 1);
  for (std::int64_t i = 0; good && i < count; ++i)
    good = take_input(product, a->in<float>(0)) && multiply(product) && copy_out(product, a->out<float>(1));
  return good ? done() : failed();
}

/// Three places tell a result that is still there from a buffer that was reset.
std::array<float, 3> sample(const Product& product, const float* out) {
  const std::size_t n = product.index.size();
  return {out[0], out[n / 2], out[n - 1]};
}

/// The product alone, of the input that plan() saw. Copying the result out costs as much as the call, so that is done
/// only when it is not in the caller's memory already.
template <bool kAll>
fulcrum_status run_product(const fulcrum_args* a, void*, std::int64_t count) {
  auto& product = *static_cast<Product*>(a->plan);
  auto* out = a->out<float>(1);
  bool good = use_threads(kAll ? usable_threads() : 1);
  for (std::int64_t i = 0; good && i < count; ++i) good = multiply(product);
  if (good && (product.copied_to != out || sample(product, out) != product.copied)) {
    good = copy_out(product, out);
    product.copied_to = out;
    product.copied = sample(product, out);
  }
  return good ? done() : failed();
}

int is_product(const fulcrum_args* a) {
  const ops::SpreadingRule rule(*a);
  return a->dim[0] > 0 && rule.hops == 1 && rule.lambda == 1 && rule.theta == 0 && rule.cap >= kNoCap &&
         !rule.include_source;
}

/// Compiled by the distribution, for every CPU of the architecture.
const char* isa() { return "baseline"; }
const char* detail() {
  static const std::string text = [] {
    int version[3] = {};
    GxB_Global_Option_get(GxB_LIBRARY_VERSION, version);
    return "SuiteSparse:GraphBLAS " + std::to_string(version[0]) + "." + std::to_string(version[1]) + "." +
           std::to_string(version[2]);
  }();
  return text.c_str();
}

const Part* part() {
  if (!started()) return nullptr;
  static const Kernels kernels = [] {
    Kernels list;
    const auto add = [&list](const char* variant, int threads, decltype(fulcrum_kernel::run) call) {
      list.push_back({.op = "activation_spreading",
                      .variant = variant,
                      .threads = threads,
                      .supports = is_product,
                      .plan = plan,
                      .drop = drop,
                      .run = call});
    };
    add("graphblas", usable_threads(), run<true>);
    add("graphblas_mxv", usable_threads(), run_product<true>);
    if (usable_threads() > 1) {
      add("graphblas_t1", 1, run<false>);
      add("graphblas_mxv_t1", 1, run_product<false>);
    }
    finish(list, isa, detail);
    return list;
  }();
  static const Part instance{kernels.data(), static_cast<std::int64_t>(kernels.size()), detail(), isa()};
  return &instance;
}

}  // namespace
}  // namespace fulcrum::peers::graphblas

FULCRUM_PEER_PART const fulcrum::peers::Part* fulcrum_peer_part() {
  return fulcrum::peers::graphblas::part();
}
