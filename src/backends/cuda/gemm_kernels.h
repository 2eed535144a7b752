// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The entries that matmul and batched_matmul share; an op brings the function that reads its slots. By type and
// precision: the fastest of the library's and our own ways ("default", "tf32", "f16", "bf16"), the library's first
// proposal as it comes ("heuristic..."), bias and activation in a pass of their own ("unfused...": what fusing is
// measured against), and ours, which need no library: plain fma chains ("simple...") and tensor-core tiles
// ("own...", "group_...").
#pragma once

#include <cstdio>
#include <cstring>
#include <limits>
#include <span>

#include "backends/cuda/product.h"

namespace fulcrum::backends::cuda {

/// A call's slots; the element's type is the entry's.
struct GemmCall {
  Gemm gemm;
  GemmOperands operands;
};

template <GemmCall (*kCallOf)(const fulcrum_args&)>
struct GemmEntries {
  static const char* isa() {
    static char name[16];
    static const int written = std::snprintf(name, sizeof(name), "sm_%d%d", device().major, device().minor);
    (void)written;
    return name;
  }
  /// With the unit that multiplies where our own products in the precision of f32 do.
  static const char* isa_tf32() {
    static char name[24];
    static const int written = std::snprintf(name, sizeof(name), "%s+tf32", isa());
    (void)written;
    return name;
  }
  static const char* library() { return blas_lt().detail.c_str(); }

  /// The library counts in 32 bits.
  static int supports(const fulcrum_args* args) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    const Gemm g = kCallOf(*args).gemm;
    return blas_lt().complete && g.batch <= kMost && g.m <= kMost && g.n <= kMost && g.k <= kMost;
  }

  static Element element_of(const fulcrum_kernel& self) {
    if (std::strcmp(self.dtype, "f16") == 0) return Element::f16;
    return std::strcmp(self.dtype, "bf16") == 0 ? Element::bf16 : Element::f32;
  }
  static Precision precision_of(const fulcrum_kernel& self) {
    if (std::strcmp(self.precision, "tf32") == 0) return Precision::tf32;
    if (std::strcmp(self.precision, "fp16") == 0) return Precision::fp16;
    return std::strcmp(self.precision, "bf16") == 0 ? Precision::bf16 : Precision::fp32;
  }

  static Choice choice_of(const fulcrum_kernel& self) {
    if (self.variant[0] == 'h') return Choice::heuristic;
    return self.variant[0] == 'u' ? Choice::unfused : Choice::fastest;
  }

  static fulcrum_status plan(const fulcrum_kernel* self, const fulcrum_args* args, void** plan) {
    GemmCall call = kCallOf(*args);
    call.gemm.element = element_of(*self);
    Product* product = nullptr;
    FULCRUM_STATUS(Product::make(call.gemm, precision_of(*self), choice_of(*self), call.operands, &product));
    *plan = product;
    return done();
  }
  static void drop(void* plan) { delete static_cast<Product*>(plan); }
  static fulcrum_status run(const fulcrum_args* args, void* stream, int64_t count) {
    const auto* product = static_cast<const Product*>(args->plan);
    const GemmOperands operands = kCallOf(*args).operands;
    for (int64_t i = 0; i < count; ++i) FULCRUM_STATUS(product->run(operands, stream_of(stream)));
    return done();
  }

  template <Element kElement>
  static fulcrum_status run_simple(const fulcrum_args* args, void* stream, int64_t count) {
    GemmCall call = kCallOf(*args);
    call.gemm.element = kElement;
    const int tile = tile_for(call.gemm);
    for (int64_t i = 0; i < count; ++i) enqueue_tiles(call.gemm, call.operands, tile, stream_of(stream));
    return launched("a matrix product");
  }

  /// Rows that are no whole vectors, and slots that begin between them, are left to the chains.
  static fulcrum_status run_own(const fulcrum_args* args, void* stream, int64_t count) {
    const GemmCall call = kCallOf(*args);
    if (!tensor_takes(call.gemm, call.operands)) return run_simple<Element::f32>(args, stream, count);
    const TensorTile tile = tensor_tile_for(call.gemm);
    for (int64_t i = 0; i < count; ++i)
      FULCRUM_STATUS(enqueue_tensor(call.gemm, call.operands, tile, stream_of(stream)));
    return done();
  }

  template <Element kElement, int kProducts = 1>
  static fulcrum_status run_group(const fulcrum_args* args, void* stream, int64_t count) {
    GemmCall call = kCallOf(*args);
    call.gemm.element = kElement;
    if (!group_takes(call.gemm, call.operands, kProducts)) return run_simple<kElement>(args, stream, count);
    const GroupWay way{group_split_for(call.gemm), kProducts};
    for (int64_t i = 0; i < count; ++i)
      FULCRUM_STATUS(enqueue_group(call.gemm, call.operands, way, stream_of(stream)));
    return done();
  }

  static fulcrum_kernel with_library(const char* variant, const char* precision, const char* dtype) {
    return fulcrum_kernel{.variant = variant,
                          .precision = precision,
                          .dtype = dtype,
                          .isa = isa,
                          .detail = library,
                          .supports = supports,
                          .plan = plan,
                          .drop = drop,
                          .run = run};
  }
  /// It may be done on tensor cores, in three products for one.
  static fulcrum_kernel in_three(fulcrum_kernel kernel) {
    kernel.flop_factor = 3;
    kernel.isa = isa_tf32;
    return kernel;
  }
  static fulcrum_kernel unfused(const char* variant, const char* precision, const char* dtype) {
    fulcrum_kernel kernel = with_library(variant, precision, dtype);
    kernel.supports = [](const fulcrum_args* args) {
      const bool has_pass = kCallOf(*args).gemm.activation != Activation::none;
      return supports(args) && has_pass ? 1 : 0;
    };
    return kernel;
  }
  template <Element kElement>
  static fulcrum_kernel simple(const char* variant, const char* precision, const char* dtype) {
    return fulcrum_kernel{.variant = variant,
                          .precision = precision,
                          .dtype = dtype,
                          .level = 1,
                          .isa = isa,
                          .run = run_simple<kElement>};
  }

  static fulcrum_kernel own(const char* variant, const char* precision, const char* dtype,
                            fulcrum_status (*run)(const fulcrum_args*, void*, int64_t)) {
    fulcrum_kernel kernel = simple<Element::f32>(variant, precision, dtype);
    kernel.level = 0;  // other bits where the chains step in
    kernel.run = run;
    return kernel;
  }

  static std::span<const fulcrum_kernel> all() {
    static const fulcrum_kernel kernels[] = {
        in_three(with_library("default", "fp32", "f32")),
        with_library("tf32", "tf32", "f32"),
        with_library("f16", "fp16", "f16"),
        with_library("bf16", "bf16", "bf16"),
        with_library("heuristic", "fp32", "f32"),
        with_library("heuristic_tf32", "tf32", "f32"),
        with_library("heuristic_f16", "fp16", "f16"),
        with_library("heuristic_bf16", "bf16", "bf16"),
        simple<Element::f32>("simple", "fp32", "f32"),
        simple<Element::f16>("simple_f16", "fp16", "f16"),
        simple<Element::bf16>("simple_bf16", "bf16", "bf16"),
        own("own_tf32", "tf32", "f32", run_own),
        own("own_f16", "fp16", "f16", run_group<Element::f16>),
        own("own_bf16", "bf16", "bf16", run_group<Element::bf16>),
        own("group_tf32", "tf32", "f32", run_group<Element::f32>),
        in_three(own("group_fp32", "fp32", "f32", run_group<Element::f32, 3>)),
        unfused("unfused", "fp32", "f32"),
        unfused("unfused_tf32", "tf32", "f32"),
        unfused("unfused_f16", "fp16", "f16"),
        unfused("unfused_bf16", "bf16", "bf16"),
    };
    return kernels;
  }
  /// Without the unfused ones, which come last: for an op that has neither bias nor activation.
  static std::span<const fulcrum_kernel> plain() { return all().first(16); }
};

}  // namespace fulcrum::backends::cuda
