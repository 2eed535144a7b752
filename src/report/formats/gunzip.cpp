// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// gzip in: RFC 1952 around RFC 1951, since pprof files come compressed. A bit at a time where codes are read: profiles
// are small, and a decoder of this size can be read as a proof that no input leaves its bounds.
#include <fulcrum/report/formats.h>

#include <array>

#include "report/formats/builder.h"

namespace fulcrum::report {
namespace {

class Bits {
 public:
  explicit Bits(std::string_view bytes) : bytes_(bytes) {}
  /// The next `count` bits, lowest first; beyond the end it fails and stays failed.
  std::uint32_t take(int count) {
    std::uint32_t value = 0;
    for (int i = 0; i < count; ++i) value |= bit() << i;
    return value;
  }
  std::uint32_t bit() {
    if (at_ / 8 >= bytes_.size()) {
      failed_ = true;
      return 0;
    }
    const auto byte = static_cast<unsigned char>(bytes_[at_ / 8]);
    return (byte >> (at_++ % 8)) & 1U;
  }
  std::string_view whole_bytes(std::size_t count) {
    at_ = (at_ + 7) / 8 * 8;
    if (bytes_.size() - std::min(at_ / 8, bytes_.size()) < count) {
      failed_ = true;
      return {};
    }
    const std::string_view part = bytes_.substr(at_ / 8, count);
    at_ += 8 * count;
    return part;
  }
  bool failed() const { return failed_; }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

/// A canonical Huffman code: how many codes there are of each length, and their symbols in order.
struct PrefixCode {
  std::array<int, 16> count{};
  std::vector<int> symbols;

  explicit PrefixCode(std::span<const int> lengths) {
    for (const int length : lengths) ++count[static_cast<std::size_t>(length)];
    count[0] = 0;
    for (int length = 1; length < 16; ++length) {
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        if (lengths[i] == length) symbols.push_back(static_cast<int>(i));
      }
    }
  }
  int next(Bits& bits) const {
    int code = 0, first = 0, index = 0;
    for (std::size_t length = 1; length < 16 && !bits.failed(); ++length) {
      code |= static_cast<int>(bits.bit());
      if (code - count[length] < first) return symbols[static_cast<std::size_t>(index + code - first)];
      index += count[length];
      first = (first + count[length]) << 1;
      code <<= 1;
    }
    return -1;
  }
};

constexpr std::array<int, 29> kLengthBase{3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                          31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr std::array<int, 29> kLengthExtra{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                           2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
constexpr std::array<int, 30> kDistanceBase{1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                            33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                            1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};

bool inflate_block(Bits& bits, const PrefixCode& literals, const PrefixCode& distances, std::string& out,
                   std::size_t most) {
  while (out.size() <= most) {
    const int symbol = literals.next(bits);
    if (symbol < 0 || symbol > 285) return false;
    if (symbol == 256) return true;
    if (symbol < 256) {
      out += static_cast<char>(symbol);
      continue;
    }
    const auto length_code = static_cast<std::size_t>(symbol - 257);
    const std::size_t length =
        static_cast<std::size_t>(kLengthBase[length_code]) + bits.take(kLengthExtra[length_code]);
    const int distance_symbol = distances.next(bits);
    if (distance_symbol < 0 || distance_symbol > 29) return false;
    const int extra = distance_symbol < 2 ? 0 : distance_symbol / 2 - 1;
    const std::size_t distance =
        static_cast<std::size_t>(kDistanceBase[static_cast<std::size_t>(distance_symbol)]) + bits.take(extra);
    if (distance > out.size() || bits.failed()) return false;
    for (std::size_t i = 0; i < length; ++i) out += out[out.size() - distance];
  }
  return false;
}

bool inflate_fixed(Bits& bits, std::string& out, std::size_t most) {
  std::array<int, 288> lengths{};
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  std::array<int, 30> distances{};
  distances.fill(5);
  return inflate_block(bits, PrefixCode(lengths), PrefixCode(distances), out, most);
}

bool inflate_dynamic(Bits& bits, std::string& out, std::size_t most) {
  constexpr std::array<std::size_t, 19> kOrder{16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                               11, 4,  12, 3, 13, 2, 14, 1, 15};
  const std::size_t literals = bits.take(5) + 257, distances = bits.take(5) + 1, codes = bits.take(4) + 4;
  if (literals > 286 || distances > 30 || bits.failed()) return false;
  std::array<int, 19> code_lengths{};
  for (std::size_t i = 0; i < codes; ++i) code_lengths[kOrder[i]] = static_cast<int>(bits.take(3));
  const PrefixCode code(code_lengths);
  std::vector<int> lengths;
  while (lengths.size() < literals + distances) {
    const int symbol = code.next(bits);
    if (symbol < 0 || bits.failed()) return false;
    if (symbol < 16) {
      lengths.push_back(symbol);
      continue;
    }
    if (symbol == 16 && lengths.empty()) return false;
    const int value = symbol == 16 ? lengths.back() : 0;
    const std::size_t times = symbol == 16   ? 3 + bits.take(2)
                              : symbol == 17 ? 3 + bits.take(3)
                                             : 11 + bits.take(7);
    lengths.insert(lengths.end(), times, value);
  }
  if (lengths.size() != literals + distances) return false;
  const std::span<const int> all(lengths);
  return inflate_block(bits, PrefixCode(all.first(literals)), PrefixCode(all.subspan(literals)), out, most);
}

bool inflate_stored(Bits& bits, std::string& out) {
  const std::string_view head = bits.whole_bytes(4);
  if (head.size() != 4) return false;
  const auto byte = [&head](std::size_t i) {
    return static_cast<unsigned>(static_cast<unsigned char>(head[i]));
  };
  const unsigned length = byte(0) | byte(1) << 8, check = byte(2) | byte(3) << 8;
  if ((length ^ check) != 0xFFFF) return false;
  out += bits.whole_bytes(length);
  return !bits.failed();
}

bool inflate(std::string_view bytes, std::string& out, std::size_t most) {
  Bits bits(bytes);
  for (bool last = false; !last;) {
    last = bits.bit() == 1;
    const std::uint32_t kind = bits.take(2);
    if (bits.failed() || out.size() > most) return false;
    const bool fits = kind == 0   ? inflate_stored(bits, out)
                      : kind == 1 ? inflate_fixed(bits, out, most)
                      : kind == 2 ? inflate_dynamic(bits, out, most)
                                  : false;
    if (!fits) return false;
  }
  return out.size() <= most;
}

/// Bytes of the header before the compressed data; 0: not gzip.
std::size_t header_length(std::string_view bytes) {
  if (bytes.size() < 18 || !bytes.starts_with("\x1f\x8b\x08")) return 0;
  const auto flags = static_cast<unsigned char>(bytes[3]);
  std::size_t at = 10;
  if ((flags & 4) != 0) {
    if (bytes.size() < at + 2) return 0;
    at += 2 + static_cast<unsigned char>(bytes[at]) + 256U * static_cast<unsigned char>(bytes[at + 1]);
  }
  for (const unsigned flag : {8U, 16U}) {
    if ((flags & flag) == 0) continue;
    const std::size_t end = at < bytes.size() ? bytes.find('\0', at) : std::string_view::npos;
    if (end == std::string_view::npos) return 0;
    at = end + 1;
  }
  if ((flags & 2) != 0) at += 2;
  return at < bytes.size() ? at : 0;
}

}  // namespace

Result<std::string> gunzip(std::string_view bytes, std::string_view origin, std::size_t most) {
  const std::size_t begin = header_length(bytes);
  std::string out;
  if (begin == 0) return damaged(origin, "the file", "is no gzip file");
  if (inflate(bytes.substr(begin), out, most)) return out;
  if (out.size() > most) return damaged(origin, "the file", "holds more than a profile has");
  return damaged(origin, "the file", "its compressed data are damaged or cut off");
}

}  // namespace fulcrum::report
