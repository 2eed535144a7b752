// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// oneDNN primitives as kernels: made once in plan(), with the thread count they will run on; timed is execute alone.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <memory>
#include <unordered_map>

#include "part.h"

namespace fulcrum::peers::onednn {

inline constexpr dnnl::memory::data_type kF32 = dnnl::memory::data_type::f32;

/// What a plan holds. `bind` names the memory objects whose data are arguments of the call.
struct Plan {
  std::vector<dnnl::primitive> steps;
  std::vector<std::unordered_map<int, dnnl::memory>> arguments;  // of each step
  struct Bound {
    dnnl::memory memory;
    int slot;
  };
  std::vector<Bound> bound;
};

const dnnl::engine& engine();
dnnl::stream& stream();

/// OpenMP's thread count for as long as this lives: oneDNN follows it, and others in the process use it too.
class Threads {
 public:
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

/// A memory object that will point at the call's argument `slot`.
dnnl::memory bind(Plan& plan, const dnnl::memory::desc& desc, int slot);

using Make = std::unique_ptr<Plan> (*)(const fulcrum_args& a);

/// Threads of the kernel that is being planned or run.
template <bool kAll>
int thread_count() {
  return kAll ? usable_threads() : 1;
}

fulcrum_status make_plan(Make make, int threads, const fulcrum_args* a, void** plan);
fulcrum_status execute(const fulcrum_args* a, int threads, std::int64_t count);
void drop(void* plan);

template <Make kMake, bool kAll>
fulcrum_kernel kernel(const char* op, const char* variant, int (*supports)(const fulcrum_args*)) {
  return fulcrum_kernel{.op = op,
                        .variant = variant,
                        .threads = thread_count<kAll>(),
                        .supports = supports,
                        .plan = [](const fulcrum_kernel*, const fulcrum_args* a,
                                   void** plan) { return make_plan(kMake, thread_count<kAll>(), a, plan); },
                        .drop = drop,
                        .run = [](const fulcrum_args* a, void*,
                                  std::int64_t count) { return execute(a, thread_count<kAll>(), count); }};
}

/// Both thread counts: "onednn" on all usable threads, "onednn_t1" on one.
template <Make kMake>
void add(Kernels& kernels, const char* op, int (*supports)(const fulcrum_args*)) {
  kernels.push_back(kernel<kMake, true>(op, "onednn", supports));
  if (usable_threads() > 1) kernels.push_back(kernel<kMake, false>(op, "onednn_t1", supports));
}

void add_elementwise(Kernels& kernels);
void add_dense(Kernels& kernels);
void add_convolution(Kernels& kernels);
void add_lstm(Kernels& kernels);

}  // namespace fulcrum::peers::onednn
