// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See tensor_map.h. The driver makes the maps; it is asked for by name because the module links no driver.
#include "backends/cuda/tensor_map.h"

#include <cudaTypedefs.h>

namespace fulcrum::backends::cuda {
namespace {

constexpr int64_t kBoxBytes = 128;

PFN_cuTensorMapEncodeTiled_v12000 find_encode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
  if (error != cudaSuccess) cudaGetLastError();
  const bool is_there = error == cudaSuccess && found == cudaDriverEntryPointSuccess;
  return is_there ? reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function) : nullptr;
}

CUtensorMapDataType type_of(Element element) {
  if (element == Element::f16) return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  return element == Element::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
}

}  // namespace

fulcrum_status make_tensor_map(Element element, const MatrixStack& stack, int box_rows, CUtensorMap* into) {
  static const PFN_cuTensorMapEncodeTiled_v12000 encode = find_encode();
  if (!encode) return failed(FULCRUM_UNSUPPORTED, "the driver has no cuTensorMapEncodeTiled");
  const auto size = static_cast<int64_t>(bytes_of(element));
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(stack.columns), static_cast<cuuint64_t>(stack.rows),
                                static_cast<cuuint64_t>(stack.entries)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(stack.columns * size),
                                static_cast<cuuint64_t>(stack.columns * stack.rows * size)};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(kBoxBytes / size), static_cast<cuuint32_t>(box_rows), 1};
  const cuuint32_t steps[] = {1, 1, 1};
  const CUresult made = encode(into, type_of(element), 3, const_cast<void*>(stack.data), extents, strides,
                               box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                               CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (made == CUDA_SUCCESS) return done();
  return failed(FULCRUM_UNSUPPORTED, "cuTensorMapEncodeTiled was refused");
}

}  // namespace fulcrum::backends::cuda
