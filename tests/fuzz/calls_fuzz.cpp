// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// libFuzzer target: any bytes become an op, a shape with good and bad parameters, and special values among the
// inputs; whatever the library accepts must then give a right result on every host kernel, and whatever it refuses
// must come with a message. New ops are covered without a line here.
#include <fulcrum/backends/dtypes.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace {

using namespace fulcrum;

constexpr std::int64_t kMostElements = 1 << 15;
constexpr double kMostFlops = 3e6;

/// The input, byte after byte; zeros once it is used up.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::uint8_t next() { return at_ < size_ ? data_[at_++] : 0; }
  template <class T>
  T raw() {
    T value;
    std::uint8_t bytes[sizeof(T)];
    for (std::uint8_t& byte : bytes) byte = next();
    std::memcpy(&value, bytes, sizeof(T));
    return value;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

std::int64_t draw_integer(Bytes& bytes) {
  const std::uint8_t kind = bytes.next();
  if (kind < 220) return kind % 48;
  if (kind < 245) return bytes.raw<std::uint16_t>();
  return bytes.raw<std::int64_t>();
}

double draw_real(Bytes& bytes) {
  constexpr double kInteresting[] = {0, -0.0, 1, -1, 0.5, 0.01, 0.999, 1e-300, 1e300, -100, 5000, 0.4965853};
  const std::uint8_t kind = bytes.next();
  if (kind < 200) return kInteresting[kind % std::size(kInteresting)];
  if (kind < 210) return std::numeric_limits<double>::quiet_NaN();
  if (kind < 220) return kind % 2 == 0 ? HUGE_VAL : -HUGE_VAL;
  if (kind < 240) return bytes.raw<std::int16_t>() / 256.0;
  return bytes.raw<double>();
}

Shape draw_shape(const ops::Op& op, Bytes& bytes) {
  Shape shape;
  if (!op.dtypes.empty()) shape.dtype = op.dtypes[bytes.next() % op.dtypes.size()];
  for (const ops::Slot& slot : op.slots) {
    const bool given = !slot.optional || bytes.next() % 2 == 0;
    switch (slot.kind) {
      case ops::SlotKind::dim:
      case ops::SlotKind::integer:
        if (given) shape.set(slot.name, draw_integer(bytes));
        break;
      case ops::SlotKind::real:
        if (given) shape.set(slot.name, draw_real(bytes));
        break;
      case ops::SlotKind::choice: {
        const std::size_t pick = bytes.next() % (slot.choices.size() + 1);
        shape.set(slot.name, std::string(pick < slot.choices.size() ? slot.choices[pick] : "no such choice"));
        break;
      }
      default:
        break;
    }
  }
  return shape;
}

[[noreturn]] void fail(const std::string& what, const ops::Op& op, const Shape& shape,
                       const std::string& detail) {
  std::fprintf(stderr, "%s: %s with %s: %s\n", what.c_str(), std::string(op.name).c_str(),
               shape.text().c_str(), detail.c_str());
  std::abort();
}

/// A resource is made of sizes that no buffer shows: the rows of an index, the edges of a graph.
constexpr std::int64_t kMostPrepared = 200;

bool small_enough(const ops::Op& op, const Args& args) {
  for (const std::int64_t size : args.dim) {
    if (op.needs_prepared && size > kMostPrepared) return false;
  }
  for (int slot = 0; slot < op.pointers(); ++slot) {
    if (op.extent(args, slot) > kMostElements) return false;
  }
  return op.work(args).flops <= kMostFlops;
}

void run_everywhere(const ops::Op& op, ops::Problem& problem) {
  const auto kernels = backends::kernels(op.name);
  if (!kernels.ok()) return;
  for (const backends::Kernel& kernel : *kernels) {
    if (kernel.backend().kind() != "cpu" || kernel.backend().name() == "peers") continue;
    if (!backends::takes_dtype(kernel, op, problem.shape().dtype)) continue;
    const auto run = [&](backends::Call& call) {
      problem.reset();
      if (call.run().code != FULCRUM_OK) fail("failed", op, problem.shape(), kernel.name());
      const Oracle oracle = problem.check();
      if (!oracle.passed) fail("wrong on " + kernel.name(), op, problem.shape(), oracle.detail);
    };
    auto call = backends::Call::make(kernel, problem.args());
    if (!call.ok()) {
      if (call.error().code == Code::unsupported) continue;
      fail("refused a valid problem", op, problem.shape(), call.error().message);
    }
    run(*call);
    auto any = backends::Call::make_for_any(kernel, problem.args());
    if (!any.ok()) fail("refused a plan for any data", op, problem.shape(), any.error().message);
    if (*any) run(**any);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<const ops::Op*> all = [] {
    auto result = ops::all();
    std::erase_if(result, [](const ops::Op* op) { return op->is_probe(); });
    return result;
  }();
  Bytes bytes(data, size);
  const ops::Op& op = *all[bytes.next() % all.size()];
  const std::uint8_t options = bytes.next();
  const Shape shape = draw_shape(op, bytes);
  const auto args = ops::resolve(op, shape);
  if (!args.ok()) {
    if (args.error().message.empty()) fail("refused without a message", op, shape, "");
    return 0;
  }
  if (!small_enough(op, *args)) return 0;
  auto problem = ops::Problem::make(op, shape,
                                    {.seed = bytes.raw<std::uint16_t>(),
                                     .special = static_cast<ops::Problem::Special>(options % 4),
                                     .in_place = op.in_place && (options & 4) != 0,
                                     .optional_inputs = (options & 8) != 0});
  if (problem.ok()) run_everywhere(op, *problem);
  return 0;
}
