// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a test program may tell the CUPTI that is none (fake_cupti.cpp): calls that the "driver" makes, and what the GPU
// is to have done. Found with dlsym, as CUPTI is.
#pragma once

#include <cstdint>

/// A launch as the runtime makes it: callbacks, and a kernel of one microsecond on stream 7 of context 1.
extern "C" using FakeLaunch = void(const char* name, std::uint32_t grid, std::uint32_t block);
/// A copy from the host of so many bytes.
extern "C" using FakeCopy = void(void* to, const void* from, std::uint64_t bytes);
/// cudaMalloc, which gives `address`.
extern "C" using FakeAlloc = void(std::uint64_t bytes, std::uint64_t address);
/// cudaEventRecord on a stream, cudaStreamWaitEvent, cudaStreamSynchronize.
extern "C" using FakeEvent = void(std::uint64_t event, std::uint64_t stream);
extern "C" using FakeSync = void(std::uint64_t stream);
/// Calls of CUPTI in processes that are not the one it was started in.
extern "C" using FakeForeignCalls = int();
