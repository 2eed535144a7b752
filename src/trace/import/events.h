// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The JSON of Chrome traces, event by event: files of half a gigabyte are usual, and as one tree in memory they would
// take ten times that.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum::trace {

/// An event, or another flat object of the file. Members of "args" are among its fields, its name as "args.name".
class Event {
 public:
  struct Value {
    bool is_text = false;
    std::string text;             // as it stands in the file, also of numbers
    std::vector<double> numbers;  // one, or those of an array
  };

  void clear() { used_ = 0; }
  Value& add(std::string_view key);
  const Value* find(std::string_view key) const;
  /// Empty, or `otherwise`: not there, or of another type.
  std::string_view text(std::string_view key) const;
  double number(std::string_view key, double otherwise = 0) const;
  std::int64_t whole(std::string_view key, std::int64_t otherwise = 0) const;
  /// Microseconds as nanoseconds, from the digits themselves: a double holds microseconds since 1970 to a quarter.
  std::optional<std::int64_t> nanoseconds(std::string_view key) const;

 private:
  std::vector<std::pair<std::string, Value>> fields_;
  std::size_t used_ = 0;
};

struct EventSink {
  std::function<void(const Event&)> event, device;  // of traceEvents and of deviceProperties
  Event head;                                       // members of the document itself
};

/// Empty: read to its end. Otherwise where and why not; what came before was handed on.
std::string read_events(std::string_view json, EventSink& sink);

}  // namespace fulcrum::trace
