// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See tensor_map.h.
#include "backends/cuda/tensor_map.h"

#include <cuda_runtime.h>

namespace fulcrum::backends::cuda {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

Encode encode() {
  static const Encode function = [] {
    constexpr unsigned kVersion = 12000;  // of the driver that had it first
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, kVersion,
                                                               cudaEnableDefault, &result);
    if (error != cudaSuccess) cudaGetLastError();
    const bool is_there = error == cudaSuccess && result == cudaDriverEntryPointSuccess;
    return is_there ? reinterpret_cast<Encode>(found) : nullptr;
  }();
  return function;
}

}  // namespace

bool has_maps() { return encode() != nullptr; }

fulcrum_status make_map(CUtensorMap* map, MapElement element, const void* data, std::array<int64_t, 3> sizes,
                        uint32_t width, uint32_t height) {
  if (!has_maps()) return failed(FULCRUM_UNSUPPORTED, "the driver describes no arrays");
  const CUtensorMapDataType types[] = {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                                       CU_TENSOR_MAP_DATA_TYPE_BFLOAT16};
  const cuuint64_t bytes = element == MapElement::f32 ? 4 : 2;
  const cuuint64_t lengths[3] = {static_cast<cuuint64_t>(sizes[0]), static_cast<cuuint64_t>(sizes[1]),
                                 static_cast<cuuint64_t>(sizes[2])};
  const cuuint64_t strides[2] = {lengths[0] * bytes, lengths[0] * lengths[1] * bytes};
  const cuuint32_t box[3] = {width, height, 1}, steps[3] = {1, 1, 1};
  const CUresult result =
      encode()(map, types[static_cast<int>(element)], 3, const_cast<void*>(data), lengths, strides, box,
               steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? done() : failed(FULCRUM_DEVICE_ERROR, "an array that cannot be described");
}

}  // namespace fulcrum::backends::cuda
