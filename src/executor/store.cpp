// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See store.h.
#include "executor/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "executor/candidates.h"

namespace fulcrum::executor {
namespace fs = std::filesystem;
namespace {

// Times of kernels that have changed since are a first guess.
constexpr double kChangedSigma = 0.3;

std::string name_of(const Candidate& candidate) {
  return fmt::format("{}/{}", candidate.kernel.name(), candidate.kernel.dtype());
}

Json to_json(const LinkCurve& curve) {
  Json knots = Json::array();
  for (const auto& [bytes, seconds] : curve.knots) knots.push_back({bytes, seconds});
  return knots;
}

Json to_json(const ForkTimes& times) {
  Json forks = Json::array();
  for (const auto& [threads, seconds] : times) forks.push_back({threads, seconds});
  return forks;
}

Json to_json(const Costs& costs) {
  return Json{{"launch_sync_seconds", costs.launch_sync_seconds},
              {"fork_seconds", costs.fork_seconds},
              {"forks", to_json(costs.forks)},
              {"pinned_home", to_json(costs.pinned_home)},
              {"pageable_home", to_json(costs.pageable_home)},
              {"pinned_more", to_json(costs.pinned_more)},
              {"pageable_more", to_json(costs.pageable_more)},
              {"pinned_in", to_json(costs.pinned_in)},
              {"pinned_out", to_json(costs.pinned_out)},
              {"pageable_in", to_json(costs.pageable_in)},
              {"pageable_out", to_json(costs.pageable_out)}};
}

Json to_json(const ops::Op& op, std::span<const Candidate> candidates, const OpPoints& points) {
  Json names = Json::array(), rows = Json::array();
  for (const Candidate& candidate : candidates) names.push_back(name_of(candidate));
  for (const Point& point : points.points) {
    Shape shape = ops::shape_of(op, point.args);
    shape.dtype = point.dtype;
    Json seconds = Json::array(), plans = Json::array(), noise = Json::array(), looks = Json::array();
    bool any_plan = false;
    for (const Sample& sample : point.samples) {
      seconds.push_back(sample.seconds);
      plans.push_back(sample.plan_seconds);
      noise.push_back(sample.noise);
      looks.push_back(sample.looks);
      any_plan = any_plan || sample.plan_seconds > 0;
    }
    Json row{{"shape", shape.text()}, {"seconds", seconds}, {"noise", noise}, {"looks", looks}};
    if (any_plan) row["plan_seconds"] = plans;
    rows.push_back(std::move(row));
  }
  return Json{
      {"op", op.name}, {"kernels", kernels_hash(candidates)}, {"candidates", names}, {"points", rows}};
}

Error corrupt(std::string_view origin, std::string what) {
  return Error{Code::corrupt, fmt::format("{}: {}", origin, what), "run `fulcrum calibrate` to renew it"};
}

// A key that is missing or of another type makes the file corrupt, not the program.
const Json* member(const Json& json, const char* name, Json::value_t type) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(name);
  if (found == json.end()) return nullptr;
  const bool numbers = type == Json::value_t::number_float && found->is_number();
  return numbers || found->type() == type ? &*found : nullptr;
}

bool read_curve(const Json& costs, const char* name, LinkCurve& curve) {
  const Json* knots = member(costs, name, Json::value_t::array);
  if (!knots) return false;
  for (const Json& knot : *knots) {
    if (!knot.is_array() || knot.size() != 2 || !knot[0].is_number() || !knot[1].is_number()) return false;
    curve.knots.emplace_back(knot[0].get<double>(), knot[1].get<double>());
    if (curve.knots.back().first <= 0 || curve.knots.back().second <= 0) return false;
  }
  return std::is_sorted(curve.knots.begin(), curve.knots.end());
}

bool read_forks(const Json& costs, const char* name, ForkTimes& forks) {
  const Json* all = member(costs, name, Json::value_t::array);
  if (!all) return !costs.contains(name);  // files of before have none
  for (const Json& fork : *all) {
    const bool right =
        fork.is_array() && fork.size() == 2 && fork[0].is_number_integer() && fork[1].is_number();
    if (!right) return false;
    forks.emplace_back(fork[0].get<int>(), fork[1].get<double>());
    if (forks.back().first < 2 || forks.back().second < 0) return false;
  }
  return std::is_sorted(forks.begin(), forks.end());
}

bool read_costs(const Json& json, Costs& costs) {
  const Json* all = member(json, "costs", Json::value_t::object);
  if (!all) return false;
  const Json* launch = member(*all, "launch_sync_seconds", Json::value_t::number_float);
  const Json* fork = member(*all, "fork_seconds", Json::value_t::number_float);
  if (!launch || !fork) return false;
  costs.launch_sync_seconds = launch->get<double>();
  costs.fork_seconds = fork->get<double>();
  for (const auto& [name, curve] :
       {std::pair{"pinned_home", &costs.pinned_home}, std::pair{"pageable_home", &costs.pageable_home},
        std::pair{"pinned_more", &costs.pinned_more}, std::pair{"pageable_more", &costs.pageable_more}}) {
    if (all->contains(name) && !read_curve(*all, name, *curve)) return false;
  }
  if (!read_forks(*all, "forks", costs.forks)) return false;
  return read_curve(*all, "pinned_in", costs.pinned_in) && read_curve(*all, "pinned_out", costs.pinned_out) &&
         read_curve(*all, "pageable_in", costs.pageable_in) &&
         read_curve(*all, "pageable_out", costs.pageable_out);
}

// Where each of the file's candidates stands in today's list; -1: gone.
std::vector<int> places_of(const Json& names, std::span<const Candidate> candidates) {
  std::vector<int> places;
  for (const Json& name : names) {
    int place = -1;
    for (std::size_t c = 0; c < candidates.size() && name.is_string(); ++c) {
      if (name_of(candidates[c]) == name.get<std::string>()) place = static_cast<int>(c);
    }
    places.push_back(place);
  }
  return places;
}

std::optional<Point> read_point(const ops::Op& op, const Json& row, std::span<const int> places,
                                std::size_t candidates) {
  const Json* text = member(row, "shape", Json::value_t::string);
  const Json* seconds = member(row, "seconds", Json::value_t::array);
  const Json* noise = member(row, "noise", Json::value_t::array);
  const Json* plans = member(row, "plan_seconds", Json::value_t::array);
  const Json* looks = member(row, "looks", Json::value_t::array);  // files of before have none
  if (!text || !seconds || !noise || seconds->size() != places.size() || noise->size() != places.size() ||
      (plans && plans->size() != places.size()) || (looks && looks->size() != places.size()))
    return {};
  const auto shape = parse_shape(text->get<std::string>());
  if (!shape.ok()) return {};
  const auto args = ops::resolve(op, *shape);
  if (!args.ok()) return {};
  Point point{.args = *args, .dtype = shape->dtype, .samples = std::vector<Sample>(candidates)};
  for (std::size_t i = 0; i < places.size(); ++i) {
    const bool numbers = (*seconds)[i].is_number() && (*noise)[i].is_number() &&
                         (!plans || (*plans)[i].is_number()) && (!looks || (*looks)[i].is_number_integer());
    if (!numbers || (*seconds)[i].get<double>() < 0) return {};
    if (places[i] < 0) continue;
    point.samples[static_cast<std::size_t>(places[i])] =
        Sample{.seconds = (*seconds)[i].get<double>(),
               .plan_seconds = plans ? (*plans)[i].get<double>() : 0,
               .noise = (*noise)[i].get<double>(),
               .looks = looks ? (*looks)[i].get<int>() : 1};
  }
  return point;
}

struct StoredFile {
  Json json;
  Stored stored;
};

/// None: there is no file, or it cannot be used, which the log then says.
std::optional<StoredFile> read_stored(const backends::Backend* device, const Options& options,
                                      std::string* refused) {
  const auto file = table_file(device, options);
  if (!file.ok()) return {};
  std::error_code ignored;
  if (!fs::exists(*file, ignored)) return {};
  const auto read = [&]() -> Result<StoredFile> {
    FULCRUM_TRY(const std::string text, read_file(*file));
    FULCRUM_TRY(Json json, json_parse(text, file->string()));
    FULCRUM_TRY(Stored stored, stored_from_json(json, key_of(device), device, file->string()));
    return StoredFile{std::move(json), std::move(stored)};
  };
  Result<StoredFile> found = read();
  if (found.ok()) return std::move(*found);
  log(LogLevel::warning,
      fmt::format("the calibration cannot be used: {} ({})", found.error().message, found.error().hint));
  if (refused) *refused = found.error().message;
  return {};
}

}  // namespace

std::uint64_t hash_text(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return value;
}

std::string kernels_hash(std::span<const Candidate> candidates) {
  std::string all = backends::active_isa();
  for (const Candidate& candidate : candidates) {
    all += fmt::format("|{}:{}:{}:{}", name_of(candidate), candidate.kernel.source_hash(),
                       candidate.kernel.isa(), candidate.kernel.detail());
  }
  return fmt::format("{:016x}", hash_text(all));
}

Json to_json(const TableKey& key, const Stored& stored, const backends::Backend* device) {
  Json rows = Json::array();
  const auto ops = ops::all();
  for (std::size_t i = 0; i < ops.size() && i < stored.known.size(); ++i) {
    if (stored.known[i]) rows.push_back(to_json(*ops[i], candidates_of(*ops[i], device), stored.data.ops[i]));
  }
  return Json{{"schema", "fulcrum.calibration/1"},
              {"key", key.hash()},
              {"of", key.text()},
              {"measured_utc", stored.measured_utc},
              {"other_cores", stored.other_cores},
              {"written_by", fmt::format("fulcrum {} ({})", build_info().version, build_info().commit)},
              {"costs", to_json(stored.data.costs)},
              {"ops", rows}};
}

Result<Stored> stored_from_json(const Json& json, const TableKey& key, const backends::Backend* device,
                                std::string_view origin) {
  FULCRUM_CHECK(json_expect_schema(json, "calibration", origin));
  const Json* found_key = member(json, "key", Json::value_t::string);
  const Json* when = member(json, "measured_utc", Json::value_t::string);
  const Json* rows = member(json, "ops", Json::value_t::array);
  if (!found_key || !when || !rows) return corrupt(origin, "key, measured_utc or ops are missing");
  if (found_key->get<std::string>() != key.hash()) {
    const Json* of = member(json, "of", Json::value_t::string);
    return Error{Code::environment,
                 fmt::format("{} was measured on {}; this is {}", origin,
                             of ? of->get<std::string>() : "another machine", key.text()),
                 "run `fulcrum calibrate` here"};
  }
  const auto ops = ops::all();
  Stored stored{.data = {}, .known = std::vector<bool>(ops.size()), .measured_utc = when->get<std::string>()};
  stored.data.ops.resize(ops.size());
  if (!read_costs(json, stored.data.costs)) return corrupt(origin, "the costs of moving data are not right");
  int changed = 0;
  for (const Json& row : *rows) {
    const Json* name = member(row, "op", Json::value_t::string);
    const Json* kernels = member(row, "kernels", Json::value_t::string);
    const Json* names = member(row, "candidates", Json::value_t::array);
    const Json* points = member(row, "points", Json::value_t::array);
    if (!name || !kernels || !names || !points)
      return corrupt(origin, "an op has no name, kernels or points");
    const auto op = std::find_if(ops.begin(), ops.end(),
                                 [&](const ops::Op* o) { return o->name == name->get<std::string>(); });
    if (op == ops.end()) continue;
    const auto candidates = candidates_of(**op, device);
    const std::vector<int> places = places_of(*names, candidates);
    const auto at = static_cast<std::size_t>(op - ops.begin());
    OpPoints& into = stored.data.ops[at];
    const bool has_changed = kernels->get<std::string>() != kernels_hash(candidates);
    for (const Json& point : *points) {
      auto read = read_point(**op, point, places, candidates.size());
      if (read) {
        into.points.push_back(*std::move(read));
      } else if (has_changed) {
        // An op that has changed may have other parameters now: nothing is known of it, and the other ops are as right as
        // they were.
        into.points.clear();
        break;
      } else {
        return corrupt(origin, fmt::format("a point of {} is not right", (*op)->name));
      }
    }
    stored.known[at] = !into.points.empty();
    if (has_changed) {
      into.grade = Grade::c;
      into.sigma = kChangedSigma;
      ++changed;
    }
  }
  stored.data.description = fmt::format("calibrated {} on {}", stored.measured_utc, key.text());
  if (const Json* others = member(json, "other_cores", Json::value_t::number_float))
    stored.other_cores = others->get<double>();
  if (stored.other_cores >= kDisturbingCores)
    stored.data.description +=
        fmt::format("; other programs used {:.1f} cores meanwhile", stored.other_cores);
  if (changed > 0)
    stored.data.description +=
        fmt::format("; kernels of {} {} have changed since (run fulcrum calibrate --stale)", changed,
                    changed == 1 ? "op" : "ops");
  return stored;
}

std::optional<Stored> load_stored(const backends::Backend* device, const Options& options,
                                  std::string* refused) {
  auto file = read_stored(device, options, refused);
  if (!file) return {};
  return std::move(file->stored);
}

Status save_stored(const backends::Backend* device, const Options& options, const Stored& stored) {
  FULCRUM_TRY(const fs::path file, table_file(device, options));
  std::error_code error;
  if (file.has_parent_path()) fs::create_directories(file.parent_path(), error);
  if (error)
    return Error{Code::environment,
                 fmt::format("cannot make {}: {}", file.parent_path().string(), error.message()),
                 "set FULCRUM_DATA to a folder that can be written"};
  Json json = to_json(key_of(device), stored, device);
  Json& rows = json["ops"];
  if (const auto before = read_stored(device, options, nullptr)) {
    for (const Json& row : before->json["ops"]) {
      const bool renewed =
          std::any_of(rows.begin(), rows.end(), [&](const Json& one) { return one["op"] == row["op"]; });
      // As it stands, with the kernels it was measured with: what is stale stays so.
      if (!renewed) rows.push_back(row);
    }
  }
  return write_file(file, json_text(json) + "\n");
}

std::vector<std::string> ops_to_renew(const backends::Backend* device, const Options& options) {
  const auto stored = load_stored(device, options);
  const auto ops = ops::all();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const bool known = stored && stored->known[i];
    const bool fresh = known && stored->data.ops[i].sigma == 0;
    // Nobody has asked for a graph or an index that was never measured.
    if (fresh || ops[i]->is_probe() || (ops[i]->needs_prepared && !known)) continue;
    if (!candidates_of(*ops[i], device).empty()) names.emplace_back(ops[i]->name);
  }
  return names;
}

}  // namespace fulcrum::executor
