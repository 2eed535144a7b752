// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// activation_spreading on the device: all hops are one launch. Small graphs stay in one CTA or one cluster, whose
// barriers cost less; others take the whole grid. Variants name the team; `gather` fetches every value for every edge, `own` each value once
// a CTA.
#include <algorithm>
#include <memory>
#include <new>
#include <span>

#include "backends/cuda/softmax_launch.cuh"
#include "backends/cuda/spreading.cuh"
#include "backends/cuda/spreading_graph.h"

namespace fulcrum::backends::cuda::kernels {
namespace {

using namespace spreading;

// Nodes and edges up to which a smaller team is faster.
constexpr std::int64_t kCtaNodes = 2048, kCtaEdges = 12288;
constexpr std::int64_t kClusterNodes = 16384, kClusterEdges = 131072;
// A team of one CTA keeps three values a node in shared memory; others at most one, or a bit.
constexpr std::int64_t kMostCtaNodes = 8192, kMostWholeNodes = 32768, kWholeNodes = 16384;
constexpr int kMostBitsBytes = 132 << 10;
constexpr std::int64_t kMostHotNodes = 16384;

struct Plan {
  Team team = Team::grid;
  Look look = Look::bits;
  bool held = false, programmatic = false;
  int ctas = 1;
  std::size_t shared_bytes = 0;
  Places places{};
  std::shared_ptr<const DeviceGraph> graph;
  Scratch values, bits, parts, words;
};

using Kernel = void (*)(const Graph, const State, const Rule, const float*, float*, Places);

template <Team kTeam, Look kLook>
Kernel kernel_of(bool held) {
  return held ? spread<kTeam, kLook, true> : spread<kTeam, kLook, false>;
}

Kernel kernel_of(const Plan& plan) {
  if (plan.team == Team::cta) return kernel_of<Team::cta, Look::whole>(plan.held);
  if (plan.team == Team::cluster) return kernel_of<Team::cluster, Look::whole>(plan.held);
  if (plan.look == Look::whole) return kernel_of<Team::grid, Look::whole>(plan.held);
  if (plan.look == Look::bits) return kernel_of<Team::grid, Look::bits>(plan.held);
  if (plan.look == Look::hot) return kernel_of<Team::grid, Look::hot>(plan.held);
  if (plan.look == Look::own) return kernel_of<Team::grid, Look::own>(plan.held);
  return kernel_of<Team::grid, Look::plain>(plan.held);
}

/// Where things lie in shared memory: the CTA's work and values of the first positions when there is room for both,
/// else as many values as there is room for.
void place(Plan& plan) {
  const DeviceGraph& graph = *plan.graph;
  std::int64_t bytes = 0;
  const auto take = [&](std::int64_t wanted) {
    const std::int64_t at = bytes;
    bytes += (wanted + 15) / 16 * 16;
    return static_cast<int>(at);
  };
  Places places{};
  const std::int64_t tile_bytes = (4 * std::int64_t{graph.most_tile_edges} + 15) / 16 * 16;
  places.tile_bytes = graph.most_tiles > 1 ? static_cast<int>(tile_bytes) : 0;
  places.terms = take(tile_bytes + places.tile_bytes);
  places.parts = take(4 * std::int64_t{graph.most_parts});
  const bool has_bits = plan.look == Look::bits || plan.look == Look::hot;
  if (has_bits) places.bits = take(graph.positions / 8);
  if (plan.look == Look::whole) places.view = take((plan.team == Team::cta ? 3 : 1) * 4 * graph.positions);
  if (plan.look == Look::own) places.view = take(4 * std::int64_t{graph.most_wanted});
  const std::int64_t before = bytes;
  const Places spare = places;
  const std::int64_t hot = plan.look == Look::hot ? std::min(graph.long_positions, kMostHotNodes) : 0;
  places.hot = static_cast<int>(hot);
  if (plan.look == Look::hot) places.view = take(4 * hot);
  places.sources = take(4 * graph.most_edges);
  places.weights = take(4 * graph.most_edges);
  places.slices = take(graph.most_slices * std::int64_t{sizeof(Slice)});
  places.segments = take(graph.most_segments * std::int64_t{sizeof(Segment)});
  places.tiles = take(graph.most_tiles * std::int64_t{sizeof(Tile)});
  places.hubs = take(graph.most_hubs * std::int64_t{sizeof(Hub)});
  places.nodes = take(4 * std::int64_t{kLanes} * graph.most_slices);
  if (plan.look == Look::own) places.wanted = take(4 * std::int64_t{graph.most_wanted});
  if (plan.team != Team::cta) places.activations = take(4 * std::int64_t{kLanes} * graph.most_slices);
  plan.held = bytes <= device().shared_bytes_per_block;
  if (!plan.held) {
    places = spare;
    bytes = before;
    const std::int64_t room = (device().shared_bytes_per_block - before) / 4 / kLanes * kLanes;
    places.hot = static_cast<int>(std::clamp<std::int64_t>(room, 0, hot));
    if (plan.look == Look::hot) places.view = take(4 * std::int64_t{places.hot});
  }
  plan.places = places;
  plan.shared_bytes = static_cast<std::size_t>(bytes);
}

fulcrum_status take_memory(Plan& plan) {
  const DeviceGraph& graph = *plan.graph;
  const auto positions = static_cast<std::size_t>(graph.positions);
  FULCRUM_STATUS(plan.values.take(3 * positions * sizeof(float)));
  FULCRUM_STATUS(plan.bits.take(2 * positions / 8 + 16));
  FULCRUM_STATUS(plan.parts.take(static_cast<std::size_t>(graph.shared_parts) * sizeof(float) + 4));
  const std::size_t word_bytes = 128 + static_cast<std::size_t>(graph.shared_hubs) * sizeof(std::uint32_t);
  FULCRUM_STATUS(plan.words.take(word_bytes));
  const cudaStream_t stream = stream_of(nullptr);
  // Copies to shared memory come in 16 bytes and take the padding behind the last slice along, which no edge names.
  FULCRUM_CUDA(cudaMemsetAsync(plan.values.as<void>(), 0, 3 * positions * sizeof(float), stream));
  // Nodes with long rows keep their bits: ones. The others are written before they are read.
  FULCRUM_CUDA(cudaMemsetAsync(plan.bits.as<void>(), 0xFF, 2 * positions / 8, stream));
  FULCRUM_CUDA(cudaMemsetAsync(plan.words.as<void>(), 0, word_bytes, stream));
  FULCRUM_CUDA(cudaStreamSynchronize(stream));
  return done();
}

/// Whether the launch is possible, with the attributes that it needs.
fulcrum_status prepare_launch(const Plan& plan) {
  const Kernel kernel = kernel_of(plan);
  FULCRUM_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    device().shared_bytes_per_block));
  if (plan.team == Team::cluster && plan.ctas > rows::kPortableCluster) {
    FULCRUM_CUDA(rows::allow_large_clusters(kernel));
  }
  int ctas_per_sm = 0;
  FULCRUM_CUDA(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&ctas_per_sm, kernel, kThreads, plan.shared_bytes));
  if (ctas_per_sm < 1)
    return failed(FULCRUM_UNSUPPORTED, "a CTA of activation_spreading does not fit on an SM");
  return done();
}

bool has_clusters() { return streaming::can_follow(nullptr) && device().clusters; }

Team team_for(const GraphSize& size) {
  if (size.nodes <= kCtaNodes && size.edges <= kCtaEdges) return Team::cta;
  if (has_clusters() && size.nodes <= kClusterNodes && size.edges <= kClusterEdges) return Team::cluster;
  if (!device().cooperative && size.nodes <= kMostCtaNodes) return Team::cta;
  return Team::grid;
}

/// What a variant fixes beforehand.
struct Choice {
  bool forced = false;
  Team team = Team::grid;
  bool gather = false, own = false;
};

/// Small graphs have all values in shared memory, whatever edges name them.
Naming naming_for(const Choice& choice, Team team, std::int64_t nodes) {
  if (choice.own) return Naming::own;
  const bool whole = team != Team::grid || nodes + kPositionUnit <= kWholeNodes;
  return choice.gather || whole ? Naming::positions : Naming::better;
}

Look look_for(const Plan& plan, bool gather) {
  const std::int64_t positions = plan.graph->positions;
  if (gather) return Look::plain;
  if (plan.graph->own()) return Look::own;
  if (plan.team != Team::grid || positions <= kWholeNodes) return Look::whole;
  if (positions / 8 > kMostBitsBytes) return Look::plain;
  return plan.graph->long_positions > 0 ? Look::hot : Look::bits;
}

template <Choice kChoice>
fulcrum_status make_plan(const fulcrum_kernel*, const fulcrum_args* a, void** made) {
  std::unique_ptr<Plan> plan(new (std::nothrow) Plan);
  if (!plan) return failed(FULCRUM_OUT_OF_MEMORY, "no memory for a plan of activation_spreading");
  const GraphSize size = size_of(a->prepared);
  if (size.nodes > 0) {
    plan->team = kChoice.forced ? kChoice.team : team_for(size);
    plan->ctas = plan->team == Team::cta    ? 1
                 : plan->team == Team::grid ? device().sms
                                            : rows::largest_cluster();
    plan->programmatic = plan->team != Team::grid && streaming::can_follow(a);
    FULCRUM_STATUS(
        device_graph(a->prepared, plan->ctas, naming_for(kChoice, plan->team, size.nodes), &plan->graph));
    plan->look = look_for(*plan, kChoice.gather);
    place(*plan);
    FULCRUM_STATUS(take_memory(*plan));
    FULCRUM_STATUS(prepare_launch(*plan));
  }
  *made = plan.release();
  return done();
}

void drop_plan(void* plan) { delete static_cast<Plan*>(plan); }

Graph graph_of(const DeviceGraph& graph) {
  return Graph{.long_positions = graph.long_positions,
               .positions = graph.positions,
               .first_shared_hub = graph.first_shared_hub,
               .node_of = graph.node_of.as<std::int32_t>(),
               .sources = graph.sources.as<std::int32_t>(),
               .weights = graph.weights.as<float>(),
               .slices = graph.slices.as<Slice>(),
               .segments = graph.segments.as<Segment>(),
               .tiles = graph.tiles.as<Tile>(),
               .hubs = graph.hubs.as<Hub>(),
               .shares = graph.shares.as<Share>(),
               .wanted = graph.wanted.as<std::int32_t>(),
               .wanted_begin = graph.wanted_begin.as<std::int64_t>()};
}

State state_of(const Plan& plan) {
  const std::int64_t positions = plan.graph->positions;
  auto* const values = plan.values.as<float>();
  auto* const bits = plan.bits.as<std::uint32_t>();
  auto* const words = plan.words.as<std::uint32_t>();
  return State{.passed = {values, values + positions},
               .bits = {bits, bits + positions / kLanes},
               .activation = values + 2 * positions,
               .parts = plan.parts.as<float>(),
               .tickets = words + 32,  // the barrier's word has a line of its own
               .word = words};
}

fulcrum_status run(const fulcrum_args* a, void* stream, std::int64_t count) {
  const auto& plan = *static_cast<const Plan*>(a->plan);
  if (!plan.graph) return done();
  const Rule rule{.hops = static_cast<std::int32_t>(a->scalar[0].i),
                  .lambda = static_cast<float>(a->scalar[1].f),
                  .theta = static_cast<float>(a->scalar[2].f),
                  .cap = static_cast<float>(a->scalar[3].f),
                  .include_source = a->scalar[4].i == 0};
  rows::Launch launch{.ctas = plan.ctas, .threads = kThreads, .shared_bytes = plan.shared_bytes};
  if (plan.team == Team::cluster) launch.add(rows::cluster_of(plan.ctas));
  if (plan.team == Team::grid) launch.add(rows::cooperative());
  if (plan.programmatic) launch.add(rows::programmatic());
  const Kernel kernel = kernel_of(plan);
  for (std::int64_t call = 0; call < count; ++call) {
    FULCRUM_CUDA(launch(kernel, stream_of(stream), graph_of(*plan.graph), state_of(plan), rule,
                        a->in<float>(0), a->out<float>(1), plan.places));
  }
  return done();
}

int one_cta_can(const fulcrum_args* a) { return a->dim[0] <= kMostCtaNodes; }
int a_cluster_can(const fulcrum_args* a) {
  return available() && has_clusters() && a->dim[0] <= kMostWholeNodes - kPositionUnit;
}
int a_grid_can(const fulcrum_args*) { return available() && device().cooperative; }

template <Choice kChoice>
constexpr fulcrum_kernel variant(const char* name, int (*supported)(const fulcrum_args*)) {
  return fulcrum_kernel{.variant = name,
                        .level = 2,
                        .isa = streaming::isa,
                        .supports = supported,
                        .plan = make_plan<kChoice>,
                        .drop = drop_plan,
                        .run = run};
}

}  // namespace

std::span<const fulcrum_kernel> activation_spreading() {
  static const fulcrum_kernel kernels[] = {variant<Choice{}>("default", nullptr),
                                           variant<Choice{true, Team::cta}>("cta", one_cta_can),
                                           variant<Choice{true, Team::cluster}>("cluster", a_cluster_can),
                                           variant<Choice{true, Team::grid}>("grid", a_grid_can),
                                           variant<Choice{true, Team::grid, true}>("gather", a_grid_can),
                                           variant<Choice{true, Team::grid, false, true}>("own", a_grid_can)};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
