// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// From names to slot numbers and back: shapes are completed and checked here, once, so that no string reaches a
// timed call.
#include <fmt/format.h>
#include <fulcrum/ops/pixel_entropy.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fulcrum::ops {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kWindow = "W", kWindowRule = "w_rule", kAutomatic = "auto";

bool is_pointer(SlotKind kind) {
  return kind == SlotKind::in || kind == SlotKind::out || kind == SlotKind::inout;
}

/// Keys of a shape in slot order: "n, B, layout (packed or list)".
std::string known_keys(const Op& op) {
  std::vector<std::string> keys;
  for (const Slot& slot : op.slots) {
    if (is_pointer(slot.kind)) continue;
    if (slot.kind == SlotKind::choice) {
      keys.push_back(fmt::format("{} ({})", slot.name, fmt::join(slot.choices, " or ")));
    } else {
      keys.emplace_back(slot.name);
    }
  }
  return fmt::format("{}", fmt::join(keys, ", "));
}

/// Types that a shape of this op may name: those of its typed slots, or those its slots have.
std::vector<DType> known_dtypes(const Op& op) {
  if (!op.dtypes.empty()) return op.dtypes;
  std::vector<DType> known;
  for (const Slot& slot : op.slots) {
    if (is_pointer(slot.kind) && std::find(known.begin(), known.end(), slot.dtype) == known.end())
      known.push_back(slot.dtype);
  }
  return known;
}

/// f32 is also what a shape says that names no type: where an op has types and f32 is none of them, its first is meant.
DType meant_dtype(const Op& op, DType dtype) {
  const bool has = std::find(op.dtypes.begin(), op.dtypes.end(), dtype) != op.dtypes.end();
  return dtype == DType::f32 && !op.dtypes.empty() && !has ? op.dtypes.front() : dtype;
}

Status check_dtype(const Op& op, DType dtype) {
  const std::vector<DType> known = known_dtypes(op);
  if (std::find(known.begin(), known.end(), dtype) != known.end()) return {};
  if (dtype == DType::f32 && op.dtypes.empty()) return {};
  std::vector<std::string_view> names;
  names.reserve(known.size());
  for (const DType one : known) names.push_back(to_string(one));
  return Error{Code::usage, fmt::format("{} has no operands of type {}", op.name, to_string(dtype)),
               fmt::format("it has {}", fmt::join(names, ", "))};
}

Shape::Value default_of(const Slot& slot) {
  switch (slot.kind) {
    case SlotKind::real:
      return slot.default_value;
    case SlotKind::choice:
      return std::string(slot.choices.at(static_cast<std::size_t>(slot.default_value)));
    default:
      return static_cast<std::int64_t>(slot.default_value);
  }
}

Error negative(const Op& op, const Slot& slot, std::int64_t size) {
  return Error{Code::invalid_shape, fmt::format("{}={} of {} is negative", slot.name, size, op.name),
               "sizes are 0 or more"};
}

Result<std::int64_t> as_integer(const Op& op, const Slot& slot, const Shape::Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* number = std::get_if<double>(&value);
      number && std::trunc(*number) == *number && std::abs(*number) < 0x1p63) {
    return static_cast<std::int64_t>(*number);
  }
  return Error{Code::usage, fmt::format("{} of {} must be an integer", slot.name, op.name),
               fmt::format("for example {}=1000", slot.name)};
}

Result<double> as_real(const Op& op, const Slot& slot, const Shape::Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  return Error{Code::usage, fmt::format("{} of {} must be a number", slot.name, op.name),
               fmt::format("for example {}=0.5", slot.name)};
}

Result<std::string> as_choice(const Op& op, const Slot& slot, const Shape::Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text && std::find(slot.choices.begin(), slot.choices.end(), *text) != slot.choices.end()) return *text;
  return Error{Code::usage,
               fmt::format("{} of {} has no value {}", slot.name, op.name,
                           text ? fmt::format("'{}'", *text) : std::string("that is a number")),
               fmt::format("it is one of {}", fmt::join(slot.choices, ", "))};
}

/// The value in the type its slot asks for.
Result<Shape::Value> convert(const Op& op, const Slot& slot, const Shape::Value& value) {
  switch (slot.kind) {
    case SlotKind::dim: {
      FULCRUM_TRY(const std::int64_t size, as_integer(op, slot, value));
      if (size < 0) return negative(op, slot, size);
      return Shape::Value(size);
    }
    case SlotKind::integer: {
      FULCRUM_TRY(const std::int64_t number, as_integer(op, slot, value));
      return Shape::Value(number);
    }
    case SlotKind::real: {
      FULCRUM_TRY(const double number, as_real(op, slot, value));
      return Shape::Value(number);
    }
    default: {
      FULCRUM_TRY(std::string text, as_choice(op, slot, value));
      return Shape::Value(std::move(text));
    }
  }
}

Status check_keys(const Op& op, const Shape& shape) {
  std::vector<std::string> names;
  for (const Slot& slot : op.slots) {
    if (!is_pointer(slot.kind)) names.emplace_back(slot.name);
  }
  for (std::size_t i = 0; i < shape.fields.size(); ++i) {
    const std::string& key = shape.fields[i].first;
    if (std::find(names.begin(), names.end(), key) == names.end()) {
      const std::string near = nearest_name(key, names);
      return Error{Code::usage, fmt::format("{} has no size or parameter '{}'", op.name, key),
                   fmt::format("{}it has {}", near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                               known_keys(op))};
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (shape.fields[j].first == key) {
        return Error{Code::usage, fmt::format("'{}' is given twice", key), "keep one of them"};
      }
    }
  }
  return {};
}

/// W=auto is another way to ask for w_rule=auto, where an op has that choice.
Shape with_window_rule(const Op& op, Shape shape) {
  const bool has_rule = std::any_of(op.slots.begin(), op.slots.end(),
                                    [](const Slot& slot) { return slot.name == kWindowRule; });
  const Shape::Value automatic = std::string(kAutomatic);
  const Shape::Value* window = shape.find(kWindow);
  const Shape::Value* rule = shape.find(kWindowRule);
  if (!has_rule || !window || *window != automatic || (rule && *rule != automatic)) return shape;
  std::erase_if(shape.fields, [](const auto& field) { return field.first == kWindow; });
  shape.set(kWindowRule, automatic);
  return shape;
}

/// The window in a completed shape is the one that is used, so that whoever prints the shape reports it.
void settle_window(Shape& shape) {
  const Shape::Value* rule = shape.find(kWindowRule);
  if (!rule || *rule != Shape::Value(std::string(kAutomatic)) || !shape.find("h") || !shape.find("w")) return;
  std::int64_t pixels = 0;
  if (__builtin_mul_overflow(shape.dim("h"), shape.dim("w"), &pixels)) pixels = kLargest;
  shape.set(kWindow, automatic_window(pixels));
}

}  // namespace

Slot typed(Slot slot) {
  slot.follows_dtype = true;
  return slot;
}
Slot in(std::string_view name, Fill fill, DType dtype) {
  return Slot{.kind = SlotKind::in, .name = name, .dtype = dtype, .fill = fill};
}
Slot in_optional(std::string_view name, DType dtype) {
  return Slot{.kind = SlotKind::in, .name = name, .dtype = dtype, .optional = true};
}
Slot in_optional(std::string_view name, Fill fill, DType dtype) {
  return Slot{.kind = SlotKind::in, .name = name, .dtype = dtype, .fill = fill, .optional = true};
}
Slot in_finite(std::string_view name, Fill fill, DType dtype) {
  return Slot{.kind = SlotKind::in, .name = name, .dtype = dtype, .fill = fill, .finite = true};
}
Slot out(std::string_view name, DType dtype) {
  return Slot{.kind = SlotKind::out, .name = name, .dtype = dtype};
}
Slot inout(std::string_view name, Fill fill, DType dtype) {
  return Slot{.kind = SlotKind::inout, .name = name, .dtype = dtype, .fill = fill};
}
Slot dim(std::string_view name) { return Slot{.kind = SlotKind::dim, .name = name}; }
Slot dim(std::string_view name, std::int64_t default_value) {
  return Slot{.kind = SlotKind::dim,
              .name = name,
              .optional = true,
              .default_value = static_cast<double>(default_value)};
}
Slot real(std::string_view name, double default_value) {
  return Slot{.kind = SlotKind::real, .name = name, .optional = true, .default_value = default_value};
}
Slot integer(std::string_view name, std::int64_t default_value) {
  return Slot{.kind = SlotKind::integer,
              .name = name,
              .optional = true,
              .default_value = static_cast<double>(default_value)};
}
Slot choice(std::string_view name, std::vector<std::string_view> choices) {
  return Slot{.kind = SlotKind::choice, .name = name, .optional = true, .choices = std::move(choices)};
}

Result<Shape> complete(const Op& op, const Shape& given_shape) {
  const DType dtype = meant_dtype(op, given_shape.dtype);
  FULCRUM_CHECK(check_keys(op, given_shape));
  FULCRUM_CHECK(check_dtype(op, dtype));
  const Shape shape = with_window_rule(op, given_shape);
  Shape result;
  result.dtype = dtype;
  for (const Slot& slot : op.slots) {
    if (is_pointer(slot.kind)) continue;
    const Shape::Value* given = shape.find(slot.name);
    if (!given && !slot.optional) {
      return Error{Code::usage, fmt::format("{} needs a size {}", op.name, slot.name),
                   fmt::format("it has {}; for example {}=1000", known_keys(op), slot.name)};
    }
    FULCRUM_TRY(Shape::Value value, convert(op, slot, given ? *given : default_of(slot)));
    result.fields.emplace_back(slot.name, std::move(value));
  }
  settle_window(result);
  return result;
}

Result<Args> resolve(const Op& op, const Shape& shape) {
  FULCRUM_TRY(const Shape full, complete(op, shape));
  Args args{};
  int dims = 0;
  int scalars = 0;
  std::size_t field = 0;
  for (const Slot& slot : op.slots) {
    if (is_pointer(slot.kind)) continue;
    const Shape::Value& value = full.fields[field++].second;
    if (slot.kind == SlotKind::dim) {
      args.dim[dims++] = std::get<std::int64_t>(value);
    } else if (slot.kind == SlotKind::integer) {
      args.scalar[scalars++].i = std::get<std::int64_t>(value);
    } else if (slot.kind == SlotKind::real) {
      args.scalar[scalars++].f = std::get<double>(value);
    } else {
      const auto& text = std::get<std::string>(value);
      const auto found = std::find(slot.choices.begin(), slot.choices.end(), text);
      args.scalar[scalars++].i = found - slot.choices.begin();
    }
  }
  FULCRUM_CHECK(check_args(op, args));
  return args;
}

Status check_args(const Op& op, const Args& args) {
  int dims = 0;
  int scalars = 0;
  for (const Slot& slot : op.slots) {
    if (slot.kind == SlotKind::dim && args.dim[dims++] < 0) {
      return negative(op, slot, args.dim[dims - 1]);
    }
    if (slot.kind != SlotKind::real && slot.kind != SlotKind::integer && slot.kind != SlotKind::choice)
      continue;
    const std::int64_t code = args.scalar[scalars++].i;
    if (slot.kind == SlotKind::choice &&
        (code < 0 || code >= static_cast<std::int64_t>(slot.choices.size()))) {
      return Error{Code::invalid_argument, fmt::format("{} of {} has no code {}", slot.name, op.name, code),
                   fmt::format("it is one of {}, counted from 0", fmt::join(slot.choices, ", "))};
    }
  }
  int pointer = 0;
  for (const Slot& slot : op.slots) {
    if (!is_pointer(slot.kind)) continue;
    const std::int64_t extent = op.extent(args, pointer++);
    if (extent < 0 || extent > kLargest / bytes_of(slot.dtype)) {
      return Error{Code::invalid_shape,
                   fmt::format("{} of {} with {} has more bytes than 64 bits can count", slot.name, op.name,
                               shape_of(op, args).text()),
                   "use smaller sizes"};
    }
  }
  if (op.validate) return op.validate(args);
  return {};
}

Shape shape_of(const Op& op, const Args& args) {
  Shape shape;
  if (!op.dtypes.empty()) shape.dtype = op.dtypes.front();  // arguments do not say: the op's first
  int dims = 0;
  int scalars = 0;
  for (const Slot& slot : op.slots) {
    const std::string name(slot.name);
    if (slot.kind == SlotKind::dim) {
      shape.fields.emplace_back(name, args.dim[dims++]);
    } else if (slot.kind == SlotKind::integer) {
      shape.fields.emplace_back(name, args.scalar[scalars++].i);
    } else if (slot.kind == SlotKind::real) {
      shape.fields.emplace_back(name, args.scalar[scalars++].f);
    } else if (slot.kind == SlotKind::choice) {
      const auto code = static_cast<std::size_t>(args.scalar[scalars++].i);
      FULCRUM_ASSERT(code < slot.choices.size());
      shape.fields.emplace_back(name, std::string(slot.choices[code]));
    }
  }
  return shape;
}

const Slot& pointer_slot(const Op& op, int slot) {
  const auto found = std::find_if(op.slots.begin(), op.slots.end(), [&](const Slot& described) {
    return is_pointer(described.kind) && slot-- == 0;
  });
  FULCRUM_ASSERT(found != op.slots.end());
  return *found;
}

DType dtype_of(const Op& op, int slot, DType dtype) {
  const Slot& described = pointer_slot(op, slot);
  return described.follows_dtype ? dtype : described.dtype;
}

std::int64_t outputs(const Op& op, const Args& args) {
  std::int64_t sum = 0;
  int pointer = 0;
  for (const Slot& slot : op.slots) {
    if (!is_pointer(slot.kind)) continue;
    const std::int64_t extent = op.extent(args, pointer++);
    if (slot.kind != SlotKind::in) sum += extent;
  }
  return sum;
}

}  // namespace fulcrum::ops
