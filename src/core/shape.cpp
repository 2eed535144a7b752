// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Shapes as data: finding, setting and spelling the fields of one call, and the stable name of a measurement.
#include <fmt/format.h>
#include <fulcrum/core.h>

#include <charconv>
#include <cmath>

namespace fulcrum {
namespace {

/// A real always shows a point, so that reading the text gives a real again ("2.0", "1.0e+20").
std::string text_of_real(double value) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  const double magnitude = std::fabs(value);
  const bool fixed = value == 0 || (magnitude >= 1e-5 && magnitude < 1e19);
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value,
                                 fixed ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  if (text.find('.') == std::string::npos) {
    const std::size_t exponent = text.find('e');
    text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  }
  return text;
}

struct ValueText {
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return text_of_real(value); }
  std::string operator()(const std::string& value) const { return value; }
};

/// Every field, then the element type where it is not the usual f32, as "name<is>value" with <between>.
std::string spell(const Shape& shape, char is, char between) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!text.empty()) text += between;
    text.append(name).append(1, is).append(value);
  };
  for (const auto& [name, value] : shape.fields) add(name, std::visit(ValueText{}, value));
  if (shape.dtype != DType::f32) add("dtype", to_string(shape.dtype));
  return text;
}

}  // namespace

const Shape::Value* Shape::find(std::string_view name) const {
  for (const auto& [field, value] : fields) {
    if (field == name) return &value;
  }
  return nullptr;
}

std::int64_t Shape::dim(std::string_view name) const {
  const Value* value = find(name);
  FULCRUM_ASSERT(value != nullptr && std::holds_alternative<std::int64_t>(*value));
  return std::get<std::int64_t>(*value);
}

void Shape::set(std::string_view name, Value value) {
  for (auto& [field, old] : fields) {
    if (field == name) {
      old = std::move(value);
      return;
    }
  }
  fields.emplace_back(std::string(name), std::move(value));
}

std::string Shape::text() const { return spell(*this, '=', ','); }

std::string Measurement::row() const {
  const std::string sizes = spell(shape, ':', '/');
  return fmt::format("{}{}{}/regime:{}{}{}{}/cache:{}", name(), sizes.empty() ? "" : "/", sizes,
                     to_string(regime), regime == Regime::reuse ? fmt::format("={}", reuse) : "",
                     path.empty() ? "" : "/path:", path, to_string(cache));
}

}  // namespace fulcrum
