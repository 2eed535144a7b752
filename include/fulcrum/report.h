// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a person or a script reads: terminal tables and the documents of other tools. Everything here is text made
// from plain data; printing it is the command line's business.
#pragma once

#include <fulcrum/core.h>
#include <fulcrum/core/plan.h>

namespace fulcrum::report {

enum class Align : std::uint8_t { left, right };
enum class Tone : std::uint8_t { plain, good, warn, bad, dim, strong };

struct Cell {
  std::string text;
  Tone tone = Tone::plain;
  Cell(std::string words, Tone colour = Tone::plain) : text(std::move(words)), tone(colour) {}
  Cell(const char* words, Tone colour = Tone::plain) : text(words), tone(colour) {}
};

/// Columns sized to their content (by display width), two spaces apart, header underlined by nothing: whitespace
/// does it. Columns that hold the same text in every row can be folded into the caption.
class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::left;
    bool foldable = false;
    int spare = 0;  // columns with a higher number go first when there is no room; 0: never
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row);
  bool empty() const { return rows_.empty(); }
  /// Takes out the foldable columns that hold one text in every row and returns "title text, title text"; columns
  /// without any text go silently.
  std::string fold();
  /// Takes out spare columns until a line fits `width`; returns the titles of those that went.
  std::vector<std::string> narrow(int width);
  std::string text(bool colour) const;
  std::string markdown() const;
  std::string csv() const;

 private:
  std::vector<int> widths() const;
  void remove(std::size_t column);
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

std::string paint(std::string_view text, Tone tone, bool colour);
/// Words wrapped at `width`, continuation lines indented.
std::string wrap(std::string_view text, int width, int indent);
/// Columns a terminal needs for UTF-8 text: wide characters take two, combining ones none.
int display_width(std::string_view text);

/// "20.3 us +-0.4 %" from an estimate, and "14.8x [14.6, 15.0]" from a comparison.
std::string estimate_text(const Estimate& estimate);
std::string speedup_text(const Comparison& comparison);
/// "simd/default is 14.8x [14.6, 15.0] the speed of scalar/default", or why there is no such number.
std::string comparison_sentence(const Comparison& comparison);
/// Half the width of the median's interval, relative to the median; NaN when too few samples gave it.
double half_width(const Estimate& estimate);
/// What a flag of a measurement means and what to do about it, in one sentence; empty for a flag not known here.
std::string explain_flag(std::string_view flag);

Table measurement_table(const std::vector<Measurement>& rows);
Table comparison_table(const std::vector<Comparison>& rows);
/// Where the seconds of one call went: phases that took any, what no phase explains, the traced and the bare call.
Table ledger_table(const Ledger& ledger);
/// Whole commands: no ceilings and no oracle, but processor time and memory.
struct CommandFacts {
  double user_seconds = 0, system_seconds = 0;  // medians
  std::int64_t peak_bytes = 0;
  std::vector<int> exit_codes;
};

/// A row that was asked for and has no time: why, and the code of the error behind it.
struct NotMeasured {
  std::string row, reason, hint;
  Code code = Code::unsupported;
};

/// fulcrum.bench/1: everything a bench run found.
struct BenchDocument {
  Machine machine;  // topology is enough
  std::vector<Measurement> results;
  std::vector<Comparison> comparisons;
  std::vector<Measurement> processes;            // the single processes behind merged rows, by row()
  std::map<std::string, CommandFacts> commands;  // by row()
  std::vector<NotMeasured> not_measured;
};
Table command_table(const BenchDocument& document);
Json bench_json(const BenchDocument& document);
/// Documents of other tools made from the same struct.
Json google_benchmark_json(const BenchDocument& document);
std::string csv(const BenchDocument& document);
std::string markdown(const BenchDocument& document);

/// A machine profile as tables: ceilings of one machine, or of two side by side.
std::string machine_text(const Machine& machine, bool colour);
std::string machine_comparison(const Machine& a, const Machine& b, bool colour);

/// A plan as a person reads it in a terminal: the verdict, then the matrix in the plan's own order.
std::string plan_text(const Plan& plan, bool colour, int width);
Table plan_table(const Plan& plan);
/// Why one row says what it says: the parts of each time in microseconds, and the ways that lost.
std::string explain_text(const PlanRow& row, bool colour, int width);
/// The parts of one prediction, a line each.
Table terms_table(const Prediction& prediction);
/// Sizes and times on both sides, and what follows from them.
std::string breakeven_text(const BreakEven& breakeven, bool colour, int width);
Table roofline_table(const Roofline& roofline);
/// "12.3 us B" or why there is no number.
std::string prediction_text(const Prediction& prediction);
/// "2.06x [1.90, 2.20]", with "(assumed)" where nobody measured it.
std::string doubtful_text(const Doubtful& value, std::string_view unit);

/// A CPU profile in a terminal: where the time goes, with the doubt of each share, threads, regions, changes, and what
/// sampling itself cost. At most `top` functions.
std::string profile_text(const ProfileSummary& profile, int top, bool colour, int width);

/// The whole report as one HTML file that needs nothing else, as Markdown for a pull request, and as JSON.
std::string html(const Report& report);
std::string markdown(const Report& report);

}  // namespace fulcrum::report
