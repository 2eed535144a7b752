// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Problem: memory for one call, its inputs drawn, its outputs poisoned.
#include <fmt/format.h>
#include <fulcrum/ops/half.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/support/problem_state.h"

namespace fulcrum::ops {
namespace {

constexpr int kPoison = 0xFF;

/// Values that break careless arithmetic, at the places where loops begin, end and split.
void sprinkle(std::span<float> values, Problem::Special special, int tensor, std::uint64_t key) {
  if (special == Problem::Special::none || values.empty()) return;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::size_t n = values.size();
  const std::size_t places[] = {0, n - 1, n / 2, random_bits(key, n) % n, random_bits(key, n + 1) % n};
  int turn = tensor;
  for (const std::size_t place : places) {
    const float infinity = turn % 2 == 0 ? kInfinity : -kInfinity;
    if (special == Problem::Special::nan) values[place] = kNan;
    if (special == Problem::Special::infinity) values[place] = infinity;
    if (special == Problem::Special::mixed) values[place] = turn % 3 == 0 ? kNan : infinity;
    ++turn;
  }
}

void fill(std::span<float> values, const Fill& fill, std::uint64_t key) {
  const auto low = static_cast<float>(fill.low);
  const auto high = static_cast<float>(fill.high);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = fill.kind == Fill::Kind::uniform ? random_uniform(key, i, low, high) : random_normal(key, i);
  }
}

/// n elements in as many vectors as asked for, of lengths that differ.
void draw_lengths(std::span<std::int64_t> lengths, std::int64_t n, std::uint64_t key) {
  const auto vectors = static_cast<std::int64_t>(lengths.size());
  for (std::int64_t v = 0; v < vectors; ++v) lengths[v] = n / vectors + (v < n % vectors ? 1 : 0);
  for (std::int64_t v = 0; v + 1 < vectors; v += 2) {
    const auto moved = static_cast<std::int64_t>(random_bits(key, v) % (lengths[v] + 1));
    lengths[v] -= moved;
    lengths[v + 1] += moved;
  }
}

bool is_16_bit(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

/// Where a slot's type follows the shape, u8 is one of 256 levels: level k stands for k / 255.
std::uint8_t level_from_float(float value) {
  return static_cast<std::uint8_t>(std::lround(255 * std::clamp(value, 0.0F, 1.0F)));
}
float float_from_level(std::uint8_t level) { return static_cast<float>(level) / 255; }

/// A level is its own bin of 256, whatever range of values a call names. The reference, which reads k / 255, finds the
/// same bins between 0 and 1.
void bin_by_level(const Op& op, Args& args) {
  int number = 0;
  for (const Slot& slot : op.slots) {
    if (slot.kind != SlotKind::real && slot.kind != SlotKind::integer && slot.kind != SlotKind::choice)
      continue;
    fulcrum_scalar& scalar = args.scalar[number++];
    if (slot.name == "range") scalar.i = 0;
    if (slot.name == "lo") scalar.f = 0;
    if (slot.name == "hi") scalar.f = 1;
  }
}

template <class T>
std::span<T> view(const GuardedBuffer& buffer) {
  return {reinterpret_cast<T*>(buffer.data()), static_cast<std::size_t>(buffer.bytes()) / sizeof(T)};
}

}  // namespace

Status Problem::State::allocate() {
  const int lengths = op->list_lengths ? op->list_lengths(args) : -1;
  double total_bytes = 0;
  for (const Slot& slot : op->slots) {
    if (slot.kind == SlotKind::in || slot.kind == SlotKind::out || slot.kind == SlotKind::inout) {
      const auto number = static_cast<int>(pointers.size());
      pointers.push_back(Pointer{.slot = &slot, .dtype = dtype_of(*op, number, shape.dtype)});
    }
  }
  std::vector<std::int64_t> bytes(pointers.size(), -1);  // -1: stays null
  for (std::size_t p = 0; p < pointers.size(); ++p) {
    const Slot& slot = *pointers[p].slot;
    const bool wanted = !slot.optional || options.optional_inputs || static_cast<int>(p) == lengths;
    if (!wanted || (options.reference_only && slot.kind == SlotKind::out)) continue;
    const std::int64_t elements = op->extent(args, static_cast<int>(p));
    if (slot.optional && elements == 0) continue;
    if (options.in_place && slot.kind == SlotKind::out) {
      pointers[p].shares = 0;
      continue;
    }
    bytes[p] = elements * bytes_of(pointers[p].dtype);
    total_bytes += static_cast<double>(bytes[p]);
  }
  const std::int64_t free_bytes = free_memory_bytes();
  if (free_bytes > 0 && total_bytes > 0.5 * static_cast<double>(free_bytes)) {
    return Error{
        Code::out_of_memory,
        fmt::format("{} with {} needs {}, more than half of the {} that are free", op->name, shape.text(),
                    human_bytes(total_bytes), human_bytes(static_cast<double>(free_bytes))),
        "use a smaller size"};
  }
  for (std::size_t p = 0; p < pointers.size(); ++p) {
    if (bytes[p] < 0) continue;
    pointers[p].buffer = GuardedBuffer(bytes[p]);
    if (pointers[p].buffer.empty()) {
      return Error{Code::out_of_memory,
                   fmt::format("no memory for {} of {}: {}", pointers[p].slot->name, op->name,
                               human_bytes(static_cast<double>(bytes[p]))),
                   "use a smaller size"};
    }
  }
  return {};
}

void Problem::State::draw() {
  const int lengths = op->list_lengths ? op->list_lengths(args) : -1;
  for (std::size_t p = 0; p < pointers.size(); ++p) {
    const Slot& slot = *pointers[p].slot;
    const DType dtype = pointers[p].dtype;
    if (slot.kind == SlotKind::out || pointers[p].buffer.empty()) continue;
    const auto tensor = static_cast<int>(p);
    const std::uint64_t key = tensor_key(tensor, options.seed);
    if (tensor == lengths) {
      draw_lengths(view<std::int64_t>(pointers[p].buffer), op->extent(args, 0), key);
    } else if (dtype == DType::f32 && slot.fill.kind != Fill::Kind::none) {
      fill(view<float>(pointers[p].buffer), slot.fill, key);
      if (!slot.finite) sprinkle(view<float>(pointers[p].buffer), options.special, tensor, key);
    } else if (is_16_bit(dtype) && slot.fill.kind != Fill::Kind::none) {
      const auto halves = view<std::uint16_t>(pointers[p].buffer);
      std::vector<float> values(halves.size());
      fill(values, slot.fill, key);
      if (!slot.finite) sprinkle(values, options.special, tensor, key);
      std::transform(values.begin(), values.end(), halves.begin(),
                     dtype == DType::f16 ? half_from_float : bfloat_from_float);
    } else if (pointers[p].holds_levels()) {
      pointers[p].widened.resize(view<std::uint8_t>(pointers[p].buffer).size());
      fill(pointers[p].widened, slot.fill, key);
    } else {
      std::memset(pointers[p].buffer.data(), 0, pointers[p].buffer.span().size());
    }
  }
}

/// Inputs from their fills and from the op's own rule, which both give f32; levels are the nearest to those.
void Problem::State::fill_inputs() {
  draw();
  bind();
  if (op->make_inputs) {
    Args drawn = args;
    for (std::size_t p = 0; p < pointers.size(); ++p) {
      if (pointers[p].holds_levels()) drawn.ptr[p] = pointers[p].widened.data();
    }
    op->make_inputs(drawn, options.seed);
  }
  for (Pointer& pointer : pointers) {
    if (!pointer.holds_levels()) continue;
    std::transform(pointer.widened.begin(), pointer.widened.end(), view<std::uint8_t>(pointer.buffer).begin(),
                   level_from_float);
  }
  widen();
}

/// Points the arguments at the buffers.
void Problem::State::bind() {
  const int lengths = op->list_lengths ? op->list_lengths(args) : -1;
  for (std::size_t p = 0; p < pointers.size(); ++p) {
    Pointer& pointer = pointers[p];
    Pointer& owner = pointer.shares >= 0 ? pointers[static_cast<std::size_t>(pointer.shares)] : pointer;
    std::byte* data = owner.buffer.data();
    std::byte* truth_data = pointer.pristine.empty() ? data : pointer.pristine.data();
    if (!pointer.widened.empty()) truth_data = reinterpret_cast<std::byte*>(pointer.widened.data());
    args.ptr[p] = data;
    truth_args.ptr[p] = truth_data;
    if (lengths < 0 || static_cast<int>(p) == lengths || !data) continue;
    const auto each = view<std::int64_t>(pointers[static_cast<std::size_t>(lengths)].buffer);
    pointer.table.clear();
    pointer.truth_table.clear();
    std::int64_t offset_bytes = 0;
    for (const std::int64_t length : each) {
      pointer.table.push_back(data + offset_bytes);
      pointer.truth_table.push_back(truth_data + offset_bytes);
      offset_bytes += length * bytes_of(pointer.dtype);
    }
    args.ptr[p] = pointer.table.data();
    truth_args.ptr[p] = pointer.truth_table.data();
  }
}

/// Keeps what is needed to restore the inputs, or to see that a call changed them.
void Problem::State::remember() {
  for (std::size_t p = 0; p < pointers.size(); ++p) {
    Pointer& pointer = pointers[p];
    if (pointer.slot->kind == SlotKind::out || pointer.buffer.empty()) continue;
    const bool overwritten = pointer.slot->kind == SlotKind::inout || (options.in_place && p == 0);
    const auto bytes = pointer.buffer.span();
    if (overwritten) pointer.pristine.assign(bytes.begin(), bytes.end());
    pointer.hash = fingerprint(bytes);
  }
  widen();
  bind();
}

/// References read f32 wherever a slot's type follows the shape: the values are the same, and one reference is enough.
void Problem::State::widen() {
  for (Pointer& pointer : pointers) {
    const bool is_read = pointer.slot->kind != SlotKind::out && !pointer.buffer.empty();
    if (!is_read || !pointer.slot->follows_dtype) continue;
    if (pointer.holds_levels()) {
      const auto levels = view<std::uint8_t>(pointer.buffer);
      pointer.widened.resize(levels.size());
      std::transform(levels.begin(), levels.end(), pointer.widened.begin(), float_from_level);
    }
    if (!is_16_bit(pointer.dtype)) continue;
    const auto bits = view<std::uint16_t>(pointer.buffer);
    pointer.widened.resize(bits.size());
    std::transform(bits.begin(), bits.end(), pointer.widened.begin(),
                   pointer.dtype == DType::f16 ? float_from_half : float_from_bfloat);
  }
}

Status Problem::State::prepare() {
  if (!op->prepare) return {};
  FULCRUM_TRY(prepared, op->prepare(args));
  args.prepared = truth_args.prepared = prepared.get();
  return {};
}

Problem::Problem(std::unique_ptr<State> state) : state_(std::move(state)) {}
Problem::Problem(Problem&&) noexcept = default;
Problem& Problem::operator=(Problem&&) noexcept = default;
Problem::~Problem() = default;

Result<Problem> Problem::make(const Op& op, const Shape& shape, const Options& options) {
  auto state = std::make_unique<State>();
  state->op = &op;
  FULCRUM_TRY(state->shape, complete(op, shape));
  FULCRUM_TRY(state->args, resolve(op, state->shape));
  state->options = options;
  if (options.in_place && !op.in_place) {
    return Error{Code::unsupported, fmt::format("{} cannot write over its input", op.name),
                 "leave in_place off"};
  }
  FULCRUM_CHECK(state->allocate());
  state->truth_args = state->args;
  if (!op.dtypes.empty() && state->shape.dtype == DType::u8) bin_by_level(op, state->truth_args);
  state->fill_inputs();
  state->remember();
  FULCRUM_CHECK(state->prepare());
  Problem problem(std::move(state));
  problem.reset();
  return problem;
}

const Op& Problem::op() const { return *state_->op; }
const Shape& Problem::shape() const { return state_->shape; }
Args& Problem::args() { return state_->args; }
const Args& Problem::args() const { return state_->args; }

std::int64_t Problem::bytes() const {
  std::int64_t sum = 0;
  for (const State::Pointer& pointer : state_->pointers) sum += pointer.buffer.bytes();
  return sum;
}

std::span<std::byte> Problem::buffer(int slot) {
  State::Pointer& pointer = state_->pointers.at(static_cast<std::size_t>(slot));
  if (pointer.shares >= 0) return buffer(pointer.shares);
  return pointer.buffer.empty() ? std::span<std::byte>{} : pointer.buffer.span();
}

void Problem::adopt_inputs() {
  State& state = *state_;
  std::uint64_t before = 0, after = 0;
  for (const State::Pointer& pointer : state.pointers) before = 31 * before + pointer.hash;
  state.drawn = false;
  state.remember();
  for (const State::Pointer& pointer : state.pointers) after = 31 * after + pointer.hash;
  // What was prepared may hold the old inputs; what the caller put in its place is the caller's.
  if (before == after || !state.op->prepare || state.args.prepared != state.prepared.get()) return;
  if (state.prepare().ok()) return;
  state.prepared.reset();  // kernels then prepare for themselves, or refuse the call
  state.args.prepared = state.truth_args.prepared = nullptr;
}

void Problem::reset() {
  State& state = *state_;
  bool changed = false;
  for (State::Pointer& pointer : state.pointers) {
    if (pointer.buffer.empty()) continue;
    const auto bytes = pointer.buffer.span();
    if (pointer.slot->kind == SlotKind::out) {
      std::memset(bytes.data(), kPoison, bytes.size());
    } else if (!pointer.pristine.empty()) {
      std::memcpy(bytes.data(), pointer.pristine.data(), bytes.size());
    } else {
      changed |= fingerprint(bytes) != pointer.hash;
    }
  }
  if (!changed || !state.drawn) return;
  state.fill_inputs();
}

}  // namespace fulcrum::ops
