// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes docs/results.md, or with --check says whether it is what the result files give.
//   results_page SOURCE_DIR [--check]
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "page.h"

namespace {

using namespace fulcrum;

Result<int> run(const std::filesystem::path& root, bool check) {
  FULCRUM_TRY(const auto folders, results::read_folders(root / "results"));
  const std::string made = results::page(folders, results::present_source_hash);
  const auto file = root / "docs" / "results.md";
  if (!check) {
    FULCRUM_CHECK(write_file(file, made));
    return 0;
  }
  FULCRUM_TRY(const std::string present, read_file(file));
  if (present == made) return 0;
  return Error{Code::wrong_result, "docs/results.md is not what the files in results/ give",
               "cmake --build build --target results"};
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
