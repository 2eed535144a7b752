// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A bare loop of launches, for what tracing costs and loses: `launch_loop LAUNCHES [return|_exit|term|kill]`. It prints
// the time of a launch and how many were made, then ends in the way that was asked for. `paced SECONDS` before them
// launches at 20 kHz instead, for losses in seconds. `turns BLOCKS LAUNCHES` waits for a byte before each block.
#include <unistd.h>
#include <csignal>

#include "../truth.h"

__global__ void count(unsigned* counter) {
  if (threadIdx.x == 0) *counter += 1;
}

/// Blocks of launches, each when it is this program's turn: prints the time of a launch in it.
int take_turns(int blocks, int launches) {
  unsigned* counter = truth::device_array<unsigned>(1);
  for (int i = 0; i < 1000; ++i) count<<<1, 32>>>(counter);
  CUDA_OK(cudaDeviceSynchronize());
  std::printf("{\"ready\": 1}\n");
  std::fflush(stdout);
  for (int b = 0; b < blocks; ++b) {
    char turn;
    if (read(0, &turn, 1) != 1) return 1;
    const double start = truth::now_seconds();
    for (int i = 0; i < launches; ++i) count<<<1, 32>>>(counter);
    CUDA_OK(cudaDeviceSynchronize());
    std::printf("{\"block\": %.4f}\n", (truth::now_seconds() - start) / launches * 1e6);
    std::fflush(stdout);
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc > 3 && std::string(argv[1]) == "turns") return take_turns(std::atoi(argv[2]), std::atoi(argv[3]));
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
