// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The log sink. Messages of several threads reach it one at a time, and set_log_sink returns only when the
// old sink is no longer running on another thread.
#include <fulcrum/core.h>

#include <memory>
#include <mutex>

namespace fulcrum {
namespace {

using Sink = std::function<void(LogLevel, std::string_view)>;

struct Log {
  std::recursive_mutex mutex;  // recursive: a sink may replace itself
  std::shared_ptr<const Sink> sink;
};

Log& the_log() {
  static Log* log = new Log;  // never destroyed: threads may log while the program ends
  return *log;
}

thread_local bool in_sink = false;

}  // namespace

void set_log_sink(Sink sink) {
  auto next = sink ? std::make_shared<const Sink>(std::move(sink)) : nullptr;
  const std::lock_guard guard(the_log().mutex);
  the_log().sink.swap(next);
}

void log(LogLevel level, std::string_view message) {
  if (in_sink) return;  // what a sink logs would come back to it without end
  const std::lock_guard guard(the_log().mutex);
  const std::shared_ptr<const Sink> sink = the_log().sink;
  if (!sink) return;
  in_sink = true;
  try {
    (*sink)(level, message);
  } catch (...) {
    // A sink that fails loses its message; it must not end a measurement.
  }
  in_sink = false;
}

}  // namespace fulcrum
