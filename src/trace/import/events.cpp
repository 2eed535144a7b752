// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A handler of nlohmann's event parser. Level 1 is the document, level 2 its lists, level 3 an event, level 4 its args
// or an array, level 5 an array in its args.
#include "trace/import/events.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace fulcrum::trace {

Event::Value& Event::add(std::string_view key) {
  if (used_ == fields_.size()) fields_.emplace_back();
  auto& [name, value] = fields_[used_++];
  name = key;
  value.is_text = false;
  value.text.clear();
  value.numbers.clear();
  return value;
}

const Event::Value* Event::find(std::string_view key) const {
  for (std::size_t i = 0; i < used_; ++i) {
    if (fields_[i].first == key) return &fields_[i].second;
  }
  return nullptr;
}

std::string_view Event::text(std::string_view key) const {
  const Value* value = find(key);
  return value && value->is_text ? std::string_view(value->text) : std::string_view{};
}

double Event::number(std::string_view key, double otherwise) const {
  const Value* value = find(key);
  if (!value) return otherwise;
  if (!value->is_text) return value->numbers.size() == 1 ? value->numbers[0] : otherwise;
  double parsed = 0;  // some writers quote their numbers
  const char* end = value->text.data() + value->text.size();
  const auto [at, error] = std::from_chars(value->text.data(), end, parsed);
  return error == std::errc{} && at == end && !value->text.empty() ? parsed : otherwise;
}

std::int64_t Event::whole(std::string_view key, std::int64_t otherwise) const {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  if (const Value* value = find(key)) {
    std::int64_t exact = 0;
    const char* end = value->text.data() + value->text.size();
    const auto [at, error] = std::from_chars(value->text.data(), end, exact);
    if (error == std::errc{} && at == end) return exact > -kMost && exact < kMost ? exact : otherwise;
  }
  const double value = number(key, std::nan(""));
  return std::abs(value) < 9e15 ? std::llround(value) : otherwise;
}

std::optional<std::int64_t> Event::nanoseconds(std::string_view key) const {
  // Sums of two of them fit.
  constexpr std::int64_t kMost = (std::int64_t{1} << 62) - 1;
  const Value* value = find(key);
  if (!value) return std::nullopt;
  const std::string_view text = value->text;
  const char* end = text.data() + text.size();
  std::int64_t whole = 0;
  const auto [point, error] = std::from_chars(text.data(), end, whole);
  const bool plain =
      error == std::errc{} && (point == end || *point == '.') && std::abs(whole) < kMost / 1000;
  if (plain && whole >= 0) {
    std::int64_t fraction = 0;
    int digits = 0;
    const char* at = point == end ? end : point + 1;
    for (; at != end && *at >= '0' && *at <= '9' && digits < 3; ++at, ++digits)
      fraction = fraction * 10 + (*at - '0');
    while (at != end && *at >= '0' && *at <= '9') ++at;
    for (; digits < 3; ++digits) fraction *= 10;
    if (at == end) return whole * 1000 + fraction;
  }
  const double parsed = number(key, std::nan(""));
  if (!(std::abs(parsed) < static_cast<double>(kMost) / 1000)) return std::nullopt;
  return std::llround(parsed * 1000);
}

namespace {

enum class List : std::uint8_t { none, events, devices };

class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Handler(EventSink& sink) : sink_(sink) {}

  bool null() override { return true; }
  bool boolean(bool value) override { return scalar(value ? 1 : 0, value ? "true" : "false", false); }
  bool number_integer(number_integer_t value) override {
    return scalar(static_cast<double>(value), fmt::format_int(value).c_str(), false);
  }
  bool number_unsigned(number_unsigned_t value) override {
    return scalar(static_cast<double>(value), fmt::format_int(value).c_str(), false);
  }
  bool number_float(number_float_t value, const string_t& text) override {
    return scalar(value, text, false);
  }
  bool string(string_t& value) override { return scalar(0, value, true); }
  bool binary(binary_t&) override { return true; }

  bool start_object(std::size_t) override {
    ++level_;
    if (level_ == base_ + 2 && list_ != List::none) event_.clear();
    if (level_ == base_ + 3) in_args_ = key_ == "args";
    return true;
  }
  bool end_object() override {
    --level_;
    if (level_ == base_ + 1 && list_ == List::events && sink_.event) sink_.event(event_);
    if (level_ == base_ + 1 && list_ == List::devices && sink_.device) sink_.device(event_);
    if (level_ == base_ + 2) in_args_ = false;
    return true;
  }
  bool start_array(std::size_t) override {
    ++level_;
    if (level_ == 1) {  // a bare list of events
      base_ = 0;
      list_ = List::events;
    } else if (level_ == 2 && base_ == 1) {
      list_ = key_ == "traceEvents" ? List::events : key_ == "deviceProperties" ? List::devices : List::none;
    } else if (in_field(level_ - 1)) {
      array_ = &event_.add(key_);
      array_level_ = level_;
    }
    return true;
  }
  bool end_array() override {
    if (level_ == array_level_) array_ = nullptr;
    --level_;
    if (level_ == base_) list_ = List::none;
    return true;
  }
  bool key(string_t& name) override {
    // Metadata has a name of its own and one in its args.
    key_ = in_args_ && level_ == base_ + 3 && name == "name" ? "args.name" : name;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    problem_ = fmt::format("no JSON from byte {} on", position);
    return false;
  }
  const std::string& problem() const { return problem_; }

 private:
  /// A member of an event or of its args.
  bool in_field(int level) const {
    return list_ != List::none && (level == base_ + 2 || (level == base_ + 3 && in_args_));
  }
  bool scalar(double value, std::string_view text, bool is_text) {
    if (array_) {
      if (level_ == array_level_ && !is_text && array_->numbers.size() < 16) array_->numbers.push_back(value);
      return true;
    }
    if (level_ == 1 && base_ == 1) {
      fill(sink_.head.add(key_), value, text, is_text);
    } else if (in_field(level_)) {
      fill(event_.add(key_), value, text, is_text);
    }
    return true;
  }
  static void fill(Event::Value& to, double value, std::string_view text, bool is_text) {
    to.is_text = is_text;
    to.text = text;
    if (!is_text) to.numbers.push_back(value);
  }

  EventSink& sink_;
  Event event_;
  std::string key_, problem_;
  int level_ = 0, base_ = 1;  // base_: the level of the document's members
  List list_ = List::none;
  bool in_args_ = false;
  Event::Value* array_ = nullptr;
  int array_level_ = -1;
};

}  // namespace

std::string read_events(std::string_view json, EventSink& sink) {
  Handler handler(sink);
  nlohmann::json::sax_parse(json.begin(), json.end(), &handler);
  return handler.problem();
}

}  // namespace fulcrum::trace
