// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The threads behind parallel(), for those who measure them.
#pragma once

namespace fulcrum::backends {

/// Ends the threads behind parallel(); the next call starts others, which are asked and answer through memory at
/// other addresses. How far that memory is from both cores decides what a fork and a join cost, and stays as it is for
/// the life of the threads. Does nothing while a job runs. Each call keeps some hundred bytes a thread for good.
void renew_workers();

}  // namespace fulcrum::backends
