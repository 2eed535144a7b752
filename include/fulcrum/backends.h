// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Who can run ops. A backend is a C struct (abi.h), built in or loaded from a module; its kernels are found by
// op and variant. Nothing here decides where work runs: that is the executor's business.
#pragma once

#include <fulcrum/ops.h>

#include <optional>

namespace fulcrum::backends {

/// One backend as seen by C++ code.
class Backend {
 public:
  explicit Backend(const fulcrum_backend* table) : table_(table) {}
  std::string_view name() const { return table_->name; }
  std::string_view kind() const { return table_->kind; }
  bool available() const { return !table_->available || table_->available() != 0; }
  std::string why_not() const;
  /// What it found: libraries, versions, detected cores, devices; an empty object when there is nothing to say.
  Json describe() const;
  std::span<const fulcrum_kernel> kernels() const;
  const fulcrum_backend& table() const { return *table_; }

 private:
  const fulcrum_backend* table_;
};

/// One way to run one op.
class Kernel {
 public:
  Kernel(const Backend* backend, const fulcrum_kernel* entry) : backend_(backend), entry_(entry) {}
  std::string_view op() const { return entry_->op; }
  std::string_view variant() const { return entry_->variant; }
  std::string_view precision() const { return entry_->precision ? entry_->precision : "fp32"; }
  std::string_view dtype() const { return entry_->dtype ? entry_->dtype : "f32"; }
  std::string_view isa() const { return entry_->isa ? entry_->isa() : "baseline"; }
  std::string detail() const { return entry_->detail ? entry_->detail() : ""; }
  int threads() const { return entry_->threads > 1 ? entry_->threads : 1; }
  bool supports(const Args& args) const { return !entry_->supports || entry_->supports(&args) != 0; }
  const Backend& backend() const { return *backend_; }
  const fulcrum_kernel& entry() const { return *entry_; }
  std::string name() const;  ///< "sigmoid/simd/default"
  std::string source_hash()
      const;  ///< of the file the kernel was built from; empty for kernels of the caller's

 private:
  const Backend* backend_;
  const fulcrum_kernel* entry_;
};

/// A kernel bound to arguments: the plan is made here, outside every timed call, and dropped with the object.
class Call {
 public:
  static Result<Call> make(const Kernel& kernel, const Args& args);
  /// With a plan that reads none of them, so that their data may change between calls; none where the kernel has no such
  /// plan for this shape.
  static Result<std::optional<Call>> make_for_any(const Kernel& kernel, const Args& args);
  Call(Call&& other) noexcept;
  Call& operator=(Call&& other) noexcept;
  ~Call();
  /// `count` calls back to back.
  fulcrum_status run(std::int64_t count = 1) { return entry_->run(&args_, nullptr, count); }
  const Args& args() const { return args_; }

 private:
  Call(const fulcrum_kernel* entry, const Args& args) : entry_(entry), args_(args) {}
  static Result<Call> bind(const Kernel& kernel, const Args& args);  ///< without its plan
  const fulcrum_kernel* entry_;
  Args args_;
};

/// Backends in the order of list.def, then modules and those added. FULCRUM_FORCE_BACKEND leaves only one.
std::vector<const Backend*> all();
/// An unknown name is an error that lists the known ones.
Result<const Backend*> find(std::string_view name);

/// Every kernel of an op on every available backend (one backend or one variant when named).
Result<std::vector<Kernel>> kernels(std::string_view op, std::string_view backend = {},
                                    std::string_view variant = {});
/// Exactly one, or an error that lists what there is.
Result<Kernel> kernel(std::string_view op, std::string_view backend, std::string_view variant = "default");

/// Adds a kernel of the caller's to a backend, which is made when the name is new. `entry.op` must be set; the
/// strings must outlive the program's use of it.
Status add(std::string_view backend, const fulcrum_kernel& entry);

/// Instruction sets that the SIMD kernels were built for and this CPU has, best first ("avx3", "avx2", ...).
std::vector<std::string> isas();
std::string active_isa();
/// Runs all SIMD kernels on one instruction set from now on; empty: the best again.
Status force_isa(std::string_view name);
/// FULCRUM_FORCE_BACKEND and FULCRUM_FORCE_ISA name things that exist, else an error that lists those.
Status check_environment();

/// Threads the `threads` backend may use: the affinity mask, not the core count.
int usable_threads();
/// Runs work(piece) for pieces [0, pieces) in contiguous ranges on up to `threads` threads; the caller takes part.
void parallel(std::int64_t pieces, int threads,
              void (*work)(void* context, std::int64_t begin, std::int64_t end), void* context);

}  // namespace fulcrum::backends
