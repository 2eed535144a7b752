// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The plain C contract between libfulcrum and a backend. A backend module fills these structs and links
// nothing of libfulcrum; libfulcrum reads them and links nothing of the module. Fields are only ever appended:
// a reader looks at struct_bytes before it touches a field that an older module may not have.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FULCRUM_ABI_VERSION 1u
#define FULCRUM_SLOTS 8

/// Outcome of a call that may fail; the C++ side calls them fulcrum::Code with the same numbers.
enum fulcrum_code {
  FULCRUM_OK = 0,
  FULCRUM_INVALID_SHAPE = 1,
  FULCRUM_INVALID_ARGUMENT = 2,
  FULCRUM_UNSUPPORTED = 3,
  FULCRUM_OUT_OF_MEMORY = 4,
  FULCRUM_DEVICE_ERROR = 5,
  FULCRUM_DEVICE_LOST = 6, /* sticky: no further call to this backend can succeed in this process */
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
} fulcrum_kernel;

enum fulcrum_memory {
  FULCRUM_MEMORY_HOST = 0,
  FULCRUM_MEMORY_PINNED = 1,
  FULCRUM_MEMORY_DEVICE = 2,
  FULCRUM_MEMORY_MANAGED = 3,
};

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
      kernel_bytes; /* sizeof(fulcrum_kernel) where this was built: the stride of kernels(). 0: of version 1 */
} fulcrum_backend;

/// The one symbol a module exports (extern "C"), named FULCRUM_BACKEND_ENTRY. Null: the host is too old.
typedef const fulcrum_backend* (*fulcrum_backend_entry)(const fulcrum_host* host);
#define FULCRUM_BACKEND_ENTRY "fulcrum_backend_v1"
