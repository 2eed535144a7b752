// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The append-only record of a run. A line is one write and one flush, so a crash can only cut the last line,
// and that line had not been promised to anybody. A lock keeps a second writer out.
#include <fcntl.h>
#include <fmt/format.h>
#include <fulcrum/core.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "core/system_error.h"

namespace fulcrum {
namespace {

constexpr std::string_view kSchema = "fulcrum.run/1";
// How every line starts: a cut-off first line can still be told from somebody else's file.
constexpr std::string_view kLineStart = R"({"schema":"fulcrum.run/1")";

Status lock(const Descriptor& file, const std::filesystem::path& path) {
  // Only a lock that is held counts: some network file systems have none to give.
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return {};
  return Error{Code::environment, fmt::format("{} is being written by another run", path.string()),
               "wait for it to end, or choose another file"};
}

Json with_schema(const Json& line) {
  Json full = Json::object({{"schema", kSchema}});
  for (const auto& [key, value] : line.items()) {
    if (key != "schema") full[key] = value;
  }
  return full;
}

/// What is left of one line of ours after a crash, when nothing of ours stands before it: a piece of its
/// start, or the zeros of blocks that never reached the disk.
bool is_torn_line(std::string_view tail) {
  return tail.starts_with(kLineStart) || kLineStart.starts_with(tail) ||
         std::all_of(tail.begin(), tail.end(), [](char c) { return c == '\0'; });
}

Error foreign(const std::filesystem::path& path, std::int64_t line, std::string_view problem) {
  return Error{Code::corrupt, fmt::format("{}: line {}: {}", path.string(), line, problem),
               "this is no run record, or it was edited; it is left as it is"};
}

/// Reads the complete lines; `good` is where the last of them ends.
Status read_lines(const std::filesystem::path& path, std::string_view text, std::vector<Json>& lines,
                  std::size_t& good) {
  good = 0;
  for (std::int64_t number = 1; good < text.size(); ++number) {
    const std::size_t end = text.find('\n', good);
    const bool complete = end != std::string_view::npos;
    const bool last = !complete || end + 1 == text.size();
    const std::string_view line = text.substr(good, complete ? end - good : end);
    Result<Json> json = json_parse(line, fmt::format("{}: line {}", path.string(), number));
    if (last && (!complete || !json.ok())) {
      if (number == 1 && !is_torn_line(line)) return foreign(path, number, "not a line of a run record");
      return {};
    }
    if (!json.ok()) {
      Error error = std::move(json).take_error();
      error.hint = "the record was damaged or edited; it is left as it is: start a new one";
      return error;
    }
    FULCRUM_CHECK(json_expect_schema(*json, "run", fmt::format("{}: line {}", path.string(), number)));
    lines.push_back(std::move(json).value());
    good = end + 1;
  }
  return {};
}

}  // namespace

Result<RunRecord> RunRecord::create(const std::filesystem::path& path) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
  if (!file && errno == EEXIST) {
    return Error{Code::environment, fmt::format("{} exists already and is not overwritten", path.string()),
                 "continue it with --resume, or choose another file"};
  }
  if (!file) return system_error("write", path, errno);
  FULCRUM_CHECK(lock(file, path));
  sync_folder(folder_of(path));
  return RunRecord(file.release(), path);
}

Result<RunRecord> RunRecord::resume(const std::filesystem::path& path, std::vector<Json>& lines) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  if (!file) return system_error("resume", path, errno);
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return system_error("resume", path, errno);
  if (!S_ISREG(facts.st_mode)) return foreign(path, 1, "not a regular file");
  FULCRUM_CHECK(lock(file, path));
  FULCRUM_TRY(const std::string text, read_file(path));
  lines.clear();
  std::size_t good = 0;
  FULCRUM_CHECK(read_lines(path, text, lines, good));
  if (good < text.size() && ::ftruncate(file.get(), static_cast<off_t>(good)) != 0) {
    return system_error("resume", path, errno);
  }
  return RunRecord(file.release(), path);
}

RunRecord::RunRecord(RunRecord&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

RunRecord& RunRecord::operator=(RunRecord&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = std::exchange(other.descriptor_, -1);
    path_ = std::move(other.path_);
  }
  return *this;
}

RunRecord::~RunRecord() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status RunRecord::append(const Json& line) {
  FULCRUM_ASSERT(line.is_object());
  if (descriptor_ < 0) {
    return Error{Code::environment, fmt::format("{} was closed after a failed write", path_.string()),
                 "resume the record once there is room for it"};
  }
  const std::string text = json_text(with_schema(line)) + "\n";
  struct stat before {};
  if (::fstat(descriptor_, &before) != 0) return system_error("write", path_, errno);
  int error = write_all(descriptor_, text);
  if (error == 0 && ::fdatasync(descriptor_) != 0) error = errno;
  if (error == 0) return {};
  // A half line must not stay: the next append would continue it. If even that fails, there is no next
  // append.
  if (::ftruncate(descriptor_, before.st_size) != 0) {
    ::close(descriptor_);
    descriptor_ = -1;
  }
  return system_error("write", path_, error);
}

}  // namespace fulcrum
