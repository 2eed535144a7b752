// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Gain against effort, and the one order of the rows.
#include <fulcrum/model.h>

#include <algorithm>
#include <array>

namespace fulcrum::model {

Doubtful effort_class(int level) {
  static constexpr std::array<double, 4> kDays{0.5, 2, 5, 15};
  const double days = kDays[static_cast<std::size_t>(std::clamp(level, 0, 3))];
  return {days, days / 2, days * 2, true};
}

void assess(PlanRow& row) {
  row.saved = saved_share(row.share, row.speedup);
  const Part part{row.share, row.speedup};
  row.end_to_end = amdahl(std::span(&part, 1));
  row.end_to_end_cpu = {1, 1, 1, row.share.assumed};
  if (row.now.valid() && row.best_cpu.valid()) {
    const Part cpu{row.share, speedup_of(row.now, row.best_cpu)};
    row.end_to_end_cpu = amdahl(std::span(&cpu, 1));
  }
  const double effort = row.effort_days.value;
  row.rank = effort > 0 ? row.saved.value * row.frequency.value / effort : 0;
  row.engram_score = effort > 0 ? row.share.value * row.speedup.value * row.frequency.value / effort : 0;
}

Doubtful speedup_of(const Prediction& now, const Prediction& then) {
  if (!now.valid() || !then.valid()) return {1, 1, 1, true};
  // Nothing changes: whatever its time is, it is the same time.
  if (now.where == then.where && now.way == then.way && now.seconds == then.seconds) return {1, 1, 1, false};
  Doubtful out{now.seconds / then.seconds, now.low / then.high, now.high / then.low, false};
  out.assumed = then.grade == Grade::d || now.grade == Grade::d;
  return out;
}

void order_rows(std::vector<PlanRow>& rows) {
  std::sort(rows.begin(), rows.end(), [](const PlanRow& a, const PlanRow& b) {
    if (a.rank != b.rank) return a.rank > b.rank;
    return a.name != b.name ? a.name < b.name : a.action < b.action;
  });
  // The interval of a rank is that of the saved share: frequency and effort are the caller's word.
  const auto scale = [](const PlanRow& r) {
    return r.effort_days.value > 0 ? r.frequency.value / r.effort_days.value : 0;
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].tie = i > 0 && rows[i].saved.high * scale(rows[i]) >= rows[i - 1].saved.low * scale(rows[i - 1]);
  }
}

}  // namespace fulcrum::model
