// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// hnswlib, header only: its own search over the very index file that our kernels walk, and the distance function of
// its inner-product space as the peer for one query.
#include <fulcrum/ops/hnsw_search.h>
#include <hnswlib/hnswlib.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "part.h"

namespace fulcrum::peers::hnsw {
namespace {

using Graph = hnswlib::HierarchicalNSW<float>;

struct Search {
  std::unique_ptr<hnswlib::SpaceInterface<float>> space;
  std::unique_ptr<Graph> graph;
  std::vector<float> query;  // of length 1, where the metric is the cosine
};

/// The ef that our kernels use for these arguments, from the table beside the index; 0: a walk does not reach the
/// recall asked for.
std::int64_t ef_for(const ops::HnswIndex& index, std::int64_t k, std::int64_t ef, double recall_target) {
  if (ef > 0) return std::max(ef, k);
  for (const ops::HnswRecall& row : index.recall) {
    if (row.recall >= recall_target + 0.005) return std::max(row.ef, k);
  }
  return 0;
}

fulcrum_status plan_search(const fulcrum_kernel*, const fulcrum_args* a, void** plan) {
  const auto* index = static_cast<const ops::HnswIndex*>(a->prepared);
  if (!index) return {FULCRUM_UNSUPPORTED, "hnswlib needs the prepared index"};
  const std::int64_t ef = ef_for(*index, a->dim[3], a->scalar[0].i, a->scalar[1].f);
  if (ef == 0) return {FULCRUM_UNSUPPORTED, "no ef of the recall table reaches the recall asked for"};
  const char* file = index->file ? index->file(*index) : nullptr;
  if (!file) return {FULCRUM_DEVICE_ERROR, "the index could not be saved for hnswlib"};
  auto search = std::make_unique<Search>();
  const auto dimension = static_cast<std::size_t>(index->dimension);
  if (index->metric == ops::HnswMetric::l2sq) {
    search->space = std::make_unique<hnswlib::L2Space>(dimension);
  } else {
    search->space = std::make_unique<hnswlib::InnerProductSpace>(dimension);
  }
  try {
    search->graph = std::make_unique<Graph>(search->space.get(), file);
  } catch (const std::exception&) {
    return {FULCRUM_DEVICE_ERROR, "hnswlib cannot read the index that it saved"};
  }
  search->graph->setEf(static_cast<std::size_t>(ef));
  search->query.resize(dimension);
  *plan = search.release();
  return done();
}
void drop_search(void* plan) { delete static_cast<Search*>(plan); }

const float* unit(const float* q, std::vector<float>& memory) {
  double squared = 0;
  for (std::size_t i = 0; i < memory.size(); ++i) squared += static_cast<double>(q[i]) * q[i];
  const auto scale = static_cast<float>(squared > 0 ? 1 / std::sqrt(squared) : 0);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = q[i] * scale;
  return memory.data();
}

void hnsw_search(const fulcrum_args& a) {
  auto& search = *static_cast<Search*>(a.plan);
  const auto metric = static_cast<ops::HnswMetric>(a.scalar[2].i);
  const std::int64_t k = a.dim[3];
  const float shift = metric == ops::HnswMetric::ip ? 1 : 0;  // its distance is 1 - q.c, ours -q.c
  for (std::int64_t q = 0; q < a.dim[0]; ++q) {
    const float* query = a.in<float>(0) + q * a.dim[2];
    if (metric == ops::HnswMetric::cosine) query = unit(query, search.query);
    auto found = search.graph->searchKnn(query, static_cast<std::size_t>(k));
    for (auto i = static_cast<std::int64_t>(found.size()) - 1; i >= 0; --i) {
      a.out<std::int32_t>(1)[q * k + i] = static_cast<std::int32_t>(found.top().second);
      a.out<float>(2)[q * k + i] = found.top().first - shift;
      found.pop();
    }
  }
}

struct Distance {
  explicit Distance(std::int64_t d) : space(static_cast<std::size_t>(d)) {}
  hnswlib::InnerProductSpace space;
};

fulcrum_status plan_distance(const fulcrum_kernel*, const fulcrum_args* a, void** plan) {
  *plan = new Distance(a->dim[2]);
  return done();
}
void drop_distance(void* plan) { delete static_cast<Distance*>(plan); }

void cosine_similarity(const fulcrum_args& a) {
  auto& space = static_cast<Distance*>(a.plan)->space;
  const auto distance = space.get_dist_func();
  const void* parameter = space.get_dist_func_param();
  const auto inner = [&](const float* x, const float* y) { return 1 - distance(x, y, parameter); };
  const std::int64_t n = a.dim[1], d = a.dim[2];
  const auto* known = a.in<float>(2);
  for (std::int64_t q = 0; q < a.dim[0]; ++q) {
    const float* query = a.in<float>(0) + q * d;
    const float squared = inner(query, query);
    const float scale = squared > 0 ? 1 / std::sqrt(squared) : 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const float* row = a.in<float>(1) + i * d;
      float row_scale = 1;
      if (a.scalar[0].i == 0) {
        const float row_squared = known ? 0 : inner(row, row);
        row_scale = known ? known[i] : row_squared > 0 ? 1 / std::sqrt(row_squared) : 0;
      }
      a.out<float>(3)[q * n + i] = std::clamp(inner(query, row) * scale * row_scale, -1.0f, 1.0f);
    }
  }
}

const char* isa() { return FULCRUM_PEERS_ISA; }

const char* distances() {
#if defined(USE_AVX512)
  return "AVX-512 distances";
#elif defined(USE_AVX)
  return "AVX distances";
#else
  return "plain distances";
#endif
}

const char* detail() {
  static const std::string text = std::string("hnswlib, ") + distances();
  return text.c_str();
}

const Part* part() {
  static const Kernels kernels = [] {
    Kernels list = {kernel<hnsw_search>("hnsw_search", "hnswlib"),
                    kernel<cosine_similarity>("cosine_similarity", "hnswlib")};
    list[0].plan = plan_search;
    list[0].drop = drop_search;
    list[1].plan = plan_distance;
    list[1].drop = drop_distance;
    finish(list, isa, detail);
    return list;
  }();
  static const Part instance{kernels.data(), static_cast<std::int64_t>(kernels.size()), "hnswlib",
                             distances()};
  return &instance;
}

}  // namespace
}  // namespace fulcrum::peers::hnsw

FULCRUM_PEER_PART const fulcrum::peers::Part* fulcrum_peer_part() { return fulcrum::peers::hnsw::part(); }
