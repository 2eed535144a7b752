// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What belongs on a GPU, from which size, and what it gains: pure functions over work, machine profiles and
// measurements. No clock, no files. The formulas, their sources and their limits are in docs/deciding.md.
#pragma once

#include <fulcrum/core.h>
#include <fulcrum/core/plan.h>
#include <fulcrum/core/suite.h>
#include <fulcrum/ops.h>
#include <fulcrum/stats.h>

#include <memory>

namespace fulcrum::model {

// Calls (call.cpp).

/// One call to be priced: what it does, not where it runs.
struct Call {
  std::string op, category;
  Shape shape;  // completed: defaults filled in
  Work work;
  std::string precision = "fp32";
  Cache cache = Cache::warm;
  double outputs = 0;                     // elements written; 0: not known
  int operands_in = 1, operands_out = 1;  // buffers that travel
  bool sliceable = false;                 // may travel in pieces
  bool shares_nothing = false;            // its pieces, however many: each byte is touched about once
  double whole_bytes = 0;                 // that every piece needs, of those that travel in
  int whole_operands = 0;                 // buffers of them

  double working_set() const { return work.bytes() > 1 ? work.bytes() : 1; }
};
/// By the op's definition: an unknown op or a shape it refuses is an error.
Result<Call> call_of(std::string_view op, const Shape& shape, std::string_view precision = "fp32");
/// As it was measured. The op need not be known here.
Call call_of(const Measurement& measurement);

// Calibration (calibration.cpp): what measurements say beyond the closed form.

/// One measured cell: the fastest variant of its class.
struct Cell {
  Call call;
  std::string where;  // "cpu" or "gpu"
  Regime regime = Regime::host;
  std::string path;  // roundtrip and managed
  std::int64_t reuse = 0;
  int threads = 1;
  std::string backend, variant, isa;
  double seconds = 0, low = 0, high = 0;
  std::optional<double> device_seconds;
  std::int64_t samples = 0;
  double noise = 0;  // robust CV of its samples
};
/// Rows of one place, op, precision, regime, path, reuse, thread count, cache state and shape become one cell, the
/// fastest. Rows that are invalid or of probes are left out.
std::vector<Cell> cells_of(std::span<const Measurement> measurements);

/// How far a factor reaches: prediction = closed form * exp(value), known to about exp(+-sigma).
struct Residual {
  double value = 0, sigma = 0;
  Grade grade = Grade::c;
  int points = 0;      // that it rests on
  std::string source;  // "4 sizes of gelu", "streaming ops", "closed form alone"
};

/// Measured cells of one machine with their distance from the closed form. Copies are cheap.
class Calibration {
 public:
  struct State;
  Calibration();
  /// `machine` is where the measurements come from: its CPU for regime host, its first GPU for the others.
  Calibration(const Machine& machine, std::span<const Measurement> measurements);
  Calibration(const Machine& machine, std::vector<Cell> cells);

  const std::string& machine() const;  ///< id; empty: nothing was calibrated
  const std::vector<Cell>& cells() const;
  bool empty() const { return cells().empty(); }
  const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

// The cost model (model.cpp, cpu_cost.cpp, gpu_cost.cpp).

/// How a GPU is used for a call.
struct GpuUse {
  Regime regime = Regime::roundtrip;  // resident, roundtrip, reuse, overlapped, managed
  std::string path = {};   // roundtrip: empty = the fastest of all; "auto" = what the backend picks
  std::int64_t reuse = 1;  // regime reuse: calls per transfer
  bool graph = false;      // resident: launched as a recorded graph
};
/// Paths that the model prices for a regime.
std::span<const std::string_view> paths_of(Regime regime);

/// A CPU, a GPU (here or on a data sheet), and what was measured on either.
class Model {
 public:
  /// `gpu`: a profile whose first GPU is meant; none: CPU only. `gpu_calibration` may come from another GPU than
  /// `gpu`: then the factors carry over and every prediction has grade D.
  Model(Machine host, Calibration host_calibration, std::optional<Machine> gpu = {},
        Calibration gpu_calibration = {});

  const Machine& host() const { return host_; }
  const Machine* gpu_machine() const { return gpu_ ? &*gpu_ : nullptr; }
  const GpuCeilings* gpu() const { return gpu_ && !gpu_->gpus.empty() ? &gpu_->gpus.front() : nullptr; }
  bool gpu_from_data_sheet() const;
  const Calibration& host_calibration() const { return host_calibration_; }
  const Calibration& gpu_calibration() const { return gpu_calibration_; }

  /// The best CPU configuration, with the others as losers.
  Prediction cpu(const Call& call) const;
  /// With so many threads.
  Prediction cpu(const Call& call, int threads) const;
  /// Plain code on one thread, as unoptimised programs have it: the scalar ISA's roofs and cells of backend scalar.
  Prediction cpu_scalar(const Call& call) const;
  Prediction gpu(const Call& call, const GpuUse& use) const;

  /// Measured cells are not looked up: what the model would say if it had not seen this very cell.
  Model without_cells() const;

 private:
  Machine host_;
  Calibration host_calibration_;
  std::optional<Machine> gpu_;
  Calibration gpu_calibration_;
  bool use_cells_ = true;
};

/// Closed forms alone, without any measurement of an op: zero-shot.
Prediction closed_form_cpu(const Call& call, const Machine& machine, int threads);
Prediction closed_form_gpu(const Call& call, const Machine& machine, const GpuUse& use);

/// What no kernel can beat on these ceilings: bytes beyond the caches, flops, and bytes that travel, each at the highest
/// rate that was measured. Predictions are held to it, on a device with the low ends of their intervals.
double least_seconds(const Call& call, const GpuCeilings& gpu, const GpuUse& use);
double least_seconds(const Call& call, const CpuCeilings& cpu, int threads);

/// Seconds to move `bytes` by a link table, linear in bytes between its knots, beyond the last at its last rate;
/// none for an empty table.
std::optional<double> link_seconds(std::span<const std::pair<std::int64_t, Quantity>> table, double bytes);
/// Bytes per second that so many CTAs reach together.
double rate_of_ctas(const GpuCeilings& gpu, double ctas);

// Roofline (roofline.cpp).

/// Roofs of the machine's CPU (each level, one and all threads; peaks by ISA) and of its GPUs (L2, HBM; peaks by
/// precision).
std::vector<Roof> roofs_of(const Machine& machine);
/// Where a measurement stands. `in_cache_slots`: issue slots per second that the op reaches in a cache, the compute
/// roof of ops with exp or tanh; 0: from the peak.
RooflinePoint roofline_point(const Measurement& measurement, const Machine& machine,
                             double in_cache_slots = 0);
/// All roofs of `host` and `gpu` (may be null) and one point a measurement.
Roofline roofline(const Machine& host, const Machine* gpu, std::span<const Measurement> measurements);
/// The highest rate of issue slots that one thread reached on data in its second cache, scaled to more threads as the
/// peaks scale; 0: never measured there, or an op with few slots for each byte.
double in_cache_slots(std::span<const Cell> cells, const Machine& machine, std::string_view op, int threads);

// Break-even (breakeven.cpp, breakeven_search.cpp).

/// One op along one of its dims.
struct Sizes {
  std::string op, dim;
  Shape shape;                    // the other dims, and choices
  std::vector<std::string> dims;  // beside dim, moved with it (N and K of a square product)
  double from = 1, to = 1 << 28;
  double largest_seen = 0;  // of the caller's calls; 0: not known. n* above it is never{range}
  std::string precision = "fp32";
};
/// The shape at size n.
Shape shape_at(const Sizes& sizes, double n);

/// From curves alone: every verdict that can be read off them. `floor_seconds`: the cheapest call to the GPU, whatever
/// it does; `reason_text` explains a loss by transfers ("link 55 GB/s < CPU memory 73 GB/s").
struct CurveFacts {
  double floor_seconds = 0;
  double link_share = 0;  // of the GPU's time at the largest n: above 0.5, a loss there is the link's
  std::string link_text, serial_text;
  double largest_seen = 0;
};
BreakEven breakeven_of(std::vector<CurvePoint> cpu, std::vector<CurvePoint> gpu,
                       const CurveFacts& facts = {});
/// Both curves by the model; text, grade, reuse_needed and practical_n filled in.
Result<BreakEven> breakeven(const Model& model, const Sizes& sizes, const GpuUse& use);
/// From measured cells along the dim; Kind::unknown when a side has fewer than two sizes.
Result<BreakEven> breakeven_measured(const Model& model, const Sizes& sizes, const GpuUse& use);
/// Calls per transfer from which the GPU wins: k (T_cpu - T_resident) > T_transfers. 0: it never does.
double reuse_needed(double cpu_seconds, double resident_seconds, double transfer_seconds);
/// 1.5 n, rounded up, then up to a power of two; 0 for no n.
double practical(double n);

/// Where to measure next, seeking the boundary: 1, 2, 4 .. 1024, then on by fours to the end of the range, then
/// halving in log n between a loss and a win until they are `ratio` apart or not to be told apart. None: done. Sizes of
/// which at least one side is measured are known; the other side may be predicted.
struct Search {
  double from = 1, to = 1 << 24;
  double ratio = 1.05;
  int most = 40;  // points
};
std::optional<double> next_size(std::span<const CurvePoint> cpu, std::span<const CurvePoint> gpu,
                                const Search& search);

// Amdahl, return on effort, verdicts (amdahl.cpp, roi.cpp, verdict.cpp).

double amdahl(double share, double speedup);
struct Part {
  Doubtful share, speedup;
};
/// 1 / (1 - sum f + sum f/S); low takes every low end of both, high every high end.
Doubtful amdahl(std::span<const Part> parts);
/// f (1 - 1/S): the share of the whole that goes away.
Doubtful saved_share(const Doubtful& share, const Doubtful& speedup);
/// now / then, with the intervals of both; 1 and assumed where one has no number.
Doubtful speedup_of(const Prediction& now, const Prediction& then);
/// A share of processor time as a share of wall-clock time: blocked time counts.
Doubtful wall_share(const Doubtful& cpu_share, double blocked_share);

inline constexpr double kLeastShare = 0.05;  // `offload now` never below
inline constexpr double kLeastSaved = 0.02;
inline constexpr double kNearCeiling = 0.8;

/// Fills end_to_end, saved, rank and engram_score from share, speedup, frequency and effort_days. end_to_end_cpu comes
/// from now and best_cpu where both are there; else it is 1.
void assess(PlanRow& row);
/// What a verdict rests on beside the row itself.
struct VerdictFacts {
  bool runs_on_gpu = false;    // today
  bool weak_evidence = false;  // nobody knows whether its iterations are independent
  std::string serial;          // evidence against parallelism
  std::string doubt;           // what is not known and would settle it; empty: said in general words
  double cpu_fix_rank = 0;     // rank of the same region's CPU row, of grade A or B; 0: none
  std::string cpu_fix;         // its action
  bool needs_others = false;   // wins only with another row's data on the device
  std::string parallel;        // evidence that unknown code runs in parallel: its bounds then decide
  double iterations = 0;       // of its parallel loop, as seen; 0: not known
  double narrow_seconds = 0;   // GPU with a thread for each of them and no more; 0: not known
  std::string
      scalar_math;  // which scalar functions of a math library take a part of it; empty: too small a part
};
/// The first that holds of: already right, keep on the CPU, fix on the CPU first, measure first, offload now, offload
/// next. Sets verdict and why.
void decide(PlanRow& row, const VerdictFacts& facts = {});
/// Highest rank first; rows whose interval of saved share reaches the row above are ties; equal ranks keep names'
/// order.
void order_rows(std::vector<PlanRow>& rows);
/// Effort classes in days: 0 library swap, 1 one loop, 2 data layout, 3 new algorithm. Assumed.
Doubtful effort_class(int level);

// The offload set (offload_set.cpp, min_cut.cpp).

struct Region {
  std::string name;
  double cpu_seconds = 0, gpu_seconds = 0;  // per run, without transfers
};
/// Data between regions. Producer or readers may be the host itself, which never moves.
struct DataObject {
  static constexpr int kHost = -1;
  std::string name;
  int producer = kHost;
  std::vector<int> consumers;  // region numbers or kHost
  double to_device_seconds = 0, to_host_seconds = 0, bytes = 0;
};
struct OffloadSet {
  std::vector<bool> on_gpu;
  double seconds = 0;           // whole, transfers included
  double transfer_seconds = 0;  // part of it
  double device_bytes = 0;
  bool memory_bound = false;  // a better set did not fit
};
/// Seconds of one choice: each object pays each direction at most once.
OffloadSet price_set(std::span<const Region> regions, std::span<const DataObject> objects,
                     std::vector<bool> on_gpu);
inline constexpr int kMostRegions = 20;
/// Exact, over all sets; error above kMostRegions regions. memory_bytes 0: no limit.
Result<OffloadSet> best_set(std::span<const Region> regions, std::span<const DataObject> objects,
                            double memory_bytes = 0);
/// The same by a minimum cut, for any number of regions. A memory limit that binds is met by a price on bytes: the set
/// fits, but a better one that fits may exist.
OffloadSet best_set_by_cut(std::span<const Region> regions, std::span<const DataObject> objects,
                           double memory_bytes = 0);

// The plan (plan.cpp).

/// A region or a row of a suite, as known before any decision.
struct PlanItem {
  std::string name;
  std::string op;  // empty: unknown code
  Shape shape;
  std::string precision = "fp32";
  Doubtful share;
  Doubtful frequency{1, 1, 1, true};
  Doubtful effort_days;                     // of offloading; value 0: effort class 1, assumed
  std::optional<Doubtful> cpu_effort_days;  // of threads or simd; none: effort class 0, assumed
  std::optional<Prediction> now;  // as it runs today; none: the best CPU (a suite: nobody runs it yet)
  std::string dim;                // break-even along this one; empty: the op's first dim
  std::optional<Prediction> best_cpu, best_gpu;  // of unknown code alone: bounds (bounds_of)
  VerdictFacts facts;
  std::string command;
};
struct PlanInput {
  std::string title, subject;
  std::vector<PlanItem> items;
  std::vector<DataObject>
      objects;                // consumers and producers number items; none: each row pays its own transfers
  GpuUse use;                 // of the rows; resident rows are priced for the set as well
  double price_per_hour = 0;  // of the GPU
  bool cpu_rows = true;       // let "use all cores" and "vectorise" compete
};
/// Everything decided once: rows in rank order, the best set, the verdict in words.
Plan plan(const Model& model, const PlanInput& input);
/// Rows of a suite with a share, an op and a shape. Claims are no input.
Result<PlanInput> plan_input_of(const Suite& suite);
/// One item a (op, shape) of regime host in the results, each with an equal share unless `shares` names it.
PlanInput plan_input_of(std::span<const Measurement> results,
                        const std::map<std::string, double>& shares = {});

// Code that is no op (unknown.cpp).

/// What samples say about a piece of code.
struct UnknownCode {
  double seconds = 0, low = 0, high = 0;  // wall-clock seconds of a run
  double flops_per_byte = 0;              // of issued loads and stores; 0: no floating-point work
  bool moves_bytes = true;                // false: neither loads nor stores were seen
  double vector_bits = 32;                // mean width of its floating-point work
  double threads = 1;                     // inside at once
  std::string access;                     // "streaming", "strided", "gather", "none"
  double touched_bytes = 0;               // that would travel at most; 0: not known
  double least_bytes = 0;                 // and at least; 0: as many
  double written_share = 1;               // of touched_bytes that travels back
  double iterations = 0;                  // of its parallel loop, as seen; 0: not known
  double entries = 0;                     // of that loop in a run, each a launch at least; 0: not known
  double loads_per_turn = 0;              // that a turn of its innermost loop issues before it needs one
  double math_share = 0;                  // of its time in scalar functions of a math library
  double math_gain = 1;                   // how much faster their vector versions are
  double fresh_seconds_per_byte = 0;      // of memory that nobody has touched yet; 0: not known
};
struct Bounds {
  Prediction now, cpu, gpu;   // whole run; cpu and gpu of grade C
  double narrow_seconds = 0;  // GPU, one thread for each iteration that was seen; 0: not known
};
/// The roofs at its arithmetic intensity: if its iterations were independent and ran at the same share of the roof as
/// today, all cores with SIMD and the GPU would take so long. An answer to "is it worth a look", no prediction.
Bounds bounds_of(const UnknownCode& code, const Machine& host, const GpuCeilings* gpu);

/// A time against its budget: "within" up to 80 %, "near limit" up to 100 %, "over"; an interval across the budget
/// is "unresolved".
std::string_view budget_status(double low, double high, double budget_seconds);

// Occupancy (occupancy.cpp).

enum class Filling : std::uint8_t { ok, underfilled, shape_limited, tail };
std::string_view to_string(Filling);  // "OK", "UNDERFILLED", "SHAPE_LIMITED", "TAIL"
/// One dim of the work and the tile that cuts it.
struct TiledDim {
  std::string name;
  double size = 1, tile = 1;
  double least_tile = 1;  // the smallest that the kernel's class allows
  double splits = 0;      // reductions only: parts used today at most, 0: every tile may stand alone
};
struct TileChoice {
  std::string tiles;  // "Sq 16 x Skv 16"
  double ctas = 0;    // at most, with all splits
};
struct Occupancy {
  Filling filling = Filling::ok;
  double ctas = 0, most_ctas = 0, target = 0, waves = 0, utilisation = 0;
  std::vector<TileChoice> choices;  // halving tiles down to the smallest
  std::string text;
};
/// g(k), the share of an SM's rate that k of `ctas_per_sm` CTAs reach, is taken as min(1, k/ctas_per_sm * 2).
Occupancy occupancy(std::span<const TiledDim> dims, const GpuCeilings& gpu, double ctas_per_sm = 4);
/// u(P): share of the peak that P equal CTAs can use on `sms` SMs with `ctas_per_sm` resident on each.
double utilisation(double ctas, double sms, double ctas_per_sm);

// How good it is (validation.cpp).

struct CellError {
  std::string row;  // "gelu n=1024 fp32 resident"
  std::string op, regime, path;
  Grade grade = Grade::c;
  double predicted = 0, measured = 0;
  double error() const { return predicted / measured - 1; }
  std::string cause;  // the largest term and where the prediction came from
};
struct ErrorDistribution {
  std::string name;  // op, grade, or "all"
  int count = 0;
  double median = 0, p95 = 0, worst = 0;  // of |error|
  double within_10 = 0, within_30 = 0;    // shares
};
ErrorDistribution distribution_of(std::string_view name, std::span<const CellError> errors);
struct Validation {
  std::vector<CellError> cells;
  ErrorDistribution all;
  std::vector<ErrorDistribution> by_op, by_regime;
  std::vector<CellError> worst;  // ten
};
enum class HeldOut : std::uint8_t {
  size,        // this cell's shape, in every regime and path
  op,          // every cell of the op: factors come from its class
  everything,  // closed form alone
};
/// Each cell predicted without what `held_out` names. Regimes: roundtrip and resident of the GPU, host of the CPU.
Validation cross_validate(std::span<const Measurement> measurements, const Machine& machine,
                          HeldOut held_out = HeldOut::size);

// The prediction ledger (ledger.cpp): written before the run that checks it, never edited.

struct LedgerRow {
  std::string time_utc, machine, model;  // model: hash of what predicted
  Grade grade = Grade::c;
  std::string op, precision, shape;  // shape as text, with its dtype
  std::string where;                 // "cpu" or "gpu"
  Regime regime = Regime::host;
  std::string path;
  std::int64_t reuse = 0;
  double predicted = 0, low = 0, high = 0;
  std::optional<double> measured;
  std::int64_t samples = 0;
  double noise = 0;
};
LedgerRow ledger_row(const Call& call, const GpuUse* use, const Prediction& prediction,
                     std::string_view time_utc, std::string_view model);
Json to_json(const LedgerRow& row);  // fulcrum.prediction/1, one line
Result<LedgerRow> ledger_row_from_json(const Json& json, std::string_view origin);
/// A whole ledger; an error names the line.
Result<std::vector<LedgerRow>> ledger_from_lines(std::string_view text, std::string_view origin);
/// Rows to append: a copy of each prediction that has no measurement in the ledger yet and one among these.
std::vector<LedgerRow> fill_measured(std::span<const LedgerRow> ledger,
                                     std::span<const Measurement> measurements, std::string_view time_utc);
/// Of the filled rows; the last measurement of a prediction counts.
std::vector<ErrorDistribution> summarise(std::span<const LedgerRow> ledger,
                                         std::string_view by);  // "op", "grade"
/// Changes whenever a formula, a profile or a measurement behind the model changes.
std::string model_hash(const Model& model);

}  // namespace fulcrum::model
