// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a GPU trace says of itself as a whole.
#include <fulcrum/core/trace.h>

#include <algorithm>

namespace fulcrum {

double GpuTrace::traced_share() const {
  if (windows.empty() || ops.empty()) return 1;
  std::int64_t begin = ops.front().begin_ns, end = ops.front().end_ns;
  for (const Op& op : ops) {
    begin = std::min(begin, op.begin_ns);
    end = std::max(end, op.end_ns);
  }
  if (end <= begin) return 1;
  // What a program did behind its last window nobody saw.
  const auto end_of = [&](std::size_t process) { return std::max(processes[process].end_ns, end); };
  // A process without windows was traced all the time; the others by their own.
  std::vector<double> covered(processes.size(), -1);
  for (const Window& window : windows) {
    if (window.process >= covered.size()) continue;
    double& sum = covered[window.process];
    const std::int64_t from = std::max(begin, window.begin_ns),
                       to = std::min(end_of(window.process), window.end_ns);
    sum = std::max(sum, 0.0) + static_cast<double>(std::max<std::int64_t>(0, to - from));
  }
  // Shares of the processes that used a GPU, each with the same weight.
  std::vector<bool> used(processes.size(), false);
  for (const Op& op : ops) {
    if (op.stream < streams.size() && streams[op.stream].process < used.size())
      used[streams[op.stream].process] = true;
  }
  double shares = 0, count = 0;
  for (std::size_t i = 0; i < covered.size(); ++i) {
    if (!used[i]) continue;
    shares += covered[i] < 0 ? 1 : std::min(1.0, covered[i] / static_cast<double>(end_of(i) - begin));
    count += 1;
  }
  return count > 0 ? shares / count : 1;
}

std::int64_t GpuTrace::dropped() const {
  std::int64_t sum = 0;
  for (const Process& process : processes) sum += process.dropped;
  return sum;
}

}  // namespace fulcrum
