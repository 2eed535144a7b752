// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The trace file: written and read, cut off at every byte, flipped bit by bit, of another version, of several processes.
#include <fulcrum/trace.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>

#include "support/traces.h"
#include "trace/every_record.h"
#include "trace/file/format.h"
#include "trace/file/names.h"

namespace fulcrum::trace {
namespace {

using test::every_record;

bool has_note(const GpuTrace& trace, std::string_view words) {
  return std::any_of(trace.notes.begin(), trace.notes.end(),
                     [&](const std::string& note) { return note.find(words) != note.npos; });
}

/// A file by hand: what the injected library writes, piece by piece.
class Bytes {
 public:
  explicit Bytes(std::int64_t pid = 42, std::int64_t begin_ns = 1'000'000,
                 std::uint32_t version = file::kVersion) {
    file::Head head{};
    std::memcpy(head.magic, file::kMagic, sizeof(head.magic));
    head.version = version;
    head.head_bytes = sizeof(head);
    head.pid = pid;
    head.parent = 1;
    head.begin_ns = begin_ns;
    head.realtime_ns = 1'767'225'600'000'000'000;
    add(&head, sizeof(head));
  }
  template <class Record>
  Bytes& put(file::Kind kind, std::initializer_list<Record> records) {
    chunk(kind, sizeof(Record) * records.size(), records.size());
    add(records.begin(), sizeof(Record) * records.size());
    return *this;
  }
  Bytes& text(std::uint32_t id, std::string_view words) {
    chunk(file::Kind::text, sizeof(id) + words.size(), 1);
    add(&id, sizeof(id));
    add(words.data(), words.size());
    return *this;
  }
  Bytes& chunk(file::Kind kind, std::size_t bytes, std::size_t records) {
    const file::Chunk head{file::kChunkMagic, kind, std::uint32_t(bytes), std::uint32_t(records)};
    return add(&head, sizeof(head));
  }
  Bytes& add(const void* data, std::size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
    return *this;
  }
  /// A stream, a thread and a kernel of that length that begins at `begin`.
  Bytes& kernel(std::int64_t begin, std::int64_t end) {
    text(1, "_Z5scalePffl")
        .put<file::Shape>(file::Kind::shape, {{.id = 5, .name = 1, .grid = {2, 3, 4}, .block = {32, 1, 1}}});
    put<file::Stream>(file::Kind::stream, {{.id = 3, .device = 0, .context = 1, .cupti_id = 7, .flags = 1}});
    return put<file::Kernel>(file::Kind::kernel, {{begin, end, 5, 3, 11, 0, 0}});
  }
  Bytes& footer(std::int64_t end_ns) {
    return text(90, "exit").put<file::Footer>(file::Kind::footer, {{end_ns, 90, 0, 0.5}});
  }
  const std::string& str() const { return bytes_; }

 private:
  std::string bytes_;
};

TEST(TraceFile, EveryRecordIsReadAsItWasWritten) {
  const GpuTrace before = every_record();
  const auto after = parse(bytes_of(before), "x");
  ASSERT_TRUE(after.ok()) << after.error().message;
  EXPECT_EQ(test::difference_of(before, *after), "");
}

TEST(TraceFile, StampsOfAMachineThatHasJustStartedStayAsTheyAre) {
  GpuTrace trace = every_record();
  trace.begin_ns = 20'000'000'000;
  const std::string bytes = bytes_of(trace);
  file::Head head{};
  ASSERT_GE(bytes.size(), sizeof(head));
  std::memcpy(&head, bytes.data(), sizeof(head));
  EXPECT_EQ(head.begin_ns, trace.begin_ns) << "what a later run tells older files by";
  const auto read = parse(bytes, "made here");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(test::difference_of(*read, trace), "");
}

TEST(TraceFile, TypicalTracesAreReadAsTheyWereWritten) {
  for (const GpuTrace& before :
       {test::clean_training_step(3), test::graph_inference_loop(5), test::multi_process(3),
        test::pytorch_like_step(2), test::multi_stream(2), GpuTrace{}}) {
    const auto after = parse(bytes_of(before), "x");
    ASSERT_TRUE(after.ok()) << after.error().message;
    ASSERT_EQ(before.ops.size(), after->ops.size());
    GpuTrace expected = before;
    if (expected.processes.empty()) expected.processes.push_back({.complete = true});
    // Shapes without a use of their own keep their place; equal ones become one.
    EXPECT_EQ(test::difference_of(expected, *after), "");
  }
}

TEST(TraceFile, AMergedFileOfAKilledProcessKeepsItsNotesOnce) {
  const auto first = parse(Bytes().kernel(2'000'000, 2'000'500).str(), "x");
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(has_note(*first, "did not end its trace"));
  const auto second = parse(bytes_of(*first), "x");
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(test::difference_of(*first, *second), "");
}

TEST(TraceFile, AnInjectedProcessIsReadWithItsNamesDemangled) {
  Bytes bytes;
  bytes.kernel(2'000'000, 2'000'500).text(2, "command").text(3, "./app x");
  bytes.put<file::Property>(file::Kind::property, {{2, 3, 0}}).footer(3'000'000);
  const auto trace = parse(bytes.str(), "x");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace->ops.size(), 1u);
  EXPECT_EQ(trace->shapes.at(trace->ops[0].shape).name, "scale(float*, float, long)");
  EXPECT_EQ(trace->ops[0].begin_ns, 1'000'000);
  EXPECT_EQ(trace->ops[0].correlation, 11u);
  EXPECT_TRUE(trace->streams.at(trace->ops[0].stream).legacy_default);
  EXPECT_EQ(trace->streams[0].id, 7);
  EXPECT_EQ(trace->command, "./app x");
  EXPECT_EQ(trace->created_utc, "2026-01-01T00:00:00Z");
  EXPECT_EQ(trace->processes.at(0).pid, 42);
  EXPECT_TRUE(trace->processes[0].complete);
  EXPECT_EQ(trace->processes[0].end, "exit");
  EXPECT_EQ(trace->processes[0].end_ns, 2'000'000);
  EXPECT_DOUBLE_EQ(trace->processes[0].overhead_seconds, 0.5);
  EXPECT_TRUE(trace->notes.empty()) << trace->notes[0];
}

TEST(TraceFile, AZeroStampIsCountedAndLeftOut) {
  Bytes bytes;
  bytes.kernel(2'000'000, 2'000'500);
  bytes.put<file::Kernel>(file::Kind::kernel, {{0, 0, 5, 3, 12, 0, 0}, {2'000'000, 0, 5, 3, 13, 0, 0}});
  bytes.put<file::Copy>(file::Kind::copy, {{0, 2'000'000, 64, 3, 14, 0, 1, 1, 3, 0, 0, 0, 0, 0}});
  bytes.put<file::Kernel>(file::Kind::kernel,
                          {{2'000'500, 2'000'400, 5, 3, 15, 0, 0}});  // ends before it begins
  const auto trace = parse(bytes.footer(3'000'000).str(), "x");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->ops.size(), 1u);
  EXPECT_EQ(trace->processes[0].zero_stamps, 4);
}

TEST(TraceFile, OpsAreSortedByTheirBegin) {
  Bytes bytes;
  bytes.kernel(5'000'000, 5'000'500);
  bytes.put<file::Kernel>(file::Kind::kernel,
                          {{4'000'000, 4'000'100, 5, 3, 12, 0, 0}, {3'000'000, 3'000'100, 5, 3, 13, 0, 0}});
  const auto trace = parse(bytes.str(), "x");
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->ops.size(), 3u);
  EXPECT_EQ(trace->ops[0].correlation, 13u);
  EXPECT_EQ(trace->ops[2].correlation, 11u);
}

TEST(TraceFile, UnknownChunksAreSkippedAndLongerRecordsReadByTheirLength) {
  Bytes bytes;
  bytes.chunk(file::Kind{200}, 10, 2).add("0123456789", 10);
  bytes.kernel(2'000'000, 2'000'500);
  struct Longer {
    file::Kernel kernel;
    std::uint64_t later[3];
  };
  bytes.put<Longer>(file::Kind::kernel, {{{2'000'600, 2'000'700, 5, 3, 21, 0, 0}, {7, 8, 9}},
                                         {{2'000'800, 2'000'900, 5, 3, 22, 0, 0}, {7, 8, 9}}});
  const auto trace = parse(bytes.footer(3'000'000).str(), "x");
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->ops.size(), 3u);
  EXPECT_EQ(trace->ops[2].correlation, 22u);
  EXPECT_TRUE(has_note(*trace, "does not know"));
}

TEST(TraceFile, WhatRecordsNameAndTheFileLacksIsToldNotGuessed) {
  Bytes bytes;
  bytes.put<file::Kernel>(file::Kind::kernel,
                          {{2'000'000, 2'000'100, 1, 2, 3, 0, 0}, {2'000'200, 2'000'300, 4, 2, 5, 0, 0}});
  bytes.put<file::Call>(
      file::Kind::call,
      {{.begin_ns = 1'900'000, .duration_ns = 10, .thread = 8, .correlation = 3, .kind = 999}});
  bytes.put<file::Range>(file::Kind::range, {{1'900'000, 2'000'000, 8, 77}});
  const auto trace = parse(bytes.footer(3'000'000).str(), "x");
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->ops.size(), 2u);
  EXPECT_EQ(trace->shapes.at(trace->ops[0].shape).name, "unknown kernel");
  EXPECT_EQ(trace->streams.size(), 1u);
  EXPECT_EQ(trace->calls.at(0).kind, CallKind::other);
  EXPECT_TRUE(has_note(*trace, "1 streams that its records name"));
  EXPECT_TRUE(has_note(*trace, "1 threads that its records name"));
  EXPECT_TRUE(has_note(*trace, "2 kernels that its records name"));
  EXPECT_TRUE(has_note(*trace, "1 texts that its records name"));
}

TEST(TraceFile, WhatWasOpenAtTheEndEndsWithTheProcess) {
  Bytes bytes;
  bytes.kernel(2'000'000, 2'000'500).put<file::Range>(file::Kind::range, {{1'500'000, 0, 1, 1}});
  bytes.put<file::Window>(file::Kind::window, {{1'400'000, 1'450'000}});
  const auto trace = parse(bytes.str(), "x");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->ranges.at(0).end_ns, 1'000'500);
  EXPECT_EQ(trace->processes[0].end, "cut off");
  EXPECT_FALSE(trace->processes[0].complete);
  // The kernel after the last window belongs to one that was never closed.
  ASSERT_EQ(trace->windows.size(), 2u);
  EXPECT_EQ(trace->windows[1].begin_ns, 1'000'000);
  EXPECT_EQ(trace->windows[1].end_ns, 1'000'500);
}

TEST(TraceFile, ALaterVersionIsRefusedWithAHint) {
  const auto trace =
      parse(Bytes(42, 1'000'000, file::kVersion + 1).kernel(2'000'000, 2'000'500).str(), "new.ftrace");
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.error().code, Code::unsupported);
  EXPECT_NE(trace.error().message.find("new.ftrace is a trace file of version 2"), std::string::npos);
  EXPECT_FALSE(trace.error().hint.empty());
}

TEST(TraceFile, AnotherFileIsNoTrace) {
  for (const char* text : {"", "FLCTRAC", "{\"schema\":\"fulcrum.trace/1\"}", "FLCTRACE"}) {
    const auto trace = parse(text, "x");
    ASSERT_FALSE(trace.ok()) << text;
    EXPECT_EQ(trace.error().code, Code::corrupt);
    EXPECT_FALSE(trace.error().hint.empty());
  }
}

TEST(TraceFile, CutOffAtAnyByteItIsReadUpToTheLastWholeChunk) {
  const std::string whole = bytes_of(every_record());
  std::size_t ops = 0, processes = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto trace = parse(std::string_view(whole).substr(0, size), "x");
    if (!trace.ok()) {
      ASSERT_LT(size, sizeof(file::Head));
      continue;
    }
    ASSERT_GE(trace->ops.size(), ops) << size;
    ASSERT_GE(trace->processes.size(), processes) << size;
    ops = trace->ops.size();
    processes = trace->processes.size();
    // Either a process lacks its footer, or the whole second one is missing.
    const auto is_cut = [](const auto& process) { return !process.complete && process.end == "cut off"; };
    ASSERT_TRUE(processes < 2 || is_cut(trace->processes.back())) << size;
  }
  EXPECT_EQ(ops, every_record().ops.size());
  EXPECT_EQ(processes, 2u);
}

TEST(TraceFile, FlippedBitsGiveATraceOrAnError) {
  const std::string whole = bytes_of(every_record());
  std::mt19937 random(7);
  int read = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string damaged = whole;
    for (int flips = 1 + i % 3; flips > 0; --flips)
      damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    const auto trace = parse(damaged, "x");
    if (!trace.ok()) {
      ASSERT_FALSE(trace.error().message.empty());
      continue;
    }
    ++read;
    // What is read can be trusted by whoever follows its numbers.
    for (const GpuTrace::Op& op : trace->ops) {
      ASSERT_LT(op.stream, trace->streams.size());
      ASSERT_TRUE(op.kind != GpuOpKind::kernel || op.shape < trace->shapes.size());
      ASSERT_LE(op.begin_ns, op.end_ns);
    }
    ASSERT_TRUE(std::is_sorted(trace->ops.begin(), trace->ops.end(),
                               [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; }));
    if (i % 50 == 0) {
      const auto json = trace_from_json(to_json(*trace), "x");
      ASSERT_TRUE(json.ok()) << json.error().message;
      ASSERT_TRUE(parse(bytes_of(*trace), "x").ok());
    }
  }
  EXPECT_GT(read, 9'000);
}

TEST(TraceFile, DamageInOneProcessLeavesTheOthers) {
  const Bytes first = Bytes(1, 1'000'000).kernel(2'000'000, 2'000'500).footer(3'000'000);
  const Bytes second = Bytes(2, 1'500'000).kernel(2'500'000, 2'500'500).footer(3'000'000);
  std::string bytes = first.str() + second.str();
  bytes[sizeof(file::Head) + 1] ^= 1;  // the magic of the first chunk
  const auto trace = parse(bytes, "x");
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->processes.size(), 2u);
  EXPECT_EQ(trace->ops.size(), 1u);
  EXPECT_TRUE(trace->processes[1].complete);
  EXPECT_TRUE(has_note(*trace, "process 1 ends early: it is damaged at byte 48"));
}

class TraceFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(testing::TempDir()) / ("fulcrum_trace_folder_" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void add(const char* name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  std::filesystem::path folder_;
};

TEST_F(TraceFolder, ProcessesComeOnOneClockInTheOrderOfTheirBegins) {
  add("9.ftrace", Bytes(9, 1'000'000).kernel(2'000'000, 2'000'500).footer(3'000'000).str());
  add("10.ftrace", Bytes(10, 1'200'000).kernel(2'000'100, 2'000'600).footer(3'500'000).str());
  add("notes.txt", "not a trace");
  add("11.ftrace", "FLCTRACE and nothing else");
  const auto trace = read_folder(folder_);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace->begin_ns, 1'000'000);
  ASSERT_EQ(trace->processes.size(), 2u);
  EXPECT_EQ(trace->processes[0].pid, 9);
  EXPECT_EQ(trace->processes[1].begin_ns, 200'000);
  ASSERT_EQ(trace->ops.size(), 2u);
  EXPECT_EQ(trace->ops[1].begin_ns, 1'000'100);
  EXPECT_NE(trace->ops[0].stream, trace->ops[1].stream);
  EXPECT_EQ(trace->ops[0].shape, trace->ops[1].shape) << "one kernel at one shape, whoever runs it";
  EXPECT_EQ(trace->wall_ns, 2'500'000);
  EXPECT_TRUE(has_note(*trace, "11.ftrace ends inside its head"));
}

TEST_F(TraceFolder, AFolderWithoutTracesIsAnError) {
  EXPECT_EQ(read_folder(folder_).error().code, Code::not_found);
  EXPECT_EQ(read_folder(folder_ / "none").error().code, Code::not_found);
}

TEST(TraceFile, EventsOfTwoProcessesDoNotMeet) {
  const auto with_event = [](std::int64_t pid) {
    Bytes bytes(pid, 1'000'000 + pid);
    bytes.put<file::Thread>(file::Kind::thread, {{1, 0, pid}});
    bytes.put<file::Call>(file::Kind::call,
                          {{.begin_ns = 2'000'000, .duration_ns = 10, .thread = 1, .event = 5, .kind = 8}});
    return bytes.footer(3'000'000).str();
  };
  const auto trace = parse(with_event(1) + with_event(2), "x");
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->calls.size(), 2u);
  EXPECT_NE(trace->calls[0].event, trace->calls[1].event);
  const auto again = parse(bytes_of(*trace), "x");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(test::difference_of(*trace, *again), "");
}

TEST(TraceFile, WhoHeldCuptiIsSaid) {
  Bytes bytes;
  bytes.text(1, "profiler").text(2, "Nsight Systems");
  bytes.put<file::Property>(file::Kind::property, {{1, 2, 0}}).footer(3'000'000);
  const auto trace = parse(bytes.str(), "x");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->processes[0].profiler, "Nsight Systems");
  EXPECT_TRUE(has_note(*trace, "Nsight Systems holds CUPTI: process 42 ran unprofiled"));
}

}  // namespace
}  // namespace fulcrum::trace
