// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The threads behind parallel(), for those who measure them.
#pragma once

#include <cstdint>

namespace fulcrum::backends {

/// Ends the threads behind parallel(); the next call starts others, which are asked and answer through memory at
/// other addresses. How far that memory is from both cores decides what a fork and a join cost, and stays as it is for
/// the life of the threads. Does nothing while a job runs. Each call keeps some hundred bytes a thread for good.
void renew_workers();

/// Runs work(context, i, i + 1) on the i-th thread behind parallel(), the caller being the first, and waits for each of
/// them however long it takes, where parallel() goes on without one that does not come. Inside a job, or while another
/// thread's job runs: work(context, 0, threads) on the caller.
void on_each_thread(int threads, void (*work)(void* context, std::int64_t begin, std::int64_t end),
                    void* context);

}  // namespace fulcrum::backends
