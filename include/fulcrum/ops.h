// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What an op is: its slots, its work, its truth. An op knows no backend. An op is one file in src/ops and one
// line in src/ops/list.def; a program of yours adds its own with ops::add().
#pragma once

#include <fulcrum/core.h>

#include <functional>
#include <memory>

namespace fulcrum::ops {

enum class SlotKind : std::uint8_t { in, out, inout, dim, real, integer, choice };

/// How the values of an input are drawn (counter based: the same bits on every machine and device).
struct Fill {
  enum class Kind : std::uint8_t { none, uniform, normal } kind = Kind::none;
  double low = 0, high = 0;
};
constexpr Fill uniform(double low, double high) { return Fill{Fill::Kind::uniform, low, high}; }
constexpr Fill normal() { return Fill{Fill::Kind::normal, 0, 1}; }

/// One named argument. Pointers, dims and scalars are numbered apart, each in the order of the list.
struct Slot {
  SlotKind kind = SlotKind::in;
  std::string_view name;
  DType dtype = DType::f32;
  Fill fill;
  bool optional = false;     // pointers: may be null. Others: has a default
  double default_value = 0;  // choices: the index
  std::vector<std::string_view> choices;
  bool finite = false;         // inputs: NaN and Inf are refused, before a byte is written
  bool follows_dtype = false;  // pointers: of the type in the shape (Op::dtypes), not of `dtype`
};
Slot typed(Slot slot);  // the same slot, of the shape's type
Slot in(std::string_view name, Fill fill, DType dtype = DType::f32);
Slot in_optional(std::string_view name, DType dtype = DType::f32);
Slot in_optional(std::string_view name, Fill fill, DType dtype = DType::f32);  // drawn only when asked for
Slot in_finite(std::string_view name, Fill fill, DType dtype = DType::f32);
Slot out(std::string_view name, DType dtype = DType::f32);
Slot inout(std::string_view name, Fill fill, DType dtype = DType::f32);
Slot dim(std::string_view name);
Slot dim(std::string_view name, std::int64_t default_value);
Slot real(std::string_view name, double default_value);
Slot integer(std::string_view name, std::int64_t default_value);
Slot choice(std::string_view name, std::vector<std::string_view> choices);  // the first is the default

/// The fp64 value of one output and the error a kernel may show there.
struct Truth {
  double value = 0;
  double allowed = 0;
  bool any_non_finite = false;  // the definition allows Inf or NaN here (fp32 overflow inside a sum)
  double magnitude =
      0;  // sum of |products| behind the value: kernels that round their inputs further (tf32) may
          // be off by that share of it. 0: such kernels get no more than `allowed`
};

/// How one call falls into pieces that threads may take. Each phase runs its pieces in any order on any thread;
/// combine() then runs once, on one thread, and must use a fixed order: bits do not depend on the thread count.
struct Split {
  int phases = 0;  // 0: not splittable
  std::int64_t (*pieces)(const Args&, int phase) = nullptr;
  std::int64_t (*scratch_bytes)(const Args&) = nullptr;              // optional: none
  void (*combine)(const Args&, int phase, void* scratch) = nullptr;  // optional: nothing to combine
  int (*phases_for)(const Args&) =
      nullptr;          // optional: phases of this call, where they differ (hops of a graph)
  int main_phase = -1;  // the one that has the work; -1: the last that has pieces
  bool even = false;    // whether pieces are as large as each other, however many there are

  int phase_count(const Args& args) const { return phases_for ? phases_for(args) : phases; }
};

/// One output element as checked: which pointer slot, which index, what was expected, what came.
struct Checked {
  int slot = 0;
  std::int64_t index = 0;
  Truth truth;
  double got = 0;
};

struct Op {
  std::string_view name;
  std::string_view summary;   // the formula, in one line
  std::string_view category;  // "streaming", "reduction", "dense", "stencil", "recurrent", "graph", "probe"
  std::vector<Slot> slots;

  /// Elements behind pointer slot `slot`; -1 when a product of dims overflows.
  std::int64_t (*extent)(const Args&, int slot) = nullptr;
  /// Parameter rules beyond "dims are not negative". Optional.
  Status (*validate)(const Args&) = nullptr;
  Work (*work)(const Args&) = nullptr;
  /// Truth of the outputs `index` (ascending) of pointer slot `slot`, in fp64 over the already rounded inputs.
  void (*reference)(const Args&, int slot, std::span<const std::int64_t> index, Truth* truth) = nullptr;
  /// A condition over all checked outputs (a norm, a sum). Empty: fine; else what is wrong. Optional.
  std::string (*check_all)(const Args&, std::span<const Checked>) = nullptr;
  /// check_all is a statistical bound: it holds for inputs drawn by the fills, not for any input.
  bool check_all_drawn_only = false;
  /// For outputs that have no single truth (ids that may tie, results of a search): judges all of them, raises
  /// oracle.checked and the errors there, and returns what is wrong or nothing. Replaces reference() in check().
  std::string (*verify)(const Args&, Oracle& oracle) = nullptr;
  /// A flag that a right result deserves all the same ("clamped": most of a range went unused), or null. Reads the
  /// outputs. Optional.
  const char* (*remark)(const Args&) = nullptr;
  /// Element-wise ops accept out == in exactly.
  bool in_place = false;
  /// The dim along which a call is many independent calls on neighbouring data ("n" of element-wise ops, "rows",
  /// "B"): backends that move operands may cut there. Each operand's extent grows with it in proportion or not at all.
  /// Cuts lie at multiples of slice_unit. Optional.
  std::string_view slice_dim;
  std::int64_t slice_unit = 1;
  /// Types that slots made by typed() may have, the default first; empty: the op has one.
  std::vector<DType> dtypes;
  /// Resources made once per shape and input, outside every timed call (index, graph, table). Optional.
  Result<std::shared_ptr<const void>> (*prepare)(const Args&) = nullptr;
  bool needs_prepared = false;  // no call without it
  /// A number for what was prepared that nothing else gets in this process (unique_number()); an address is used again.
  /// Null: plans over such a resource are made for every call.
  std::uint64_t (*prepared_id)(const void* prepared) = nullptr;
  /// A resource that never ends, for calls that bring none.
  const void* (*standing)() = nullptr;
  /// Bytes of what prepare() makes, before it is made: it tells how long that takes. Set where needs_prepared is.
  double (*prepared_bytes)(const Args&) = nullptr;
  /// Inputs that a Fill cannot say. Optional; runs after the fills.
  void (*make_inputs)(const Args&, std::uint64_t key) = nullptr;
  Split split;
  /// Patterns (shell style) of function names that mean this op in a profile.
  std::vector<std::string_view> symbols;
  /// Standard sizes, smallest first, as shape texts.
  std::vector<std::string_view> default_sizes;
  /// Shapes where kernels of this op may break, beside those that tests derive from the slots: small enough to be
  /// checked in full, and all there is when the op's rules refuse most derived ones. Optional.
  std::vector<std::string_view> edge_shapes;
  /// Flops of the reference for one output element, to decide between a full and a partial check.
  double (*reference_cost)(const Args&) = nullptr;
  /// The pointer slot with the i64 lengths when all others are arrays of pointers, one per vector (the list form
  /// of vec_add: extent() then counts the elements of all vectors); -1: plain arrays. Optional: always plain.
  int (*list_lengths)(const Args&) = nullptr;

  int pointers() const;  ///< number of pointer slots
  bool is_probe() const { return category == "probe"; }
};

/// All ops: the list's, then those added. Pointers stay valid.
std::vector<const Op*> all();
Result<const Op*> find(std::string_view name);
/// Registers an op of the caller's. Fails when the name is taken or a required field is missing.
Status add(Op op);

/// Shape with every default filled in and every key, type and sign checked; unknown keys are errors that list
/// the known ones.
Result<Shape> complete(const Op& op, const Shape& shape);
/// Dims and scalars of a completed shape in their slots; pointers null. Runs validate and the overflow checks.
Result<Args> resolve(const Op& op, const Shape& shape);
/// What resolve() checks, for arguments that were filled by hand: signs, codes of choices, overflow, validate.
Status check_args(const Op& op, const Args& args);
/// The way back: the shape that these dims and scalars spell, in the op's first type.
Shape shape_of(const Op& op, const Args& args);
/// Null pointers with non-zero extent and forbidden overlaps, before a byte is written.
Status check_pointers(const Op& op, const Args& args, DType dtype = DType::f32);
/// Hears of every graph and index that ends, in the thread that ends it, for as long as it lives: what was derived from
/// one can go then. Nothing may throw.
class PreparedWatch {
 public:
  explicit PreparedWatch(std::function<void(const void* prepared)> ended);
  PreparedWatch(const PreparedWatch&) = delete;
  PreparedWatch& operator=(const PreparedWatch&) = delete;
  ~PreparedWatch();

 private:
  friend void tell_ended(const void* prepared) noexcept;
  std::function<void(const void*)> ended_;
};
void tell_ended(const void* prepared) noexcept;

/// Pointer slot `slot` as described.
const Slot& pointer_slot(const Op& op, int slot);
/// Type of the elements behind pointer slot `slot` of a call whose shape says `dtype`.
DType dtype_of(const Op& op, int slot, DType dtype);
std::int64_t outputs(const Op& op, const Args& args);  ///< elements over all output slots

/// Numbers for inputs: see docs/measuring.md. z is the splitmix64 finaliser over a counter.
std::uint64_t random_bits(std::uint64_t key, std::uint64_t index);
float random_uniform(std::uint64_t key, std::uint64_t index, float low, float high);
float random_normal(std::uint64_t key, std::uint64_t index);
std::uint64_t tensor_key(int tensor, std::uint64_t seed = 42);

/// Error bound of k units in the last place of `value` as f32, with the denormal floor.
double ulps(double k, double value, double floor = 0x1p-126);
/// Spacing of f32 at `value`.
double ulp_of(double value);

/// A call with its own guarded host buffers: inputs filled, outputs poisoned, result checkable.
class Problem {
 public:
  enum class Special : std::uint8_t { none, nan, infinity, mixed };
  struct Options {
    std::uint64_t seed = 42;
    Special special = Special::none;  // sprinkles NaN / Inf over the inputs
    bool in_place = false;            // out shares the first input's buffer (element-wise ops only)
    bool optional_inputs = false;     // optional inputs are there, not null
    bool reference_only = false;
  };
  static Result<Problem> make(const Op& op, const Shape& shape, const Options& options);
  static Result<Problem> make(const Op& op, const Shape& shape) { return make(op, shape, Options{}); }
  Problem(Problem&&) noexcept;
  Problem& operator=(Problem&&) noexcept;
  ~Problem();

  const Op& op() const;
  const Shape& shape() const;
  Args& args();
  const Args& args() const;
  std::int64_t bytes() const;  ///< of all buffers, guards not counted
  std::span<std::byte> buffer(int slot);

  /// Takes what the caller wrote into the input buffers as the inputs from now on.
  void adopt_inputs();
  /// Inputs as first filled (in-place calls destroy them), outputs all 0xFF bytes.
  void reset();
  /// Compares the outputs with the reference: all of them, or at least 1,024 when that would take over about a
  /// second; and poison, guard bytes and untouched inputs everywhere.
  Oracle check() { return check("fp32"); }
  /// The same for a kernel of another precision: its inputs were rounded further, by the definition of that precision.
  Oracle check(std::string_view precision);

 private:
  struct State;
  explicit Problem(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fulcrum::ops
