// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// libFuzzer target: any bytes go to the readers of traces, the first byte says to which. What is accepted must hold
// together, and can be written and read again; what is refused comes with a message.
#include <fulcrum/trace.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace {

using namespace fulcrum;

[[noreturn]] void fail(const char* what, const std::string& detail) {
  std::fprintf(stderr, "%s: %s\n", what, detail.c_str());
  std::abort();
}

/// The strict reader of JSON knows every rule of a trace.
void check(const GpuTrace& trace, const char* from) {
  const auto json = trace_from_json(to_json(trace), "json");
  if (!json.ok()) fail(from, json.error().message);
  const auto again = trace::parse(trace::bytes_of(trace), "bytes");
  if (!again.ok()) fail(from, again.error().message);
  if (again->ops.size() != trace.ops.size()) fail(from, "ops were lost on the way through a file");
  if (const auto chrome = json_parse(trace::chrome_trace(trace), "chrome"); !chrome.ok())
    fail(from, chrome.error().message);
}

void check(const Result<GpuTrace>& trace, const char* from) {
  if (trace.ok()) return check(*trace, from);
  if (trace.error().message.empty()) fail(from, "refused without a message");
}

GpuTrace with_one_kernel() {
  GpuTrace trace;
  trace.shapes.push_back({.name = "k(int)", .grid = {1, 1, 1}, .block = {32, 1, 1}});
  return trace;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      check(trace::parse(bytes, "file"), "trace file");
      break;
    case 1:
      check(trace::from_kineto(bytes, "kineto"), "kineto");
      break;
    case 2:
      if (const auto json = json_parse(bytes, "json"); json.ok())
        check(trace_from_json(*json, "json"), "json");
      break;
    default: {
      GpuTrace trace = with_one_kernel();
      if (const Status added = trace::add_ncu(trace, bytes, "ncu");
          !added.ok() && added.error().message.empty())
        fail("ncu", "refused without a message");
    }
  }
  return 0;
}
