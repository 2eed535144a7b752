// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Stacks as a tree for a flame graph.
#include <fulcrum/record/hot.h>

#include <algorithm>

namespace fulcrum::record {
namespace {

constexpr std::uint32_t kNoFrame = 0xFFFFFFFF;

struct Node {
  std::uint32_t frame = kNoFrame;
  std::int32_t parent = -1;
  double self = 0, total = 0;
  bool waiting = false;
};

class Tree {
 public:
  explicit Tree(const CpuProfile& profile) : profile_(profile) {
    // Frames of one function are one box, whatever line of it was hit.
    std::map<std::tuple<std::string_view, std::string_view, bool>, std::uint32_t> known;
    for (std::uint32_t i = 0; i < profile.frames.size(); ++i) {
      const Frame& frame = profile.frames[i];
      same_.push_back(known.try_emplace({frame.function, frame.module, frame.inlined}, i).first->second);
    }
  }

  void add(const CpuProfile::Sample& sample, double seconds) {
    std::int32_t node = -1;
    const auto& frames = profile_.stacks[sample.stack].frames;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      node = child(node, same_[*frame], false);
    if (sample.blocked || frames.empty()) node = child(node, kNoFrame, sample.blocked);
    nodes_[static_cast<std::size_t>(node)].self += seconds;
  }

  std::vector<FlameNode> take(double least) {
    double whole = 0;
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      Node& node = nodes_[i];
      node.total += node.self;
      if (node.parent >= 0) {
        nodes_[static_cast<std::size_t>(node.parent)].total += node.total;
      } else {
        whole += node.total;
      }
    }
    std::vector<FlameNode> out;
    std::vector<std::int32_t> place(nodes_.size(), -1);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      const std::int32_t parent = node.parent < 0 ? -1 : place[static_cast<std::size_t>(node.parent)];
      const bool shown = node.total >= least * whole && node.total > 0;
      if (!shown && node.parent >= 0) {
        // What is too small to draw stays in its caller's box.
        place[i] = parent;
        if (parent >= 0) out[static_cast<std::size_t>(parent)].seconds += node.self;
        continue;
      }
      if (!shown) continue;
      place[i] = static_cast<std::int32_t>(out.size());
      FlameNode& box = out.emplace_back();
      name(node, box);
      box.parent = parent;
      box.seconds = node.self;
    }
    return out;
  }

 private:
  void name(const Node& node, FlameNode& box) const {
    box.waiting = node.waiting;
    if (node.frame == kNoFrame) {
      box.name = node.waiting ? "[waiting]" : "[unknown]";
      return;
    }
    const Frame& frame = profile_.frames[node.frame];
    box.name = frame.function;
    box.module = frame.module;
    box.inlined = frame.inlined;
  }
  std::int32_t child(std::int32_t parent, std::uint32_t frame, bool waiting) {
    const auto [at, added] =
        numbers_.try_emplace({parent, frame, waiting}, static_cast<std::int32_t>(nodes_.size()));
    if (added) nodes_.push_back({.frame = frame, .parent = parent, .waiting = waiting});
    return at->second;
  }

  const CpuProfile& profile_;
  std::vector<std::uint32_t> same_;
  std::vector<Node> nodes_;
  std::map<std::tuple<std::int32_t, std::uint32_t, bool>, std::int32_t> numbers_;
};

}  // namespace

std::vector<FlameNode> flame(const CpuProfile& profile, double least) {
  Tree tree(profile);
  const std::vector<double> path = path_seconds(profile);
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const CpuProfile::Sample& sample = profile.samples[i];
    const double seconds = !path.empty() ? path[i] : sample.blocked ? 0 : sample.weight_seconds;
    if (seconds > 0) tree.add(sample, seconds);
  }
  return tree.take(least);
}

}  // namespace fulcrum::record
