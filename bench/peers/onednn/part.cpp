// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// oneDNN: loading, threads, and what all its kernels share.
#include <omp.h>

#include <string>

#include "onednn/onednn.h"

namespace fulcrum::peers::onednn {
namespace {

const char* isa() {
  static const std::string text = [] {
    switch (dnnl::get_effective_cpu_isa()) {
      case dnnl::cpu_isa::sse41:
        return "sse41";
      case dnnl::cpu_isa::avx:
        return "avx";
      case dnnl::cpu_isa::avx2:
        return "avx2";
      case dnnl::cpu_isa::avx2_vnni:
        return "avx2_vnni";
      case dnnl::cpu_isa::avx512_core:
        return "avx512_core";
      case dnnl::cpu_isa::avx512_core_vnni:
        return "avx512_core_vnni";
      case dnnl::cpu_isa::avx512_core_bf16:
        return "avx512_core_bf16";
      case dnnl::cpu_isa::avx512_core_amx:
        return "avx512_core_amx";
      default:
        return "unknown";
    }
  }();
  return text.c_str();
}

const char* version() {
  static const std::string text = [] {
    const dnnl_version_t* v = dnnl_version();
    return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
           std::to_string(v->patch);
  }();
  return text.c_str();
}

const char* detail() {
  static const std::string text = std::string(version()) + ", " + isa();
  return text.c_str();
}

fulcrum_status failed(const dnnl::error& error) {
  static thread_local std::string text;
  text = std::string("oneDNN: ") + error.what();
  return fulcrum_status{FULCRUM_UNSUPPORTED, text.c_str()};
}

const Part* part() {
  static const Kernels kernels = [] {
    Kernels list;
    add_elementwise(list);
    add_dense(list);
    add_convolution(list);
    add_lstm(list);
    finish(list, isa, detail);
    return list;
  }();
  static const Part instance{kernels.data(), static_cast<std::int64_t>(kernels.size()), version(), isa()};
  return &instance;
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

dnnl::stream& stream() {
  static dnnl::stream instance(engine());
  return instance;
}

Threads::Threads(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
Threads::~Threads() { omp_set_num_threads(before_); }

dnnl::memory bind(Plan& plan, const dnnl::memory::desc& desc, int slot) {
  dnnl::memory memory(desc, engine(), DNNL_MEMORY_NONE);
  plan.bound.push_back({memory, slot});
  return memory;
}

fulcrum_status make_plan(Make make, int threads, const fulcrum_args* a, void** plan) {
  const Threads scope(threads);
  try {
    *plan = make(*a).release();
    return done();
  } catch (const dnnl::error& error) {
    return failed(error);
  }
}

fulcrum_status execute(const fulcrum_args* a, int threads, std::int64_t count) {
  const Threads scope(threads);
  auto& plan = *static_cast<Plan*>(a->plan);
  try {
    for (Plan::Bound& bound : plan.bound) bound.memory.set_data_handle(a->ptr[bound.slot]);
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::size_t step = 0; step < plan.steps.size(); ++step)
        plan.steps[step].execute(stream(), plan.arguments[step]);
    }
    stream().wait();
    return done();
  } catch (const dnnl::error& error) {
    return failed(error);
  }
}

void drop(void* plan) { delete static_cast<Plan*>(plan); }

}  // namespace fulcrum::peers::onednn

FULCRUM_PEER_PART const fulcrum::peers::Part* fulcrum_peer_part() { return fulcrum::peers::onednn::part(); }
