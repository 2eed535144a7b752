// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Inputs by description: the ramps, constants and images on which other systems measured, instead of drawn numbers.
// A description is a word and its numbers, such as "constant 0.1" or "ramp 0.5 -250".
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// One word of the vocabulary.
struct InputGenerator {
  std::string_view name;
  std::string_view arguments;  // as help spells them
  std::string_view meaning;    // of element i among n
};
std::span<const InputGenerator> input_generators();

/// Generators by the name of the input they fill.
using InputTexts = std::map<std::string, std::string>;

/// "a=ramp 1 1" as typed: the name of the input and its description.
Result<std::pair<std::string, std::string>> parse_input(std::string_view text);
/// Whether every name is an input of the op and every description is understood.
Status check_inputs(const Op& op, const InputTexts& inputs);
/// Whether one of them is an input that a call may leave away: the problem must be made with those.
bool names_optional(const Op& op, const InputTexts& inputs);
/// Writes the inputs named into the problem and adopts them; the others keep what was drawn.
Status fill_inputs(Problem& problem, const InputTexts& inputs);
/// "a=index,b=ramp_1_1": stable and without blanks, as part of a row's name; empty for none.
std::string inputs_key(const InputTexts& inputs);

}  // namespace fulcrum::ops
