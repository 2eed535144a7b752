// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See dnn.h: the library, its handle and its descriptors.
#include "backends/cuda/dnn.h"

#include <utility>

#include "backends/cuda/libraries.h"

namespace fulcrum::backends::cuda {
namespace {

template <class F>
bool find_dnn(F& function, const char* name) {
  function = reinterpret_cast<F>(cudnn().symbol(name));
  return function != nullptr;
}

Dnn look_for_dnn() {
  Dnn table;
  const Library& library = cudnn();
  if (!library) {
    table.detail = "without cuDNN: " + library.why_not;
    return table;
  }
  decltype(&cudnnGetVersion) version = nullptr;
  table.complete =
      find_dnn(version, "cudnnGetVersion") && find_dnn(table.create, "cudnnCreate") &&
      find_dnn(table.set_stream, "cudnnSetStream") && find_dnn(table.error_string, "cudnnGetErrorString") &&
      find_dnn(table.last_error, "cudnnGetLastErrorString") &&
      find_dnn(table.make, "cudnnBackendCreateDescriptor") &&
      find_dnn(table.drop, "cudnnBackendDestroyDescriptor") &&
      find_dnn(table.set, "cudnnBackendSetAttribute") && find_dnn(table.get, "cudnnBackendGetAttribute") &&
      find_dnn(table.finalize, "cudnnBackendFinalize") && find_dnn(table.execute, "cudnnBackendExecute");
  if (table.complete) table.version = version();
  table.detail = table.complete ? "cuDNN " + library.version + " at " + library.path
                                : library.path + " lacks functions of cuDNN 9";
  return table;
}

bool is_refusal(cudnnStatus_t status) {
  return status >= CUDNN_STATUS_NOT_SUPPORTED && status < CUDNN_STATUS_INTERNAL_ERROR;
}

}  // namespace

const Dnn& dnn() {
  static const Dnn& table = *new Dnn(look_for_dnn());
  return table;
}

void DnnTrouble::note(cudnnStatus_t failure, const std::string& what) {
  if (any() || failure == CUDNN_STATUS_SUCCESS) return;
  status = failure;
  char words[512] = {};
  dnn().last_error(words, sizeof(words));
  text = what + ": " + dnn().error_string(failure) + (words[0] ? std::string(" (") + words + ")" : "");
}

fulcrum_status DnnTrouble::as_status() const {
  if (!any()) return done();
  if (status == CUDNN_STATUS_ALLOC_FAILED) return failed(FULCRUM_OUT_OF_MEMORY, text.c_str());
  return failed(is_refusal(status) ? FULCRUM_UNSUPPORTED : FULCRUM_DEVICE_ERROR, text.c_str());
}

DnnDescriptor::DnnDescriptor(cudnnBackendDescriptorType_t type, const char* name, DnnTrouble& trouble)
    : name_(name) {
  if (trouble.any()) return;
  const cudnnStatus_t status = dnn().make(type, &raw_);
  if (status != CUDNN_STATUS_SUCCESS) raw_ = nullptr;
  trouble.note(status, std::string("making ") + name);
}

DnnDescriptor& DnnDescriptor::operator=(DnnDescriptor&& other) noexcept {
  std::swap(raw_, other.raw_);
  std::swap(name_, other.name_);
  return *this;
}

DnnDescriptor::~DnnDescriptor() {
  if (raw_) dnn().drop(raw_);
}

void DnnDescriptor::set(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
                        int64_t count, const void* values, DnnTrouble& trouble) {
  if (trouble.any()) return;
  const cudnnStatus_t status = dnn().set(raw_, attribute, type, count, values);
  if (status == CUDNN_STATUS_SUCCESS) return;  // no text is made for what works
  trouble.note(status,
               std::string(name_) + ", setting attribute " + std::to_string(static_cast<int>(attribute)));
}

void DnnDescriptor::finalize(DnnTrouble& trouble) {
  if (trouble.any()) return;
  const cudnnStatus_t status = dnn().finalize(raw_);
  if (status != CUDNN_STATUS_SUCCESS) trouble.note(status, std::string("finalizing ") + name_);
}

DnnHandle::DnnHandle() { trouble_.note(dnn().create(&handle_), "cudnnCreate"); }

DnnHandle& DnnHandle::shared() {
  static DnnHandle& handle = *new DnnHandle;
  return handle;
}

fulcrum_status DnnHandle::execute(const DnnDescriptor& plan, const DnnDescriptor& pack, cudaStream_t stream) {
  DnnTrouble trouble = trouble_;
  const std::lock_guard lock(mutex_);  // the stream belongs to the handle, not to the call
  if (!trouble.any()) trouble.note(dnn().set_stream(handle_, stream), "cudnnSetStream");
  if (!trouble.any()) trouble.note(dnn().execute(handle_, plan.raw(), pack.raw()), "cudnnBackendExecute");
  return trouble.as_status();
}

}  // namespace fulcrum::backends::cuda
