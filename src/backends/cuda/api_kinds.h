// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which calls of the CUDA runtime and driver are host phases of the ledger. Others are not traced: each record costs
// the measured call time, and what a call to them takes is small and shows as unattributed.
#pragma once

#include <cuda_runtime_api.h>
#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>
#include <fulcrum/abi.h>

#include <cstdint>

namespace fulcrum::backends::cuda {

struct ApiKind {
  std::uint32_t id;
  int32_t kind;
};

#define FULCRUM_RUNTIME(name, kind) \
  { CUPTI_RUNTIME_TRACE_CBID_##name, FULCRUM_ACTIVITY_##kind }
inline constexpr ApiKind kRuntimeApis[] = {
    FULCRUM_RUNTIME(cudaMalloc_v3020, ALLOC),
    FULCRUM_RUNTIME(cudaMallocPitch_v3020, ALLOC),
    FULCRUM_RUNTIME(cudaMallocManaged_v6000, ALLOC),
    FULCRUM_RUNTIME(cudaMallocAsync_v11020, ALLOC),
    FULCRUM_RUNTIME(cudaMallocAsync_ptsz_v11020, ALLOC),
    FULCRUM_RUNTIME(cudaMallocFromPoolAsync_v11020, ALLOC),
    FULCRUM_RUNTIME(cudaMallocHost_v3020, PIN),
    FULCRUM_RUNTIME(cudaHostAlloc_v3020, PIN),
    FULCRUM_RUNTIME(cudaHostRegister_v4000, PIN),
    FULCRUM_RUNTIME(cudaFree_v3020, FREE),
    FULCRUM_RUNTIME(cudaFreeAsync_v11020, FREE),
    FULCRUM_RUNTIME(cudaFreeAsync_ptsz_v11020, FREE),
    FULCRUM_RUNTIME(cudaFreeHost_v3020, FREE),
    FULCRUM_RUNTIME(cudaHostUnregister_v4000, FREE),
    FULCRUM_RUNTIME(cudaLaunchKernel_v7000, LAUNCH),
    FULCRUM_RUNTIME(cudaLaunchKernel_ptsz_v7000, LAUNCH),
    FULCRUM_RUNTIME(cudaLaunchKernelExC_v11060, LAUNCH),
    FULCRUM_RUNTIME(cudaLaunchKernelExC_ptsz_v11060, LAUNCH),
    FULCRUM_RUNTIME(__cudaLaunchKernel_v13000, LAUNCH),
    FULCRUM_RUNTIME(__cudaLaunchKernel_ptsz_v13000, LAUNCH),
    FULCRUM_RUNTIME(cudaLaunchCooperativeKernel_v9000, LAUNCH),
    FULCRUM_RUNTIME(cudaLaunchCooperativeKernel_ptsz_v9000, LAUNCH),
    FULCRUM_RUNTIME(cudaLaunchHostFunc_v10000, LAUNCH),
    FULCRUM_RUNTIME(cudaMemcpyAsync_v3020, LAUNCH),
    FULCRUM_RUNTIME(cudaMemcpyAsync_ptsz_v7000, LAUNCH),
    FULCRUM_RUNTIME(cudaMemcpy2DAsync_v3020, LAUNCH),
    FULCRUM_RUNTIME(cudaMemsetAsync_v3020, LAUNCH),
    FULCRUM_RUNTIME(cudaMemsetAsync_ptsz_v7000, LAUNCH),
    FULCRUM_RUNTIME(cudaMemset_v3020, LAUNCH),
    FULCRUM_RUNTIME(cudaMemcpyBatchAsync_v12080, LAUNCH),
#if CUDART_VERSION >= 13000
    FULCRUM_RUNTIME(cudaMemcpyBatchAsync_v13000, LAUNCH),
    FULCRUM_RUNTIME(cudaMemDiscardAndPrefetchBatchAsync_v13000, LAUNCH),
#endif
    FULCRUM_RUNTIME(cudaMemPrefetchAsync_v8000, LAUNCH),
    FULCRUM_RUNTIME(cudaMemPrefetchAsync_v12020, LAUNCH),
    FULCRUM_RUNTIME(cudaMemPrefetchAsync_ptsz_v12020, LAUNCH),
    FULCRUM_RUNTIME(cudaMemPrefetchBatchAsync_v13000, LAUNCH),
    FULCRUM_RUNTIME(cudaGraphLaunch_v10000, LAUNCH),
    FULCRUM_RUNTIME(cudaGraphLaunch_ptsz_v10000, LAUNCH),
    FULCRUM_RUNTIME(cudaEventRecord_v3020, LAUNCH),
    FULCRUM_RUNTIME(cudaEventRecord_ptsz_v7000, LAUNCH),
    FULCRUM_RUNTIME(cudaEventRecordWithFlags_v11010, LAUNCH),
    FULCRUM_RUNTIME(cudaStreamWaitEvent_v3020, LAUNCH),
    FULCRUM_RUNTIME(cudaStreamSynchronize_v3020, SYNC),
    FULCRUM_RUNTIME(cudaStreamSynchronize_ptsz_v7000, SYNC),
    FULCRUM_RUNTIME(cudaEventSynchronize_v3020, SYNC),
    FULCRUM_RUNTIME(cudaDeviceSynchronize_v3020, SYNC),
    FULCRUM_RUNTIME(cudaEventQuery_v3020, SYNC),
    FULCRUM_RUNTIME(cudaStreamQuery_v3020, SYNC),
    FULCRUM_RUNTIME(cudaStreamQuery_ptsz_v7000, SYNC),
    // Blocking copies wait on the host; the copy itself has a record of the device's.
    FULCRUM_RUNTIME(cudaMemcpy_v3020, SYNC),
    FULCRUM_RUNTIME(cudaMemcpy_ptds_v7000, SYNC),
    FULCRUM_RUNTIME(cudaMemcpy2D_v3020, SYNC),
};
#undef FULCRUM_RUNTIME

#define FULCRUM_DRIVER(name, kind) \
  { CUPTI_DRIVER_TRACE_CBID_##name, FULCRUM_ACTIVITY_##kind }
/// Calls that libraries and we make straight to the driver, traced beside the runtime's. Those that a runtime call
/// makes are dropped again: see activities.cpp.
inline constexpr ApiKind kDirectDriverApis[] = {
    FULCRUM_DRIVER(cuLaunchKernelEx, LAUNCH),        FULCRUM_DRIVER(cuLaunchKernelEx_ptsz, LAUNCH),
    FULCRUM_DRIVER(cuStreamWriteValue32_v2, LAUNCH), FULCRUM_DRIVER(cuStreamWaitValue32_v2, LAUNCH),
    FULCRUM_DRIVER(cuStreamBatchMemOp_v2, LAUNCH),
};

/// What stands in for the runtime's calls when a library of another version does not report those.
inline constexpr ApiKind kDriverApis[] = {
    FULCRUM_DRIVER(cuMemAlloc_v2, ALLOC),
    FULCRUM_DRIVER(cuMemAllocManaged, ALLOC),
    FULCRUM_DRIVER(cuMemAllocAsync, ALLOC),
    FULCRUM_DRIVER(cuMemAllocFromPoolAsync, ALLOC),
    FULCRUM_DRIVER(cuMemHostAlloc, PIN),
    FULCRUM_DRIVER(cuMemHostAlloc_v2, PIN),
    FULCRUM_DRIVER(cuMemAllocHost_v2, PIN),
    FULCRUM_DRIVER(cuMemHostRegister_v2, PIN),
    FULCRUM_DRIVER(cuMemFree_v2, FREE),
    FULCRUM_DRIVER(cuMemFreeAsync, FREE),
    FULCRUM_DRIVER(cuMemFreeHost, FREE),
    FULCRUM_DRIVER(cuMemHostUnregister, FREE),
    FULCRUM_DRIVER(cuLaunchKernel, LAUNCH),
    FULCRUM_DRIVER(cuLaunchKernel_ptsz, LAUNCH),
    FULCRUM_DRIVER(cuLaunchCooperativeKernel, LAUNCH),
    FULCRUM_DRIVER(cuMemcpyAsync, LAUNCH),
    FULCRUM_DRIVER(cuMemcpyHtoDAsync_v2, LAUNCH),
    FULCRUM_DRIVER(cuMemcpyDtoHAsync_v2, LAUNCH),
    FULCRUM_DRIVER(cuMemcpyDtoDAsync_v2, LAUNCH),
    FULCRUM_DRIVER(cuMemsetD8Async, LAUNCH),
    FULCRUM_DRIVER(cuMemsetD32Async, LAUNCH),
    FULCRUM_DRIVER(cuMemPrefetchAsync, LAUNCH),
    FULCRUM_DRIVER(cuMemPrefetchAsync_v2, LAUNCH),
    FULCRUM_DRIVER(cuGraphLaunch, LAUNCH),
    FULCRUM_DRIVER(cuEventRecord, LAUNCH),
    FULCRUM_DRIVER(cuStreamWaitEvent, LAUNCH),
    FULCRUM_DRIVER(cuStreamSynchronize, SYNC),
    FULCRUM_DRIVER(cuEventSynchronize, SYNC),
    FULCRUM_DRIVER(cuCtxSynchronize, SYNC),
    FULCRUM_DRIVER(cuEventQuery, SYNC),
    FULCRUM_DRIVER(cuStreamQuery, SYNC),
    FULCRUM_DRIVER(cuMemcpyHtoD_v2, SYNC),
    FULCRUM_DRIVER(cuMemcpyDtoH_v2, SYNC),
};
#undef FULCRUM_DRIVER

}  // namespace fulcrum::backends::cuda
