// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cuDNN by the functions of its graph interface, found at run time, and owners for what they make. Types and
// enumerations come from its header; nothing of it is linked.
#pragma once

#include <cudnn_graph.h>

#include <mutex>
#include <string>

#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {

struct Dnn {
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnGetErrorString) error_string = nullptr;
  decltype(&cudnnGetLastErrorString) last_error = nullptr;
  decltype(&cudnnBackendCreateDescriptor) make = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) drop = nullptr;
  decltype(&cudnnBackendSetAttribute) set = nullptr;
  decltype(&cudnnBackendGetAttribute) get = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;
  std::size_t version = 0;  // 91900: 9.19.0
  std::string detail;       // library, version and place, or why it cannot serve
  bool complete = false;
};
/// Looked for once; what it says is true for the life of the process.
const Dnn& dnn();

/// The first thing that went wrong in a series of calls: later ones are not made.
struct DnnTrouble {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  std::string text;
  bool any() const { return status != CUDNN_STATUS_SUCCESS; }
  /// Notes a failure of `what` with the library's own words.
  void note(cudnnStatus_t failure, const std::string& what);
  /// Unsupported where the library says that it cannot, else a device error.
  fulcrum_status as_status() const;
};

/// Owner of one descriptor of the library. Every call is skipped once the trouble has something.
class DnnDescriptor {
 public:
  DnnDescriptor() = default;
  DnnDescriptor(cudnnBackendDescriptorType_t type, const char* name, DnnTrouble& trouble);
  DnnDescriptor(DnnDescriptor&& other) noexcept { *this = std::move(other); }
  DnnDescriptor& operator=(DnnDescriptor&& other) noexcept;
  ~DnnDescriptor();

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values, DnnTrouble& trouble);
  template <class T>
  void set_one(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value,
               DnnTrouble& trouble) {
    set(name, type, 1, &value, trouble);
  }
  void set_link(cudnnBackendAttributeName_t name, const DnnDescriptor& to, DnnTrouble& trouble) {
    set_one(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, to.raw_, trouble);
  }
  void finalize(DnnTrouble& trouble);
  cudnnBackendDescriptor_t raw() const { return raw_; }
  explicit operator bool() const { return raw_ != nullptr; }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
  const char* name_ = "";
};

/// The library's handle: one for the process, since making it costs milliseconds and device memory.
class DnnHandle {
 public:
  static DnnHandle& shared();
  const DnnTrouble& trouble() const { return trouble_; }
  cudnnHandle_t raw() const { return handle_; }
  fulcrum_status execute(const DnnDescriptor& plan, const DnnDescriptor& pack, cudaStream_t stream);

 private:
  DnnHandle();
  cudnnHandle_t handle_ = nullptr;
  DnnTrouble trouble_;
  std::mutex mutex_;
};

}  // namespace fulcrum::backends::cuda
