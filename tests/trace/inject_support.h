// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a program with the injected library and a CUPTI that is none, and takes apart the file it leaves. The file is
// walked here by hand: what the library writes is checked against the format, not against our reader.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "trace/file/format.h"

namespace fulcrum::trace::inject_test {

struct WrittenFile {
  file::Head head{};
  std::map<std::uint32_t, std::string> texts;
  std::map<file::Kind, std::vector<std::string>> records;
  bool is_whole = true;  // the last chunk ends with the file

  template <typename Record>
  std::vector<Record> all(file::Kind kind) const {
    std::vector<Record> out;
    const auto found = records.find(kind);
    if (found == records.end()) return out;
    for (const std::string& bytes : found->second) {
      Record record{};
      std::memcpy(&record, bytes.data(), std::min(bytes.size(), sizeof record));
      out.push_back(record);
    }
    return out;
  }
  std::size_t count(file::Kind kind) const {
    const auto found = records.find(kind);
    return found == records.end() ? 0 : found->second.size();
  }
  /// All values of a property, numbers as text.
  std::vector<std::string> properties(const std::string& name) const {
    std::vector<std::string> out;
    for (const auto& p : all<file::Property>(file::Kind::property))
      if (texts.at(p.name) == name)
        out.push_back(p.value != 0 ? texts.at(p.value) : std::to_string(p.number));
    return out;
  }
  std::string end() const {
    const auto footers = all<file::Footer>(file::Kind::footer);
    return footers.empty() ? "" : texts.at(footers.back().end);
  }
  std::int64_t total_count() const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> last;
    for (const auto& t : all<file::Total>(file::Kind::total)) last[{t.shape, t.stream}] = t.count;
    std::int64_t sum = 0;
    for (const auto& [key, count] : last) sum += count;
    return sum;
  }
};

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

inline std::optional<WrittenFile> take_apart(const std::filesystem::path& path) {
  const std::string bytes = contents(path);
  WrittenFile out;
  if (bytes.size() < sizeof out.head) return std::nullopt;
  std::memcpy(&out.head, bytes.data(), sizeof out.head);
  std::size_t at = out.head.head_bytes;
  while (at + sizeof(file::Chunk) <= bytes.size()) {
    file::Chunk chunk;
    std::memcpy(&chunk, bytes.data() + at, sizeof chunk);
    at += sizeof chunk;
    if (chunk.magic != file::kChunkMagic || chunk.records == 0 || at + chunk.bytes > bytes.size()) {
      out.is_whole = false;
      return out;
    }
    if (chunk.kind == file::Kind::text) {
      std::uint32_t id = 0;
      std::memcpy(&id, bytes.data() + at, sizeof id);
      out.texts[id] = bytes.substr(at + sizeof id, chunk.bytes - sizeof id);
    } else {
      const std::size_t size = chunk.bytes / chunk.records;
      for (std::size_t i = 0; i < chunk.records; ++i)
        out.records[chunk.kind].push_back(bytes.substr(at + i * size, size));
    }
    at += chunk.bytes;
  }
  out.is_whole = at == bytes.size();
  return out;
}

struct Ran {
  int exit_code = -1, signal = 0;  // exit_code: -1 when a signal ended it
  std::string out, err;
  std::vector<WrittenFile> files;
};

struct Run {
  std::string arguments = "1000 return";
  std::string fake;                           // words for the fake CUPTI
  std::string variables;                      // more of the environment: "A=1 B=2"
  std::string before;                         // shell before the program
  std::string cupti = "fake/libcupti.so.13";  // empty: none is loaded
  std::string program = "injected";
  std::string folder;  // empty: one of its own
};

inline Ran run(const Run& what) {
  namespace fs = std::filesystem;
  static int number = 0;
  const fs::path programs = fs::path(FULCRUM_BINARY_DIR) / "tests/trace_programs";
  const fs::path work = fs::temp_directory_path() /
                        ("fulcrum_inject_" + std::to_string(getpid()) + "_" + std::to_string(++number));
  fs::create_directories(work / "traces");
  const std::string library = std::string(FULCRUM_BINARY_DIR) + "/lib/fulcrum/libfulcrum_inject.so";
  const fs::path folder = what.folder.empty() ? work / "traces" : fs::path(what.folder);
  std::string command = what.before + " exec env ";
  command += "CUDA_INJECTION64_PATH=" + library + " LD_PRELOAD=" + library +
             " FULCRUM_TRACE_FOLDER=" + folder.string() + " ";
  if (!what.cupti.empty()) command += "FAKE_CUPTI_PATH=" + (programs / what.cupti).string() + " ";
  command += "FAKE_CUPTI=" + what.fake + " " + what.variables + " " + (programs / what.program).string() +
             " " + what.arguments + " > " + (work / "out").string() + " 2> " + (work / "err").string();
  const int status = std::system(command.c_str());
  Ran ran;
  if (WIFEXITED(status)) ran.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ran.signal = WTERMSIG(status);
  ran.out = contents(work / "out");
  ran.err = contents(work / "err");
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (const auto file = take_apart(entry.path())) ran.files.push_back(*file);
  fs::remove_all(work, none);
  return ran;
}

}  // namespace fulcrum::trace::inject_test
