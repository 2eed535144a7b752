// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Who hears of resources that end. The lock is held while they hear, so that no watch ends in the middle; what they drop
// may end resources of its own.
#include <fulcrum/ops.h>

#include <mutex>
#include <vector>

namespace fulcrum::ops {
namespace {

struct Watches {
  std::recursive_mutex mutex;
  std::vector<PreparedWatch*> all;
};
/// Never destroyed: graphs may end with the program.
Watches& watches() {
  static auto& only = *new Watches;
  return only;
}

}  // namespace

PreparedWatch::PreparedWatch(std::function<void(const void*)> ended) : ended_(std::move(ended)) {
  const std::lock_guard lock(watches().mutex);
  watches().all.push_back(this);
}

PreparedWatch::~PreparedWatch() {
  const std::lock_guard lock(watches().mutex);
  std::erase(watches().all, this);
}

void tell_ended(const void* prepared) noexcept {
  const std::lock_guard lock(watches().mutex);
  // By number: a watch that begins or ends meanwhile, in this thread, moves the others. NOLINTNEXTLINE(modernize-loop-convert)
  for (std::size_t i = 0; i < watches().all.size(); ++i) watches().all[i]->ended_(prepared);
}

}  // namespace fulcrum::ops
