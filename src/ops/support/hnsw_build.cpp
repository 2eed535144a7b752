// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// hnswlib behind a wall: its exceptions become errors here, and its distances are ours, so that a graph has the same
// bits whatever instruction set it was built on.
#include "ops/support/hnsw_build.h"

#include <fmt/format.h>
#include <fulcrum/core/stop.h>

#include <cstring>
#include <exception>
#include <fstream>  // hnswlib uses it without including it
#include <mutex>
#include <unordered_map>

#include "ops/support/vector_sets.h"

// Under a name of our own hnswlib's functions and templates, which others compile for other CPUs, do not meet another
// copy of it in the same program. Its hand-written code is left out: the distances are ours, and what it reads for
// prefetching lies beyond the end of its lists.
#define NO_MANUAL_VECTORIZATION
#define hnswlib fulcrum_hnswlib
#include <hnswlib/hnswlib.h>

namespace fulcrum::ops {
namespace {

constexpr std::size_t kNeighbours = 16;  // 32 in layer 0
constexpr std::size_t kCandidates = 200;
constexpr std::size_t kRandomStart = 100;
static_assert(2 * kNeighbours == kHnswLinks && kNeighbours == kHnswUpperLinks);

float l2(const void* a, const void* b, const void* n) {
  return squared_distance()(static_cast<const float*>(a), static_cast<const float*>(b),
                            *static_cast<const std::int64_t*>(n));
}

float one_minus_product(const void* a, const void* b, const void* n) {
  return 1 - inner_product()(static_cast<const float*>(a), static_cast<const float*>(b),
                             *static_cast<const std::int64_t*>(n));
}

/// Our distances in hnswlib's terms. Files are those of its own spaces.
class Space : public hnswlib::SpaceInterface<float> {
 public:
  Space(std::int64_t dimension, HnswMetric metric) : dimension_(dimension), metric_(metric) {}
  std::size_t get_data_size() override { return static_cast<std::size_t>(dimension_) * sizeof(float); }
  hnswlib::DISTFUNC<float> get_dist_func() override {
    return metric_ == HnswMetric::l2sq ? l2 : one_minus_product;
  }
  void* get_dist_func_param() override { return &dimension_; }

 private:
  std::int64_t dimension_;
  HnswMetric metric_;
};

Error stopped(std::size_t done, std::size_t count) {
  return Error{Code::interrupted,
               fmt::format("interrupted when {} of the {} vectors of an index were in it", done, count),
               "run it again: the index is built anew"};
}

Error failed(std::string_view what, const std::exception& exception) {
  const bool memory = dynamic_cast<const std::bad_alloc*>(&exception) != nullptr;
  return Error{memory ? Code::out_of_memory : Code::corrupt, fmt::format("{}: {}", what, exception.what()),
               memory ? "use fewer vectors" : "delete the file; it is made again when needed"};
}

}  // namespace

struct HnswLibrary::State {
  Space space;
  std::int64_t dimension;
  std::unique_ptr<hnswlib::HierarchicalNSW<float>> index;

  State(std::int64_t d, HnswMetric metric) : space(d, metric), dimension(d) {}
  std::size_t count() const { return index->cur_element_count; }
  std::size_t label(std::size_t node) const {
    return index->getExternalLabel(static_cast<hnswlib::tableint>(node));
  }
};

HnswLibrary::HnswLibrary(std::unique_ptr<State> state) : state_(std::move(state)) {}
HnswLibrary::HnswLibrary(HnswLibrary&&) noexcept = default;
HnswLibrary& HnswLibrary::operator=(HnswLibrary&&) noexcept = default;
HnswLibrary::~HnswLibrary() = default;

Result<HnswLibrary> HnswLibrary::build(std::span<const float> rows, std::int64_t dimension,
                                       HnswMetric metric) try {
  auto state = std::make_unique<State>(dimension, metric);
  const std::size_t count = rows.size() / static_cast<std::size_t>(dimension);
  state->index = std::make_unique<hnswlib::HierarchicalNSW<float>>(&state->space, count, kNeighbours,
                                                                   kCandidates, kRandomStart);
  for (std::size_t i = 0; i < count; ++i) {
    if (asked_to_stop()) return stopped(i, count);
    state->index->addPoint(rows.data() + i * static_cast<std::size_t>(dimension), i);
  }
  return HnswLibrary(std::move(state));
} catch (const std::exception& exception) {
  return failed("hnswlib could not build the index", exception);
}

Result<HnswLibrary> HnswLibrary::load(const std::filesystem::path& file, std::int64_t dimension,
                                      HnswMetric metric) try {
  auto state = std::make_unique<State>(dimension, metric);
  state->index = std::make_unique<hnswlib::HierarchicalNSW<float>>(&state->space, file.string());
  const auto& index = *state->index;
  const std::size_t count = state->count();
  if (index.M_ != kNeighbours || index.maxM0_ != kHnswLinks ||
      index.label_offset_ - index.offsetData_ != index.data_size_) {
    return Error{Code::corrupt,
                 fmt::format("{} is an index of other vectors or of another degree", file.string()),
                 fmt::format("an index of dimension {} with M={} is needed", dimension, kNeighbours)};
  }
  std::vector<bool> there(count, false);
  for (std::size_t node = 0; node < count; ++node) {
    const std::size_t label = state->label(node);
    if (label >= count || there[label]) {
      return Error{Code::corrupt, fmt::format("point {} of {} has the label {}", node, file.string(), label),
                   "labels must be 0, 1, ..."};
    }
    there[label] = true;
  }
  return HnswLibrary(std::move(state));
} catch (const std::exception& exception) {
  return failed(fmt::format("hnswlib could not load {}", file.string()), exception);
}

std::int64_t HnswLibrary::count() const { return static_cast<std::int64_t>(state_->count()); }

std::vector<float> HnswLibrary::rows() const {
  const auto d = static_cast<std::size_t>(state_->dimension);
  std::vector<float> rows(state_->count() * d);
  for (std::size_t node = 0; node < state_->count(); ++node) {
    std::memcpy(rows.data() + state_->label(node) * d,
                state_->index->getDataByInternalId(static_cast<hnswlib::tableint>(node)), d * sizeof(float));
  }
  return rows;
}

HnswGraph HnswLibrary::graph() const {
  auto& index = *state_->index;
  const std::size_t count = state_->count();
  HnswGraph graph;
  // A list from hnswlib to `to`, ids as labels, filled up with the node itself.
  const auto copy_list = [&](std::size_t node, int layer, std::int64_t size, std::int32_t* to) {
    auto* list = index.get_linklist_at_level(static_cast<hnswlib::tableint>(node), layer);
    const auto used = static_cast<std::int64_t>(index.getListCount(list));
    for (std::int64_t i = 0; i < size; ++i) {
      to[i] = static_cast<std::int32_t>(state_->label(i < used ? list[1 + i] : node));
    }
  };
  graph.links.resize(count * kHnswLinks);
  graph.upper_begin.assign(count, -1);
  for (std::size_t node = 0; node < count; ++node) {
    const std::size_t label = state_->label(node);
    copy_list(node, 0, kHnswLinks, graph.links.data() + label * kHnswLinks);
    const int layers = index.element_levels_[node];
    if (layers > 0)
      graph.upper_begin[label] = static_cast<std::int32_t>(graph.upper_links.size() / kHnswUpperLinks);
    for (int layer = 1; layer <= layers; ++layer) {
      graph.upper_links.resize(graph.upper_links.size() + kHnswUpperLinks);
      copy_list(node, layer, kHnswUpperLinks,
                graph.upper_links.data() + graph.upper_links.size() - kHnswUpperLinks);
    }
  }
  graph.entry = static_cast<std::int32_t>(state_->label(index.enterpoint_node_));
  graph.top_layer = index.maxlevel_;
  return graph;
}

Status HnswLibrary::save(const std::filesystem::path& file) const try {
  state_->index->saveIndex(file.string());
  if (std::ifstream(file).good()) return {};
  return Error{Code::environment, fmt::format("{} could not be written", file.string()),
               "check permissions and free space"};
} catch (const std::exception& exception) {
  return failed(fmt::format("{} could not be written", file.string()), exception);
}

}  // namespace fulcrum::ops
