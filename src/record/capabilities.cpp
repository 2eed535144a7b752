// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What this machine and this user can record, in words.
#include <fmt/format.h>
#include <fulcrum/record.h>

#include "record/disassemble.h"
#include "record/events.h"
#include "record/libdw.h"
#include "record/preload.h"

namespace fulcrum::record {

std::vector<Capability> capabilities() {
  const EventAccess access = probe_access();
  const std::string level = access.paranoid_level == -2
                                ? "the kernel has no perf events"
                                : fmt::format("kernel.perf_event_paranoid {}", access.paranoid_level);
  std::vector<Capability> all;
  all.push_back({"perf events", access.allowed, level,
                 access.allowed
                     ? ""
                     : "sysctl kernel.perf_event_paranoid=2, or allow perf_event_open in the container; "
                       "until then record uses timers inside the program"});
  all.push_back({"hardware counters", access.hardware,
                 access.hardware ? "cycles" : "none; samples follow the CPU clock",
                 access.hardware ? "" : "usual in virtual machines; shares of time do not need them"});
  all.push_back({"kernel frames", access.kernel,
                 access.kernel ? "samples inside system calls are seen" : level,
                 access.kernel ? "" : "as root, or sysctl kernel.perf_event_paranoid=1"});
  all.push_back({"unwinding", libdw() != nullptr, libdw_text(), libdw() ? "" : "install libdw1 (elfutils)"});
  all.push_back({"instruction mix", can_disassemble(), disassembler_text(),
                 can_disassemble() ? "" : "install libcapstone4"});
  const Preload preload(0);
  all.push_back({"preloaded library", preload.there(),
                 preload.there() ? preload.library() : "libfulcrum_preload.so is not beside the program",
                 preload.there()
                     ? ""
                     : "sizes of BLAS calls and sampling by timers need it: build or install fulcrum whole"});
  return all;
}

}  // namespace fulcrum::record
