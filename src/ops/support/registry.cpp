// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The list of ops: those of list.def, then those a program adds.
#include <fmt/format.h>
#include <fulcrum/ops.h>

#include <deque>
#include <mutex>

namespace fulcrum::ops {

#define FULCRUM_OP(name) Op name();
#include "ops/list.def"
#undef FULCRUM_OP

namespace {

using Maker = Op (*)();
constexpr Maker kMakers[] = {
#define FULCRUM_OP(name) static_cast<Maker>(&ops::name),
#include "ops/list.def"
#undef FULCRUM_OP
};

struct Registry {
  std::mutex mutex;
  std::deque<Op> ops;  // a deque: pointers into it stay valid

  Registry() {
    for (const Maker make : kMakers) {
      ops.push_back(make());
      if (const Status fine = complete_op(ops.back()); !fine.ok()) {
        assertion_failed(fine.error().message.c_str(), __FILE__, __LINE__);
      }
    }
  }

  const Op* find(std::string_view name) const {
    for (const Op& op : ops) {
      if (op.name == name) return &op;
    }
    return nullptr;
  }

  static Status complete_op(const Op& op);
};

Registry& registry() {
  static Registry registry;
  return registry;
}

int count_kinds(const Op& op, std::initializer_list<SlotKind> kinds) {
  int count = 0;
  for (const Slot& slot : op.slots) {
    for (const SlotKind kind : kinds) count += slot.kind == kind ? 1 : 0;
  }
  return count;
}

Status Registry::complete_op(const Op& op) {
  const auto wrong = [&op](std::string_view what) {
    return Error{Code::invalid_argument, fmt::format("op '{}' {}", op.name, what),
                 "see docs/extending.md for what an op must have"};
  };
  if (op.name.empty()) return wrong("has no name");
  if (op.slots.empty()) return wrong("has no slots");
  if (!op.extent) return wrong("has no extent()");
  if (!op.work) return wrong("has no work()");
  if (!op.reference && !op.verify && !op.is_probe()) return wrong("has neither reference() nor verify()");
  if (op.pointers() > FULCRUM_SLOTS || count_kinds(op, {SlotKind::dim}) > FULCRUM_SLOTS ||
      count_kinds(op, {SlotKind::real, SlotKind::integer, SlotKind::choice}) > FULCRUM_SLOTS) {
    return wrong(fmt::format("has more than {} pointers, dims or scalars", FULCRUM_SLOTS));
  }
  if (op.split.phases > 0 && !op.split.pieces) return wrong("has a split without pieces()");
  return {};
}

}  // namespace

int Op::pointers() const { return count_kinds(*this, {SlotKind::in, SlotKind::out, SlotKind::inout}); }

std::vector<const Op*> all() {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  std::vector<const Op*> result;
  for (const Op& op : known.ops) result.push_back(&op);
  return result;
}

Result<const Op*> find(std::string_view name) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  if (const Op* op = known.find(name)) return op;
  std::vector<std::string> names;
  for (const Op& op : known.ops) {
    if (!op.is_probe()) names.emplace_back(op.name);
  }
  const std::string near = nearest_name(name, names);
  std::string hint = near.empty() ? "" : fmt::format("did you mean '{}'? ", near);
  return Error{Code::not_found, fmt::format("there is no op '{}'", name),
               fmt::format("{}known ops: {}", hint, fmt::join(names, ", "))};
}

Status add(Op op) {
  FULCRUM_CHECK(Registry::complete_op(op));
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  if (known.find(op.name)) {
    return Error{Code::invalid_argument, fmt::format("there is already an op '{}'", op.name),
                 "give yours another name"};
  }
  known.ops.push_back(std::move(op));
  return {};
}

}  // namespace fulcrum::ops
