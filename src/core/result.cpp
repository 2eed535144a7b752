// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What happens to errors: the end of the program for a broken invariant, the C status of a backend as a
// Status, and the exit code of the command line.
#include <fmt/format.h>
#include <fulcrum/core.h>

#include <cstdio>
#include <cstdlib>

namespace fulcrum {

void assertion_failed(const char* expression, const char* file, int line) {
  // The one place that writes to a stream: no caller is left to report it.
  std::fprintf(stderr, "fulcrum: broken invariant at %s:%d: %s\n", file, line, expression);
  std::abort();
}

Status to_status(const fulcrum_status& status) {
  if (status.code == FULCRUM_OK) return {};
  Error error{Code::internal, status.message ? status.message : "", ""};
  if ((status.code > FULCRUM_OK && status.code <= FULCRUM_DEVICE_LOST) ||
      status.code == FULCRUM_DEVICE_BUSY) {
    error.code = static_cast<Code>(status.code);
    if (error.message.empty()) error.message = fmt::format("the backend reports {}", to_string(error.code));
  } else {
    error.message = fmt::format("the backend returned the unknown code {}: {}", status.code,
                                error.message.empty() ? "no message" : error.message);
    error.hint = "the module may be newer than this program: build both from the same release";
  }
  if (error.code == Code::out_of_memory) error.hint = "choose a smaller shape, or free memory on the device";
  if (error.code == Code::device_lost)
    error.hint = "start the program again: the device accepts no more calls";
  return error;
}

int exit_code(Code code) {
  switch (code) {
    case Code::ok:
      return 0;
    case Code::invalid_shape:
    case Code::invalid_argument:
    case Code::unsupported:
    case Code::usage:
    case Code::not_found:
      return 2;
    case Code::out_of_memory:
    case Code::device_error:
    case Code::device_lost:
    case Code::device_busy:
    case Code::data_lost:
    case Code::environment:
    case Code::corrupt:
      return 3;
    case Code::inconclusive:
      return 4;
    case Code::interrupted:
      return 130;  // what shells expect after Ctrl-C
    case Code::wrong_result:
    case Code::internal:
      return 5;
  }
  return 5;
}

}  // namespace fulcrum
