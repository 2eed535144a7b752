// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A recorded machine: a text of "--- path" lines, each followed by that file's content, unpacked into a folder of
// its own for the time of a test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

namespace fulcrum::machine {

/// An empty folder that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    static std::atomic<int> counter{0};
    path_ = std::filesystem::temp_directory_path() /
            ("fulcrum_machine_" + std::to_string(::getpid()) + "_" + std::to_string(counter++));
    std::filesystem::create_directories(path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

  void write(const std::string& name, const std::string& content) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }

 private:
  std::filesystem::path path_;
};

class RecordedTree : public TemporaryFolder {
 public:
  explicit RecordedTree(const std::string& fixture) {
    std::ifstream recording(std::string(FULCRUM_SOURCE_DIR) + "/tests/machine/fixtures/" + fixture + ".txt");
    EXPECT_TRUE(recording.is_open()) << fixture;
    std::string line, path, content;
    const auto flush = [&] {
      if (!path.empty()) write(path, content);
      content.clear();
    };
    while (std::getline(recording, line)) {
      if (line.starts_with("--- ")) {
        flush();
        path = line.substr(4);
      } else {
        content += line + "\n";
      }
    }
    flush();
  }
};

}  // namespace fulcrum::machine
