// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The vocabulary of described inputs: one table line a generator. Values are computed in fp64 and rounded once.
#include <fulcrum/ops/inputs.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fulcrum/ops/half.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace fulcrum::ops {
namespace {

using Numbers = std::vector<double>;
using Floats = std::span<float>;

/// x[i] = value(i), rounded once.
template <class Value>
void each(Floats x, const Value& value) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(value(static_cast<double>(i)));
}

void constant(const Numbers& a, std::uint64_t, Floats x) {
  each(x, [&](double) { return a[0]; });
}
void index_of(const Numbers&, std::uint64_t, Floats x) {
  each(x, [](double i) { return i; });
}
void ramp(const Numbers& a, std::uint64_t, Floats x) {
  each(x, [&](double i) { return a[0] * i + a[1]; });
}
void centred(const Numbers& a, std::uint64_t, Floats x) {
  const double half = static_cast<double>(x.size()) / 2;
  each(x, [&](double i) { return a[0] * (i - half); });
}
void cycle(const Numbers& a, std::uint64_t, Floats x) {
  each(x, [&](double i) { return std::fmod(i, a[0]); });
}
void wave(const Numbers& a, std::uint64_t, Floats x) {
  each(x, [&](double i) { return a[0] + a[1] * i + a[2] * std::sin(a[3] * i); });
}
void values(const Numbers& a, std::uint64_t, Floats x) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(a[i % a.size()]);
}
void steps(const Numbers& a, std::uint64_t, Floats x) {
  const std::size_t length = std::max<std::size_t>(1, x.size() / a.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(a[std::min(i / length, a.size() - 1)]);
}
void patch(const Numbers& a, std::uint64_t, Floats x) {
  const auto width = static_cast<std::size_t>(a[2]);
  const auto inside = [&](std::size_t at) {
    return static_cast<double>(at) >= a[3] && static_cast<double>(at) < a[4];
  };
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(inside(i / width) && inside(i % width) ? a[1] : a[0]);
}
void uniform_values(const Numbers& a, std::uint64_t key, Floats x) {
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = random_uniform(key, i, static_cast<float>(a[0]), static_cast<float>(a[1]));
}
void unit_rows(const Numbers& a, std::uint64_t key, Floats x) {
  uniform_values({-1, 1}, key, x);
  const auto length = static_cast<std::size_t>(a[0]);
  for (std::size_t begin = 0; begin < x.size(); begin += length) {
    const Floats row = x.subspan(begin, std::min(length, x.size() - begin));
    double squares = 0;
    for (const float value : row) squares += static_cast<double>(value) * value;
    for (float& value : row) value = static_cast<float>(value / std::sqrt(squares));
  }
}

struct Word {
  InputGenerator text;
  std::size_t least, most;  // how many numbers follow
  int count_at;             // which of them is a whole number above 0; -1: none
  void (*fill)(const Numbers&, std::uint64_t key, Floats);
};

constexpr std::size_t kMany = 64;
constexpr std::array kWords = {
    Word{{"constant", "C", "C"}, 1, 1, -1, constant},
    Word{{"index", "", "i"}, 0, 0, -1, index_of},
    Word{{"ramp", "A B", "A i + B"}, 2, 2, -1, ramp},
    Word{{"centred", "A", "A (i - n/2)"}, 1, 1, -1, centred},
    Word{{"cycle", "P", "i mod P"}, 1, 1, 0, cycle},
    Word{{"wave", "C A S F", "C + A i + S sin(F i)"}, 4, 4, -1, wave},
    Word{{"values", "V...", "these numbers, over and over"}, 1, kMany, -1, values},
    Word{{"steps", "V...", "each number for an equal part of the input, the last also for the rest"},
         1,
         kMany,
         -1,
         steps},
    Word{
        {"patch", "C V W FROM TO", "C, but V in the square [FROM, TO)^2 of an image W wide"}, 5, 5, 2, patch},
    Word{{"uniform", "LOW HIGH", "drawn from [LOW, HIGH)"}, 2, 2, -1, uniform_values},
    Word{{"unit_rows", "D", "rows of D numbers drawn from [-1, 1), each row scaled to length 1"},
         1,
         1,
         0,
         unit_rows},
};

constexpr auto kTexts = [] {
  std::array<InputGenerator, kWords.size()> texts{};
  for (std::size_t i = 0; i < kWords.size(); ++i) texts[i] = kWords[i].text;
  return texts;
}();

struct Description {
  const Word* word = nullptr;
  Numbers numbers;
};

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t at = text.find_first_not_of(' '); at < text.size(); at = text.find_first_not_of(' ', at)) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

Result<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value)) return value;
  return Error{Code::usage, fmt::format("'{}' is not a number", text), "write it as 0.5 or 1e-3"};
}

Result<const Word*> word_of(std::string_view text, std::string_view name) {
  std::vector<std::string_view> known;
  for (const Word& word : kWords) {
    if (word.text.name == name) return &word;
    known.push_back(word.text.name);
  }
  return Error{Code::usage, fmt::format("'{}' describes no input", text),
               fmt::format("it begins with one of {}", fmt::join(known, ", "))};
}

Result<Description> parse_description(std::string_view text) {
  const auto parts = split(text);
  FULCRUM_TRY(const Word* word, word_of(text, parts.empty() ? std::string_view() : parts[0]));
  Numbers numbers;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    FULCRUM_TRY(const double value, number(parts[i]));
    numbers.push_back(value);
  }
  const std::string usage = fmt::format("write {} {}", word->text.name, word->text.arguments);
  if (numbers.size() < word->least || numbers.size() > word->most)
    return Error{Code::usage, fmt::format("'{}' has {} numbers", text, numbers.size()), usage};
  if (word->count_at >= 0) {
    const double count = numbers[static_cast<std::size_t>(word->count_at)];
    if (!(count >= 1 && count == std::floor(count) && count < 0x1p53))
      return Error{Code::usage, fmt::format("'{}': {} is no whole number above 0", text, count), usage};
  }
  return Description{word, std::move(numbers)};
}

struct Target {
  int pointer = 0;
  const Slot* slot = nullptr;
};

Result<Target> input_named(const Op& op, const std::string& name) {
  std::vector<std::string_view> known;
  int pointer = 0;
  for (const Slot& slot : op.slots) {
    const bool reads = slot.kind == SlotKind::in || slot.kind == SlotKind::inout;
    if (!reads && slot.kind != SlotKind::out) continue;
    if (reads && slot.name == name) return Target{pointer, &slot};
    if (reads) known.push_back(slot.name);
    ++pointer;
  }
  return Error{Code::usage, fmt::format("{} has no input '{}'", op.name, name),
               fmt::format("it has {}", fmt::join(known, ", "))};
}

template <class T, class Convert>
void store(std::span<std::byte> bytes, const Description& description, std::uint64_t key,
           const Convert& convert) {
  const std::span<T> target(reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T));
  std::vector<float> x(target.size());
  description.word->fill(description.numbers, key, x);
  std::transform(x.begin(), x.end(), target.begin(), convert);
}

Status fill_one(Problem& problem, const std::string& name, const std::string& text) {
  FULCRUM_TRY(const Target target, input_named(problem.op(), name));
  FULCRUM_TRY(const Description description, parse_description(text));
  const std::span<std::byte> bytes = problem.buffer(target.pointer);
  if (target.slot->optional && bytes.empty() && problem.op().extent(problem.args(), target.pointer) > 0) {
    return Error{Code::usage,
                 fmt::format("input {} of {} is not there to be filled", name, problem.op().name),
                 "make the problem with its optional inputs"};
  }
  const std::uint64_t key = tensor_key(target.pointer);
  const DType dtype = dtype_of(problem.op(), target.pointer, problem.shape().dtype);
  switch (dtype) {
    case DType::f32:
      description.word->fill(description.numbers, key,
                             {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)});
      return {};
    case DType::f16:
      store<std::uint16_t>(bytes, description, key, half_from_float);
      return {};
    case DType::bf16:
      store<std::uint16_t>(bytes, description, key, bfloat_from_float);
      return {};
    case DType::u8:
      store<std::uint8_t>(bytes, description, key,
                          [](float v) { return static_cast<std::uint8_t>(std::clamp(v, 0.0f, 255.0f)); });
      return {};
    default:
      return Error{Code::unsupported,
                   fmt::format("input {} of {} holds {}, which no description fills", name, problem.op().name,
                               to_string(dtype)),
                   "leave it away"};
  }
}

}  // namespace

std::span<const InputGenerator> input_generators() { return kTexts; }

Result<std::pair<std::string, std::string>> parse_input(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals != std::string_view::npos && equals > 0)
    return std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
  return Error{Code::usage, fmt::format("'{}' gives no input a description", text),
               "write NAME=DESCRIPTION, as in x='constant 0.1'"};
}

Status check_inputs(const Op& op, const InputTexts& inputs) {
  for (const auto& [name, text] : inputs) {
    FULCRUM_CHECK(input_named(op, name));
    FULCRUM_CHECK(parse_description(text));
  }
  return {};
}

bool names_optional(const Op& op, const InputTexts& inputs) {
  return std::any_of(op.slots.begin(), op.slots.end(), [&](const Slot& slot) {
    return slot.optional && inputs.contains(std::string(slot.name));
  });
}

Status fill_inputs(Problem& problem, const InputTexts& inputs) {
  for (const auto& [name, text] : inputs) FULCRUM_CHECK(fill_one(problem, name, text));
  if (!inputs.empty()) problem.adopt_inputs();
  return {};
}

std::string inputs_key(const InputTexts& inputs) {
  std::string key;
  for (const auto& [name, text] : inputs)
    key += fmt::format("{}{}={}", key.empty() ? "" : ",", name, fmt::join(split(text), "_"));
  return key;
}

}  // namespace fulcrum::ops
