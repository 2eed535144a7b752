/* SPDX-FileCopyrightText: 2026 The Fulcrum authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The executor for other languages, in plain C: opaque handles, text for shapes, numbers for errors. Nothing throws.
 * Functions return 0 or a code; fulcrum_error_text() says what happened, for the calling thread. See docs/executing.md.
 */
#ifndef FULCRUM_FULCRUM_C_H
#define FULCRUM_FULCRUM_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fulcrum_executor fulcrum_executor;
typedef struct fulcrum_buffer fulcrum_buffer;
typedef struct fulcrum_resource fulcrum_resource; /* a graph or an index, made once for many calls */
typedef struct fulcrum_pending fulcrum_pending;   /* a call that was started */

/* What went wrong in the last call of this thread that did not return 0, and what to do about it; never null. Good
 * until the next call. */
const char* fulcrum_error_text(void);
const char* fulcrum_error_hint(void);
/* "invalid_shape", "out_of_memory", ...: the name of a code; "unknown" for a number that is none. */
const char* fulcrum_code_name(int code);

/* Options as text: "key=value" separated by commas, or null. Keys: backend, device, precisions (a+b), throughput,
 * strict, frozen, use_device, load_table (1 or 0), device_bytes, shadow_share, explore_credit, batch_latency_seconds. */
int fulcrum_executor_create(const char* options, fulcrum_executor** executor);
/* Ends the calls that were started through this handle first: those that wait for others run at once, and it returns when
 * all have written what they write. Calls of other handles go on; the executor itself ends with its last handle. What is
 * pending may still be waited for. Buffers and resources must not be used by calls any more, but may be destroyed later;
 * no other thread may use the handle meanwhile. */
void fulcrum_executor_destroy(fulcrum_executor* executor);
int fulcrum_executor_has_device(const fulcrum_executor* executor);
/* Another handle on the same executor with a policy of its own: of the options those that a policy has, all others as
 * they are by default; use_device, load_table and device have no effect. */
int fulcrum_executor_with(fulcrum_executor* executor, const char* options, fulcrum_executor** other);

/* `count` zeros of a type: "f32", "f16", "bf16", "u8", "i32", "i64". */
int fulcrum_buffer_create(fulcrum_executor* executor, const char* dtype, int64_t count,
                          fulcrum_buffer** buffer);
void fulcrum_buffer_destroy(fulcrum_buffer* buffer);
int64_t fulcrum_buffer_count(const fulcrum_buffer* buffer);
int fulcrum_buffer_on_device(const fulcrum_buffer* buffer);
/* Whether results written here may stay on the device. */
void fulcrum_buffer_stay_on_device(fulcrum_buffer* buffer, int stay);
/* Elements [first, first + count). */
int fulcrum_buffer_write(fulcrum_buffer* buffer, int64_t first, int64_t count, const void* from);
int fulcrum_buffer_read(const fulcrum_buffer* buffer, int64_t first, int64_t count, void* to);

/* One operand of a call: memory of the caller or a buffer, and its name among the op's slots. */
typedef struct fulcrum_value {
  const char* name; /* "x", "out"; null: the next one in the op's order */
  void* memory;     /* and `count` elements of it; or */
  int64_t count;
  const fulcrum_buffer* buffer; /* the whole buffer */
} fulcrum_value;

/* A graph for activation_spreading: row i lists the sources of the edges into node i, as begin[i] .. begin[i + 1]. */
int fulcrum_graph_create(int64_t nodes, const int32_t* begin, const int32_t* sources, const float* weights,
                         fulcrum_resource** graph);
/* An index for hnsw_search over rows of `dimension` floats; metric "l2sq", "ip" or "cosine". */
int fulcrum_index_create(const float* rows, int64_t count, int64_t dimension, const char* metric,
                         fulcrum_resource** index);
void fulcrum_resource_destroy(fulcrum_resource* resource);

/* An op by name with its sizes and parameters as text, "M=64,N=32,K=16" or "n=1000,al=0.1"; sizes that an element-wise
 * op's operands say may be left out: shape may be null. `resource` is null for all ops but those that need one. */
int fulcrum_run(fulcrum_executor* executor, const char* op, const char* shape, const fulcrum_value* values,
                size_t value_count, const fulcrum_resource* resource);
/* The same without waiting: memory and resource must stay until fulcrum_wait, which frees `pending`. */
int fulcrum_start(fulcrum_executor* executor, const char* op, const char* shape, const fulcrum_value* values,
                  size_t value_count, const fulcrum_resource* resource, fulcrum_pending** pending);
int fulcrum_wait(fulcrum_pending* pending);
/* No more calls are coming for now: those that wait for others of their kind (batch_latency_seconds) run at once, those of
 * other handles on the same executor too. Without it fulcrum_wait may take that long. */
int fulcrum_flush(fulcrum_executor* executor);

/* Texts belong to the caller: fulcrum_text_free. data_on_device: whether the operands are there already. */
int fulcrum_explain(fulcrum_executor* executor, const char* op, const char* shape, int data_on_device,
                    char** text);
/* 0 when such a call would run there. */
int fulcrum_expect_place(fulcrum_executor* executor, const char* op, const char* shape, int data_on_device,
                         int expected_on_device);
int fulcrum_counters(const fulcrum_executor* executor, char** json);
/* What its choices cost against the best, from the newest 4096 calls that ran both ways (shadow_share): points, mean, ci_low,
 * ci_high, p95, max, all but the first null where there are no points. */
int fulcrum_regret(const fulcrum_executor* executor, char** json);
int fulcrum_calibrate(fulcrum_executor* executor, double budget_seconds);
void fulcrum_text_free(char* text);

#ifdef __cplusplus
}
#endif

#endif
