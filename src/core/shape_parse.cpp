// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Reading shapes as people type them. Whole numbers are computed in integers, never through a double: a size
// beyond 2^53 keeps its last digit and one beyond 2^63 is an error.
#include <fmt/format.h>
#include <fulcrum/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace fulcrum {
namespace {

struct Suffix {
  std::string_view text;
  std::int64_t factor;
};
// Longer ones first: "Ki" ends in no other suffix, but a shorter match must not win.
constexpr std::array kSuffixes{Suffix{"Ki", std::int64_t{1} << 10},
                               Suffix{"Mi", std::int64_t{1} << 20},
                               Suffix{"Gi", std::int64_t{1} << 30},
                               Suffix{"K", 1'000},
                               Suffix{"M", 1'000'000},
                               Suffix{"G", 1'000'000'000}};

constexpr std::string_view kHint =
    "write name=value pairs, as in n=1000,al=0.5,layout=list; numbers may be 1e6, 2^24, 64K (x1000) or 64Ki "
    "(x1024)";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_word(std::string_view text) {
  return !text.empty() && is_letter(text.front()) && std::all_of(text.begin(), text.end(), [](char c) {
    return is_digit(c) || is_letter(c) || c == '-' || c == '.';
  });
}

/// What a decimal number is made of: digits x 10^power, before any suffix.
struct Decimal {
  bool negative = false, point = false, exponent = false;
  std::string_view text;  // without the suffix
  std::string digits;
  std::int64_t power = 0;
  std::int64_t factor = 1;
};

/// Splits "-1.5e3Ki"-like text; nothing when it is no number.
std::optional<Decimal> split_decimal(std::string_view text) {
  Decimal d;
  const auto ends = [&](const Suffix& s) { return text.ends_with(s.text); };
  if (const auto found = std::find_if(kSuffixes.begin(), kSuffixes.end(), ends); found != kSuffixes.end()) {
    text.remove_suffix(found->text.size());
    d.factor = found->factor;
  }
  d.text = text;
  std::size_t at = 0;
  if (at < text.size() && text[at] == '-') d.negative = true, ++at;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !d.point)); ++at) {
    if (text[at] == '.') {
      d.point = true;
    } else {
      d.digits += text[at];
      d.power -= d.point;
    }
  }
  if (d.digits.empty()) return std::nullopt;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    d.exponent = true;
    ++at;
    if (at < text.size() && text[at] == '+') ++at;
    int exponent = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), exponent);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    d.power += exponent;
    at = text.size();
  }
  if (at != text.size()) return std::nullopt;
  return d;
}

enum class Whole { yes, fraction, overflow };

/// digits x factor x 10^power as an integer, when it is one.
Whole whole_number(const Decimal& d, std::int64_t& value) {
  value = 0;
  std::string digits = d.digits;
  std::int64_t power = d.power;
  while (power < 0 && digits.size() > 1 && digits.back() == '0') digits.pop_back(), ++power;
  for (const char c : digits) {
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, c - '0', &value))
      return Whole::overflow;
  }
  if (value == 0) return Whole::yes;
  if (__builtin_mul_overflow(value, d.factor, &value)) return Whole::overflow;
  for (; power > 0; --power) {
    if (__builtin_mul_overflow(value, 10, &value)) return Whole::overflow;
  }
  for (; power < 0; ++power) {
    if (value % 10 != 0) return Whole::fraction;
    value /= 10;
  }
  if (d.negative) value = -value;
  return Whole::yes;
}

Error bad_value(std::string_view name, std::string_view text, std::string_view why) {
  return Error{Code::usage, fmt::format("{}={}: {}", name, text, why), std::string(kHint)};
}

Error too_big(std::string_view name, std::string_view text) {
  return Error{Code::usage, fmt::format("{}={}: does not fit in 64 bits", name, text),
               "the largest whole number is 9223372036854775807"};
}

Result<Shape::Value> parse_power(std::string_view name, std::string_view text, std::size_t caret) {
  std::int64_t base = 0, exponent = 0, value = 1;
  const auto read = [](std::string_view digits, std::int64_t& out) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return error == std::errc() && end == digits.data() + digits.size() && is_digit(digits.front());
  };
  if (caret == 0 || caret + 1 == text.size() || !read(text.substr(0, caret), base) ||
      !read(text.substr(caret + 1), exponent)) {
    return bad_value(name, text, "a power is written as 2^24");
  }
  if (base < 2) return Shape::Value{base == 1 || exponent == 0 ? std::int64_t{1} : std::int64_t{0}};
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(value, base, &value)) return too_big(name, text);
  }
  return Shape::Value{value};
}

Result<Shape::Value> parse_value(std::string_view name, std::string_view text) {
  if (text.empty()) return bad_value(name, text, "the value is missing");
  if (const std::size_t caret = text.find('^'); caret != std::string_view::npos)
    return parse_power(name, text, caret);
  const std::optional<Decimal> decimal = split_decimal(text);
  if (!decimal) {
    if (is_word(text)) return Shape::Value{std::string(text)};
    return bad_value(name, text, "neither a number nor a word");
  }
  const bool scaled = decimal->factor != 1;
  if (!decimal->point || decimal->exponent || scaled) {
    std::int64_t value = 0;
    const Whole whole = whole_number(*decimal, value);
    if (whole == Whole::yes) return Shape::Value{value};
    if (whole == Whole::overflow && !decimal->point && decimal->power >= 0) return too_big(name, text);
    if (scaled)
      return whole == Whole::overflow ? too_big(name, text) : bad_value(name, text, "not a whole number");
  }
  double real = 0;
  const std::string_view digits = decimal->text;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), real);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return bad_value(name, text, "out of the range of a real number");
  }
  return Shape::Value{real};
}

Status parse_field(std::string_view item, Shape& shape) {
  const std::size_t equals = item.find('=');
  if (equals == std::string_view::npos) {
    return Error{Code::usage, fmt::format("'{}' is not of the form name=value", item), std::string(kHint)};
  }
  const std::string_view name = trimmed(item.substr(0, equals)), text = trimmed(item.substr(equals + 1));
  if (!is_word(name)) return Error{Code::usage, fmt::format("'{}' is not a name", name), std::string(kHint)};
  if (shape.find(name)) {
    return Error{Code::usage, fmt::format("'{}' is given twice", name), "give each name once"};
  }
  FULCRUM_TRY(Shape::Value value, parse_value(name, text));
  shape.fields.emplace_back(std::string(name), std::move(value));
  return {};
}

}  // namespace

Result<Shape> parse_shape(std::string_view text) {
  Shape shape;
  text = trimmed(text);
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    FULCRUM_CHECK(parse_field(trimmed(text.substr(0, comma)), shape));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (trimmed(text).empty()) return Error{Code::usage, "the shape ends in a comma", std::string(kHint)};
  }
  // The element type is no size: it has a place of its own.
  const auto is_dtype = [](const auto& field) { return field.first == "dtype"; };
  const auto dtype = std::find_if(shape.fields.begin(), shape.fields.end(), is_dtype);
  if (dtype != shape.fields.end()) {
    const auto* word = std::get_if<std::string>(&dtype->second);
    FULCRUM_TRY(shape.dtype, parse_enum<DType>("dtype", word ? *word : "a number"));
    shape.fields.erase(dtype);
  }
  return shape;
}

}  // namespace fulcrum
