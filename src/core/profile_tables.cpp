// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables of fulcrum.profile/1: what comes in thousands is kept as numbers. Texts once, stacks as a tree whose nodes
// name the caller before them, samples as columns in nanoseconds. A minute of samples then fits in a few megabytes.
#include "core/profile_tables.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace fulcrum {
namespace {

constexpr double kNanosecond = 1e-9;
/// No stack of a real program is deeper than its thread's stack has words; a file that says so is damaged.
constexpr std::size_t kDeepest = 1 << 17, kMostStackFrames = std::size_t{1} << 26;

// Writing.

class Texts {
 public:
  Texts() { number(""); }
  std::int64_t number(const std::string& text) {
    const auto [at, added] = numbers_.try_emplace(text, static_cast<std::int64_t>(list_.size()));
    if (added) list_.push_back(text);
    return at->second;
  }
  Json take() { return std::move(list_); }

 private:
  std::unordered_map<std::string, std::int64_t> numbers_;
  Json list_ = Json::array();
};

/// Callers first: two stacks that share their outer part share its nodes. Node 0 is the empty stack.
class Tree {
 public:
  std::int64_t add(const std::vector<std::uint32_t>& leaf_first) {
    std::int64_t node = 0;
    for (auto frame = leaf_first.rbegin(); frame != leaf_first.rend(); ++frame) node = child(node, *frame);
    return node;
  }
  Json take() { return Json{{"frame", std::move(frame_)}, {"parent", std::move(parent_)}}; }

 private:
  std::int64_t child(std::int64_t parent, std::uint32_t frame) {
    const std::uint64_t key = static_cast<std::uint64_t>(parent) << 32 | frame;
    const auto [at, added] = nodes_.try_emplace(key, static_cast<std::int64_t>(frame_.size()) + 1);
    if (added) {
      frame_.push_back(frame);
      parent_.push_back(parent);
    }
    return at->second;
  }
  std::unordered_map<std::uint64_t, std::int64_t> nodes_;
  Json frame_ = Json::array(), parent_ = Json::array();
};

std::int64_t nanoseconds(double seconds) {
  constexpr double kMost = 9e18;
  return std::llround(std::clamp(seconds / kNanosecond, -kMost, kMost));
}

Json samples_json(const std::vector<CpuProfile::Sample>& samples) {
  Json thread = Json::array(), stack = thread, time = thread, weight = thread, kind = thread, region = thread;
  for (const CpuProfile::Sample& sample : samples) {
    thread.push_back(sample.thread);
    stack.push_back(sample.stack);
    time.push_back(nanoseconds(sample.seconds));
    weight.push_back(nanoseconds(sample.weight_seconds));
    kind.push_back((sample.blocked ? 1 : 0) + (sample.approximate ? 2 : 0));
    region.push_back(sample.region);
  }
  return Json{{"thread", std::move(thread)},    {"stack", std::move(stack)}, {"time_ns", std::move(time)},
              {"weight_ns", std::move(weight)}, {"kind", std::move(kind)},   {"region", std::move(region)}};
}

// Reading.

class TableReader {
 public:
  TableReader(ReadState& state, const Json& json) : state_(state), json_(json) {}

  void read(CpuProfile& profile) {
    decode(state_, table(json_, "strings", ""), "strings", texts_);
    read_frames(profile);
    read_nodes(profile.frames.size());
    read_stacks(profile);
    read_truncated(profile);
    read_samples(profile);
  }

 private:
  const Json& table(const Json& parent, const char* key, const std::string& before) {
    static const Json empty = Json::array();
    const auto found = parent.is_object() ? parent.find(key) : parent.end();
    if (parent.is_object() && found != parent.end() && found->is_array()) return *found;
    state_.fail(before + key,
                parent.is_object() && found != parent.end() ? "must be an array" : "is missing");
    return empty;
  }

  /// A whole number from 0 to below `end`, or the first error.
  std::uint64_t index(const Json& json, const std::string& path, std::uint64_t end) {
    std::int64_t value = 0;
    decode(state_, json, path, value);
    if (state_.error()) return 0;
    if (value >= 0 && static_cast<std::uint64_t>(value) < end) return static_cast<std::uint64_t>(value);
    state_.fail(path, fmt::format("is {}, but there are {}", value, end));
    return 0;
  }

  /// One column of numbers below `end`.
  std::vector<std::uint32_t> column(const Json& parent, const char* key, const std::string& before,
                                    std::uint64_t end) {
    const Json& list = table(parent, key, before);
    std::vector<std::uint32_t> values;
    values.reserve(list.size());
    for (std::size_t i = 0; i < list.size() && !state_.error(); ++i) {
      values.push_back(
          static_cast<std::uint32_t>(index(list[i], fmt::format("{}{}[{}]", before, key, i), end)));
    }
    return values;
  }
  std::vector<double> times(const Json& parent, const char* key, bool negative) {
    const Json& list = table(parent, key, "samples.");
    std::vector<double> values;
    values.reserve(list.size());
    for (std::size_t i = 0; i < list.size() && !state_.error(); ++i) {
      std::int64_t value = 0;
      decode(state_, list[i], fmt::format("samples.{}[{}]", key, i), value);
      if (value < 0 && !negative) state_.fail(fmt::format("samples.{}[{}]", key, i), "is negative");
      values.push_back(static_cast<double>(value) * kNanosecond);
    }
    return values;
  }

  void read_frames(CpuProfile& profile) {
    const Json& list = table(json_, "frames", "");
    for (std::size_t i = 0; i < list.size() && !state_.error(); ++i) {
      const std::string path = fmt::format("frames[{}]", i);
      if (!list[i].is_array() || list[i].size() != 6) {
        return state_.fail(path, "must be an array of function, module, file, line, address and inlined");
      }
      Frame frame;
      frame.function = text(list[i][0], path + "[0]");
      frame.module = text(list[i][1], path + "[1]");
      frame.file = text(list[i][2], path + "[2]");
      decode(state_, list[i][3], path + "[3]", frame.line);
      decode(state_, list[i][4], path + "[4]", frame.address);
      frame.inlined = index(list[i][5], path + "[5]", 2) == 1;
      profile.frames.push_back(std::move(frame));
    }
  }
  std::string text(const Json& json, const std::string& path) {
    const std::uint64_t number = index(json, path, texts_.size());
    return state_.error() ? std::string() : texts_[number];
  }

  void read_nodes(std::size_t frames) {
    static const Json none = Json::object();
    const auto found = json_.find("nodes");
    const Json& nodes = found == json_.end() ? none : *found;
    node_frame_ = column(nodes, "frame", "nodes.", frames);
    node_parent_ = column(nodes, "parent", "nodes.", node_frame_.size() + 1);
    if (node_frame_.size() != node_parent_.size())
      state_.fail("nodes.parent", "is not as long as nodes.frame");
    depth_.assign(node_frame_.size() + 1, 0);
    for (std::size_t i = 0; i < node_parent_.size() && !state_.error(); ++i) {
      // A parent stands before its children, so the tree has no circle.
      if (node_parent_[i] > i)
        return state_.fail(fmt::format("nodes.parent[{}]", i), "comes after its child");
      depth_[i + 1] = depth_[node_parent_[i]] + 1;
      if (depth_[i + 1] > kDeepest) return state_.fail(fmt::format("nodes.parent[{}]", i), "is too deep");
    }
  }

  void read_stacks(CpuProfile& profile) {
    const std::vector<std::uint32_t> nodes = column(json_, "stacks", "", node_frame_.size() + 1);
    std::size_t total = 0;
    for (std::size_t i = 0; i < nodes.size() && !state_.error(); ++i) {
      total += depth_[nodes[i]];
      if (total > kMostStackFrames) return state_.fail(fmt::format("stacks[{}]", i), "makes too many frames");
      CpuProfile::Stack& stack = profile.stacks.emplace_back();
      stack.frames.reserve(depth_[nodes[i]]);
      for (std::uint32_t node = nodes[i]; node != 0; node = node_parent_[node - 1]) {
        stack.frames.push_back(node_frame_[node - 1]);
      }
    }
  }
  void read_truncated(CpuProfile& profile) {
    const Json& list = table(json_, "truncated", "");
    for (std::size_t i = 0; i < list.size() && !state_.error(); ++i) {
      const std::string path = fmt::format("truncated[{}]", i);
      if (!list[i].is_array() || list[i].size() != 2)
        return state_.fail(path, "must be a stack and a reason");
      const std::uint64_t stack = index(list[i][0], path + "[0]", profile.stacks.size());
      std::string why = text(list[i][1], path + "[1]");
      if (state_.error()) return;
      profile.stacks[stack].truncated = true;
      profile.stacks[stack].why = std::move(why);
    }
  }

  void read_samples(CpuProfile& profile) {
    static const Json none = Json::object();
    const auto found = json_.find("samples");
    const Json& samples = found == json_.end() ? none : *found;
    const auto thread = column(samples, "thread", "samples.", profile.threads.size());
    const auto stack = column(samples, "stack", "samples.", profile.stacks.size());
    const auto time = times(samples, "time_ns", true), weight = times(samples, "weight_ns", false);
    const auto kind = column(samples, "kind", "samples.", 4);
    const auto region = column(samples, "region", "samples.", profile.regions.size() + 1);
    for (const auto& [name, size] : {std::pair{"stack", stack.size()},
                                     {"time_ns", time.size()},
                                     {"weight_ns", weight.size()},
                                     {"kind", kind.size()},
                                     {"region", region.size()}}) {
      if (size != thread.size())
        state_.fail(fmt::format("samples.{}", name), "is not as long as samples.thread");
    }
    if (state_.error()) return;
    profile.samples.reserve(thread.size());
    for (std::size_t i = 0; i < thread.size(); ++i) {
      profile.samples.push_back({.thread = thread[i],
                                 .stack = stack[i],
                                 .seconds = time[i],
                                 .weight_seconds = weight[i],
                                 .blocked = (kind[i] & 1) != 0,
                                 .approximate = (kind[i] & 2) != 0,
                                 .region = region[i]});
    }
  }

  ReadState& state_;
  const Json& json_;
  std::vector<std::string> texts_;
  std::vector<std::uint32_t> node_frame_, node_parent_;
  std::vector<std::size_t> depth_;
};

}  // namespace

void add_profile_tables(const CpuProfile& profile, Json& json) {
  Texts texts;
  Json frames = Json::array(), stacks = frames, truncated = frames;
  for (const Frame& frame : profile.frames) {
    frames.push_back(
        Json::array({texts.number(frame.function), texts.number(frame.module), texts.number(frame.file),
                     frame.line, frame.address, frame.inlined ? 1 : 0}));
  }
  Tree tree;
  for (std::size_t i = 0; i < profile.stacks.size(); ++i) {
    const CpuProfile::Stack& stack = profile.stacks[i];
    stacks.push_back(tree.add(stack.frames));
    if (stack.truncated) truncated.push_back(Json::array({i, texts.number(stack.why)}));
  }
  json["strings"] = texts.take();
  json["frames"] = std::move(frames);
  json["nodes"] = tree.take();
  json["stacks"] = std::move(stacks);
  json["truncated"] = std::move(truncated);
  json["samples"] = samples_json(profile.samples);
}

void read_profile_tables(ReadState& state, const Json& json, CpuProfile& profile) {
  TableReader(state, json).read(profile);
}

}  // namespace fulcrum
