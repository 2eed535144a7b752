// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// An associative memory: vectors, an index over them, and a graph of what belongs together. A question finds its
// nearest memories by the index, wakes others by spreading activation, and says how sure it is; a comparison with every
// memory tells whether it was right.
// run: --memories 3000 --queries 200
#include <fulcrum/fulcrum.h>
#include <fulcrum/ops/activation_spreading.h>
#include <fulcrum/ops/hnsw_search.h>
#include <fulcrum/region.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "calibration.h"

using namespace fulcrum;

// Stages keep their own frame, so that a profile shows them by name.
#define STAGE [[gnu::noinline]]

namespace memory_recall {
namespace {

struct Options {
  std::int64_t memories = 10'000, dimension = 128, queries = 1000, nearest = 10;
  double seconds = 0;  // go on recalling for so long
  std::string file;    // vectors as raw little-endian floats, one after the other
  std::string backend = "simd";
};

struct Memory {
  std::int64_t count = 0, dimension = 0;
  std::vector<float> vectors;
  std::shared_ptr<const ops::HnswIndex> index;
  std::shared_ptr<const ops::SpreadingGraph> associations;
};

/// What came back for all questions, `nearest` of each.
struct Recalled {
  std::vector<std::int32_t> ids;
  std::vector<float> distances;  // 1 - cosine
  explicit Recalled(std::int64_t count)
      : ids(static_cast<std::size_t>(count)), distances(static_cast<std::size_t>(count)) {}
};

/// How `fulcrum record` calls a stage: an op and its sizes, so that `fulcrum plan -- memory_recall` can price it.
std::string search_name(const char* op, const Memory& memory, const Options& options) {
  return std::string(op) + " Q=" + std::to_string(options.queries) + ",N=" + std::to_string(memory.count) +
         ",D=" + std::to_string(memory.dimension) + ",k=" + std::to_string(options.nearest);
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Memories of 100 topics: near their topic, each a little different.
STAGE std::vector<float> draw_memories(std::int64_t count, std::int64_t dimension, std::uint64_t first) {
  constexpr std::uint64_t kTopics = 100;
  const auto d = static_cast<std::uint64_t>(dimension);
  std::vector<float> rows(static_cast<std::size_t>(count * dimension));
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i) {
    const std::uint64_t topic = ops::random_bits(1, first + i) % kTopics;
    for (std::uint64_t j = 0; j < d; ++j) {
      rows[i * d + j] = ops::random_normal(2, topic * d + j) + ops::random_normal(3, (first + i) * d + j);
    }
  }
  return rows;
}

STAGE Result<std::vector<float>> load_memories(const std::string& file, std::int64_t dimension) {
  FULCRUM_TRY(const std::string bytes, read_file(file));
  const std::size_t row_bytes = static_cast<std::size_t>(dimension) * sizeof(float);
  if (bytes.empty() || bytes.size() % row_bytes != 0) {
    return Error{Code::usage, file + " does not hold whole vectors", "give its --dimension"};
  }
  std::vector<float> rows(bytes.size() / sizeof(float));
  std::memcpy(rows.data(), bytes.data(), bytes.size());
  return rows;
}

/// Five associations each: three with the next memories that are alike, two with any.
STAGE Result<std::shared_ptr<const ops::SpreadingGraph>> build_associations(const Memory& memory) {
  constexpr std::int64_t kEach = 5, kAlike = 3;
  std::vector<std::int32_t> begin(static_cast<std::size_t>(memory.count) + 1), targets;
  std::vector<float> weights;
  for (std::int64_t i = 0; i < memory.count; ++i) {
    const std::int32_t* neighbours = memory.index->links + i * ops::kHnswLinks;
    for (std::int64_t e = 0; e < kEach; ++e) {
      const auto counter = static_cast<std::uint64_t>(i * kEach + e);
      const auto any =
          static_cast<std::int32_t>(ops::random_bits(4, counter) % static_cast<std::uint64_t>(memory.count));
      targets.push_back(e < kAlike ? neighbours[e] : any);
      weights.push_back(ops::random_uniform(5, counter, 0.1f, 1.0f));
    }
    begin[static_cast<std::size_t>(i) + 1] = static_cast<std::int32_t>(targets.size());
  }
  return ops::make_graph(memory.count, begin, targets, weights, ops::EdgeLists::outgoing);
}

STAGE Result<std::shared_ptr<const ops::HnswIndex>> build_index(const Memory& memory) {
  return ops::make_hnsw_index(memory.vectors, memory.dimension, ops::HnswMetric::cosine);
}

Result<Memory> build_memory(const Options& options) {
  Memory memory{.dimension = options.dimension};
  if (options.file.empty()) {
    memory.vectors = draw_memories(options.memories, options.dimension, 0);
  } else {
    FULCRUM_TRY(memory.vectors, load_memories(options.file, options.dimension));
  }
  memory.count = static_cast<std::int64_t>(memory.vectors.size()) / memory.dimension;
  FULCRUM_TRY(memory.index, build_index(memory));
  FULCRUM_TRY(memory.associations, build_associations(memory));
  return memory;
}

/// The nearest memories of every question, by the index (`variant` default or int8) or by looking at all (exact).
STAGE Status search_index(const Memory& memory, const std::string& backend, const char* variant,
                          std::vector<float>& questions, Recalled& found) {
  const std::int64_t asked = static_cast<std::int64_t>(questions.size()) / memory.dimension;
  Args args{};
  args.ptr[0] = questions.data();
  args.ptr[1] = found.ids.data();
  args.ptr[2] = found.distances.data();
  args.dim[0] = asked;
  args.dim[1] = memory.count;
  args.dim[2] = memory.dimension;
  args.dim[3] = static_cast<std::int64_t>(found.ids.size()) / asked;
  args.scalar[0].i = 64;  // ef
  args.scalar[1].f = 0.95;
  args.scalar[2].i = static_cast<std::int64_t>(ops::HnswMetric::cosine);
  args.prepared = memory.index.get();
  FULCRUM_TRY(const backends::Kernel kernel, backends::kernel("hnsw_search", backend, variant));
  FULCRUM_TRY(backends::Call call, backends::Call::make(kernel, args));
  return to_status(call.run());
}

/// Spreading activation from the memories a question found, ready to be called for one question after the other.
class Spreading {
 public:
  static constexpr std::int64_t kHops = 3;

  static Result<Spreading> make(const Memory& memory, const std::string& backend) {
    FULCRUM_TRY(const backends::Kernel kernel, backends::kernel("activation_spreading", backend));
    Spreading spreading(memory);
    FULCRUM_TRY(backends::Call call, backends::Call::make(kernel, spreading.args_));
    spreading.call_.emplace(std::move(call));
    return spreading;
  }

  /// Activation of every memory after the ones found were set to their similarity.
  STAGE Result<std::span<const float>> spread_activation(std::span<const std::int32_t> ids,
                                                         std::span<const float> distances) {
    FULCRUM_REGION(name_.c_str(), memory_.associations->edges);
    std::fill(source_.begin(), source_.end(), 0.0f);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      source_[static_cast<std::size_t>(ids[i])] = std::max(0.0f, 1 - distances[i]);
    }
    FULCRUM_CHECK(to_status(call_->run()));
    return std::span<const float>(activation_);
  }

  /// The same by a plain loop over all edges, to check against.
  std::vector<float> spread_plainly() const {
    const ops::SpreadingGraph& graph = *memory_.associations;
    std::vector<float> activation = source_, passed = source_, next(source_.size());
    for (std::int64_t hop = 0; hop < kHops; ++hop) {
      for (std::size_t i = 0; i < next.size(); ++i) {
        float sum = 0;
        for (auto e = graph.row_begin[i]; e < graph.row_begin[i + 1]; ++e) {
          sum += graph.weight[e] * passed[static_cast<std::size_t>(graph.source[e])];
        }
        const float c = 0.4965853f * sum;
        next[i] = std::min(c < 0.01f ? 0.0f : c, 1 - activation[i]);
        activation[i] += next[i];
      }
      passed = next;
    }
    return activation;
  }

 private:
  explicit Spreading(const Memory& memory)
      : memory_(memory),
        source_(static_cast<std::size_t>(memory.count)),
        activation_(static_cast<std::size_t>(memory.count)),
        name_("activation_spreading n=" + std::to_string(memory.associations->nodes) +
              ",nnz=" + std::to_string(memory.associations->edges) + ",hops=" + std::to_string(kHops)) {
    args_.ptr[0] = source_.data();
    args_.ptr[1] = activation_.data();
    args_.dim[0] = memory.associations->nodes;
    args_.dim[1] = memory.associations->edges;
    args_.scalar[0].i = kHops;
    args_.scalar[1].f = 0.4965853;  // lambda
    args_.scalar[2].f = 0.01;       // theta
    args_.scalar[3].f = 1;          // cap
    args_.prepared = memory.associations.get();
  }

  const Memory& memory_;
  std::vector<float> source_, activation_;  // moved, they stay where they are
  std::string name_;
  Args args_{};
  std::optional<backends::Call> call_;
};

/// The most active memories.
STAGE std::vector<std::int32_t> rank_recalled(std::span<const float> activation, std::size_t count) {
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < activation.size(); ++i) {
    if (activation[i] > 0) ids.push_back(static_cast<std::int32_t>(i));
  }
  const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(std::min(count, ids.size()));
  std::partial_sort(ids.begin(), middle, ids.end(), [&](std::int32_t a, std::int32_t b) {
    const float x = activation[static_cast<std::size_t>(a)], y = activation[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  });
  ids.erase(middle, ids.end());
  return ids;
}

STAGE double similarity(const Memory& memory, const float* question, std::int32_t id) {
  double dot = 0, a = 0, b = 0;
  const float* m = memory.vectors.data() + id * memory.dimension;
  for (std::int64_t i = 0; i < memory.dimension; ++i) {
    dot += static_cast<double>(question[i]) * m[i];
    a += static_cast<double>(question[i]) * question[i];
    b += static_cast<double>(m[i]) * m[i];
  }
  return a > 0 && b > 0 ? dot / std::sqrt(a * b) : 0;
}

/// What one pass over all questions did.
struct Pass {
  double search_seconds = 0, spread_seconds = 0;
  double awake = 0;             // memories with activation, a question
  double largest_error = 0;     // of spreading against the plain loop
  Calibration said, corrected;  // before and after correction
};

/// How sure of each recalled memory, and whether it is one of the true nearest.
STAGE void note_confidence(const Memory& memory, const float* question,
                           std::span<const std::int32_t> recalled, std::span<const std::int32_t> right,
                           Pass& pass) {
  for (const std::int32_t id : recalled) {
    const double confidence = std::max(0.0, similarity(memory, question, id));
    const bool is_right = std::find(right.begin(), right.end(), id) != right.end();
    pass.corrected.add(pass.said.corrected(confidence), is_right);
    pass.said.add(confidence, is_right);
  }
}

/// Every question once: search, spread, rank, and note how sure and how right each recalled memory was.
Status recall(const Memory& memory, const Options& options, std::vector<float>& questions,
              const Recalled& truth, Recalled& found, Spreading& spreading, Pass& pass) {
  const double start = seconds_now();
  {
    const std::string name = search_name("hnsw_search", memory, options) + ",ef=64";
    FULCRUM_REGION(name.c_str(), options.queries);
    FULCRUM_CHECK(search_index(memory, options.backend, "default", questions, found));
  }
  pass.search_seconds = seconds_now() - start;
  const auto k = static_cast<std::size_t>(options.nearest);
  for (std::size_t q = 0; q < found.ids.size() / k; ++q) {
    const double begin = seconds_now();
    FULCRUM_TRY(const std::span<const float> activation,
                spreading.spread_activation(std::span(found.ids).subspan(q * k, k),
                                            std::span(found.distances).subspan(q * k, k)));
    pass.spread_seconds += seconds_now() - begin;
    pass.awake += static_cast<double>(
        std::count_if(activation.begin(), activation.end(), [](float a) { return a > 0; }));
    if (q == 0) {
      const std::vector<float> plain = spreading.spread_plainly();
      for (std::size_t i = 0; i < plain.size(); ++i) {
        pass.largest_error = std::max<double>(pass.largest_error, std::abs(plain[i] - activation[i]));
      }
    }
    note_confidence(memory, questions.data() + q * static_cast<std::size_t>(memory.dimension),
                    rank_recalled(activation, 2 * k), std::span(truth.ids).subspan(q * k, k), pass);
  }
  return {};
}

/// Share of the true nearest that the index found.
double recall_share(const Recalled& found, const Recalled& truth, std::size_t k) {
  std::int64_t hits = 0;
  for (std::size_t q = 0; q < found.ids.size() / k; ++q) {
    const auto right = std::span(truth.ids).subspan(q * k, k);
    for (const std::int32_t id : std::span(found.ids).subspan(q * k, k)) {
      hits += std::find(right.begin(), right.end(), id) != right.end();
    }
  }
  return static_cast<double>(hits) / static_cast<double>(found.ids.size());
}

void print_confidence(const char* name, const Calibration& c) {
  std::printf("  %-11s ECE %4.1f %%, MCE %4.1f %%, Brier %.3f", name, 100 * c.expected_error(),
              100 * c.largest_error(), c.brier());
  if (const auto rank = c.spearman()) std::printf(", rank correlation %.2f", *rank);
  std::printf("\n");
}

Status run(const Options& options) {
  double start = seconds_now();
  FULCRUM_TRY(const Memory memory, build_memory(options));
  std::printf("%s memories of %s numbers, %s associations, built in %s\n",
              human_count(static_cast<double>(memory.count)).c_str(),
              human_count(static_cast<double>(memory.dimension)).c_str(),
              human_count(static_cast<double>(memory.associations->edges)).c_str(),
              human_seconds(seconds_now() - start).c_str());
  const auto queries = static_cast<double>(options.queries);
  std::vector<float> questions = draw_memories(options.queries, memory.dimension, std::uint64_t{1} << 32);
  Recalled truth(options.queries * options.nearest), found(options.queries * options.nearest);
  start = seconds_now();
  const std::string exact = search_name("cosine_topk", memory, options);
  {
    FULCRUM_REGION(exact.c_str(), options.queries);
    FULCRUM_CHECK(search_index(memory, options.backend, "exact", questions, truth));
  }
  const double exact_seconds = seconds_now() - start;

  FULCRUM_TRY(Spreading spreading, Spreading::make(memory, options.backend));
  Pass pass;
  int passes = 0;
  start = seconds_now();
  do {
    pass = Pass{};
    FULCRUM_CHECK(recall(memory, options, questions, truth, found, spreading, pass));
    ++passes;
  } while (seconds_now() - start < options.seconds);

  const double share = recall_share(found, truth, static_cast<std::size_t>(options.nearest));
  std::printf("%d x %s questions, the last time:\n", passes, human_count(queries).c_str());
  std::printf("  search      %s a question, %.1f %% of the %lld nearest (looking at all: %s)\n",
              human_seconds(pass.search_seconds / queries).c_str(), 100 * share,
              static_cast<long long>(options.nearest), human_seconds(exact_seconds / queries).c_str());
  std::printf("  spreading   %s a question, wakes %.0f memories in %lld hops, within %.1g of a plain loop\n",
              human_seconds(pass.spread_seconds / queries).c_str(), pass.awake / queries,
              static_cast<long long>(Spreading::kHops), pass.largest_error);
  print_confidence("confidence", pass.said);
  print_confidence("corrected", pass.corrected);
  if (share < 0.9)
    return Error{Code::wrong_result, "the index missed more than a tenth of the nearest", "raise ef"};
  if (pass.largest_error > 1e-5)
    return Error{Code::wrong_result, "spreading differs from the plain loop", ""};
  return {};
}

Result<Options> parse(int count, char** arguments) {
  Options options;
  const std::pair<std::string_view, std::int64_t*> numbers[] = {{"--memories", &options.memories},
                                                                {"--dimension", &options.dimension},
                                                                {"--queries", &options.queries}};
  for (int i = 1; i < count; i += 2) {
    const std::string_view name = arguments[i];
    const char* value = i + 1 < count ? arguments[i + 1] : "";
    const auto* number =
        std::find_if(std::begin(numbers), std::end(numbers), [&](const auto& n) { return n.first == name; });
    if (number != std::end(numbers)) {
      *number->second = std::atoll(value);
    } else if (name == "--seconds") {
      options.seconds = std::atof(value);
    } else if (name == "--file") {
      options.file = value;
    } else if (name == "--backend") {
      options.backend = value;
    } else {
      return Error{
          Code::usage, "unknown option " + std::string(name),
          "options: --memories N --dimension N --queries N --seconds S --file VECTORS --backend NAME"};
    }
  }
  if (options.memories < 100 || options.dimension < 1 || options.queries < 1) {
    return Error{Code::usage, "too little to recall",
                 "use at least 100 memories, 1 number each and 1 question"};
  }
  return options;
}

}  // namespace
}  // namespace memory_recall

int main(int count, char** arguments) {
  const auto options = memory_recall::parse(count, arguments);
  const Status status = options.ok() ? memory_recall::run(*options) : Status(options.error());
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n%s\n", status.error().message.c_str(), status.error().hint.c_str());
  return exit_code(status.error().code);
}
