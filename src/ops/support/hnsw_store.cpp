// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Indexes over the drawn sets. Large ones are saved by hnswlib in the data folder, with a JSON file beside each that
// holds the hash of the index and the recall table; a file that does not fit its hash is made again.
#include "ops/support/hnsw_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "ops/support/memo.h"

namespace fulcrum::ops {
namespace {

constexpr std::int64_t kSavedBytes = std::int64_t{4} << 20;  // smaller indexes are built faster than found
constexpr std::int64_t kIndexMemoBytes = std::int64_t{1} << 30;
constexpr std::int64_t kTableQueries = 1000;
constexpr std::string_view kSchema = "fulcrum.hnsw/1";

struct Key {
  VectorSet set;
  std::int64_t count, dimension;
  HnswMetric metric;
  bool recall;
  bool operator==(const Key&) const = default;

  bool is_saved() const { return count * dimension * 4 >= kSavedBytes; }
  std::string name() const {
    constexpr std::string_view kSets[] = {"clustered", "gaussian"};
    constexpr std::string_view kMetrics[] = {"l2sq", "ip", "cosine"};
    return fmt::format("hnsw-{}-{}-N{}-D{}", kSets[static_cast<int>(set)], kMetrics[static_cast<int>(metric)],
                       count, dimension);
  }
};

using Index = std::shared_ptr<const HnswIndex>;

Result<Index> build(const Key& key, const std::filesystem::path& file) {
  std::vector<float> rows(static_cast<std::size_t>(key.count * key.dimension));
  draw_vectors(key.set, key.dimension, 0, rows);
  FULCRUM_TRY(HnswLibrary library, build_library(rows, key.dimension, key.metric));
  if (!file.empty()) {
    // Another process may be at it too: each writes its own and renames.
    std::filesystem::path own = file;
    own += fmt::format(".{}", ::getpid());
    FULCRUM_CHECK(library.save(own));
    std::error_code code;
    std::filesystem::rename(own, file, code);
    if (code)
      return Error{Code::environment, fmt::format("{}: {}", file.string(), code.message()),
                   "check free space"};
  }
  return index_from(std::move(library), key.dimension, key.metric, file.string());
}

Json document(const HnswIndex& index) {
  Json lines = Json::array();
  for (const HnswRecall& line : index.recall) {
    lines.push_back(Json{{"ef", line.ef},
                         {"recall", line.recall},
                         {"distances", line.distances},
                         {"expanded", line.expanded},
                         {"seconds", line.seconds}});
  }
  return Json{{"schema", kSchema},
              {"hash", fmt::format("{:016x}", index.hash)},
              {"recall", lines},
              {"exact_seconds", index.exact_seconds}};
}

Result<RecallTable> table_of(const Json& json, std::string_view origin) {
  const auto number = [&](const Json& line, const char* name) {
    const auto field = line.find(name);
    return field != line.end() && field->is_number() ? field->get<double>() : -1.0;
  };
  RecallTable table{.lines = {}, .exact_seconds = number(json, "exact_seconds")};
  const auto lines = json.find("recall");
  if (lines == json.end() || !lines->is_array()) return table;
  for (const Json& line : *lines) {
    table.lines.push_back(HnswRecall{.ef = static_cast<std::int64_t>(number(line, "ef")),
                                     .recall = number(line, "recall"),
                                     .distances = number(line, "distances"),
                                     .expanded = number(line, "expanded"),
                                     .seconds = number(line, "seconds")});
    if (table.lines.back().ef < 1 || table.lines.back().recall < 0) {
      return Error{Code::corrupt, fmt::format("{} has a line without numbers", origin), "delete it"};
    }
  }
  return table;
}

/// The saved index and its table, when both are there and belong together.
Result<Index> load(const Key& key, const std::filesystem::path& file, const std::filesystem::path& beside) {
  FULCRUM_TRY(const std::string text, read_file(beside));
  FULCRUM_TRY(const Json json, json_parse(text, beside.string()));
  FULCRUM_CHECK(json_expect_schema(json, "hnsw", beside.string()));
  FULCRUM_TRY(HnswLibrary library, HnswLibrary::load(file, key.dimension, key.metric));
  FULCRUM_TRY(RecallTable table, table_of(json, beside.string()));
  Index index = index_from(std::move(library), key.dimension, key.metric, file.string());
  if (index->count != key.count || json.value("hash", "") != fmt::format("{:016x}", index->hash)) {
    return Error{Code::corrupt, fmt::format("{} is not the index its description is of", file.string()),
                 "delete it"};
  }
  return table.lines.empty() ? index : index_with(*index, std::move(table));
}

Result<Index> measured(const Key& key, const Index& index) {
  std::vector<float> queries(static_cast<std::size_t>(kTableQueries * key.dimension));
  draw_vectors(key.set, key.dimension, kFirstQuery, queries);
  FULCRUM_TRY(RecallTable table, measure_recall(*index, queries));
  return index_with(*index, std::move(table));
}

Result<Index> make(const Key& key) {
  const auto folder = index_folder();
  if (!key.is_saved() || !folder.ok()) {
    FULCRUM_TRY(Index index, build(key, {}));
    if (!key.recall) return index;
    return measured(key, index);
  }
  const std::filesystem::path file = *folder / (key.name() + ".hnsw"),
                              beside = *folder / (key.name() + ".json");
  auto loaded = load(key, file, beside);
  bool changed = !loaded.ok();
  if (!loaded.ok()) loaded = build(key, file);
  if (!loaded.ok()) return std::move(loaded).take_error();
  Index index = *loaded;
  if (key.recall && index->recall.empty()) {
    FULCRUM_TRY(index, measured(key, index));
    changed = true;
  }
  if (changed) {
    if (const Status written = write_file(beside, json_text(document(*index), 2)); !written.ok()) {
      log(LogLevel::warning, written.error().message);
    }
  }
  return index;
}

}  // namespace

Result<std::filesystem::path> index_folder() {
  FULCRUM_TRY(std::filesystem::path folder, data_folder());
  folder /= "indexes";
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) {
    return Error{Code::environment, fmt::format("{}: {}", folder.string(), code.message()),
                 "set FULCRUM_DATA to a folder that can be written"};
  }
  return folder;
}

Result<Index> drawn_index(VectorSet set, std::int64_t count, std::int64_t dimension, HnswMetric metric,
                          bool recall) {
  static Memo<Key, HnswIndex> memo(kIndexMemoBytes);
  const Key key{set, count, dimension, metric, recall};
  return memo.get(
      key, [&] { return make(key); },
      [](const HnswIndex& index) { return index.count * (5 * index.dimension + 4 * kHnswLinks) + 4096; });
}

}  // namespace fulcrum::ops
