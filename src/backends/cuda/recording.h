// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What is put on a stream, recorded as a graph that one call launches.
#pragma once

#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {

/// Records what `enqueue` puts on the stream and whatever joins it. The recording ends in every case, and `graph` is
/// set only when all of it was recorded and uploaded: the first launch is then no slower than others. `what` names the
/// recording in errors.
template <class Enqueue>
fulcrum_status record(cudaStream_t stream, const char* what, Enqueue&& enqueue, cudaGraphExec_t* graph) {
  // Thread-local: what other threads allocate meanwhile is no business of this recording.
  FULCRUM_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const fulcrum_status enqueued = enqueue();
  cudaGraph_t captured = nullptr;
  const cudaError_t ended =
      cudaStreamEndCapture(stream, &captured);  // also after an error: the stream must leave
  if (enqueued.code != FULCRUM_OK || ended != cudaSuccess) {
    if (captured) cudaGraphDestroy(captured);
    cudaGetLastError();  // it is in what is returned
    return enqueued.code != FULCRUM_OK ? enqueued : failed(ended, what);
  }
  cudaGraphExec_t ready = nullptr;
  const cudaError_t made = cudaGraphInstantiate(&ready, captured, 0);
  cudaGraphDestroy(captured);
  if (made != cudaSuccess) return failed(made, "cudaGraphInstantiate");
  cudaError_t uploaded = cudaGraphUpload(ready, stream);
  if (uploaded == cudaSuccess) uploaded = cudaStreamSynchronize(stream);
  if (uploaded != cudaSuccess) {
    cudaGraphExecDestroy(ready);
    return failed(uploaded, "cudaGraphUpload");
  }
  *graph = ready;
  return done();
}

}  // namespace fulcrum::backends::cuda
