// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows into the page: one table a machine, the fastest variant of each kind of row, its peer and the CPU beside it.
#include "page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace fulcrum::results {
namespace {

constexpr std::string_view kHead =
    R"(<!-- Made by `cmake --build build --target results` from the files in results/. Do not edit. -->
# Results

Measured figures, each from a file in `results/<machine>/` as the program wrote it. Times are medians of one call with
the 95 % interval of the median. *device* is the time on the device alone, from replays of a recorded batch. *ceiling*
is the share of what `fulcrum machine` measured as the limit of that memory level, link or precision. *peer* is the
fastest library measured on the same machine, shape, type and regime: device time beside device time, calls beside
calls; above 1 x ours is faster. *CPU* is our fastest row on the host's cores. Rows marked *stale* were measured with
a kernel that has changed since. Where a row has several variants, the fastest is shown with its name.
)";

/// What a row is judged by: time on the device where it is known.
double judged(const Measurement& row) {
  return row.device_seconds ? row.device_seconds->median : row.seconds.median;
}

std::string regime_of(const Measurement& row) {
  std::string text(to_string(row.regime));
  if (row.regime == Regime::reuse) text += fmt::format("={}", row.reuse);
  if (!row.path.empty() && row.path != text) text += ", " + row.path;
  if (row.cache == Cache::cold) text += ", cold";
  return text;
}

/// Rows that differ in nothing but the variant have the same key.
std::string key_of(const Measurement& row) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", row.op, row.shape.text(), row.precision, row.backend,
                     regime_of(row), with_bias(row),
                     row.backend == "threads" || row.backend == "simd" ? "" : fmt::format("{}", row.threads));
}

bool is_ours(const Measurement& row) { return row.backend != "peers"; }

std::vector<const Measurement*> fastest_variants(const Folder& folder) {
  std::vector<const Measurement*> result;
  std::map<std::string, std::size_t> place;
  for (const Measurement& row : folder.rows) {
    if (!is_ours(row) || row.stop_reason == StopReason::invalid || row.ledger)
      continue;  // those have their own table
    const auto [known, is_new] = place.emplace(key_of(row), result.size());
    if (is_new) {
      result.push_back(&row);
    } else if (judged(row) < judged(*result[known->second])) {
      result[known->second] = &row;
    }
  }
  return result;
}

struct Beside {
  std::string name;
  Estimate seconds;
  bool device = false;
};

void keep_faster(std::optional<Beside>& best, Beside other) {
  if (other.seconds.median > 0 && (!best || other.seconds.median < best->seconds.median))
    best = std::move(other);
}

/// The fastest peer that did the same work in the same regime: device time against device time.
std::optional<Beside> peer_of(const Folder& folder, const Measurement& row) {
  std::optional<Beside> best;
  for (const Peer& peer : folder.peers) {
    if (peer.op != row.op || peer.precision != row.precision || peer.regime != to_string(row.regime) ||
        peer.cache != to_string(row.cache) || !(peer.shape == row.shape) || peer.bias != with_bias(row))
      continue;
    const bool device = row.device_seconds && peer.device_seconds;
    keep_faster(best, {peer.name, device ? *peer.device_seconds : peer.seconds, device});
  }
  if (row.regime != Regime::host) return best;
  for (const Measurement& other : folder.rows) {
    if (is_ours(other) || other.op != row.op || !(other.shape == row.shape) || other.cache != row.cache)
      continue;
    if (other.threads > row.threads && row.threads == 1) continue;  // one thread against one
    keep_faster(best, {other.variant, other.seconds, false});
  }
  return best;
}

std::optional<Beside> cpu_of(const Folder& folder, const Measurement& row) {
  std::optional<Beside> best;
  if (row.regime == Regime::host) return best;
  for (const Measurement& other : folder.rows) {
    if (!is_ours(other) || other.regime != Regime::host || other.op != row.op || !(other.shape == row.shape))
      continue;
    keep_faster(best, {other.backend, other.seconds, false});
  }
  return best;
}

std::string ratio(const std::optional<Beside>& beside, const Measurement& row) {
  if (!beside) return "";
  const double ours = beside->device ? judged(row) : row.seconds.median;
  return fmt::format("{} {}, {:.2f} x", beside->name, human_seconds(beside->seconds.median),
                     beside->seconds.median / ours);
}

std::string factor(double times) {
  return times < 0.1 ? fmt::format("{:.2g}", times) : fmt::format("{:.2f}", times);
}

/// The same with intervals; that of the factor is the widest that those of the two times allow.
std::string ratio_shown(const std::optional<Beside>& beside, const Measurement& row) {
  if (!beside) return "";
  const Estimate& ours = beside->device && row.device_seconds ? *row.device_seconds : row.seconds;
  const Estimate& theirs = beside->seconds;
  return fmt::format("{} {}, {} x [{}, {}]", beside->name, shown(theirs), factor(theirs.median / ours.median),
                     factor(theirs.ci_low / ours.ci_high), factor(theirs.ci_high / ours.ci_low));
}

std::string ceiling_of(const Measurement& row) {
  if (!row.ceiling) return "";
  // The fraction is that of the memory level; it says nothing of a row that arithmetic binds.
  if (row.ceiling->bound == "compute") return "compute bound";
  return fmt::format("{:.0f} % of {}", 100 * row.ceiling->fraction, row.ceiling->level);
}

bool is_stale(const Measurement& row, SourceHash source_hash) {
  const std::string now = source_hash(row.backend, row.op);
  return !now.empty() && !row.source_hash.empty() && now != row.source_hash;
}

std::string kernel_of(const Measurement& row, SourceHash source_hash) {
  std::string text = row.backend;
  if (row.variant != "default") text += "/" + row.variant;
  if (row.precision != "fp32") text += " " + row.precision;
  if (row.threads > 1) text += fmt::format(", {} threads", row.threads);
  return is_stale(row, source_hash) ? text + ", *stale*" : text;
}

void add_row(std::string& text, const Folder& folder, const Measurement& row, bool gpu,
             SourceHash source_hash) {
  const std::string shape = row.shape.text() + (with_bias(row) ? ", with bias" : "");
  text += fmt::format("| {} | {} | {} | {} | {} |", row.op, shape, kernel_of(row, source_hash),
                      regime_of(row), shown(row.seconds));
  if (gpu) text += fmt::format(" {} |", row.device_seconds ? shown(*row.device_seconds) : "");
  text += fmt::format(" {} | {} |", ceiling_of(row), ratio(peer_of(folder, row), row));
  if (gpu) text += fmt::format(" {} |", ratio(cpu_of(folder, row), row));
  text += "\n";
}

void add_ledger_check(std::string& text, const Json& document) {
  text +=
      "\nKnown delays put into a call, and where the ledger saw them:\n\n"
      "| delay | phase | known | seen | error |\n|---|---|---|---|---|\n";
  for (const Json& row : document["results"]) {
    text += fmt::format("| {} | {} | {} | {} | {:+.1f} % |\n", row["delay"].get<std::string>(),
                        row["phase"].get<std::string>(), human_seconds(row["known_seconds"].get<double>()),
                        human_seconds(row["seen_seconds"].get<double>()), 100 * row["error"].get<double>());
  }
}

void add_folder(std::string& text, const Folder& folder, SourceHash source_hash) {
  const bool gpu = std::any_of(folder.rows.begin(), folder.rows.end(),
                               [](const Measurement& row) { return row.regime != Regime::host; });
  text += fmt::format("\n## {}\n\n{}{}{}. Commits: {}.\n\n", folder.name, folder.device,
                      folder.driver.empty() ? "" : ", driver " + folder.driver,
                      folder.measured_utc.empty() ? "" : ", profile of " + folder.measured_utc.substr(0, 10),
                      fmt::join(folder.commits, ", "));
  text += gpu ? "| op | shape | kernel | regime | call | device | ceiling | peer | CPU "
                "|\n|---|---|---|---|---|---|---|---|---|\n"
              : "| op | shape | kernel | regime | call | ceiling | peer |\n|---|---|---|---|---|---|---|\n";
  auto rows = fastest_variants(folder);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Measurement* a, const Measurement* b) { return a->op < b->op; });
  for (const Measurement* row : rows) add_row(text, folder, *row, gpu, source_hash);
  text += turn_table(folder, source_hash) + trip_table(folder) + overlap_table(folder) +
          suite_tables(folder) + ledger_table(folder);
  for (const Json& check : folder.ledger_checks) add_ledger_check(text, check);
}

}  // namespace

std::string shown(const Estimate& seconds) {
  if (seconds.median <= 0) return "";
  return fmt::format("{} [{}, {}]", human_seconds(seconds.median), human_seconds(seconds.ci_low),
                     human_seconds(seconds.ci_high));
}

bool with_bias(const Measurement& row) {
  return std::find(row.flags.begin(), row.flags.end(), kWithBias) != row.flags.end();
}

std::string summary(const std::vector<Folder>& folders, SourceHash source_hash) {
  struct Wanted {
    const char *op, *shape, *dtype, *precision;
    Regime regime;
    const char* path = "";
  };
  constexpr Wanted kWanted[] = {
      {"vec_add", "n=1024", "f32", "fp32", Regime::roundtrip, "auto"},
      {"vec_add", "n=1048576", "f32", "fp32", Regime::roundtrip, "auto"},
      {"gelu", "n=1048576", "f32", "fp32", Regime::roundtrip, "auto"},
      {"softmax", "n=1048576", "f32", "fp32", Regime::roundtrip, "auto"},
      {"vec_add", "n=1048576", "f32", "fp32", Regime::resident},
      {"gelu", "n=1048576", "f32", "fp32", Regime::resident},
      {"dot", "n=1048576", "f32", "fp32", Regime::resident},
      {"softmax", "n=1048576", "f32", "fp32", Regime::resident},
      {"matmul", "M=1024,N=1024,K=1024", "f32", "fp32", Regime::resident},
      {"attention", "H=8,Sq=512,Skv=512,D=64", "f16", "fp16", Regime::resident},
      {"cosine_topk", "Q=16,N=100000,D=768,normalized=yes", "f32", "fp32", Regime::resident},
      {"lstm_cell", "B=32,I=64,H=128", "f32", "fp32", Regime::resident},
      {"conv2d", "h=1080,w=1920,kh=3,kw=3,pad_y=1,pad_x=1", "f32", "fp32", Regime::resident},
      {"pixel_entropy", "h=1080,w=1920,W=9", "f32", "fp32", Regime::resident},
      {"vec_add", "n=1048576", "f32", "fp32", Regime::overlapped, "overlapped"},
  };
  std::string text;
  for (const Folder& folder : folders) {
    const auto rows = fastest_variants(folder);
    std::string lines;
    for (const Wanted& wanted : kWanted) {
      const auto shape = shape_from(wanted.op, wanted.shape, wanted.dtype);
      const auto row = std::find_if(rows.begin(), rows.end(), [&](const Measurement* one) {
        return one->op == wanted.op && shape.ok() && one->shape == *shape &&
               one->precision == wanted.precision && one->regime == wanted.regime &&
               one->path == wanted.path && !with_bias(*one);
      });
      if (row == rows.end()) continue;
      const Measurement& m = **row;
      const auto cpu = cpu_of(folder, m);
      if (!cpu) continue;  // no GPU time without the best CPU beside it
      lines += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", m.op, wanted.shape, to_string(m.regime),
                           shown(m.seconds) + (is_stale(m, source_hash) ? ", *stale*" : ""),
                           m.device_seconds ? shown(*m.device_seconds) : "", ratio_shown(cpu, m),
                           ratio_shown(peer_of(folder, m), m));
    }
    if (lines.empty()) continue;
    text += fmt::format(
        "\n{}, from `results/{}/`: time of a call, and on the device alone where its data stays there; the "
        "host's best "
        "CPU kernel and the fastest peer with their times, and how many times faster the GPU's call is than "
        "the first, "
        "and ours than the second (device time beside device time). Times have their intervals at 95 %; the "
        "interval of a factor is the widest that those two allow. *Stale*: the GPU's kernel has changed "
        "since.\n\n"
        "| op | shape | regime | call | device | best CPU | peer |\n|---|---|---|---|---|---|---|\n{}",
        folder.device, folder.name, lines);
  }
  return text;
}

std::string page(const std::vector<Folder>& folders, SourceHash source_hash) {
  std::string text(kHead);
  for (const Folder& folder : folders) {
    if (!folder.rows.empty()) add_folder(text, folder, source_hash);
  }
  return text;
}

}  // namespace fulcrum::results
