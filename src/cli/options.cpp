// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Parsing by the descriptor: long options only, `--name value` or `--name=value`, `--` before a user's command.
#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace fulcrum::cli {
namespace {

std::optional<double> to_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool looks_like_option(std::string_view text) {
  return text.size() > 1 && text[0] == '-' && !to_number(text);
}

Status check_value(const Option& option, const std::string& value) {
  if (option.kind == Kind::number || option.kind == Kind::count) {
    const auto number = to_number(value);
    const bool whole = number && std::floor(*number) == *number && std::fabs(*number) < 1e15;
    const bool enough = number && (option.above ? *number > option.at_least : *number >= option.at_least);
    if (enough && (option.kind == Kind::number || whole)) return {};
    return Error{Code::usage, fmt::format("--{} cannot be '{}'", option.name, value),
                 fmt::format("give a {} {} {}", option.kind == Kind::count ? "whole number" : "number",
                             option.above ? "above" : "of at least", option.at_least)};
  }
  if (value.empty()) {
    return Error{Code::usage, fmt::format("--{} is empty", option.name),
                 fmt::format("give {}", option.value)};
  }
  if (!option.choices || option.open) return {};
  const Names known = option.choices();
  if (std::find(known.begin(), known.end(), value) != known.end()) return {};
  return Error{Code::usage,
               fmt::format("unknown {} '{}'", option.what.empty() ? option.name : option.what, value),
               suggestion(value, known)};
}

}  // namespace

class Parser {
 public:
  Parser(const Command& command, const std::vector<std::string>& arguments)
      : command_(command), arguments_(arguments), options_(command) {}

  Result<Options> parse() {
    for (; at_ < arguments_.size(); ++at_) {
      const std::string& argument = arguments_[at_];
      if (argument == "--") {
        FULCRUM_CHECK(take_user_commands());
        break;
      }
      FULCRUM_CHECK(looks_like_option(argument) ? take_option(argument) : take_positional(argument));
    }
    if (!options_.has("help")) FULCRUM_CHECK(check_required());
    return std::move(options_);
  }

 private:
  Status take_option(std::string_view argument) {
    if (argument == "-h") argument = "--help";
    const std::size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    const Option* option = find(name);
    if (!option) return unknown(name);
    if (options_.has(option->name) && !option->list && !option->repeat) {
      return Error{Code::usage, fmt::format("{} is given twice", name), "give it once"};
    }
    auto& given = options_.given_[std::string(option->name)];
    if (option->kind == Kind::flag) {
      if (equals == std::string_view::npos) return {};
      return Error{Code::usage, fmt::format("{} takes no value", name), "leave the = away"};
    }
    if (equals != std::string_view::npos && option->values == 1) {
      return store(*option, given, std::string(argument.substr(equals + 1)));
    }
    return take_values(*option, given);
  }

  Status take_values(const Option& option, std::vector<std::string>& given) {
    for (int i = 0; i < option.values + option.optional_values; ++i) {
      const bool there = at_ + 1 < arguments_.size() && !looks_like_option(arguments_[at_ + 1]);
      if (!there && i >= option.values) break;
      if (!there) {
        return Error{Code::usage, fmt::format("--{} needs {}", option.name, option.value),
                     fmt::format("write --{} {}", option.name, option.value)};
      }
      FULCRUM_CHECK(store(option, given, arguments_[++at_]));
    }
    return {};
  }

  Status store(const Option& option, std::vector<std::string>& given, const std::string& value) {
    for (const std::string& part : option.list ? split(value, ',') : std::vector{value}) {
      FULCRUM_CHECK(check_value(option, part));
      given.push_back(part);
    }
    return {};
  }

  Status take_positional(const std::string& argument) {
    const auto& slots = command_.positionals;
    const std::size_t index = options_.positionals_.size();
    const bool fits = index < slots.size() || (!slots.empty() && slots.back().repeat);
    if (!fits) {
      return Error{Code::usage, fmt::format("unexpected argument '{}'", argument),
                   fmt::format("`fulcrum {} --help` shows what it takes", command_.name)};
    }
    const Positional& slot = slots[std::min(index, slots.size() - 1)];
    if (slot.choices) {
      const Names known = slot.choices();
      if (std::find(known.begin(), known.end(), argument) == known.end()) {
        const bool is_size =
            argument.find('=') != std::string::npos &&
            std::ranges::any_of(command_.options, [](const Option& o) { return o.name == "shape"; });
        return Error{Code::usage, fmt::format("unknown {} '{}'", slot.what, argument),
                     is_size ? "sizes are given as --shape " + argument : suggestion(argument, known)};
      }
    }
    options_.positionals_.push_back(argument);
    return {};
  }

  Status take_user_commands() {
    if (command_.user_command.empty()) {
      return Error{Code::usage, fmt::format("{} runs no command of yours", command_.name),
                   "leave the -- away"};
    }
    std::vector<std::string> words;
    for (++at_; at_ <= arguments_.size(); ++at_) {
      if (at_ < arguments_.size() && arguments_[at_] != "--") {
        words.push_back(arguments_[at_]);
        continue;
      }
      if (words.empty())
        return Error{Code::usage, "there is no command after --", "write -- COMMAND ARGUMENTS..."};
      options_.user_commands_.push_back(std::move(words));
      words.clear();
    }
    return {};
  }

  Status check_required() const {
    for (std::size_t i = options_.positionals_.size(); i < command_.positionals.size(); ++i) {
      const Positional& slot = command_.positionals[i];
      if (!slot.required) continue;
      return Error{Code::usage, fmt::format("{} is missing", slot.name),
                   fmt::format("`fulcrum {} --help` shows what it takes", command_.name)};
    }
    return {};
  }

  const Option* find(std::string_view dashed) const {
    for (const Option& option : command_.options) {
      if (dashed.size() > 2 && dashed.substr(0, 2) == "--" && dashed.substr(2) == option.name) return &option;
    }
    return nullptr;
  }

  Error unknown(std::string_view name) const {
    Names known;
    for (const Option& option : command_.options) {
      if (!option.hidden) known.push_back(fmt::format("--{}", option.name));
    }
    const std::string nearest = nearest_name(name, known);
    return Error{Code::usage, fmt::format("{} has no option '{}'", command_.name, name),
                 nearest.empty() ? fmt::format("`fulcrum {} --help` lists them", command_.name)
                                 : fmt::format("did you mean '{}'?", nearest)};
  }

  const Command& command_;
  const std::vector<std::string>& arguments_;
  std::size_t at_ = 0;
  Options options_;
};

const Option& Options::option(std::string_view name) const {
  const auto& options = command_->options;
  const auto found =
      std::find_if(options.begin(), options.end(), [&](const Option& o) { return o.name == name; });
  FULCRUM_ASSERT(found != options.end());
  return *found;
}

std::string Options::text(std::string_view name) const {
  const auto found = given_.find(name);
  if (found != given_.end() && !found->second.empty()) return found->second.back();
  return std::string(option(name).fallback);
}

double Options::number(std::string_view name) const {
  const auto value = to_number(text(name));
  FULCRUM_ASSERT(value.has_value());
  return *value;
}

std::int64_t Options::count(std::string_view name) const { return static_cast<std::int64_t>(number(name)); }

std::vector<std::string> Options::list(std::string_view name) const {
  const auto found = given_.find(name);
  return found == given_.end() ? std::vector<std::string>{} : found->second;
}

Result<Options> parse(const Command& command, const std::vector<std::string>& arguments) {
  return Parser(command, arguments).parse();
}

}  // namespace fulcrum::cli
