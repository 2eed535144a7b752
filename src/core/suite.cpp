// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Reading fulcrum.suite/1. People write these files by hand, so a key that nobody reads is an error and not ignored.
#include <fulcrum/core/suite.h>

#include <algorithm>
#include <set>

#include "core/json_fields.h"

namespace fulcrum {

template <class Io>
static void describe(Io& io, typename Io::template Ref<Figure> f) {
  io.added("value", f.value);
  io.added("low", f.low);
  io.added("high", f.high);
  io.added("values", f.values);
  io.added("text", f.text);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Claim> c) {
  io.required("mark", c.mark);
  describe(io, c.figure);  // its keys stand in the claim itself
  io.added("unit", c.unit);
  io.added("per", c.per);
  io.added("right", c.right);
  io.added("note", c.note);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Sweep> s) {
  io.required("name", s.name);
  io.required("shapes", s.shapes);
  io.added("claims", s.claims);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<SuiteRow> r) {
  io.required("name", r.name);
  io.added("op", r.op);
  io.added("shape", r.shape);
  io.added("data", r.data);
  io.added("inputs", r.inputs);
  io.added("share", r.share);
  io.added("frequency", r.frequency);
  io.added("effort_days", r.effort_days);
  io.added("budget_seconds", r.budget_seconds);
  io.added("sweeps", r.sweeps);
  io.added("claims", r.claims);
  io.added("note", r.note);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<SuiteTargets> t) {
  io.added("real_time_seconds", t.real_time_seconds);
  io.added("stable_cv", t.stable_cv);
  io.added("calls_per_second", t.calls_per_second);
  io.added("slow_seconds", t.slow_seconds);
  io.added("high_variance_cv", t.high_variance_cv);
  io.added("outlier_factor", t.outlier_factor);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Suite> s) {
  io.required("name", s.name);
  io.required("summary", s.summary);
  io.added("system", s.system);
  io.added("regimes", s.regimes);
  io.added("least_samples", s.least_samples);
  io.added("targets", s.targets);
  io.added("claims", s.claims);
  io.required("rows", s.rows);
}

namespace {

/// A third visitor beside the writer and the reader: walks the document along the descriptions and stops at the
/// first key that none of them names.
class KeyChecker {
 public:
  template <class S>
  using Ref = const S&;

  KeyChecker(ReadState& state, const Json& json, std::string path)
      : state_(state), json_(json), path_(std::move(path)) {}

  template <class T>
  void required(const char* key, const T&) {
    known_.emplace_back(key);
    if (const auto found = json_.find(key); found != json_.end()) walk<T>(*found, path_of(key));
  }
  template <class T>
  void added(const char* key, const T& value) {
    required(key, value);
  }
  void also(const char* key) { known_.emplace_back(key); }

  void finish() {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      const std::string near = nearest_name(key, known_);
      state_.fail(path_of(key.c_str()),
                  "is not a key of a suite" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
    }
  }

 private:
  std::string path_of(const char* key) const { return path_.empty() ? key : path_ + "." + key; }

  template <class T>
  struct Walker {
    static void walk(ReadState& state, const Json& json, const std::string& path) {
      if constexpr (std::is_class_v<T> && !std::is_same_v<T, std::string>) {
        KeyChecker checker(state, json, path);
        describe(checker, T());
        checker.finish();
      }
    }
  };
  template <class T>
  struct Walker<std::optional<T>> : Walker<T> {};
  template <class T>
  struct Walker<std::vector<T>> {
    static void walk(ReadState& state, const Json& json, const std::string& path) {
      for (std::size_t i = 0; i < json.size(); ++i)
        Walker<T>::walk(state, json[i], fmt::format("{}[{}]", path, i));
    }
  };
  template <class T>
  struct Walker<std::map<std::string, T>> {
    static void walk(ReadState& state, const Json& json, const std::string& path) {
      for (const auto& [key, item] : json.items())
        Walker<T>::walk(state, item, fmt::format("{}.{}", path, key));
    }
  };
  template <class T>
  void walk(const Json& json, const std::string& path) {
    if (!json.is_null()) Walker<T>::walk(state_, json, path);
  }

  ReadState& state_;
  const Json& json_;
  std::string path_;
  std::vector<std::string> known_;
};

void check_keys(ReadState& state, const Json& json) {
  KeyChecker checker(state, json, "");
  checker.also("schema");
  describe(checker, Suite());
  checker.finish();
}

void check_claims(ReadState& state, const Claims& claims, const std::string& path) {
  for (const auto& [name, claim] : claims) {
    const std::string here = fmt::format("{}claims.{}", path, name);
    const bool half_a_range = claim.figure.low.has_value() != claim.figure.high.has_value();
    if (claim.figure.empty()) state.fail(here, "has no figure: give value, low and high, values or text");
    if (half_a_range) state.fail(here, "has one end of a range: give both low and high");
    if (claim.mark == Mark::wrong && (!claim.right || claim.right->empty()))
      state.fail(here, "is marked wrong, so it needs the right figure beside it");
    if (claim.mark != Mark::wrong && claim.right)
      state.fail(here, "has a right figure beside it, so its mark must be wrong");
    if (!(claim.per > 0)) state.fail(here + ".per", "must be above 0");
  }
}

void check_share(ReadState& state, const std::optional<double>& value, const std::string& path) {
  if (value && !(*value >= 0 && *value <= 1)) state.fail(path, "must lie between 0 and 1");
}

void check_row(ReadState& state, const SuiteRow& row, const std::string& path) {
  if (row.name.empty()) state.fail(path + "name", "is empty");
  if (row.op.empty() && !(row.shape.empty() && row.inputs.empty() && row.sweeps.empty()))
    state.fail(path + "op", "is missing, but there is a shape, an input or a sweep");
  check_share(state, row.share, path + "share");
  check_share(state, row.frequency, path + "frequency");
  if (row.effort_days && !(*row.effort_days > 0)) state.fail(path + "effort_days", "must be above 0");
  if (row.budget_seconds && !(*row.budget_seconds > 0))
    state.fail(path + "budget_seconds", "must be above 0");
  check_claims(state, row.claims, path);
  for (std::size_t i = 0; i < row.sweeps.size(); ++i) {
    const Sweep& sweep = row.sweeps[i];
    const std::string here = fmt::format("{}sweeps[{}].", path, i);
    if (sweep.shapes.size() < 2) state.fail(here + "shapes", "must have at least two sizes");
    check_claims(state, sweep.claims, here);
    for (const auto& [name, claim] : sweep.claims) {
      if (!claim.figure.values.empty() && claim.figure.values.size() != sweep.shapes.size())
        state.fail(fmt::format("{}claims.{}.values", here, name), "must have one number for each shape");
    }
  }
}

void check_rows(ReadState& state, const Suite& suite) {
  if (suite.rows.empty()) state.fail("rows", "is empty");
  std::set<std::string> names;
  for (std::size_t i = 0; i < suite.rows.size(); ++i) {
    const std::string path = fmt::format("rows[{}].", i);
    check_row(state, suite.rows[i], path);
    if (!names.insert(suite.rows[i].name).second)
      state.fail(path + "name", fmt::format("'{}' is the name of another row too", suite.rows[i].name));
  }
}

}  // namespace

Result<Suite> suite_from_json(const Json& json, std::string_view origin) {
  FULCRUM_CHECK(json_expect_schema(json, "suite", origin));
  Suite suite;
  ReadState state(origin);
  decode(state, json, "", suite);
  if (!state.error()) {
    check_keys(state, json);
    check_claims(state, suite.claims, "");
    check_rows(state, suite);
    if (suite.least_samples < 0) state.fail("least_samples", "must not be negative");
  }
  if (!state.error()) return suite;
  Error error = *state.error();
  error.hint = "docs/suites.md describes the fields of a suite";
  return error;
}

Json to_json(const Claims& claims) {
  Json json = encode(claims);
  for (auto& claim : json) {
    for (auto field = claim.begin(); field != claim.end();) {
      const bool nothing =
          field->is_null() || (field->is_string() && *field == "") || (field->is_array() && field->empty());
      field = nothing ? claim.erase(field) : std::next(field);
    }
  }
  return json;
}

}  // namespace fulcrum
