// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A bare loop of launches, for what tracing costs and loses: `launch_loop LAUNCHES [return|_exit|term|kill]`. It prints
// the time of a launch and how many were made, then ends in the way that was asked for. `paced SECONDS` before them
// launches at 20 kHz instead, for losses in seconds.
#include <unistd.h>
#include <csignal>

#include "../truth.h"

__global__ void count(unsigned* counter) {
  if (threadIdx.x == 0) *counter += 1;
}

int main(int argc, char** argv) {
  const bool paced = argc > 3 && std::string(argv[1]) == "paced";
  const double seconds = paced ? std::atof(argv[2]) : 0;
  const std::string end = paced ? argv[3] : argc > 2 ? argv[2] : "return";
  const long long launches = paced      ? static_cast<long long>(seconds * 20000)
                             : argc > 1 ? std::atoll(argv[1])
                                        : 200000;
  unsigned* counter = truth::device_array<unsigned>(1);
  for (int i = 0; i < 1000; ++i) count<<<1, 32>>>(counter);
  CUDA_OK(cudaDeviceSynchronize());
  const double start = truth::now_seconds();
  for (long long i = 0; i < launches; ++i) {
    if (paced)
      while (truth::now_seconds() < start + static_cast<double>(i) / 20000) {
      }
    count<<<1, 32>>>(counter);
  }
  CUDA_OK(cudaDeviceSynchronize());
  const double took = truth::now_seconds() - start;
  unsigned counted = 0;
  CUDA_OK(cudaMemcpy(&counted, counter, sizeof(counted), cudaMemcpyDeviceToHost));
  std::printf(
      "{\"program\": \"launch_loop\", \"us\": %.4f, \"kernels\": %u, \"seconds\": %.3f, \"end\": \"%s\"}\n",
      took / static_cast<double>(launches) * 1e6, counted, took, end.c_str());
  std::fflush(stdout);
  if (end == "_exit") _exit(0);
  if (end == "term") std::raise(SIGTERM);
  if (end == "kill") std::raise(SIGKILL);
  return 0;
}
