// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// oneDNN's primitives as far as kernels here need them: memory in a layout of the library's choice, reorders,
// convolutions and products. Through the C interface of version 2, by dlsym and with prototypes of our own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace fulcrum::backends::cpulib {

/// Numbers of the C interface.
enum DnnTag { kDnnAny = 1, kDnnPlain3 = 4, kDnnPlain4 = 5 };
enum DnnArgument { kDnnSource = 1, kDnnDestination = 17, kDnnWeights = 33 };
enum DnnConvolution { kDnnDirect = 1, kDnnWinograd = 2 };

/// True when the loaded oneDNN has primitives that this file can call.
bool has_primitives();

/// A layout. Opaque: 696 bytes in version 2.6, and room for what a later 2.x may add.
struct DnnLayout {
  alignas(16) std::byte bytes[1024];
};

/// `float`s behind a layout: the caller's (attached before each use), or its own.
class DnnMemory {
 public:
  /// Invalid when the library refuses or memory is short.
  static DnnMemory make(const DnnLayout& layout, bool own);
  bool valid() const { return handle_ != nullptr; }
  void attach(const void* data);
  void* handle() const { return handle_.get(); }

 private:
  struct Destroy {
    void operator()(void* memory) const;
  };
  struct Free {
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Destroy> handle_;
  std::unique_ptr<void, Free> data_;
};

/// Something to execute.
class DnnPrimitive {
 public:
  struct Argument {
    int which;
    void* memory;
  };
  /// Copies between layouts.
  static DnnPrimitive reorder(const DnnLayout& from, const DnnLayout& to);
  /// Sizes n, c_in, h, w, c_out, kh, kw; strides and paddings of y and x. Layouts are the library's choice.
  static DnnPrimitive convolution(DnnConvolution algorithm, const std::int64_t (&sizes)[7],
                                  const std::int64_t (&y_sizes)[2], const std::int64_t (&strides)[2],
                                  const std::int64_t (&padding_before)[2],
                                  const std::int64_t (&padding_after)[2]);
  /// Products [batch, m, k] x [batch, k, n], all of them plain.
  static DnnPrimitive matmul(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k);
  bool valid() const { return handle_ != nullptr; }
  /// What it chose for an argument.
  DnnLayout layout(DnnArgument which) const;
  bool execute(std::span<const Argument> arguments) const;

 private:
  static DnnPrimitive of_descriptor(void* descriptor);

  struct DestroyPrimitive {
    void operator()(void* primitive) const;
  };
  struct DestroyDescriptor {
    void operator()(void* descriptor) const;
  };
  std::unique_ptr<void, DestroyDescriptor> descriptor_;
  std::unique_ptr<void, DestroyPrimitive> handle_;
};

DnnLayout dnn_layout(const std::vector<std::int64_t>& sizes, DnnTag tag);
bool same(const DnnLayout& a, const DnnLayout& b);

}  // namespace fulcrum::backends::cpulib
