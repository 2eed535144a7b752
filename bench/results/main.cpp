// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes docs/results.md, docs/predictions.md, docs/regret.md, the table of README and the times shipped in
// share/measured, or with --check says whether they are what the result files give.
//   results_page SOURCE_DIR [--check]
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "page.h"

namespace {

using namespace fulcrum;

/// README with a fresh table between its two marks; as it is when it has none.
std::string with_summary(const std::string& readme, const std::string& table) {
  constexpr std::string_view kBegin = "<!-- results -->\n", kEnd = "<!-- /results -->";
  const std::size_t begin = readme.find(kBegin), end = readme.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return readme;
  return readme.substr(0, begin + kBegin.size()) + table + readme.substr(end);
}

Result<int> run(const std::filesystem::path& root, bool check) {
  FULCRUM_TRY(const auto folders, results::read_folders(root / "results"));
  FULCRUM_TRY(const std::string readme, read_file(root / "README.md"));
  std::vector<std::pair<std::filesystem::path, std::string>> files = {
      {root / "docs" / "results.md", results::page(folders, results::present_source_hash)},
      {root / "README.md", with_summary(readme, results::summary(folders, results::present_source_hash))},
      {root / "docs" / "regret.md", results::regrets(folders)}};
  FULCRUM_TRY(const std::string predictions, results::predictions(folders, root));
  files.emplace_back(root / "docs" / "predictions.md", predictions);
  for (const results::Folder& folder : folders) {
    if (!std::filesystem::exists(root / "share" / "machines" / (folder.name + ".json"))) continue;
    files.emplace_back(root / "share" / "measured" / (folder.name + ".json"), results::measured(folder));
  }
  for (const auto& [file, made] : files) {
    if (!check) {
      FULCRUM_CHECK(write_file(file, made));
      continue;
    }
    FULCRUM_TRY(const std::string present, read_file(file));
    if (present == made) continue;
    return Error{Code::wrong_result, file.string() + " is not what the files in results/ give",
                 "cmake --build build --target results"};
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "results_page SOURCE_DIR [--check]\n");
    return 2;
  }
  const auto code = run(argv[1], argc > 2 && std::string_view(argv[2]) == "--check");
  if (code.ok()) return *code;
  fmt::print(stderr, "results_page: {}\n{}\n", code.error().message, code.error().hint);
  return 1;
}
