// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See builder.h.
#include "report/formats/builder.h"

#include <fmt/format.h>

namespace fulcrum::report {
namespace {

template <class T>
std::uint32_t number_of(std::unordered_map<std::string, std::uint32_t>& known, std::string key,
                        std::vector<T>& list, T value) {
  const auto [at, added] = known.try_emplace(std::move(key), static_cast<std::uint32_t>(list.size()));
  if (added) list.push_back(std::move(value));
  return at->second;
}

}  // namespace

std::uint32_t ProfileBuilder::frame(Frame frame) {
  std::string key = fmt::format("{}\n{}\n{}\n{} {} {}", frame.function, frame.module, frame.file, frame.line,
                                frame.address, frame.inlined);
  return number_of(frames_, std::move(key), profile.frames, std::move(frame));
}

std::uint32_t ProfileBuilder::stack(CpuProfile::Stack stack) {
  std::string key(reinterpret_cast<const char*>(stack.frames.data()),
                  stack.frames.size() * sizeof(std::uint32_t));
  if (stack.truncated) key += "cut " + stack.why;
  return number_of(stacks_, std::move(key), profile.stacks, std::move(stack));
}

std::uint32_t ProfileBuilder::thread(std::int64_t pid, std::int64_t tid, const std::string& name) {
  CpuProfile::Thread thread;
  thread.pid = pid;
  thread.tid = tid;
  thread.name = name;
  return number_of(threads_, fmt::format("{} {} {}", pid, tid, name), profile.threads, std::move(thread));
}

std::uint32_t ProfileBuilder::region(const std::string& name) {
  CpuProfile::Region region;
  region.name = name;
  return number_of(regions_, name, profile.regions, std::move(region)) + 1;
}

Error damaged(std::string_view origin, std::string_view place, std::string_view problem) {
  return Error{Code::corrupt, fmt::format("{}: {}: {}", origin, place, problem),
               "the file is cut off, damaged, or of another kind"};
}

}  // namespace fulcrum::report
