// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The executor behind fulcrum_c.h. Every function runs its body in guarded(), so that no exception of the standard
// library leaves it and the last error of a thread is kept.
#include <fmt/format.h>
#include <fulcrum/executor.h>
#include <fulcrum/fulcrum_c.h>
#include <fulcrum/ops/activation_spreading.h>
#include <fulcrum/ops/hnsw_search.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>

#include "executor/c_options.h"
#include "executor/engine.h"
#include "executor/started_calls.h"

using namespace fulcrum;
using namespace fulcrum::executor;

struct fulcrum_executor {
  explicit fulcrum_executor(Executor made) : executor(std::move(made)) {}
  ~fulcrum_executor() { started.finish(executor.engine()); }
  Executor executor;
  StartedCalls started;
};
struct fulcrum_buffer {
  std::variant<Buffer<float>, Buffer<std::uint16_t>, Buffer<std::uint8_t>, Buffer<std::int32_t>,
               Buffer<std::int64_t>>
      buffer;
  DType dtype = DType::f32;
};
struct fulcrum_resource {
  std::shared_ptr<const void> prepared;
  std::string_view op;
};
struct fulcrum_pending {
  Future future;
};

namespace {

thread_local std::string last_message, last_hint;

int remember(Error error) {
  last_message = std::move(error.message);
  last_hint = std::move(error.hint);
  return static_cast<int>(error.code);
}

template <class Body>
int guarded(Body body) {
  try {
    Status status = body();
    return status.ok() ? 0 : remember(std::move(status).take_error());
  } catch (const std::bad_alloc&) {
    last_message = "out of memory";  // so short that it needs none
    last_hint.clear();
    return static_cast<int>(Code::out_of_memory);
  } catch (const std::exception& thrown) {
    return remember(Error{Code::internal, thrown.what(), ""});
  }
}

Error missing(std::string_view what) {
  return Error{Code::invalid_argument, fmt::format("{} is null", what), "pass one"};
}

Status give_text(const std::string& text, char** out) {
  if (!out) return missing("the place for the text");
  *out = static_cast<char*>(std::malloc(text.size() + 1));
  if (!*out) return Error{Code::out_of_memory, "no memory for a text", ""};
  std::memcpy(*out, text.c_str(), text.size() + 1);
  return {};
}

Result<Shape> shape_of_text(const char* text) {
  if (!text || *text == '\0') return Shape{};
  return parse_shape(text);
}

template <class T>
Status make_buffer(const Executor& executor, std::int64_t count, fulcrum_buffer& made) {
  FULCRUM_TRY(made.buffer, executor.buffer<T>(count));
  return {};
}

/// Memory of the caller has the type that the op wants: C does not say.
Operand operand_of(const fulcrum_value& value) {
  if (value.buffer) {
    return std::visit([](const auto& buffer) { return Operand(buffer); }, value.buffer->buffer)
        .is(value.buffer->dtype);
  }
  return Operand(std::span<std::byte>(static_cast<std::byte*>(value.memory),
                                      static_cast<std::size_t>(std::max<std::int64_t>(value.count, 0))));
}

/// A call put together from names.
struct Named {
  const ops::Op* op = nullptr;
  Args args{};
  DType dtype = DType::f32;
  std::vector<Operand> operands;
};

/// Each value in its slot.
Result<std::vector<Operand>> place(const ops::Op& op, std::span<const fulcrum_value> values) {
  std::vector<std::string> names;
  for (const ops::Slot& slot : op.slots) {
    if (slot.kind == ops::SlotKind::in || slot.kind == ops::SlotKind::out ||
        slot.kind == ops::SlotKind::inout)
      names.emplace_back(slot.name);
  }
  std::vector<Operand> operands(names.size());
  std::vector<bool> taken(names.size());
  std::size_t next = 0;
  for (const fulcrum_value& value : values) {
    if (value.name) {
      const auto found = std::find(names.begin(), names.end(), value.name);
      next = static_cast<std::size_t>(found - names.begin());
      if (found == names.end()) {
        return Error{Code::not_found, fmt::format("{} has no operand '{}'", op.name, value.name),
                     fmt::format("it has {}", fmt::join(names, ", "))};
      }
    }
    if (next >= names.size() || taken[next]) {
      return Error{Code::invalid_argument,
                   next >= names.size() ? fmt::format("{} has {} operands", op.name, names.size())
                                        : fmt::format("{} of {} is given twice", names[next], op.name),
                   fmt::format("they are {}", fmt::join(names, ", "))};
    }
    operands[next] = operand_of(value);
    taken[next++] = true;
  }
  return operands;
}

/// An element-wise op's size is that of its operands, unless the shape says it.
void complete_size(const ops::Op& op, Shape& shape, std::span<const Operand> operands) {
  if (op.category != "streaming" || shape.find("n") || operands.empty()) return;
  shape.set("n", operands.front().count());
}

Result<Named> named(const char* op, const char* shape, const fulcrum_value* values, std::size_t count,
                    const fulcrum_resource* resource) {
  if (!op) return missing("the op's name");
  if (!values && count > 0) return missing("the list of operands");
  Named call;
  FULCRUM_TRY(call.op, ops::find(op));
  FULCRUM_TRY(call.operands, place(*call.op, std::span(values, count)));
  FULCRUM_TRY(Shape given, shape_of_text(shape));
  complete_size(*call.op, given, call.operands);
  FULCRUM_TRY(const Shape full, ops::complete(*call.op, given));
  FULCRUM_TRY(call.args, ops::resolve(*call.op, full));
  call.dtype = full.dtype;
  if (resource) {
    if (resource->op != call.op->name) {
      return Error{Code::invalid_argument,
                   fmt::format("the resource was made for {}, not for {}", resource->op, op), ""};
    }
    call.args.prepared = resource->prepared.get();
  }
  FULCRUM_CHECK(check_counts(*call.op, call.args, call.operands));
  return call;
}

}  // namespace

extern "C" {

const char* fulcrum_error_text(void) { return last_message.c_str(); }
const char* fulcrum_error_hint(void) { return last_hint.c_str(); }
const char* fulcrum_code_name(int code) {
  const auto names = names_of<Code>();
  const auto index = static_cast<std::size_t>(code);  // less than 0 is more than all
  return index < names.size() ? names[index].data() : "unknown";
}

int fulcrum_executor_create(const char* options, fulcrum_executor** executor) {
  return guarded([&]() -> Status {
    if (!executor) return missing("the place for the executor");
    FULCRUM_TRY(const Options parsed, options_from_text(options ? options : ""));
    FULCRUM_TRY(Executor made, Executor::make(parsed));
    *executor = new fulcrum_executor(std::move(made));
    return {};
  });
}
int fulcrum_executor_with(fulcrum_executor* executor, const char* options, fulcrum_executor** other) {
  return guarded([&]() -> Status {
    if (!executor || !other) return missing(executor ? "the place for the executor" : "the executor");
    FULCRUM_TRY(const Options parsed, options_from_text(options ? options : ""));
    FULCRUM_CHECK(check_policy(parsed.policy));
    *other = new fulcrum_executor(executor->executor.with(parsed.policy));
    return {};
  });
}
void fulcrum_executor_destroy(fulcrum_executor* executor) { delete executor; }
int fulcrum_executor_has_device(const fulcrum_executor* executor) {
  return executor && executor->executor.has_device() ? 1 : 0;
}

int fulcrum_buffer_create(fulcrum_executor* executor, const char* dtype, int64_t count,
                          fulcrum_buffer** buffer) {
  return guarded([&]() -> Status {
    if (!executor || !buffer) return missing(executor ? "the place for the buffer" : "the executor");
    FULCRUM_TRY(const DType type, parse_enum<DType>("dtype", dtype ? dtype : "f32"));
    auto made = std::make_unique<fulcrum_buffer>();
    made->dtype = type;
    switch (type) {
      case DType::f32:
        FULCRUM_CHECK(make_buffer<float>(executor->executor, count, *made));
        break;
      case DType::f16:
      case DType::bf16:
        FULCRUM_CHECK(make_buffer<std::uint16_t>(executor->executor, count, *made));
        break;
      case DType::u8:
        FULCRUM_CHECK(make_buffer<std::uint8_t>(executor->executor, count, *made));
        break;
      case DType::i32:
        FULCRUM_CHECK(make_buffer<std::int32_t>(executor->executor, count, *made));
        break;
      case DType::i64:
        FULCRUM_CHECK(make_buffer<std::int64_t>(executor->executor, count, *made));
        break;
    }
    *buffer = made.release();
    return {};
  });
}
void fulcrum_buffer_destroy(fulcrum_buffer* buffer) { delete buffer; }
int64_t fulcrum_buffer_count(const fulcrum_buffer* buffer) {
  return buffer ? std::visit([](const auto& one) { return one.size(); }, buffer->buffer) : 0;
}
int fulcrum_buffer_on_device(const fulcrum_buffer* buffer) {
  return buffer && std::visit([](const auto& one) { return one.on_device(); }, buffer->buffer) ? 1 : 0;
}
void fulcrum_buffer_stay_on_device(fulcrum_buffer* buffer, int stay) {
  if (buffer) std::visit([&](auto& one) { one.stay_on_device(stay != 0); }, buffer->buffer);
}

int fulcrum_buffer_write(fulcrum_buffer* buffer, int64_t first, int64_t count, const void* from) {
  return guarded([&]() -> Status {
    FULCRUM_CHECK(check_range(buffer ? fulcrum_buffer_count(buffer) : -1, first, count, from));
    const bool all = first == 0 && count == fulcrum_buffer_count(buffer);
    return std::visit(
        [&](auto& one) -> Status {
          FULCRUM_TRY(const auto values, all ? one.overwrite() : one.modify());
          std::memcpy(values.data() + first, from, static_cast<std::size_t>(count) * sizeof(values[0]));
          return {};
        },
        buffer->buffer);
  });
}
int fulcrum_buffer_read(const fulcrum_buffer* buffer, int64_t first, int64_t count, void* to) {
  return guarded([&]() -> Status {
    FULCRUM_CHECK(check_range(buffer ? fulcrum_buffer_count(buffer) : -1, first, count, to));
    return std::visit(
        [&](const auto& one) -> Status {
          FULCRUM_TRY(const auto values, one.read());
          std::memcpy(to, values.data() + first, static_cast<std::size_t>(count) * sizeof(values[0]));
          return {};
        },
        buffer->buffer);
  });
}

int fulcrum_graph_create(int64_t nodes, const int32_t* begin, const int32_t* sources, const float* weights,
                         fulcrum_resource** graph) {
  return guarded([&]() -> Status {
    if (!begin || !graph) return missing(begin ? "the place for the graph" : "begin");
    if (nodes < 0) return Error{Code::invalid_shape, fmt::format("{} nodes", nodes), "use 0 or more"};
    const auto edges = static_cast<std::size_t>(std::max<std::int32_t>(begin[nodes], 0));
    if (edges > 0 && (!sources || !weights)) return missing("the list of edges");
    FULCRUM_TRY(auto made, ops::make_graph(nodes, {begin, static_cast<std::size_t>(nodes) + 1},
                                           {sources, edges}, {weights, edges}, ops::EdgeLists::incoming));
    *graph = new fulcrum_resource{std::move(made), "activation_spreading"};
    return {};
  });
}
int fulcrum_index_create(const float* rows, int64_t count, int64_t dimension, const char* metric,
                         fulcrum_resource** index) {
  return guarded([&]() -> Status {
    if (!rows || !index) return missing(rows ? "the place for the index" : "rows");
    FULCRUM_TRY(const ops::HnswMetric kind, metric_from_text(metric ? metric : "l2sq"));
    std::int64_t values = 0;
    if (count < 1 || dimension < 1 || __builtin_mul_overflow(count, dimension, &values)) {
      return Error{Code::invalid_shape, fmt::format("{} rows of {} values", count, dimension),
                   "use 1 or more"};
    }
    FULCRUM_TRY(auto made, ops::make_hnsw_index({rows, static_cast<std::size_t>(values)}, dimension, kind));
    *index = new fulcrum_resource{std::move(made), "hnsw_search"};
    return {};
  });
}
void fulcrum_resource_destroy(fulcrum_resource* resource) { delete resource; }

int fulcrum_run(fulcrum_executor* executor, const char* op, const char* shape, const fulcrum_value* values,
                size_t value_count, const fulcrum_resource* resource) {
  return guarded([&]() -> Status {
    if (!executor) return missing("the executor");
    FULCRUM_TRY(const Named call, named(op, shape, values, value_count, resource));
    return executor->executor.run(*call.op, call.args, call.operands, call.dtype);
  });
}
int fulcrum_start(fulcrum_executor* executor, const char* op, const char* shape, const fulcrum_value* values,
                  size_t value_count, const fulcrum_resource* resource, fulcrum_pending** pending) {
  return guarded([&]() -> Status {
    if (!executor || !pending) return missing(executor ? "the place for the call" : "the executor");
    FULCRUM_TRY(const Named call, named(op, shape, values, value_count, resource));
    auto made = std::make_unique<fulcrum_pending>();
    auto entry = StartedCalls::entry();
    made->future = executor->executor.run_async(*call.op, call.args, call.operands, call.dtype);
    if (!made->future.ready()) executor->started.add(std::move(entry), made->future);
    *pending = made.release();
    return {};
  });
}
int fulcrum_flush(fulcrum_executor* executor) {
  return guarded([&]() -> Status {
    if (!executor) return missing("the executor");
    flush_batches(executor->executor.engine());
    return {};
  });
}
int fulcrum_wait(fulcrum_pending* pending) {
  return guarded([&]() -> Status {
    if (!pending) return missing("the call");
    const std::unique_ptr<fulcrum_pending> owned(pending);
    return owned->future.get();
  });
}

int fulcrum_explain(fulcrum_executor* executor, const char* op, const char* shape, int data_on_device,
                    char** text) {
  return guarded([&]() -> Status {
    if (!executor || !op) return missing(op ? "the executor" : "the op's name");
    FULCRUM_TRY(const Shape parsed, shape_of_text(shape));
    FULCRUM_TRY(const Explanation why,
                executor->executor.explain(op, parsed, data_on_device ? Place::device : Place::host));
    return give_text(why.text(), text);
  });
}
int fulcrum_expect_place(fulcrum_executor* executor, const char* op, const char* shape, int data_on_device,
                         int expected_on_device) {
  return guarded([&]() -> Status {
    if (!executor || !op) return missing(op ? "the executor" : "the op's name");
    FULCRUM_TRY(const Shape parsed, shape_of_text(shape));
    return executor->executor.expect_place(op, parsed, data_on_device ? Place::device : Place::host,
                                           expected_on_device ? Place::device : Place::host);
  });
}
int fulcrum_counters(const fulcrum_executor* executor, char** json) {
  return guarded([&]() -> Status {
    if (!executor) return missing("the executor");
    return give_text(json_text(counters_json(executor->executor.counters())), json);
  });
}
int fulcrum_regret(const fulcrum_executor* executor, char** json) {
  return guarded([&]() -> Status {
    if (!executor) return missing("the executor");
    return give_text(json_text(regret_json(executor->executor.regret())), json);
  });
}
int fulcrum_calibrate(fulcrum_executor* executor, double budget_seconds) {
  return guarded([&]() -> Status {
    if (!executor) return missing("the executor");
    CalibrateConfig config;
    if (budget_seconds > 0) config.budget_seconds = budget_seconds;
    return executor->executor.calibrate(config);
  });
}
void fulcrum_text_free(char* text) { std::free(text); }

}  // extern "C"
