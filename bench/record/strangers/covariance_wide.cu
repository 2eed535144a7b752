// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// PolyBench's covariance with one GPU thread a pair of columns, where its own CUDA program has one a column: whether a
// verdict was wrong, or the port was narrow. Prints the seconds of the region, transfers included, as gpu_clock does.
#include <cuda_runtime.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

__global__ void centre(float* data, int rows, int columns) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (column >= columns) return;
  float sum = 0;
  for (int row = 0; row < rows; ++row) sum += data[static_cast<size_t>(row) * columns + column];
  const float mean = sum / static_cast<float>(rows);
  for (int row = 0; row < rows; ++row) data[static_cast<size_t>(row) * columns + column] -= mean;
}

__global__ void pairs(const float* data, float* out, int rows, int columns) {
  const int a = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  const int b = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (a >= columns || b >= columns || b < a) return;
  float sum = 0;
  for (int row = 0; row < rows; ++row) {
    const float* of_row = data + static_cast<size_t>(row) * columns;
    sum += of_row[a] * of_row[b];
  }
  out[static_cast<size_t>(a) * columns + b] = out[static_cast<size_t>(b) * columns + a] = sum;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int count, char** arguments) {
  const int size = count > 1 ? std::atoi(arguments[1]) : 1100;
  const size_t elements = static_cast<size_t>(size) * size, bytes = elements * sizeof(float);
  std::vector<float> data(elements), out(elements);
  for (size_t i = 0; i < elements; ++i) {
    data[i] = static_cast<float>(i / size) * static_cast<float>(i % size) / static_cast<float>(size);
  }
  float *device_data = nullptr, *device_out = nullptr;
  cudaMalloc(&device_data, bytes);
  cudaMalloc(&device_out, bytes);
  const dim3 block(16, 16), grid((size + 15) / 16, (size + 15) / 16);
  const double began = now();
  cudaMemcpy(device_data, data.data(), bytes, cudaMemcpyHostToDevice);
  centre<<<(size + 255) / 256, 256>>>(device_data, size, size);
  pairs<<<grid, block>>>(device_data, device_out, size, size);
  cudaMemcpy(out.data(), device_out, bytes, cudaMemcpyDeviceToHost);
  const double seconds = now() - began;
  // One pair by hand: the last two columns.
  double means[2] = {0, 0}, sum = 0;
  for (int row = 0; row < size; ++row) {
    for (int i = 0; i < 2; ++i) means[i] += data[static_cast<size_t>(row) * size + size - 2 + i] / size;
  }
  for (int row = 0; row < size; ++row) {
    sum += (data[static_cast<size_t>(row) * size + size - 2] - means[0]) *
           (data[static_cast<size_t>(row) * size + size - 1] - means[1]);
  }
  const double got = out[elements - 2], error = std::abs(got - sum) / std::abs(sum);
  std::printf("{\"region\": %.9f, \"relative_error\": %.3g, \"error\": \"%s\"}\n", seconds, error,
              cudaGetErrorName(cudaGetLastError()));
  cudaFree(device_data);
  cudaFree(device_out);
  return error < 1e-3 ? 0 : 1;
}
