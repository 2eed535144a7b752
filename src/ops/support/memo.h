// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Prepared resources that are asked for again and again: the last ones used stay, up to a number of bytes.
#pragma once

#include <fulcrum/core.h>

#include <list>
#include <memory>
#include <mutex>

namespace fulcrum::ops {

template <class Key, class Value>
class Memo {
 public:
  using Pointer = std::shared_ptr<const Value>;

  explicit Memo(std::int64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  /// What is known of `key`, else what make() gives; bytes(value) is what it counts for. One caller makes at a time.
  template <class Make, class Bytes>
  Result<Pointer> get(const Key& key, const Make& make, const Bytes& bytes) {
    const std::lock_guard lock(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (!(entry->key == key)) continue;
      entries_.splice(entries_.begin(), entries_, entry);
      return entries_.front().value;
    }
    FULCRUM_TRY(Pointer value, make());
    entries_.push_front(Entry{key, value, bytes(*value)});
    std::int64_t total_bytes = 0;
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      total_bytes += entry->bytes;
      const bool keep = entry == entries_.begin() || total_bytes <= budget_bytes_;
      entry = keep ? std::next(entry) : entries_.erase(entry);
    }
    return value;
  }

 private:
  struct Entry {
    Key key;
    Pointer value;
    std::int64_t bytes;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;  // the last used first
  std::int64_t budget_bytes_;
};

}  // namespace fulcrum::ops
