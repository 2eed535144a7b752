// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The offload set as a minimum cut: source side stays on the CPU, sink side goes to the GPU.
#include <fulcrum/model.h>

#include <algorithm>
#include <limits>
#include <queue>

namespace fulcrum::model {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNothing = 1e-18;

/// Dinic's algorithm on seconds.
class Network {
 public:
  explicit Network(std::size_t nodes) : edges_of_(nodes), level_(nodes), next_(nodes) {}

  std::size_t add_node() {
    edges_of_.emplace_back();
    level_.push_back(0);
    next_.push_back(0);
    return edges_of_.size() - 1;
  }
  void connect(std::size_t from, std::size_t to, double capacity) {
    edges_of_[from].push_back(edges_.size());
    edges_.push_back({to, capacity});
    edges_of_[to].push_back(edges_.size());
    edges_.push_back({from, 0});
  }
  /// After it, source_side() tells which nodes the source still reaches.
  void cut(std::size_t source, std::size_t sink) {
    while (search(source) && level_[sink] >= 0) {
      std::fill(next_.begin(), next_.end(), 0);
      while (push(source, sink, kInfinite) > 0) {
      }
    }
  }
  bool source_side(std::size_t node) const { return level_[node] >= 0; }

 private:
  struct Edge {
    std::size_t to;
    double left;
  };
  bool search(std::size_t source) {
    std::fill(level_.begin(), level_.end(), -1);
    std::queue<std::size_t> open;
    open.push(source);
    level_[source] = 0;
    while (!open.empty()) {
      const std::size_t node = open.front();
      open.pop();
      for (const std::size_t e : edges_of_[node]) {
        if (edges_[e].left <= kNothing || level_[edges_[e].to] >= 0) continue;
        level_[edges_[e].to] = level_[node] + 1;
        open.push(edges_[e].to);
      }
    }
    return true;
  }
  double push(std::size_t node, std::size_t sink, double most) {
    if (node == sink) return most;
    for (std::size_t& i = next_[node]; i < edges_of_[node].size(); ++i) {
      const std::size_t e = edges_of_[node][i];
      if (edges_[e].left <= kNothing || level_[edges_[e].to] != level_[node] + 1) continue;
      const double moved = push(edges_[e].to, sink, std::min(most, edges_[e].left));
      if (moved <= 0) continue;
      edges_[e].left -= moved;
      edges_[e ^ 1U].left += moved;
      return moved;
    }
    return 0;
  }

  std::vector<Edge> edges_;
  std::vector<std::vector<std::size_t>> edges_of_;
  std::vector<int> level_;
  std::vector<std::size_t> next_;
};

/// The best set when a byte on the device costs `price` seconds.
OffloadSet cut_at(std::span<const Region> regions, std::span<const DataObject> objects, double price) {
  // Nodes: regions, then source and sink. The host is the source: it never moves.
  const std::size_t source = regions.size(), sink = source + 1;
  Network network(regions.size() + 2);
  const auto node_of = [&](int region) {
    return region == DataObject::kHost ? source : static_cast<std::size_t>(region);
  };
  for (std::size_t i = 0; i < regions.size(); ++i) {
    network.connect(source, i, regions[i].gpu_seconds);  // cut when i goes to the GPU
    network.connect(i, sink, regions[i].cpu_seconds);    // cut when i stays
  }
  for (const DataObject& object : objects) {
    const std::size_t producer = node_of(object.producer);
    // Producer here, any consumer there: to_device, once.
    const std::size_t up = network.add_node();
    network.connect(producer, up, object.to_device_seconds);
    // Producer there, any consumer here: to_host, once.
    const std::size_t down = network.add_node();
    network.connect(down, producer, object.to_host_seconds);
    // Anybody who touches it there: its bytes, once.
    const std::size_t room = network.add_node();
    network.connect(source, room, price * object.bytes);
    network.connect(room, producer, kInfinite);
    for (const int consumer : object.consumers) {
      network.connect(up, node_of(consumer), kInfinite);
      network.connect(node_of(consumer), down, kInfinite);
      network.connect(room, node_of(consumer), kInfinite);
    }
  }
  network.cut(source, sink);
  std::vector<bool> on_gpu(regions.size());
  for (std::size_t i = 0; i < regions.size(); ++i) on_gpu[i] = !network.source_side(i);
  return price_set(regions, objects, std::move(on_gpu));
}

}  // namespace

OffloadSet best_set_by_cut(std::span<const Region> regions, std::span<const DataObject> objects,
                           double memory_bytes) {
  OffloadSet free = cut_at(regions, objects, 0);
  if (memory_bytes <= 0 || free.device_bytes <= memory_bytes) return free;
  // The lowest price of a byte at which the set fits: found by halving, since bytes only fall as the price rises.
  double cpu_seconds = 0;
  for (const Region& region : regions) cpu_seconds += region.cpu_seconds;
  double low = 0, high = cpu_seconds / memory_bytes;
  OffloadSet fits = price_set(regions, objects, std::vector<bool>(regions.size()));
  constexpr int kHalvings = 40;
  for (int i = 0; i < kHalvings; ++i) {
    const double price = 0.5 * (low + high);
    OffloadSet set = cut_at(regions, objects, price);
    if (set.device_bytes > memory_bytes) {
      low = price;
      continue;
    }
    high = price;
    if (set.seconds < fits.seconds) fits = std::move(set);
  }
  fits.memory_bound = true;
  return fits;
}

}  // namespace fulcrum::model
