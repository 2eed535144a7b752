// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the CUDA driver comes in: it loads what CUDA_INJECTION64_PATH names when a program first uses it, and calls
// this. Whatever happens here, the program goes on.
#include <mutex>

#include "trace/inject/session.h"

extern "C" __attribute__((visibility("default"))) int InitializeInjection(void) {
  using namespace fulcrum::trace::inject;
  static std::once_flag once;
  try {
    std::call_once(once, [] {
      Config config = config_from_environment();
      if (config.folder.empty()) return;
      auto* made = new Session(std::move(config));  // never destroyed: see session.h
      set_session(made);
      made->start();
    });
  } catch (...) {
  }
  return 1;
}
