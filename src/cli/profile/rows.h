// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The rows of a plan that come from a profile: every second of it belongs to exactly one, so that shares add up.
#pragma once

#include <fulcrum/core/profile.h>
#include <fulcrum/record/hot.h>

namespace fulcrum::cli {

struct CodeRow {
  enum class Kind : std::uint8_t {
    call,      // an op with its sizes, as a preloaded library or a region's name said
    op,        // a function that is named like an op; sizes are not known
    region,    // a FULCRUM_REGION
    function,  // code that nobody knows
    waiting,   // nobody ran
    rest,      // what is too small for a row of its own
  };
  Kind kind = Kind::function;
  std::string name;
  std::string function, module;  // where most of it was; empty: of several
  std::string op;                // empty: unknown code
  std::optional<Shape> shape;
  Doubtful share;
  double seconds = 0;  // of the profile's basis
  double calls = 0;    // 0: not known
  double threads = 1;  // inside at once
  bool recursive = false;
  double locks = 0, allocation = 0, system = 0;  // parts of the row spent below it in such calls
  const CpuProfile::Mix* mix = nullptr;
  std::map<std::string, double>
      math;               // parts of its CPU time in scalar functions of the math library, by name
  double iterations = 0;  // of the parallel loop around it, as seen; 0: not known
  double entries = 0;     // of that loop; 0: not known
  std::string parallel;   // what shows that it runs in parallel today; empty: nothing does
};

/// Largest share first, the rest last. A sample belongs to the innermost region that names an op, else to the outermost
/// function that is named like one, else to its innermost region, else to the function of the program (not of a system
/// library) that was running.
std::vector<CodeRow> code_rows(const CpuProfile& profile, const record::Hot& hot);

/// "matmul M=64,N=64,K=64" or "matmul": the op that a region's name begins with, and its sizes if they are there.
struct NamedOp {
  std::string op;
  std::optional<Shape> shape;
};
std::optional<NamedOp> named_op(std::string_view region);
/// The op whose longest symbol pattern the function's name matches; empty: none.
std::string op_of_symbol(std::string_view function);

}  // namespace fulcrum::cli
