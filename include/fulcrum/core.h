// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What every module speaks: results and errors, the plain data that modules exchange, strict JSON, files,
// the one list of environment variables, and the log sink. Times are seconds, rates per second, sizes bytes.
#pragma once

#include <fulcrum/abi.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fulcrum {

// Results and errors.

enum class Code : std::int32_t {
  ok = FULCRUM_OK,
  invalid_shape = FULCRUM_INVALID_SHAPE,
  invalid_argument = FULCRUM_INVALID_ARGUMENT,
  unsupported = FULCRUM_UNSUPPORTED,
  out_of_memory = FULCRUM_OUT_OF_MEMORY,
  device_error = FULCRUM_DEVICE_ERROR,
  device_lost = FULCRUM_DEVICE_LOST,
  usage,         // the command line or a parameter is wrong: exit 2
  not_found,     // a name that is not known: exit 2
  environment,   // file, permission, disk, library, device missing: exit 3
  corrupt,       // a file that is cut off or not ours: exit 3
  interrupted,   // Ctrl-C
  wrong_result,  // the correctness check failed: exit 5
  inconclusive,  // exit 4
  internal,
  device_busy = FULCRUM_DEVICE_BUSY,  // in use by somebody else, or starting: later it may answer
  data_lost,                          // the only valid copy was on a device that is gone
};

/// `message` says what happened with the values at hand; `hint` says what to do next.
struct [[nodiscard]] Error {
  Code code = Code::internal;
  std::string message;
  std::string hint;
};

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);
// On in release too: a broken invariant must not become a wrong number.
#define FULCRUM_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::fulcrum::assertion_failed(#condition, __FILE__, __LINE__))

/// A value or an Error. Reading the one that is not there is a programmer error and ends the program.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return (require(), *std::get_if<0>(&state_)); }
  const T& value() const& { return (require(), *std::get_if<0>(&state_)); }
  T&& value() && { return (require(), std::move(*std::get_if<0>(&state_))); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const Error& error() const { return (FULCRUM_ASSERT(!ok()), *std::get_if<1>(&state_)); }
  Error take_error() && { return (FULCRUM_ASSERT(!ok()), std::move(*std::get_if<1>(&state_))); }

 private:
  void require() const {
    if (!ok()) assertion_failed(error().message.c_str(), __FILE__, __LINE__);
  }
  std::variant<T, Error> state_;
};

/// Success, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return (FULCRUM_ASSERT(!ok()), *error_); }
  Error take_error() && { return (FULCRUM_ASSERT(!ok()), std::move(*error_)); }

 private:
  std::optional<Error> error_;
};

/// The C status of a backend call as a Status.
Status to_status(const fulcrum_status& status);

#define FULCRUM_JOIN2(a, b) a##b
#define FULCRUM_JOIN(a, b) FULCRUM_JOIN2(a, b)
/// FULCRUM_TRY(auto x, f()): x = value of f(), or return its error from this function.
#define FULCRUM_TRY(declaration, ...) \
  FULCRUM_TRY_AS(FULCRUM_JOIN(fulcrum_try_, __LINE__), declaration, __VA_ARGS__)
#define FULCRUM_TRY_AS(name, declaration, ...)         \
  auto name = (__VA_ARGS__);                           \
  if (!name.ok()) return std::move(name).take_error(); \
  declaration = std::move(name).value()
/// The same for a Status.
#define FULCRUM_CHECK(...)                                         \
  if (auto fulcrum_status_ = (__VA_ARGS__); !fulcrum_status_.ok()) \
  return std::move(fulcrum_status_).take_error()

// Vocabulary: one set everywhere, lower case in JSON.

enum class DType : std::uint8_t { f32, f16, bf16, u8, i32, i64 };
enum class Regime : std::uint8_t { host, first_call, roundtrip, resident, reuse, overlapped, managed };
enum class Cache : std::uint8_t { warm, cold };
enum class StopReason : std::uint8_t { precision, decision, budget, interrupted, invalid };
enum class Quality : std::uint8_t { stable, fair, noisy, unstable, invalid };
enum class Verdict : std::uint8_t { faster, slower, same, unresolved, invalid, not_run };
enum class Source : std::uint8_t { measured, datasheet, assumed };

std::string_view to_string(DType);
std::string_view to_string(Regime);
std::string_view to_string(Cache);
std::string_view to_string(StopReason);
std::string_view to_string(Quality);
std::string_view to_string(Verdict);
std::string_view to_string(Source);
std::string_view to_string(Code);
/// The names of an enumeration in order, for help texts and errors; and the way back.
template <class E>
std::span<const std::string_view> names_of();
template <class E>
Result<E> parse_enum(std::string_view what, std::string_view text);
std::int64_t bytes_of(DType);

/// The exit code of the command line for an error: 2 usage, 3 environment, 4 inconclusive, 5 invalid; 130
/// Ctrl-C.
int exit_code(Code);

// Plain data that modules exchange.

using Args = fulcrum_args;

/// Named sizes and parameters of one call, in the order of the op's slots, defaults filled in.
struct Shape {
  using Value = std::variant<std::int64_t, double, std::string>;
  std::vector<std::pair<std::string, Value>> fields;
  DType dtype = DType::f32;

  const Value* find(std::string_view name) const;
  std::int64_t dim(std::string_view name) const;  ///< programmer error if absent or no integer
  void set(std::string_view name, Value value);
  /// "n=100000" or "M=17,N=23,K=19"; then "dtype=f16" unless it is f32. parse_shape reads it back.
  std::string text() const;
  bool operator==(const Shape&) const = default;
};

/// "n=1000,al=0.5,layout=list": integers, 1e6, 2^24, decimal K M G and binary Ki Mi Gi. The key
/// dtype sets Shape::dtype; the others are checked later, against the op.
Result<Shape> parse_shape(std::string_view text);

/// What an op must do by its definition: of the op, not of a machine (docs/measuring.md).
struct Work {
  double flops = 0;
  double issue_slots = 0;
  double read_bytes = 0;       // compulsory: each input once
  double write_bytes = 0;      // compulsory: each output once
  double streaming_bytes = 0;  // of the plain multi-pass form; 0: same as compulsory
  double link_in_bytes = 0;
  double link_out_bytes = 0;

  double bytes() const { return read_bytes + write_bytes; }
  double streamed() const { return streaming_bytes > 0 ? streaming_bytes : bytes(); }
};

/// A number that knows its doubt and where it comes from.
struct Quantity {
  double value = 0;
  double low = 0;
  double high = 0;
  Source source = Source::measured;
};

/// Seconds of one call, with the interval of the median at `level`.
struct Estimate {
  double median = 0, ci_low = 0, ci_high = 0, level = 0.95;
  double mean = 0, stddev = 0, mad = 0, cv = 0, cv_robust = 0;
  double min = 0, max = 0, p90 = 0, p99 = 0;
};

/// Where the seconds of one GPU call went; inside the instrumented pass the phases add up.
struct Ledger {
  double alloc = 0, pin = 0, h2d = 0, launch = 0, queue = 0, kernel = 0, sync = 0, d2h = 0, migrate = 0,
         free = 0;
  double unattributed = 0;
  double end_to_end_bare = 0;          // truth: two clock reads, nothing else
  double end_to_end_instrumented = 0;  // the pass whose phases add up
  /// Busy seconds by phase: work that overlaps counts in each, so that they may add up to more than the whole.
  std::map<std::string, double> busy;

  double residual() const { return end_to_end_instrumented > 0 ? unattributed / end_to_end_instrumented : 0; }
  double perturbation() const {
    return end_to_end_bare > 0 ? end_to_end_instrumented / end_to_end_bare - 1 : 0;
  }
};

/// Which roof binds, in which level of memory, and how much of that level's rate was reached.
struct Ceiling {
  std::string bound;  // "memory" or "compute"
  std::string level;  // "L1", "L2", "L3", "DRAM"
  double fraction = 0;
};

/// One timed batch, as taken.
struct Sample {
  double seconds = 0;      // of the whole batch
  std::uint8_t phase = 0;  // 0 warm-up, 1 pilot, 2 counted
  std::uint8_t tags = 0;   // bit 0 context switch, 1 migration, 2 page fault, 3 steal
};

struct Oracle {
  bool passed = false;
  std::int64_t checked = 0;    // outputs compared with the fp64 reference
  double max_error_ulp = 0;    // largest |error| / ulp(reference)
  double max_error_share = 0;  // largest |error| / allowed error
  std::string detail;
};

/// What the machine did during a measurement.
struct Environment {
  std::int64_t context_switches = 0, migrations = 0, page_faults = 0;
  double cpu_seconds = 0, wall_seconds = 0, steal_seconds = 0;
  double clock_hz_before = 0, clock_hz_after = 0;  // 0: not known
  /// Of the device that ran the row; unset on CPU rows and where the driver does not say.
  struct Gpu {
    double sm_hz_before = 0, sm_hz_after = 0, temperature_c = 0, power_w = 0;
    std::uint64_t throttle_reasons = 0;  // NVML's bits, seen before or after
    std::int64_t other_processes = 0;
  };
  std::optional<Gpu> gpu;
};

struct Measurement {
  std::string op, backend, variant, isa, precision, detail;
  Shape shape;
  Regime regime = Regime::host;
  std::string path;        // roundtrip and managed: how operands travelled ("mapped", "duplex"); else empty
  std::int64_t reuse = 0;  // regime reuse: calls per transfer
  Cache cache = Cache::warm;
  bool cache_verified = false;
  int threads = 1;
  int processes = 1;
  Estimate seconds;
  std::int64_t samples = 0;      // counted samples
  double effective_samples = 0;  // less than samples when neighbours resemble each other
  std::int64_t calls_per_sample = 1;
  StopReason stop_reason = StopReason::invalid;
  std::string stop_detail;
  Quality quality = Quality::invalid;
  std::vector<std::string> flags;
  std::vector<double> modes;  // seconds of each mode, when more than one
  Oracle oracle;
  Work work;
  std::optional<Ceiling> ceiling;
  std::optional<Ledger> ledger;
  /// Regime resident: time on the device alone, per call, from replays of a recorded batch of `device_calls` calls
  /// that cycle through `device_sets` sets of operands. Beside `seconds`, never in its place.
  std::optional<Estimate> device_seconds;
  std::int64_t device_calls = 0, device_sets = 0;
  Environment environment;
  std::string source_hash;
  std::vector<Sample> raw;  // every batch, warm-up included

  /// "sigmoid/simd/default"
  std::string name() const { return op + "/" + backend + "/" + variant; }
  /// "sigmoid/simd/default/n:100000/regime:host/cache:warm": the stable name of a row.
  std::string row() const;
};

/// a against b on the same inputs, interleaved: speedup = time of b / time of a.
struct Comparison {
  std::string a, b;
  Shape shape;
  double speedup = 0, ci_low = 0, ci_high = 0, level = 0.95;
  double seconds_saved = 0;   // per call, median of b minus a
  double share_a_faster = 0;  // of rounds
  std::int64_t rounds = 0, ties = 0;
  StopReason stop_reason = StopReason::invalid;
  std::string stop_detail;
  Verdict verdict = Verdict::not_run;
  std::string reason;                        // when invalid or not run
  std::vector<double> seconds_a, seconds_b;  // per round and call
  Regime regime = Regime::host;
  Cache cache = Cache::warm;
};

/// One memory level as measured: rates are bytes that the kernel reads plus writes, per second.
struct MemoryLevel {
  std::string name;                 // "L1", "L2", "L3", "DRAM"
  std::int64_t capacity_bytes = 0;  // of one instance; 0 for DRAM
  int shared_by_threads = 1;
  std::map<std::string, Quantity> one_thread;  // "read", "copy", "triad", "copy_nt"; bytes per second
  std::map<std::string, Quantity> all_threads;
  std::optional<Quantity> latency_seconds;
};

struct CpuCeilings {
  std::vector<MemoryLevel> levels;
  std::map<std::string, Quantity> flops_one_thread;  // by ISA: "avx3", "avx2", "scalar"; fp32, per second
  std::map<std::string, Quantity> flops_all_threads;
  Quantity fork_join_seconds;
  Quantity clock_resolution_seconds;
  Quantity clock_read_seconds;
  int threads = 1;
};

struct GpuCeilings {
  std::string name, compute_capability, driver;
  std::int64_t sms = 0, l2_bytes = 0, memory_bytes = 0;
  double max_sm_hz = 0;
  std::map<std::string, Quantity> rates;      // "hbm_read", "hbm_copy", "l2_read": bytes per second
  std::map<std::string, Quantity> flops;      // by precision, dense
  std::map<std::string, Quantity> latencies;  // "launch", "launch_sync", "graph_sync", "alloc", "pin"
  std::map<std::string, std::vector<std::pair<std::int64_t, Quantity>>>
      link;  // "pinned_h2d": seconds by bytes
  std::map<std::string, std::vector<std::pair<std::int64_t, Quantity>>>
      tables;  // "read_by_ctas": bytes per second by number of CTAs
};

struct CpuTopology {
  std::string model, vendor, microcode, governor;
  int cores = 0, threads = 0, usable_threads = 0, sockets = 0, numa_nodes = 0;
  bool smt = false, virtualised = false;
  std::string turbo, transparent_huge_pages;
  double nominal_hz = 0;
  std::int64_t memory_bytes = 0;
  std::vector<std::string> isa;  // what this CPU has, best first
};

/// A machine profile: what is there and what it can do at best.
struct Machine {
  std::string id, name, kernel, measured_utc, driver;
  CpuTopology topology;
  CpuCeilings cpu;
  std::vector<GpuCeilings> gpus;
  std::string written_by;  // version and commit of the program that measured it; empty: not said
  std::vector<std::string>
      notes;  // what a reader of the numbers should know: windows in two groups, probes left out
};

// Strict JSON.

/// Keys keep their order: the file reads as it was written.
using Json = nlohmann::ordered_json;
/// Text of a document: no NaN or Infinity (their key is left out), control characters escaped. indent < 0:
/// one line.
std::string json_text(const Json& json, int indent = -1);
/// Strict reading: no comments, no NaN, no trailing text, no duplicate keys, depth at most 64.
Result<Json> json_parse(std::string_view text, std::string_view origin);
/// The document must say "schema": "fulcrum.<kind>/<major>", else an error that names both.
Status json_expect_schema(const Json& json, std::string_view kind, std::string_view origin);

Json to_json(const Shape&);        // the fields; dtype stands beside the shape
Json to_json(const Measurement&);  // one entry of fulcrum.bench/1 "results"
Json to_json(const Comparison&);   // without the rounds, which live in the run record
Json to_json(const Machine&);      // fulcrum.machine/1
Result<Machine> machine_from_json(const Json&, std::string_view origin);
Result<Measurement> measurement_from_json(const Json&, std::string_view origin);
Result<Comparison> comparison_from_json(const Json&, std::string_view origin);
/// The results of a document fulcrum.bench/1.
Result<std::vector<Measurement>> measurements_from_json(const Json&, std::string_view origin);

// Files, environment, log.

Result<std::string> read_file(const std::filesystem::path&);
/// Written beside the target, flushed, then renamed: readers see the old file or the new one, never half.
Status write_file(const std::filesystem::path&, std::string_view content);
/// $XDG_DATA_HOME/fulcrum or ~/.local/share/fulcrum, made on first use; FULCRUM_DATA overrides it.
Result<std::filesystem::path> data_folder();

/// Append-only JSON lines, each with "schema": "fulcrum.run/1" first and on the disk before append returns.
/// One writer at a time: create and resume fail while another RunRecord has the file.
class RunRecord {
 public:
  static Result<RunRecord> create(const std::filesystem::path&);
  /// Continues an existing record; a last line cut off by a crash is dropped, anything else wrong is an
  /// error.
  static Result<RunRecord> resume(const std::filesystem::path&, std::vector<Json>& lines);
  RunRecord(RunRecord&&) noexcept;
  RunRecord& operator=(RunRecord&&) noexcept;
  ~RunRecord();
  Status append(const Json& line);
  const std::filesystem::path& path() const { return path_; }

 private:
  RunRecord(int descriptor, std::filesystem::path path) : descriptor_(descriptor), path_(std::move(path)) {}
  int descriptor_ = -1;
  std::filesystem::path path_;
};

struct EnvironmentVariable {
  std::string_view name, meaning;
};
/// Every environment variable the product reads; nothing else in the tree calls getenv.
std::span<const EnvironmentVariable> environment_variables();
/// Value of one of them; programmer error if it is not in the list.
std::optional<std::string> environment(std::string_view name);

enum class LogLevel : std::int32_t { debug, info, warning, error };
/// The library never prints: it hands messages to this sink (none by default). The command line sets it.
void set_log_sink(std::function<void(LogLevel, std::string_view)> sink);
void log(LogLevel level, std::string_view message);

struct BuildInfo {
  std::string_view version, commit, compiler, flags;
  bool dirty = false;
};
const BuildInfo& build_info();

// Processes.

struct ProcessResult {
  int exit_code = 0;  // 128 + signal when killed
  double wall_seconds = 0, user_seconds = 0, system_seconds = 0;
  std::int64_t peak_bytes = 0;  // 0: no more than this process's own peak, so not known
  std::string standard_output, standard_error;
};
struct ProcessOptions {
  bool capture = true;                                           // false: both streams go to /dev/null
  std::optional<std::string> input;                              // none: the command reads /dev/null
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours, or in place of them
};
/// Runs argv[0] (looked up in PATH) and waits for it. A command that fails is a result, one that cannot be
/// started an error.
Result<ProcessResult> run_process(const std::vector<std::string>& argv, const ProcessOptions& = {});

// Units for people.

std::string human_seconds(double seconds);         // "20.3 us"
std::string human_bytes(double bytes);             // "2.0 MiB"
std::string human_rate(double bytes_per_second);   // "31.2 GB/s"
std::string human_flops(double flops_per_second);  // "179 GFLOP/s"
std::string human_count(double count);             // "100,000"
/// The name nearest to `wanted`, for "did you mean"; empty when none is close.
std::string nearest_name(std::string_view wanted, std::span<const std::string> known);
std::string utc_now();  // "2026-01-31T12:00:00Z"

/// Never 0 and never the same twice in a process: names what an address may not, since addresses are used again.
std::uint64_t unique_number();

}  // namespace fulcrum
