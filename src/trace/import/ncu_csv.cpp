// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// `ncu --csv`: one row a metric, or with --page raw one row a kernel and one column a metric. Its kernels are joined to
// those of a trace by name, grid and block; its times are those of replays and say nothing about the run.
#include <fmt/format.h>
#include <fulcrum/trace.h>

#include <algorithm>
#include <array>
#include <set>

#include "trace/import/csv.h"

namespace fulcrum::trace {
namespace {

/// What one kernel at one shape was measured to do, summed over its launches.
struct Measured {
  std::string name;
  std::int64_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  std::set<std::string> launches;
  std::map<std::string, std::pair<double, int>> sums;  // and how many
};

/// The details page shows these instead of the names that the counters have.
constexpr std::array kShown{
    std::pair{"Compute (SM) Throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed"},
    std::pair{"SM [%]", "sm__throughput.avg.pct_of_peak_sustained_elapsed"},
    std::pair{"Memory Throughput", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"},
    std::pair{"DRAM Throughput", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"},
    std::pair{"L1/TEX Cache Throughput", "l1tex__throughput.avg.pct_of_peak_sustained_active"},
    std::pair{"L2 Cache Throughput", "lts__throughput.avg.pct_of_peak_sustained_elapsed"},
    std::pair{"L1/TEX Hit Rate", "l1tex__t_sector_hit_rate.pct"},
    std::pair{"L2 Hit Rate", "lts__t_sector_hit_rate.pct"},
    std::pair{"Achieved Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active"},
    std::pair{"Theoretical Occupancy", "sm__maximum_warps_per_active_cycle_pct"},
    std::pair{"Waves Per SM", "launch__waves_per_multiprocessor"},
    std::pair{"Registers Per Thread", "launch__registers_per_thread"},
    std::pair{"Duration", "gpu__time_duration.sum"}};

std::string counter_name(const std::string& shown, const std::string& unit) {
  for (const auto& [words, name] : kShown) {
    // "Memory Throughput" is shown twice, as a share and in bytes a second.
    if (shown == words && !unit.starts_with("byte/")) return name;
  }
  return shown;
}

/// Units lose their prefixes: bytes, hertz, nanoseconds. The unit that is left comes back.
std::string base_unit(std::string unit, double& value) {
  constexpr std::array kPrefixes{std::pair{'K', 1e3}, std::pair{'M', 1e6}, std::pair{'G', 1e9},
                                 std::pair{'T', 1e12}, std::pair{'P', 1e15}};
  constexpr std::array kTimes{std::pair{"second", 1e9}, std::pair{"msecond", 1e6}, std::pair{"usecond", 1e3},
                              std::pair{"s", 1e9},      std::pair{"ms", 1e6},      std::pair{"us", 1e3}};
  for (const auto& [name, factor] : kTimes) {
    if (unit != name) continue;
    value *= factor;
    return "nsecond";
  }
  for (const auto& [prefix, factor] : kPrefixes) {
    if (unit.size() < 2 || unit[0] != prefix || !(unit[1] == 'b' || unit[1] == 'h' || unit[1] == 'i'))
      continue;
    value *= factor;
    return unit.substr(1);
  }
  return unit;
}

/// "(132, 1, 1)"
bool read_three(std::string_view text, std::int64_t (&to)[3]) {
  std::size_t at = 0;
  for (std::int64_t& number : to) {
    at = text.find_first_of("0123456789", at);
    if (at == text.npos) return false;
    number = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && number < (std::int64_t{1} << 40); ++at)
      number = number * 10 + (text[at] - '0');
  }
  return true;
}

class Table {
 public:
  explicit Table(CsvRow header) : header_(std::move(header)) {
    id_ = column("ID");
    name_ = column("Kernel Name");
    grid_ = column("Grid Size");
    block_ = column("Block Size");
    metric_ = column("Metric Name");
    unit_ = column("Metric Unit");
    value_ = column("Metric Value");
    units_.resize(header_.size());
  }
  bool usable() const { return name_ >= 0 && grid_ >= 0 && block_ >= 0; }
  bool is_long() const { return metric_ >= 0 && value_ >= 0; }

  void add(const CsvRow& row, std::vector<Measured>& all) {
    if (row.size() != header_.size()) return void(++left_out_);
    if (row[at(name_)].empty()) return void(units_ = row);  // the row of units under a wide header
    Measured kernel{.name = row[at(name_)]};
    if (!read_three(row[at(grid_)], kernel.grid) || !read_three(row[at(block_)], kernel.block))
      return void(++left_out_);
    Measured& into = place(kernel, all);
    into.launches.insert(id_ >= 0 ? row[at(id_)] : std::to_string(into.launches.size()));
    if (is_long()) {
      take(into, row[at(metric_)], unit_ >= 0 ? row[at(unit_)] : "", row[at(value_)]);
      return;
    }
    for (std::size_t i = 0; i < row.size(); ++i) {
      // Hundreds of facts about the device stand in every row.
      if (header_[i].find("__") != std::string::npos && !header_[i].starts_with("device__"))
        take(into, header_[i], units_[i], row[i]);
    }
  }
  int left_out() const { return left_out_; }

 private:
  static std::size_t at(int column) { return static_cast<std::size_t>(column); }
  int column(std::string_view name) const {
    const auto found = std::find(header_.begin(), header_.end(), name);
    return found == header_.end() ? -1 : static_cast<int>(found - header_.begin());
  }
  static Measured& place(const Measured& kernel, std::vector<Measured>& all) {
    const auto same = [&](const Measured& known) {
      return known.name == kernel.name && std::equal(known.grid, known.grid + 3, kernel.grid) &&
             std::equal(known.block, known.block + 3, kernel.block);
    };
    const auto found = std::find_if(all.begin(), all.end(), same);
    return found == all.end() ? all.emplace_back(kernel) : *found;
  }
  static void take(Measured& into, const std::string& metric, const std::string& unit,
                   const std::string& text) {
    double value = 0;
    if (metric.empty() || !parse_number(text, value)) return;
    const std::string base = base_unit(unit, value);
    auto& [sum, count] = into.sums[counter_name(metric, base)];
    sum += value;
    ++count;
  }

  CsvRow header_, units_;
  int id_ = -1, name_ = -1, grid_ = -1, block_ = -1, metric_ = -1, unit_ = -1, value_ = -1;
  int left_out_ = 0;
};

/// The name without return type, template arguments and parameters: tools spell those differently.
std::string bare_name(std::string_view name) {
  std::string kept;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (name.substr(i).starts_with("(anonymous namespace)")) {
      i += std::string_view("(anonymous namespace)").size() - 1;
      continue;
    }
    if (c == '<') ++depth;
    if (c == '(' && depth == 0) break;
    if (depth == 0) kept += c;
    if (c == '>' && depth > 0) --depth;
  }
  while (kept.ends_with(' ')) kept.pop_back();
  const std::size_t last = kept.find_last_of(" :");
  return last == std::string::npos ? kept : kept.substr(last + 1);
}

std::string without_spaces(std::string_view text) {
  std::string kept;
  std::copy_if(text.begin(), text.end(), std::back_inserter(kept), [](char c) { return c != ' '; });
  return kept;
}

/// Shapes of the trace that a measured kernel is: those of its very name, else those whose bare name is the same.
std::vector<std::uint32_t> matches(const GpuTrace& trace, const Measured& kernel) {
  std::vector<std::uint32_t> exact, bare;
  for (std::uint32_t i = 0; i < trace.shapes.size(); ++i) {
    const LaunchShape& shape = trace.shapes[i];
    if (!std::equal(shape.grid, shape.grid + 3, kernel.grid) ||
        !std::equal(shape.block, shape.block + 3, kernel.block)) {
      continue;
    }
    if (without_spaces(shape.name) == without_spaces(kernel.name)) exact.push_back(i);
    if (bare_name(shape.name) == bare_name(kernel.name)) bare.push_back(i);
  }
  return exact.empty() ? bare : exact;
}

}  // namespace

Status add_ncu(GpuTrace& trace, std::string_view csv, std::string_view origin) {
  std::vector<Measured> kernels;
  std::optional<Table> table;
  CsvRow row;
  // The program's own output and lines of ncu stand before the header.
  while (next_row(csv, row)) {
    if (std::find(row.begin(), row.end(), "Kernel Name") != row.end()) {
      table.emplace(row);
    } else if (table && table->usable() && row.size() > 1) {
      table->add(row, kernels);
    }
  }
  if (!table || !table->usable())
    return Error{Code::corrupt, fmt::format("{} has no table of kernels", origin),
                 "write it with: ncu --csv --page raw --set full PROGRAM > FILE"};
  std::size_t joined = 0;
  for (const Measured& kernel : kernels) {
    const std::vector<std::uint32_t> found = matches(trace, kernel);
    joined += found.empty() ? 0 : 1;
    for (const std::uint32_t shape : found) {
      GpuTrace::KernelCounters counters{.shape = shape,
                                        .origin = std::string(origin),
                                        .launches = static_cast<int>(kernel.launches.size())};
      for (const auto& [name, sum] : kernel.sums) counters.metrics[name] = sum.first / sum.second;
      trace.kernel_counters.push_back(std::move(counters));
    }
  }
  if (joined == 0)
    return Error{Code::not_found,
                 fmt::format("none of the {} kernels in {} is in the trace", kernels.size(), origin),
                 "they are joined by name, grid and block: profile the same program with the same sizes"};
  if (joined < kernels.size())
    trace.notes.push_back(fmt::format("{}: {} of {} kernels are not in the trace with that grid and block",
                                      origin, kernels.size() - joined, kernels.size()));
  if (table->left_out() > 0)
    trace.notes.push_back(fmt::format("{}: {} lines could not be read", origin, table->left_out()));
  return {};
}

}  // namespace fulcrum::trace
