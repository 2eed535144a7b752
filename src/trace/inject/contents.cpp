// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Hashes of sources of copies: samples, and wholes at the second, third, sixth, twelfth ... time that a sample is the
// same.
#include "trace/inject/contents.h"

#include <cstring>
#include <new>

namespace fulcrum::trace::inject {
namespace {

constexpr std::size_t kSmall = std::size_t{32} << 10;  // up to here all of it is read
constexpr std::size_t kLines = 128, kLineBytes = 64;   // of a sample

constexpr std::uint64_t rotate(std::uint64_t x, int by) { return x << by | x >> (64 - by); }
std::uint64_t mix(std::uint64_t h, std::uint64_t x) { return rotate((h ^ x) * 0xff51afd7ed558ccdu, 31); }

// Lanes of multiply and rotate: about as fast as memory is read, and no adversary.
std::uint64_t hash_of(const char* at, std::size_t count, std::uint64_t seed) {
  constexpr int kLanes = 4;
  std::uint64_t lanes[kLanes] = {seed ^ 0x9e3779b97f4a7c15u, seed ^ 0xc2b2ae3d27d4eb4fu,
                                 seed ^ 0x165667b19e3779f9u, seed ^ 0x27d4eb2f165667c5u};
  for (; count >= 8 * kLanes; count -= 8 * kLanes, at += 8 * kLanes)
    for (int lane = 0; lane < kLanes; ++lane) {
      std::uint64_t x;
      std::memcpy(&x, at + 8 * lane, sizeof x);
      lanes[lane] = mix(lanes[lane], x);
    }
  std::uint64_t rest[kLanes] = {};
  std::memcpy(rest, at, count);
  std::uint64_t all = seed + count;
  for (int lane = 0; lane < kLanes; ++lane) all = mix(all, mix(lanes[lane], rest[lane]));
  return all ^ all >> 29;
}

std::uint64_t never_zero(std::uint64_t h) { return h != 0 ? h : 1; }

}  // namespace

Contents::Place& Contents::place_of(const void* from, std::size_t bytes) {
  if (places_ == nullptr) places_.reset(new Place[kPlaces]);
  const std::uint64_t key = mix(reinterpret_cast<std::uintptr_t>(from), bytes) * 0x9e3779b97f4a7c15u;
  Place& place = places_[key >> 52];
  static_assert(kPlaces == std::size_t{1} << 12);
  if (place.from != from || place.bytes != bytes) {
    place = {};
    place.from = from;
    place.bytes = bytes;
  }
  return place;
}

std::uint64_t Contents::hash(const void* from, std::size_t bytes) noexcept {
  const auto* const begin = static_cast<const char*>(from);
  if (bytes <= kSmall) return never_zero(hash_of(begin, bytes, bytes));
  std::uint64_t sample = bytes;
  // Both ends, and lines between them that are not in step with rows.
  const std::size_t step = (bytes - kLineBytes) / (kLines - 1);
  for (std::size_t line = 0; line < kLines; ++line) {
    const std::size_t jitter = line == 0 || line == kLines - 1 ? 0 : sample % (step / 2 + 1);
    sample =
        hash_of(begin + (line == kLines - 1 ? bytes - kLineBytes : line * step + jitter), kLineBytes, sample);
  }
  try {
    std::unique_lock lock(mutex_);
    Place& place = place_of(from, bytes);
    read_bytes_ += kLines * kLineBytes;
    if (place.same == 0 || place.sample != sample) {
      place.sample = sample;
      place.same = 1;
      place.next_check = 2;
      place.knows_whole = false;
    } else {
      ++place.same;
    }
    const std::uint64_t changes = place.changes;
    if (changes == 0 && place.same < place.next_check) return never_zero(mix(sample, changes));
    lock.unlock();
    const std::uint64_t whole = hash_of(begin, bytes, 0);
    lock.lock();
    // Another thread may have taken the place meanwhile.
    Place& again = place_of(from, bytes);
    read_bytes_ += bytes;
    if (again.knows_whole && again.whole != whole && again.sample == sample) ++again.changes;
    again.next_check = again.knows_whole ? 2 * again.same : again.same + 1;
    again.knows_whole = true;
    again.whole = whole;
    return never_zero(mix(sample, again.changes == 0 ? 0 : whole));
  } catch (...) {
    return never_zero(hash_of(begin, bytes, 0));
  }
}

}  // namespace fulcrum::trace::inject
