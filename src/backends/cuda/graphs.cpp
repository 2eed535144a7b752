// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Batches of kernel calls, recorded once and replayed: a launch of the whole batch costs the host one call. Recording
// has a stream of its own, so that an error in it leaves nobody else's stream in capture mode.
#include "backends/cuda/parts.h"
#include "backends/cuda/recording.h"

namespace fulcrum::backends::cuda {
namespace {

/// A stream that is closed with its scope, capturing or not.
class RecordingStream {
 public:
  RecordingStream() = default;
  RecordingStream(const RecordingStream&) = delete;
  RecordingStream& operator=(const RecordingStream&) = delete;
  ~RecordingStream() {
    if (stream_) cudaStreamDestroy(stream_);
  }
  fulcrum_status open() {
    FULCRUM_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    return done();
  }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

fulcrum_status graph_open(const fulcrum_kernel* kernel, const fulcrum_args* sets, int32_t set_count,
                          int32_t calls, void** graph) {
  *graph = nullptr;
  if (!kernel || !sets || set_count < 1 || calls < 1)
    return failed(FULCRUM_INVALID_ARGUMENT, "a batch needs a kernel, an argument set and a call");
  RecordingStream stream;
  FULCRUM_STATUS(stream.open());
  const auto enqueue = [&] {
    fulcrum_status status = done();
    for (int32_t i = 0; i < calls && status.code == FULCRUM_OK; ++i)
      status = kernel->run(&sets[i % set_count], stream.get(), 1);
    return status;
  };
  cudaGraphExec_t ready = nullptr;
  FULCRUM_STATUS(record(stream.get(), "recording a batch (cudaStreamEndCapture)", enqueue, &ready));
  *graph = ready;
  return done();
}

fulcrum_status graph_run(void* graph, void* stream) {
  FULCRUM_CUDA(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), stream_of(stream)));
  return done();
}

void graph_close(void* graph) {
  if (graph && cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)) != cudaSuccess) cudaGetLastError();
}

}  // namespace

void add_graphs(fulcrum_backend& table) {
  table.graph_open = graph_open;
  table.graph_run = graph_run;
  table.graph_close = graph_close;
}

}  // namespace fulcrum::backends::cuda
