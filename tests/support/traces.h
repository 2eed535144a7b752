// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Traces of typical programs, made up: what rules must be silent on (the clean ones) and what they must find. The
// builder is in trace_builder.h.
#pragma once

#include "support/trace_builder.h"

namespace fulcrum::test {

/// A training step as it should be: long kernels that fill the GPU, queued well ahead, the next batch uploaded from
/// pinned memory beside them. GPU busy above 95 %.
inline GpuTrace clean_training_step(int steps = 20) {
  TraceBuilder t;
  t.module_load(30'000'000).alloc(std::int64_t{1} << 30).host_work(2'000'000);
  t.stream();
  const auto compute = t.current_stream();
  t.stream();
  const auto upload = t.current_stream();
  t.on_stream(upload).copy_h2d(16 << 20).record_event(1);
  for (int step = 0; step < steps; ++step) {
    t.range_begin("step").host_work(20'000);
    t.on_stream(compute).stream_wait(1);
    for (int layer = 0; layer < 8; ++layer) {
      t.launch("sm90_xmma_gemm_bf16bf16_bf16f32_tn_n", 132 * 8, 256, 400'000);
      t.launch("fused_bias_gelu(float*, float const*, long)", 132 * 16, 256, 120'000);
    }
    t.launch("adam_update(float*, float const*, long)", 132 * 32, 256, 300'000);
    t.record_event(2);
    t.on_stream(upload).copy_h2d(16 << 20).record_event(1);  // the next batch
    t.host_work(100'000).range_end();
    if (step % 10 == 9) t.event_sync(2);  // far behind: nothing drains
  }
  t.on_stream(compute).device_sync();
  return t.trace();
}

/// Inference by one graph a request, results read back through pinned memory two requests later. Clean.
inline GpuTrace graph_inference_loop(int requests = 50) {
  TraceBuilder t;
  t.module_load(20'000'000).alloc(std::int64_t{1} << 28).instantiate_graph();
  t.stream();
  std::vector<TraceNode> nodes;
  for (int layer = 0; layer < 12; ++layer) {
    nodes.push_back({"flash_fwd_kernel<bf16>(Params)", 132 * 4, 256, 40'000});
    nodes.push_back({"sm90_xmma_gemm_bf16bf16_bf16f32_tn_n", 132 * 6, 256, 60'000});
    nodes.push_back({"layer_norm(float*, float const*, int)", 132 * 8, 256, 12'000});
  }
  for (int request = 0; request < requests; ++request) {
    t.copy_h2d(64 << 10).graph_launch(nodes).copy_d2h(64 << 10).record_event(request);
    t.host_work(30'000);
    if (request >= 2) t.event_sync(request - 2);
  }
  t.device_sync();
  return t.trace();
}

/// Big pageable uploads, a short kernel, the result read back: all synchronous.
inline GpuTrace copy_bound(int steps = 20) {
  TraceBuilder t;
  t.module_load(10'000'000).alloc(64 << 20);
  for (int step = 0; step < steps; ++step) {
    t.copy_h2d(32 << 20, MemoryKind::pageable, false);
    t.launch("scale(float*, float, long)", 132 * 16, 256, 60'000);
    t.copy_d2h(32 << 20, MemoryKind::pageable, false);
    t.host_work(50'000);
  }
  return t.trace();
}

/// Kernels that take less time than their launches, without a wait between them.
inline GpuTrace launch_bound(int steps = 30, int kernels = 60) {
  TraceBuilder t;
  t.module_load(10'000'000).alloc(64 << 20);
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < kernels; ++i) {
      t.host_work(3'000);
      t.launch(i % 3 ? "add(float*, float const*, int)" : "mul(float*, float const*, int)", 132 * 4, 256,
               1'800);
    }
  }
  t.device_sync();
  return t.trace();
}

/// Four chunks a step, each uploaded, worked on and read back on a stream of its own. Clean.
inline GpuTrace multi_stream(int steps = 20) {
  TraceBuilder t;
  t.module_load(10'000'000).alloc(256 << 20);
  std::vector<std::uint32_t> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(t.stream().current_stream());
  for (int step = 0; step < steps; ++step) {
    for (const auto stream : streams) {
      t.on_stream(stream).copy_h2d(4 << 20).launch("stencil(float*, float const*, int)", 132 * 8, 256,
                                                   150'000);
      t.copy_d2h(4 << 20).record_event(int(stream));
    }
    t.host_work(20'000);
  }
  t.device_sync();
  return t.trace();
}

/// Two processes on one GPU, each with a loop of its own.
inline GpuTrace multi_process(int steps = 20) {
  TraceBuilder t;
  for (int process = 0; process < 2; ++process) {
    if (process) t.process("./worker");
    t.at(process * 50'000).module_load(5'000'000).alloc(64 << 20);
    for (int step = 0; step < steps; ++step) {
      t.launch(process ? "reduce(float*, float const*, int)" : "stencil(float*, float const*, int)", 132 * 8,
               256, 200'000);
      t.launch("scale(float*, float, long)", 132 * 8, 256, 50'000);
    }
    t.device_sync();
  }
  return t.trace();
}

/// A small MLP by PyTorch: 76 small kernels, two pageable uploads and one scalar read back a step.
inline GpuTrace pytorch_like_step(int steps = 30) {
  TraceBuilder t;
  t.module_load(40'000'000, "lazy load").alloc(std::int64_t{20} << 20).alloc(std::int64_t{2} << 20);
  for (int step = 0; step < steps; ++step) {
    t.host_work(step ? 60'000 : 5'000'000);
    for (int upload = 0; upload < 2; ++upload) {
      t.copy_h2d(upload ? 2048 : 1 << 20, MemoryKind::pageable).stream_sync().host_work(15'000);
    }
    for (int i = 0; i < 76; ++i) {
      t.host_work(i < 30 ? 12'000 : 20'000);
      if (i % 6 == 0) {
        t.launch("ampere_sgemm_32x128_tn", 64, 256, 9'000);
      } else if (i < 46) {
        t.launch("void at::native::vectorized_elementwise_kernel<4>(int)", 128, 128, 2'300);
      } else {
        t.launch("void at::native::multi_tensor_apply_kernel<adam>(int)", 96, 512, 4'000);
      }
    }
    t.copy_d2h(4, MemoryKind::pageable).stream_sync();
  }
  return t.trace();
}

}  // namespace fulcrum::test
