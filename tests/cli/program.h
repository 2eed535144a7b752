// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The built program as a user meets it: run with arguments in a world of its own, output and exit code caught.
#pragma once

#include <fulcrum/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fulcrum::cli {

/// A folder that goes away with the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "fulcrum_test_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string content(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

inline Json parsed(const std::string& text) {
  const auto json = json_parse(text, "output");
  EXPECT_TRUE(json.ok()) << text;
  return json.ok() ? *json : Json();
}

inline Json read(const std::filesystem::path& path) { return parsed(content(path)); }

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline std::filesystem::path put(const Folder& folder, const std::string& name, std::string_view text) {
  std::ofstream(folder / name, std::ios::binary) << text;
  return folder / name;
}

/// The text is that of tests/golden/<name>.
inline void expect_golden(const std::string& name, const std::string& actual) {
  const std::filesystem::path path = std::filesystem::path(FULCRUM_SOURCE_DIR) / "tests" / "golden" / name;
  if (std::getenv("FULCRUM_UPDATE_GOLDEN")) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << actual;
    return;
  }
  EXPECT_EQ(actual, content(path)) << "FULCRUM_UPDATE_GOLDEN=1 rewrites " << path;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

struct Outcome {
  int code = 0;
  std::string output, error;
};

using Variables = std::vector<std::pair<std::string, std::string>>;

/// Runs the program with its data in `data`; `variables` come on top of the test's own environment.
inline Outcome fulcrum_in(const Folder& data, std::vector<std::string> arguments,
                          const Variables& variables = {}) {
  arguments.insert(arguments.begin(), FULCRUM_PROGRAM);
  std::map<std::string, std::string> environment = {
      {"FULCRUM_DATA", data.path()}, {"TERM", "xterm"}, {"COLUMNS", "100"}};
  for (const auto& [name, value] : variables) environment[name] = value;
  ProcessOptions options;
  options.environment.assign(environment.begin(), environment.end());
  const Result<ProcessResult> result = run_process(arguments, options);
  if (!result.ok()) {
    ADD_FAILURE() << result.error().message;
    return {};
  }
  return {result->exit_code, result->standard_output, result->standard_error};
}

inline Outcome fulcrum(std::vector<std::string> arguments, const Variables& variables = {}) {
  const Folder data;
  return fulcrum_in(data, std::move(arguments), variables);
}

/// One small case that takes a moment: what is measured does not matter to these tests, that it is reported does.
inline std::vector<std::string> quick_bench(std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"bench",  "vec_add",  "--shape", "n=1000",      "--backend",
                                        "scalar", "--budget", "0.1",     "--precision", "0.5"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace fulcrum::cli
