// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Perf records as bytes: whole, cut at every place, and with lengths that lie.
#include "record/parse.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "record/function_starts.h"
#include "record/jit_map.h"
#include "record/modules.h"
#include "record/symbols.h"

namespace fulcrum::record {
namespace {

class Bytes {
 public:
  Bytes(std::uint32_t type, std::uint16_t misc) { put(perf_event_header{type, misc, 0}); }
  template <class T>
  Bytes& put(const T& value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
    return *this;
  }
  Bytes& text(std::string_view words) {
    for (const char c : words) put(c);
    do put(char{0});
    while (bytes_.size() % 8 != 0);
    return *this;
  }
  Bytes& trailer(std::uint32_t pid, std::uint32_t tid, std::uint64_t time) {
    return put(pid).put(tid).put(time).put(std::uint64_t{1});
  }
  std::vector<std::byte> done() {
    const auto size = static_cast<std::uint16_t>(bytes_.size());
    std::memcpy(bytes_.data() + 6, &size, 2);
    return bytes_;
  }

 private:
  std::vector<std::byte> bytes_;
};

std::vector<std::byte> sample_bytes(std::uint64_t filled = 64) {
  Bytes b(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
  b.put(std::uint64_t{0x401000}).put(std::uint32_t{7}).put(std::uint32_t{8}).put(std::uint64_t{1234});
  b.put(std::uint32_t{1}).put(std::uint32_t{0}).put(std::uint64_t{5025125});
  b.put(kRegisterAbi);
  for (std::size_t i = 0; i < kRegisters.size(); ++i) b.put(std::uint64_t{100 + i});
  b.put(std::uint64_t{64});
  for (int i = 0; i < 8; ++i) b.put(std::uint64_t(i));
  b.put(filled);
  return b.done();
}

TEST(Parse, ASampleHasItsRegistersAndStack) {
  const auto bytes = sample_bytes(48);
  EXPECT_EQ(record_time_ns(bytes), 1234u);
  const auto record = parse_record(bytes, false);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->kind, Record::Kind::sample);
  EXPECT_EQ(record->pid, 7);
  EXPECT_EQ(record->tid, 8);
  EXPECT_EQ(record->sample.ip, 0x401000u);
  EXPECT_EQ(record->sample.period, 5025125u);
  EXPECT_TRUE(record->sample.has_registers);
  EXPECT_EQ(record->sample.stack.size(), 48u);
  EXPECT_EQ(record->sample.stack_asked, 64u);
  for (std::size_t i = 0; i < kRegisters.size(); ++i) {
    EXPECT_EQ(record->sample.registers[static_cast<std::size_t>(kRegisters[i].dwarf)], 100 + i);
  }
}

TEST(Parse, AStackThatClaimsMoreThanTheDumpIsRefused) { EXPECT_FALSE(parse_record(sample_bytes(65), false)); }

TEST(Parse, ACutRecordIsRefusedAtEveryLength) {
  const auto whole = sample_bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(parse_record(std::span(whole).first(size), false)) << size;
  }
}

TEST(Parse, AMappingHasItsFile) {
  Bytes b(PERF_RECORD_MMAP2, 0);
  b.put(std::uint32_t{7})
      .put(std::uint32_t{7})
      .put(std::uint64_t{0x7000})
      .put(std::uint64_t{0x1000})
      .put(std::uint64_t{0x2000});
  for (int i = 0; i < 4; ++i) b.put(std::uint64_t{0});
  b.text("/lib/libm.so.6").trailer(7, 7, 99);
  const std::vector<std::byte> bytes = b.done();  // which the record points into
  const auto record = parse_record(bytes, false);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->kind, Record::Kind::map);
  EXPECT_EQ(record->text, "/lib/libm.so.6");
  EXPECT_EQ(record->address, 0x7000u);
  EXPECT_EQ(record->offset, 0x2000u);
  EXPECT_EQ(record->time_ns, 99u);
}

TEST(Parse, ASwitchSaysWhichWayAndWhy) {
  const auto of = [](std::uint16_t misc) {
    return parse_record(Bytes(PERF_RECORD_SWITCH, misc).trailer(3, 4, 5).done(), false);
  };
  EXPECT_EQ(of(0)->kind, Record::Kind::switch_in);
  EXPECT_EQ(of(PERF_RECORD_MISC_SWITCH_OUT)->kind, Record::Kind::switch_out);
  EXPECT_FALSE(of(PERF_RECORD_MISC_SWITCH_OUT)->preempted);
  EXPECT_TRUE(of(PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT)->preempted);
  EXPECT_EQ(of(0)->tid, 4);
}

TEST(Parse, RandomBytesNeverRunOver) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> bytes(random() % 400);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    if (bytes.size() >= 4)
      bytes[0] = static_cast<std::byte>(random() % 20), bytes[1] = bytes[2] = bytes[3] = std::byte{0};
    // An exact copy on the heap: a read past its end is found by the address sanitizer.
    const std::vector<std::byte> exact(bytes);
    record_time_ns(exact);
    parse_record(exact, i % 2 == 0);
  }
}

TEST(FunctionStarts, AreReadFromTheUnwindTable) {
  std::vector<std::byte> section(12);
  const std::uint8_t header[4] = {1, 0x1b, 0x03, 0x3b};
  std::memcpy(section.data(), header, 4);
  const std::uint32_t count = 2;
  std::memcpy(section.data() + 8, &count, 4);
  for (const std::int32_t value : {-0x1000, 0, 0x500, 0}) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    section.insert(section.end(), from, from + 4);
  }
  const FunctionStarts starts = FunctionStarts::parse(section, 0x5000);
  EXPECT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts.find(0x4010), 0x4000u);
  EXPECT_EQ(starts.find(0x6000), 0x5500u);
  EXPECT_FALSE(starts.find(0x3fff));
  EXPECT_EQ(starts.next(0x4010), 0x5500u);
  EXPECT_FALSE(starts.next(0x5500));
  for (std::size_t size = 0; size < section.size(); ++size) {
    EXPECT_LE(FunctionStarts::parse(std::span(section).first(size), 0x5000).size(), 1u);
  }
}

TEST(JitMap, KnowsTheNewestNameOfAPlace) {
  JitMap map(0);
  const std::string text =
      "7f0010 20 py::work:/a/b.py\nnonsense\n7f0030 0 empty\n7f0010 8 later one\n7f0100 10 cut";
  EXPECT_EQ(map.add_lines(text), text.rfind('\n') + 1);
  ASSERT_TRUE(map.find(0x7f0011));
  EXPECT_EQ(map.find(0x7f0011)->name, "later one");
  EXPECT_FALSE(map.find(0x7f0018));
  EXPECT_FALSE(map.find(0x7f0030));
}

TEST(Symbols, NamesArePlain) {
  EXPECT_EQ(plain_name("_ZN4demo3addEii"), "demo::add(int, int)");
  EXPECT_EQ(plain_name("_ZN4demo3addEii.constprop.0"), "demo::add(int, int)");
  EXPECT_EQ(plain_name("work.part.3"), "work");
  EXPECT_EQ(plain_name("work.cold"), "work");
  EXPECT_EQ(plain_name("memcpy@@GLIBC_2.14"), "memcpy");
  EXPECT_EQ(plain_name("_Znonsense"), "_Znonsense");
  EXPECT_EQ(plain_name(""), "");
}

TEST(AddressSpace, ANewMappingTakesThePlaceOfTheOld) {
  AddressSpace space;
  const Module file;
  space.add(0x1000, 0x4000, 0, 2, file);
  space.add(0x2000, 0x1000, 0, 3, file);
  EXPECT_EQ(space.find(0x1fff)->module, 2u);
  EXPECT_EQ(space.find(0x2000)->module, 3u);
  EXPECT_EQ(space.find(0x3000)->module, 2u);
  EXPECT_FALSE(space.find(0x5000));
  EXPECT_FALSE(space.find(0xfff));
  EXPECT_EQ(space.replaced(), 1u);
  EXPECT_EQ(space.locate(0x9000).module, Modules::kUnknown);
}

TEST(AddressSpace, AddressesAreThoseOfTheFile) {
  AddressSpace space;
  Module file;
  file.elf = true;
  file.segments = {{0, 0, 0x800, false}, {0x1000, 0x1000, 0x2000, true}, {0x3000, 0x4000, 0x500, false}};
  space.add(0x7f0000001000, 0x2000, 0x1000, 2, file);
  EXPECT_EQ(space.locate(0x7f0000001234).address, 0x1234u);
}

}  // namespace
}  // namespace fulcrum::record
