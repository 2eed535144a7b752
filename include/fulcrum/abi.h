// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The plain C contract between libfulcrum and a backend. A backend module fills these structs and links
// nothing of libfulcrum; libfulcrum reads them and links nothing of the module. Fields are only ever appended:
// a reader looks at struct_bytes before it touches a field that an older module may not have.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FULCRUM_ABI_VERSION 2u
#define FULCRUM_SLOTS 8

/// Outcome of a call that may fail; the C++ side calls them fulcrum::Code with the same numbers.
enum fulcrum_code {
  FULCRUM_OK = 0,
  FULCRUM_INVALID_SHAPE = 1,
  FULCRUM_INVALID_ARGUMENT = 2,
  FULCRUM_UNSUPPORTED = 3,
  FULCRUM_OUT_OF_MEMORY = 4,
  FULCRUM_DEVICE_ERROR = 5,
  FULCRUM_DEVICE_LOST = 6,  /* sticky: no further call to this backend can succeed in this process */
  FULCRUM_DEVICE_BUSY = 15, /* nothing is wrong with the call: the device may take it later */
};

/// `message` is static or thread-local storage of the callee: copy it before the next call.
typedef struct fulcrum_status {
  int32_t code;
  const char* message;
} fulcrum_status;

typedef union fulcrum_scalar {
  double f;
  int64_t i; /* integers, and the code of an enumeration (first name = 0) */
} fulcrum_scalar;

/// Everything a kernel needs for one call. Names were resolved to slot numbers when the op was registered, so
/// no string, map or allocation is on a timed or dispatched path. dtype and precision are not here: a kernel
/// entry serves one of each.
typedef struct fulcrum_args {
  void* ptr[FULCRUM_SLOTS];             /* inputs, then outputs, in the order of the op's slots */
  int64_t dim[FULCRUM_SLOTS];           /* sizes */
  fulcrum_scalar scalar[FULCRUM_SLOTS]; /* parameters */
  const void* prepared;                 /* made once by the op's prepare(): a graph, an index */
  void* plan; /* made once by the kernel's plan(): packed weights, scratch, a library handle */

#ifdef __cplusplus
  template <class T>
  const T* in(int slot) const {
    return static_cast<const T*>(ptr[slot]);
  }
  template <class T>
  T* out(int slot) const {
    return static_cast<T*>(ptr[slot]);
  }
#endif
} fulcrum_args;

struct fulcrum_kernel;

/// One way to run one op. Unset function pointers mean the default written beside them.
typedef struct fulcrum_kernel {
  const char* op;        /* filled by the backend's table where the file name says it */
  const char* variant;   /* "default", "openblas", "t4" */
  const char* precision; /* "fp32", "tf32", "fp16", "bf16", "int8"; null: "fp32" */
  const char* dtype;     /* element type of the operands; null: "f32" */
  int32_t threads;       /* threads it uses; 0 or 1: one */
  int32_t level;         /* determinism: 0 same bits every run, 1 also independent of threads and position,
                            2 same bits on every backend */
  double flop_factor;    /* operations done / operations of the definition; 0: 1 */
  double byte_factor;    /* bytes touched / compulsory bytes; 0: 1 */

  const char* (*isa)(void);    /* instruction set in use now; null: "baseline" */
  const char* (*detail)(void); /* library, version, detected core; null: nothing to say */
  int (*supports)(
      const struct fulcrum_args* a); /* null: every shape the op accepts. Reads dim and scalar only */

  /// Per (kernel, shape) state, outside every timed call. Null: none. `drop` releases what `plan` made.
  fulcrum_status (*plan)(const struct fulcrum_kernel* self, const struct fulcrum_args* a, void** plan);
  void (*drop)(void* plan);

  /// `count` calls back to back, so that type erasure is paid per batch. Arguments were checked before.
  fulcrum_status (*run)(const struct fulcrum_args* a, void* stream, int64_t count);

  /// Pieces [begin, end) of one phase of the op's split, serially, on the calling thread. Null: not splittable.
  void (*partial)(const struct fulcrum_args* a, int32_t phase, int64_t begin, int64_t end, void* scratch);

  /// Bit s: plan() reads what ptr[s] points to (packed weights), so that the plan is good only while those bytes stay as
  /// they are. 0: a plan depends on dims, scalars, `prepared` and, on a device, on the pointers.
  uint32_t plan_reads;
  /// A plan of the same kernel that reads no operand, for data that nobody promises to leave as it is: what is laid out
  /// for one call alone seldom pays. Null, or a plan left null: there is none, and such calls plan anew each time.
  fulcrum_status (*plan_for_any)(const struct fulcrum_kernel* self, const struct fulcrum_args* a,
                                 void** plan);

  /// What a call takes of this kernel beside other calls of it, in a unit of its own: where tiles that are half empty,
  /// what each of them costs, or another path for some sizes are more than the op's work shows. For predicting times;
  /// null: the op's work says it.
  double (*effort)(const struct fulcrum_args* a);
} fulcrum_kernel;

enum fulcrum_memory {
  FULCRUM_MEMORY_HOST = 0,
  FULCRUM_MEMORY_PINNED = 1,
  FULCRUM_MEMORY_DEVICE = 2,
  FULCRUM_MEMORY_MANAGED = 3,
};

/// What happens to the bytes behind a pointer slot.
enum fulcrum_role {
  FULCRUM_IN = 0,
  FULCRUM_OUT = 1,
  FULCRUM_INOUT = 2,
};

/// One pointer slot of a call, for backends that move operands themselves. Slots with null pointers are left out.
typedef struct fulcrum_operand {
  int32_t slot;
  int32_t role; /* fulcrum_role */
  int64_t bytes;
  int64_t
      slice_bytes; /* bytes behind one unit of fulcrum_call.slice_dim; 0: every slice sees the whole operand */
} fulcrum_operand;

/// A call on host data, as a backend needs to know it that moves operands.
typedef struct fulcrum_call {
  const struct fulcrum_kernel* kernel;
  struct fulcrum_args args; /* host pointers; `plan` unset: the backend makes its own for device pointers */
  const fulcrum_operand* operands;
  int32_t operand_count;
  int32_t slice_dim;  /* dim along which the call is many independent ones, so that it may be cut; -1: none */
  int64_t slice_unit; /* cuts lie at multiples of this */
  int32_t calls;      /* kernel calls between the way in and the way out; 0: one. More: the regime reuse */
} fulcrum_call;

/// What a device or the host's side of it did between two instants, on the clock of CLOCK_MONOTONIC.
enum fulcrum_activity_kind {
  FULCRUM_ACTIVITY_ALLOC = 0,   /* host: memory of the device */
  FULCRUM_ACTIVITY_PIN = 1,     /* host: page-locked memory, made or registered */
  FULCRUM_ACTIVITY_FREE = 2,    /* host: either given back */
  FULCRUM_ACTIVITY_LAUNCH = 3,  /* host: a call that enqueues work (kernel, copy, graph) */
  FULCRUM_ACTIVITY_SYNC = 4,    /* host: a call that waits */
  FULCRUM_ACTIVITY_H2D = 5,     /* device */
  FULCRUM_ACTIVITY_D2H = 6,     /* device */
  FULCRUM_ACTIVITY_KERNEL = 7,  /* device; copies and fills inside it too */
  FULCRUM_ACTIVITY_MIGRATE = 8, /* device: pages of unified memory, by fault or by prefetch */
};
typedef struct fulcrum_activity {
  int32_t kind;
  uint32_t correlation; /* ties device work to the host call that enqueued it; 0: not known */
  double begin_seconds, end_seconds;
} fulcrum_activity;

/// One ceiling or cost of a device that libfulcrum measures in windows (fulcrum machine). A window returns the seconds
/// of `work`: bytes for group "rate" and "table", operations for "flops", 1 for "latency"; a link's are those of one
/// copy of `size` bytes.
typedef struct fulcrum_probe {
  const char* group; /* "rate", "flops", "latency", "link", "table" */
  const char* name;  /* "hbm_read", "fp16", "launch_sync", "pinned_h2d", "read_by_ctas" */
  int64_t size;      /* link: bytes of the copy; table: the key; else 0 */
  double work;
  fulcrum_status (*open)(const struct fulcrum_probe* self, void** state);
  fulcrum_status (*window)(void* state, double* seconds);
  void (*close)(void* state);
} fulcrum_probe;

/// What libfulcrum offers a module.
typedef struct fulcrum_host {
  uint32_t abi_version;
  uint32_t struct_bytes;
  void (*log)(int32_t level, const char* message); /* 0 debug, 1 info, 2 warning, 3 error */
} fulcrum_host;

/// What a backend offers. Pointers marked optional may be null.
typedef struct fulcrum_backend {
  uint32_t abi_version;
  uint32_t struct_bytes;
  const char* name; /* "simd" */
  const char* kind; /* "cpu", "gpu", or "peer": kernels to compare with, never chosen to do work */

  int (*available)(void);       /* optional: always. Non-zero: kernels may run */
  const char* (*why_not)(void); /* optional. One line, when not available: what is missing and what to do */
  const char* (*describe)(
      void); /* optional. A JSON object: device, driver, libraries, each with its version */
  const fulcrum_kernel* (*kernels)(int64_t* count);

  /// Memory and streams; all optional: host memory and synchronous calls.
  fulcrum_status (*allocate)(int32_t memory, size_t bytes, void** pointer);
  void (*release)(int32_t memory, void* pointer);
  fulcrum_status (*copy)(void* to, const void* from, size_t bytes, void* stream);
  fulcrum_status (*stream_open)(void** stream);
  void (*stream_close)(void* stream);
  fulcrum_status (*stream_wait)(void* stream);

  /// Device clock; optional. Marks are recorded on a stream; the difference of two is device time.
  fulcrum_status (*mark_open)(void** mark);
  void (*mark_close)(void* mark);
  fulcrum_status (*mark_record)(void* mark, void* stream);
  fulcrum_status (*mark_seconds)(void* begin, void* end, double* seconds);

  uint32_t
      kernel_bytes; /* sizeof(fulcrum_kernel) where this was built: the stride of kernels(). 0: of version 2 */

  fulcrum_status (*fill)(void* pointer, int32_t byte, size_t bytes, void* stream); /* optional */

  /// Trips; optional. Host operands to the device, the kernel, results back: one call, finished when it returns.
  /// Everything that can be made once (plans, buffers, pinning, graphs) is made by open. Paths are ways to do it, the
  /// first the default ("auto" chooses by timing them); those that begin with "managed" or "overlapped" belong to that
  /// regime. trip_run(trip, count) on an overlapped path keeps several of its `count` calls under way at once.
  const char* const* (*trip_paths)(int64_t* count);
  fulcrum_status (*trip_open)(const fulcrum_call* call, const char* path, void** trip);
  fulcrum_status (*trip_run)(void* trip, int64_t count);
  const char* (*trip_detail)(void* trip); /* what it chose: the path, chunks, bytes in flight */
  void (*trip_close)(void* trip);

  /// Replayable batches; optional. `calls` calls of one kernel that cycle through `set_count` argument sets (device
  /// pointers, plans made), recorded once.
  fulcrum_status (*graph_open)(const fulcrum_kernel* kernel, const fulcrum_args* sets, int32_t set_count,
                               int32_t calls, void** graph);
  fulcrum_status (*graph_run)(void* graph, void* stream);
  void (*graph_close)(void* graph);

  /// Activities; optional. The first start loads the tracing library, which stays: a process that measures bare calls
  /// never calls it. take() waits for the device, hands out what was seen since the last one, oldest first, and sets
  /// `count` to what there is even when `capacity` is smaller (nothing is then handed out).
  fulcrum_status (*activity_start)(void);
  fulcrum_status (*activity_take)(fulcrum_activity* into, int64_t capacity, int64_t* count);
  void (*activity_stop)(void);

  const fulcrum_probe* (*probes)(int64_t* count); /* optional */
  /// Optional. A JSON object, new at each call: clocks, temperature, power, throttle reasons, other processes, pools.
  const char* (*state)(void);

  /// Optional. `count` calls of one kernel that differ in their pointers alone, as one trip: trip_run does all of them.
  /// An input that lies at one address in all of them travels once.
  fulcrum_status (*trip_open_batch)(const fulcrum_call* calls, int64_t count, const char* path, void** trip);
} fulcrum_backend;

/// The one symbol a module exports (extern "C"), named FULCRUM_BACKEND_ENTRY. Null: the host is too old.
typedef const fulcrum_backend* (*fulcrum_backend_entry)(const fulcrum_host* host);
#define FULCRUM_BACKEND_ENTRY "fulcrum_backend_v1"
