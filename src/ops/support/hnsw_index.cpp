// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The index on flat arrays: vectors on cache lines, an int8 copy, lists of neighbours side by side.
#include "ops/support/hnsw_index.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <new>

#include "ops/support/hnsw_build.h"
#include "ops/support/hnsw_store.h"

namespace fulcrum::ops {
namespace {

constexpr std::size_t kLine = 64;

struct FreeLines {
  void operator()(void* memory) const { ::operator delete (memory, std::align_val_t{kLine}); }
};

/// An array on whole cache lines, zero at first.
template <class T>
class Lines {
 public:
  Lines() = default;
  explicit Lines(std::size_t count) {
    const std::size_t bytes = (count * sizeof(T) + kLine - 1) / kLine * kLine + kLine;
    memory_.reset(static_cast<T*>(::operator new (bytes, std::align_val_t{kLine})));
    std::memset(static_cast<void*>(memory_.get()), 0, bytes);
  }
  T* data() const { return memory_.get(); }

 private:
  std::unique_ptr<T, FreeLines> memory_;
};

template <class T>
Lines<T> copy_of(const std::vector<T>& values) {
  Lines<T> lines(values.size());
  std::copy(values.begin(), values.end(), lines.data());
  return lines;
}

constexpr std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

/// The arrays an index points to, shared by the same index with and without a table.
struct Storage {
  Lines<float> vectors;
  Lines<std::int8_t> codes;
  Lines<std::int32_t> links, upper_begin, upper_links;
  std::mutex mutex;
  std::optional<HnswLibrary> unsaved;  // of an index that is in no file yet
  std::string file;
};

struct OwnedIndex : HnswIndex {
  std::shared_ptr<Storage> storage = std::make_shared<Storage>();
  std::vector<HnswRecall> table;

  OwnedIndex() = default;
  OwnedIndex(const OwnedIndex&) = default;
  OwnedIndex& operator=(const OwnedIndex&) = delete;
  ~OwnedIndex() { tell_ended(static_cast<const HnswIndex*>(this)); }
};

/// Writes the index where nobody looks for it by name, when a kernel wants a file of one that has none.
const char* file_of(const HnswIndex& index) {
  Storage& storage = *static_cast<const OwnedIndex&>(index).storage;
  const std::lock_guard lock(storage.mutex);
  if (storage.file.empty() && storage.unsaved) {
    const auto folder = index_folder();
    if (!folder.ok()) return nullptr;
    const auto path = *folder / fmt::format("{:016x}-{}.hnsw", index.hash, ::getpid());
    if (const Status saved = storage.unsaved->save(path); !saved.ok()) {
      log(LogLevel::warning, saved.error().message);
      return nullptr;
    }
    storage.file = path.string();
  }
  return storage.file.empty() ? nullptr : storage.file.c_str();
}

void set_vectors(OwnedIndex& index, const std::vector<float>& rows) {
  Storage& storage = *index.storage;
  const std::int64_t d = index.dimension;
  index.stride = round_up(d, 16);
  index.code_stride = round_up(d, static_cast<std::int64_t>(kLine));
  storage.vectors = Lines<float>(static_cast<std::size_t>(index.count * index.stride));
  storage.codes = Lines<std::int8_t>(static_cast<std::size_t>(index.count * index.code_stride));
  float largest = 0;
  for (const float value : rows) largest = std::max(largest, std::abs(value));
  index.code_scale = largest > 0 ? largest / 127 : 1;
  for (std::int64_t i = 0; i < index.count; ++i) {
    const float* row = rows.data() + i * d;
    std::copy_n(row, d, storage.vectors.data() + i * index.stride);
    for (std::int64_t j = 0; j < d; ++j) {
      const float code = std::nearbyint(row[j] / index.code_scale);
      storage.codes.data()[i * index.code_stride + j] =
          static_cast<std::int8_t>(std::clamp(code, -127.0f, 127.0f));
    }
  }
  index.vectors = storage.vectors.data();
  index.codes = storage.codes.data();
}

/// 64-bit hash of what the graph is: its lists and its vectors.
std::uint64_t hash_of(const HnswGraph& graph, const std::vector<float>& rows) {
  std::uint64_t hash = fnv1a(std::as_bytes(std::span(graph.links)));
  hash = fnv1a(std::as_bytes(std::span(graph.upper_begin)), hash);
  hash = fnv1a(std::as_bytes(std::span(graph.upper_links)), hash);
  hash = fnv1a(std::as_bytes(std::span(&graph.entry, 1)), hash);
  return fnv1a(std::as_bytes(std::span(rows)), hash);
}

Status check_rows(std::span<const float> rows, std::int64_t dimension) {
  if (dimension < 1 || rows.empty() || rows.size() % static_cast<std::size_t>(dimension) != 0 ||
      rows.size() / static_cast<std::size_t>(dimension) >= (std::size_t{1} << 31)) {
    return Error{Code::invalid_shape,
                 fmt::format("an index over {} floats of dimension {}", rows.size(), dimension),
                 "give at least one and fewer than 2^31 whole rows"};
  }
  const auto wrong =
      std::find_if(rows.begin(), rows.end(), [](float value) { return !std::isfinite(value); });
  if (wrong == rows.end()) return {};
  return Error{Code::invalid_argument,
               fmt::format("value {} of an index is not finite", wrong - rows.begin()),
               "an index may hold neither NaN nor Inf"};
}

/// Rows of length 1; rows of zeros stay.
std::vector<float> normalized(std::span<const float> rows, std::int64_t dimension) {
  std::vector<float> result(rows.begin(), rows.end());
  const auto d = static_cast<std::size_t>(dimension);
  for (std::size_t first = 0; first < result.size(); first += d) {
    double squared = 0;
    for (std::size_t i = first; i < first + d; ++i) squared += static_cast<double>(result[i]) * result[i];
    for (std::size_t i = first; i < first + d && squared > 0; ++i) {
      result[i] = static_cast<float>(result[i] / std::sqrt(squared));
    }
  }
  return result;
}

}  // namespace

std::shared_ptr<const HnswIndex> index_from(HnswLibrary library, std::int64_t dimension, HnswMetric metric,
                                            const std::string& file) {
  auto index = std::make_shared<OwnedIndex>();
  index->id = unique_number();
  index->count = library.count();
  index->dimension = dimension;
  index->metric = metric;
  const std::vector<float> rows = library.rows();
  const HnswGraph graph = library.graph();
  set_vectors(*index, rows);
  Storage& storage = *index->storage;
  storage.links = copy_of(graph.links);
  storage.upper_begin = copy_of(graph.upper_begin);
  storage.upper_links = copy_of(graph.upper_links);
  index->links = storage.links.data();
  index->upper_begin = storage.upper_begin.data();
  index->upper_links = storage.upper_links.data();
  index->upper_lists = static_cast<std::int64_t>(graph.upper_links.size()) / kHnswUpperLinks;
  index->entry = graph.entry;
  index->top_layer = graph.top_layer;
  index->hash = hash_of(graph, rows);
  index->file = file_of;
  storage.file = file;
  if (file.empty()) storage.unsaved = std::move(library);
  return index;
}

std::shared_ptr<const HnswIndex> index_with(const HnswIndex& plain, RecallTable table) {
  auto index = std::make_shared<OwnedIndex>(static_cast<const OwnedIndex&>(plain));
  index->id = unique_number();
  index->table = std::move(table.lines);
  index->recall = index->table;
  index->exact_seconds = table.exact_seconds;
  return index;
}

Result<HnswLibrary> build_library(std::span<const float> rows, std::int64_t dimension, HnswMetric metric) {
  FULCRUM_CHECK(check_rows(rows, dimension));
  if (metric != HnswMetric::cosine) return HnswLibrary::build(rows, dimension, metric);
  return HnswLibrary::build(normalized(rows, dimension), dimension, metric);
}

Result<std::shared_ptr<const HnswIndex>> make_hnsw_index(std::span<const float> rows, std::int64_t dimension,
                                                         HnswMetric metric) {
  FULCRUM_TRY(HnswLibrary library, build_library(rows, dimension, metric));
  return index_from(std::move(library), dimension, metric, {});
}

Result<std::shared_ptr<const HnswIndex>> load_hnsw_index(const std::filesystem::path& file,
                                                         std::int64_t dimension, HnswMetric metric) {
  FULCRUM_TRY(HnswLibrary library, HnswLibrary::load(file, dimension, metric));
  FULCRUM_CHECK(check_rows(library.rows(), dimension));
  return index_from(std::move(library), dimension, metric, file.string());
}

Result<std::shared_ptr<const HnswIndex>> with_recall(std::shared_ptr<const HnswIndex> index) {
  if (!index->recall.empty()) return index;
  FULCRUM_TRY(RecallTable table, measure_recall(*index, {}));
  return index_with(*index, std::move(table));
}

QueryDistance::QueryDistance(const HnswIndex& index, const float* query)
    : index_(index),
      query_(static_cast<std::size_t>(index.stride), 0.0f),
      product_(index.metric == HnswMetric::l2sq ? squared_distance() : inner_product()) {
  std::copy_n(query, index.dimension, query_.begin());
  if (index.metric == HnswMetric::cosine) {
    const std::vector<float> unit =
        normalized(std::span(query, static_cast<std::size_t>(index.dimension)), index.dimension);
    std::copy(unit.begin(), unit.end(), query_.begin());
  }
}

float QueryDistance::operator()(std::int32_t id) const {
  const float value = product_(query_.data(), index_.vectors + id * index_.stride, index_.stride);
  if (index_.metric == HnswMetric::l2sq) return value;
  return index_.metric == HnswMetric::ip ? -value : 1 - value;
}

}  // namespace fulcrum::ops
