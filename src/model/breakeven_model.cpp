// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Break-even curves: by the model over a range of sizes, or from the cells that were measured along it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/calibration.h"
#include "model/curves.h"

namespace fulcrum::model {
namespace {

constexpr int kPerOctave = 3;
constexpr double kUsableMemory = 0.9;  // of the device
constexpr double kNearTheEnd = 0.7;    // of a range: what was measured up to here speaks for its end

CurvePoint point_of(double n, const Prediction& p) {
  return {n, p.seconds, p.low > 0 ? p.low : p.seconds, std::max(p.high, p.seconds), p.grade == Grade::a};
}

bool is_link(const std::string& name) {
  return name == "in" || name == "out" || name == "shared in" || name == "both ways" || name == "fill" ||
         name == "transfers" || name == "migrate" || name == "link";
}

double link_share(const Prediction& p) {
  double link = 0;
  for (const Term& term : p.terms) link += term.counted && is_link(term.name) ? term.seconds : 0;
  return p.seconds > 0 ? link / p.seconds : 0;
}

std::vector<double> grid(double from, double to) {
  std::vector<double> sizes;
  const int steps = std::max(1, static_cast<int>(std::ceil(kPerOctave * std::log2(to / from))));
  for (int i = 0; i <= steps; ++i) {
    const double n = std::round(from * std::pow(to / from, static_cast<double>(i) / steps));
    if (sizes.empty() || n > sizes.back()) sizes.push_back(n);
  }
  return sizes;
}

// The size of a cell along the dim, if the cell lies on it.
std::optional<double> size_of(const Cell& cell, const Sizes& sizes) {
  const Shape::Value* value = cell.call.op == sizes.op ? cell.call.shape.find(sizes.dim) : nullptr;
  if (!value || !std::holds_alternative<std::int64_t>(*value)) return {};
  if (cell.call.precision != (cell.where == "cpu" ? host_precision(cell.call) : sizes.precision)) return {};
  const auto n = static_cast<double>(std::get<std::int64_t>(*value));
  const auto call = call_of(sizes.op, shape_at(sizes, n), sizes.precision);
  if (!call.ok() || !(call->shape == cell.call.shape)) return {};
  return n;
}

// The grid and every size that was measured: there the curve is the measurement.
std::vector<double> sizes_of_curve(const Model& model, const Sizes& sizes) {
  std::vector<double> all = grid(sizes.from, sizes.to);
  for (const Calibration* calibration : {&model.host_calibration(), &model.gpu_calibration()}) {
    for (const Cell& cell : calibration->cells()) {
      const auto n = size_of(cell, sizes);
      if (n && *n >= sizes.from && *n <= sizes.to) all.push_back(*n);
    }
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

struct End {
  Call call;
  Prediction cpu, gpu;
};

// A larger call takes no less than a smaller one: predictions stay between the two measured sizes around them, and
// beyond the last one above it. `curve` is in order of size.
void keep_between_measured(std::vector<CurvePoint>& curve) {
  const auto measured = [](const CurvePoint& p) { return p.measured; };
  for (auto point = curve.begin(); point != curve.end(); ++point) {
    if (point->measured) continue;
    const auto below = std::find_if(std::make_reverse_iterator(point), curve.rend(), measured);
    const auto above = std::find_if(point, curve.end(), measured);
    double least = below == curve.rend() ? 0 : below->low;
    double most = above == curve.end() ? INFINITY : above->high;
    if (least > most) std::swap(least, most);  // where they contradict each other, between them all the same
    for (double* value : {&point->seconds, &point->low, &point->high}) {
      *value = std::clamp(*value, least, most);
    }
  }
}

std::string link_text(const Model& model, const End& end) {
  const double link_bytes = end.call.work.link_in_bytes + end.call.work.link_out_bytes;
  const double link_seconds = link_share(end.gpu) * end.gpu.seconds;
  const Prediction resident = model.gpu(end.call, {.regime = Regime::resident});
  const bool wins = resident.valid() && resident.seconds < end.cpu.seconds;
  return fmt::format("link {} < CPU memory {}{}", human_rate(link_bytes / std::max(link_seconds, 1e-12)),
                     human_rate(end.call.work.bytes() / end.cpu.seconds), wins ? "; wins if resident" : "");
}

CurveFacts facts_of(const Model& model, const Sizes& sizes, double floor, const End& end) {
  CurveFacts facts;
  facts.floor_seconds = floor;
  facts.largest_seen = sizes.largest_seen;
  facts.link_share = link_share(end.gpu);
  if (facts.link_share > 0.5) facts.link_text = link_text(model, end);
  return facts;
}

double reuse_at(const Model& model, const End& end) {
  const Prediction trip = model.gpu(end.call, {.regime = Regime::roundtrip});
  const Prediction resident = model.gpu(end.call, {.regime = Regime::resident});
  if (!trip.valid() || !resident.valid() || !end.cpu.valid() || trip.seconds < end.cpu.seconds) return 0;
  return reuse_needed(end.cpu.seconds, resident.seconds, std::max(0.0, trip.seconds - resident.seconds));
}

void label(BreakEven& out, const Model& model, const Sizes& sizes, const GpuUse& use) {
  out.op = sizes.op;
  out.dim = sizes.dim;
  out.machine = model.gpu_machine() ? model.gpu_machine()->id : "";
  out.shape = sizes.shape;
  out.regime = use.regime;
  out.reuse = use.reuse;
}

// What an answer rests on: the sizes on either side of the crossing, or the end of the range.
Grade grade_at(const std::map<double, Grade>& grades, double n) {
  if (grades.empty()) return Grade::c;
  auto after = grades.lower_bound(n);
  if (after == grades.end()) return std::prev(after)->second;
  return after == grades.begin() ? after->second : std::max(after->second, std::prev(after)->second);
}

Result<Call> call_at(const Sizes& sizes, double n) {
  return call_of(sizes.op, shape_at(sizes, n), sizes.precision);
}

}  // namespace

Shape shape_at(const Sizes& sizes, double n) {
  Shape shape = sizes.shape;
  const auto size = static_cast<std::int64_t>(std::llround(n));
  shape.set(sizes.dim, size);
  for (const std::string& dim : sizes.dims) shape.set(dim, size);
  return shape;
}

Result<BreakEven> breakeven(const Model& model, const Sizes& sizes, const GpuUse& use) {
  if (!(sizes.from >= 1) || !(sizes.to > sizes.from)) {
    return Error{Code::usage, fmt::format("sizes from {} to {} are no range", sizes.from, sizes.to),
                 "give a smallest size of at least 1 and a larger end"};
  }
  std::vector<CurvePoint> cpu, gpu;
  std::optional<Error> refused;
  std::string missing;
  std::optional<End> end;
  std::map<double, Grade> grades;  // the worse side at each size
  double floor = 0;
  const double room = model.gpu() ? kUsableMemory * static_cast<double>(model.gpu()->memory_bytes) : 0;
  for (const double n : sizes_of_curve(model, sizes)) {
    auto call = call_at(sizes, n);
    if (!call.ok()) {  // a size that the op refuses (k above N) is no point of the curve
      refused = call.error();
      continue;
    }
    if (room > 0 && call->working_set() > room) break;
    Prediction on_cpu = model.cpu(*call), on_gpu = model.gpu(*call, use);
    if (!on_cpu.valid() || !on_gpu.valid()) {
      missing = !on_cpu.valid() ? "CPU: " + on_cpu.missing : "GPU: " + on_gpu.missing;
      continue;
    }
    cpu.push_back(point_of(n, on_cpu));
    gpu.push_back(point_of(n, on_gpu));
    floor = floor > 0 ? std::min(floor, on_gpu.seconds) : on_gpu.seconds;
    grades[n] = std::max(on_cpu.grade, on_gpu.grade);
    end = End{std::move(*call), std::move(on_cpu), std::move(on_gpu)};
  }
  if (!end && missing.empty() && refused) return *refused;
  keep_between_measured(cpu);
  keep_between_measured(gpu);
  BreakEven out =
      breakeven_of(std::move(cpu), std::move(gpu), end ? facts_of(model, sizes, floor, *end) : CurveFacts{});
  label(out, model, sizes, use);
  out.grade = grade_at(grades, out.kind == BreakEven::Kind::at ? out.n : sizes.to);
  if (!end) {
    out.text = "no prediction: " + missing;
    return out;
  }
  if (out.kind == BreakEven::Kind::never && use.regime == Regime::roundtrip)
    out.reuse_needed = reuse_at(model, *end);
  return out;
}

Result<BreakEven> breakeven_measured(const Model& model, const Sizes& sizes, const GpuUse& use) {
  std::map<double, CurvePoint> cpu, gpu;
  const auto put = [](std::map<double, CurvePoint>& curve, double n, const Cell& cell) {
    const CurvePoint point{n, cell.seconds, cell.low, cell.high, true};
    const auto [place, fresh] = curve.try_emplace(n, point);
    if (!fresh && point.seconds < place->second.seconds) place->second = point;
  };
  for (const Cell& cell : model.host_calibration().cells()) {
    if (cell.where != "cpu") continue;
    if (const auto n = size_of(cell, sizes)) put(cpu, *n, cell);
  }
  for (const Cell& cell : model.gpu_calibration().cells()) {
    if (cell.where != "gpu" || cell.regime != use.regime || (!use.path.empty() && cell.path != use.path))
      continue;
    if (use.regime == Regime::reuse && cell.reuse != use.reuse) continue;
    if (const auto n = size_of(cell, sizes)) put(gpu, *n, cell);
  }
  std::vector<CurvePoint> cpu_curve, gpu_curve;
  for (const auto& [n, point] : cpu) cpu_curve.push_back(point);
  for (const auto& [n, point] : gpu) gpu_curve.push_back(point);
  CurveFacts facts;
  if (!gpu_curve.empty() && !cpu_curve.empty()) {
    const double to = std::min(cpu_curve.back().n, gpu_curve.back().n);
    const auto least =
        std::min_element(gpu_curve.begin(), gpu_curve.end(),
                         [](const CurvePoint& a, const CurvePoint& b) { return a.seconds < b.seconds; });
    if (auto call = call_at(sizes, to); call.ok()) {
      End end{*call, model.cpu(*call), model.gpu(*call, use)};
      if (end.cpu.valid() && end.gpu.valid()) facts = facts_of(model, sizes, least->seconds, end);
    }
  }
  const double end =
      cpu_curve.empty() || gpu_curve.empty() ? 0 : std::min(cpu_curve.back().n, gpu_curve.back().n);
  BreakEven out = breakeven_of(std::move(cpu_curve), std::move(gpu_curve), facts);
  label(out, model, sizes, use);
  // A loss at the largest size that was measured says nothing about larger ones.
  if (out.kind == BreakEven::Kind::never && end < kNearTheEnd * sizes.to) {
    out.kind = BreakEven::Kind::unknown;
    out.text =
        fmt::format("not known: the CPU wins up to n = {}, and nothing larger was measured", size_text(end));
  }
  out.grade = Grade::a;
  out.measured = true;
  return out;
}

}  // namespace fulcrum::model
