// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Strict JSON reading on the library's event parser, which reports an error instead of throwing one. What the
// library lets through and a document of ours never has is refused here: duplicate keys, deep nesting, NUL
// bytes, integers beyond 64 bits.
#include <fmt/format.h>
#include <fulcrum/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

namespace fulcrum {
namespace {

constexpr std::size_t kMaxDepth = 64;

/// Builds the document from the parser's events; false ends the parse, with the reason in problem().
class Builder : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    // The library turns an integer that overflows into a double; digits that are lost in silence are an error
    // here.
    if (text.find_first_of(".eE") == string_t::npos)
      return fail(fmt::format("the integer {} is beyond 64 bits", text));
    return add(value);
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return fail("binary data"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!stack_.back().keys.insert(name).second)
      return fail(fmt::format("the key \"{}\" appears twice", name));
    stack_.back().key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    // The text behind "[json.exception...] " has the line, the column and what was read last.
    const std::string_view what = error.what();
    const std::size_t start = what.find("] ");
    return fail(std::string(start == std::string_view::npos ? what : what.substr(start + 2)));
  }

  Json take() { return std::move(root_); }
  const std::string& problem() const { return problem_; }

 private:
  struct Level {
    Json* container;
    std::string key;
    std::unordered_set<std::string> keys;
  };

  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  Json* place(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Level& level = stack_.back();
    if (level.container->is_array()) {
      level.container->push_back(std::move(value));
      return &level.container->back();
    }
    // Straight to the underlying list: the map's own insert would search it for the key again.
    auto& members = level.container->get_ref<Json::object_t&>();
    members.emplace_back(std::move(level.key), std::move(value));
    return &members.back().second;
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json container) {
    if (stack_.size() == kMaxDepth) return fail(fmt::format("nested deeper than {} levels", kMaxDepth));
    stack_.push_back({place(std::move(container)), {}, {}});
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Level> stack_;
  std::string problem_;
};

/// The parser quotes what it read last; bytes that are no ASCII would spoil a terminal.
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e; },
      '?');
  return text;
}

}  // namespace

Result<Json> json_parse(std::string_view text, std::string_view origin) {
  const auto corrupt = [&](std::string problem) {
    return Error{Code::corrupt,
                 fmt::format("{}{}{}", origin, origin.empty() ? "" : ": ", printable(std::move(problem))),
                 "the file is cut off, edited, or was not written by fulcrum"};
  };
  // The library takes a NUL for the end of the text.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    return corrupt(fmt::format("not JSON: a NUL byte at offset {}", nul));
  }
  Builder builder;
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) return corrupt(builder.problem());
  return builder.take();
}

}  // namespace fulcrum
