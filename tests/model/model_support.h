// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Machines, predictions and curves for the tests of the model, and the results that lie in the tree.
#pragma once

#include <fulcrum/model.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace fulcrum::model::test {

inline Quantity rate(double value, Source source = Source::measured) { return {value, value, value, source}; }

inline MemoryLevel level(std::string name, std::int64_t capacity, int shared, double one, double all) {
  MemoryLevel l;
  l.name = std::move(name);
  l.capacity_bytes = capacity;
  l.shared_by_threads = shared;
  for (const char* mix : {"read", "copy", "triad"}) {
    l.one_thread[mix] = rate(one);
    l.all_threads[mix] = rate(all);
  }
  return l;
}

/// 16 threads: 32 MiB of L2, DRAM of 73 GB/s.
inline Machine desk() {
  Machine m;
  m.id = "desk";
  m.cpu.threads = 16;
  m.cpu.levels = {level("L1", 49152, 1, 300e9, 4000e9), level("L2", 2097152, 1, 80e9, 700e9),
                  level("DRAM", 0, 16, 21e9, 73e9)};
  m.cpu.flops_one_thread = {{"avx3", rate(150e9)}, {"scalar", rate(8e9)}};
  m.cpu.flops_all_threads = {{"avx3", rate(1500e9)}, {"scalar", rate(100e9)}};
  m.cpu.fork_join_seconds = rate(3e-6);
  return m;
}

/// Seconds = wait + bytes / rate at powers of four.
inline std::vector<std::pair<std::int64_t, Quantity>> line(double wait, double bytes_per_second) {
  std::vector<std::pair<std::int64_t, Quantity>> table;
  for (std::int64_t bytes = 4; bytes <= (std::int64_t{1} << 30); bytes *= 4) {
    table.emplace_back(bytes, rate(wait + static_cast<double>(bytes) / bytes_per_second));
  }
  return table;
}

inline Machine device(Source source = Source::measured) {
  Machine m;
  m.id = "device";
  GpuCeilings gpu;
  gpu.name = "Device";
  gpu.sms = 132;
  gpu.l2_bytes = 62914560;
  gpu.memory_bytes = 150'000'000'000;
  gpu.max_sm_hz = 1.98e9;
  for (const char* mix : {"hbm_read", "hbm_copy", "hbm_add", "hbm_write"})
    gpu.rates[mix] = rate(4.5e12, source);
  for (const char* mix : {"l2_read", "l2_copy"}) gpu.rates[mix] = rate(9e12, source);
  gpu.flops = {{"fp32", rate(65e12, source)}, {"tf32", rate(411e12, source)}};
  gpu.latencies = {{"launch", rate(3.6e-6)},
                   {"launch_sync", rate(8.9e-6)},
                   {"graph_sync", rate(6.7e-6)},
                   {"graph_node", rate(0.5e-6)}};
  gpu.link = {{"pinned_h2d", line(6e-6, 55.4e9)},   {"pinned_d2h", line(6e-6, 55.2e9)},
              {"pageable_h2d", line(6e-6, 12e9)},   {"pageable_d2h", line(6e-6, 12e9)},
              {"mapped_read", line(10e-6, 55.4e9)}, {"mapped_write", line(9e-6, 55.2e9)}};
  m.gpus = {gpu};
  return m;
}

inline Call call(std::string_view op, std::string_view shape, std::string_view precision = "fp32") {
  const auto parsed = parse_shape(shape);
  auto made = call_of(op, parsed.value(), precision);
  if (!made.ok()) ADD_FAILURE() << made.error().message;
  return std::move(made).value();
}

inline std::string fmt_size(double n) { return "n=" + std::to_string(static_cast<std::int64_t>(n)); }

inline Prediction seconds(double value, Grade grade = Grade::a, double doubt = 0.02) {
  Prediction p;
  p.seconds = value;
  p.low = value * (1 - doubt);
  p.high = value * (1 + doubt);
  p.grade = grade;
  return p;
}

inline Doubtful sure(double value) { return {value, value, value, false}; }

inline std::vector<CurvePoint> curve(const std::vector<std::pair<double, double>>& points,
                                     double doubt = 0.02) {
  std::vector<CurvePoint> out;
  for (const auto& [n, s] : points) out.push_back({n, s, s * (1 - doubt), s * (1 + doubt), true});
  return out;
}

/// A measurement of `op` whose time is what the caller says.
inline Measurement measurement(std::string_view op, std::string_view shape, double median,
                               Regime regime = Regime::host, std::string path = {}, int threads = 1) {
  const Call c = call(op, shape);
  Measurement m;
  m.op = c.op;
  m.shape = c.shape;
  m.work = c.work;
  m.precision = "fp32";
  m.regime = regime;
  m.path = std::move(path);
  m.backend = regime == Regime::host ? (threads > 1 ? "threads" : "simd") : "cuda";
  m.variant = "default";
  m.threads = threads;
  m.quality = Quality::stable;
  m.samples = 100;
  m.seconds.median = median;
  m.seconds.ci_low = median * 0.99;
  m.seconds.ci_high = median * 1.01;
  return m;
}

inline Machine profile(const std::string& path) {
  const std::string file = std::string(FULCRUM_SOURCE_DIR) + "/" + path;
  return machine_from_json(json_parse(read_file(file).value(), file).value(), file).value();
}

inline std::vector<Measurement> results(const std::string& folder) {
  std::vector<Measurement> out;
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(FULCRUM_SOURCE_DIR) + "/" + folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    const Json json = json_parse(read_file(file).value(), file.string()).value();
    if (!json.contains("results") || json.value("schema", "") != "fulcrum.bench/1") continue;
    for (const Json& row : json["results"]) {
      if (auto read = measurement_from_json(row, file.string()); read.ok()) out.push_back(std::move(*read));
    }
  }
  return out;
}

inline double counted(const Prediction& p) {
  double sum = 0;
  for (const Term& term : p.terms) sum += term.counted ? term.seconds : 0;
  return sum;
}

inline const Term* term(const Prediction& p, std::string_view name) {
  for (const Term& t : p.terms) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

inline Model reference() { return Model(desk(), {}, device(), {}); }

}  // namespace fulcrum::model::test
