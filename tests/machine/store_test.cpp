// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The store of profiles: what is saved comes back, what is damaged is said.
#include "machine/store.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "machine/recorded_tree.h"

namespace fulcrum::machine {
namespace {

Machine some_machine() {
  Machine machine;
  machine.id = "amd-epyc-2c-0badcafe";
  machine.name = "AMD EPYC, 2 cores";
  machine.kernel = "Linux 6.1.0";
  machine.measured_utc = "2026-01-31T12:00:00Z";
  machine.topology.model = "AMD EPYC";
  machine.topology.cores = 2;
  machine.topology.memory_bytes = std::int64_t{24} << 30;
  machine.topology.isa = {"avx3", "avx2"};
  MemoryLevel level{.name = "L1", .capacity_bytes = 32768};
  level.one_thread["read"] = Quantity{222e9, 220e9, 223e9, Source::measured};
  level.latency_seconds = Quantity{1.1e-9, 1.1e-9, 1.2e-9, Source::measured};
  machine.cpu.levels = {level, MemoryLevel{.name = "DRAM"}};
  machine.cpu.flops_one_thread["avx3"] = Quantity{117e9, 116e9, 117.2e9, Source::measured};
  machine.cpu.threads = 2;
  return machine;
}

ProfileFolder folder_of(const TemporaryFolder& temporary) {
  return ProfileFolder(temporary.path() / "machines", false);
}

std::string path_of_saved(const TemporaryFolder& temporary) {
  return (temporary.path() / "machines/amd-epyc-2c-0badcafe.json").string();
}

TEST(ProfileStore, GivesBackWhatWasSaved) {
  const TemporaryFolder temporary;
  const Machine machine = some_machine();
  const auto path = folder_of(temporary).save(machine);
  ASSERT_TRUE(path.ok()) << path.error().message;
  EXPECT_EQ(path->string(), path_of_saved(temporary));
  const auto loaded = folder_of(temporary).load(machine.id);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(to_json(*loaded), to_json(machine));
  EXPECT_EQ(loaded->cpu.levels[0].one_thread.at("read").low, 220e9);
  EXPECT_TRUE(folder_of(temporary).has(machine.id));
  EXPECT_FALSE(folder_of(temporary).has("another"));
}

TEST(ProfileStore, KeepsOnlyTheNewestOfAMachine) {
  const TemporaryFolder temporary;
  Machine machine = some_machine();
  ASSERT_TRUE(folder_of(temporary).save(machine).ok());
  machine.measured_utc = "2026-02-01T12:00:00Z";
  ASSERT_TRUE(folder_of(temporary).save(machine).ok());
  const auto profiles = folder_of(temporary).list();
  ASSERT_EQ(profiles.size(), 1u);
  EXPECT_EQ(profiles[0].name, machine.id);
  EXPECT_EQ(profiles[0].description, "AMD EPYC, 2 cores, 2026-02-01T12:00:00Z");
  EXPECT_FALSE(profiles[0].shipped);
}

TEST(ProfileStore, RefusesAFileThatIsCutOff) {
  const TemporaryFolder temporary;
  ASSERT_TRUE(folder_of(temporary).save(some_machine()).ok());
  const std::string path = path_of_saved(temporary);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const auto loaded = folder_of(temporary).load(some_machine().id);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, Code::corrupt);
  EXPECT_NE(loaded.error().message.find(path), std::string::npos) << loaded.error().message;
  const auto profiles = folder_of(temporary).list();
  ASSERT_EQ(profiles.size(), 1u) << "listed, so that somebody sees it";
  EXPECT_TRUE(profiles[0].description.starts_with("unreadable: ")) << profiles[0].description;
}

TEST(ProfileStore, RefusesAFileOfAnotherKindOrVersion) {
  const TemporaryFolder temporary;
  temporary.write("machines/bench.json", R"({"schema": "fulcrum.bench/1", "results": []})");
  temporary.write("machines/future.json", R"({"schema": "fulcrum.machine/2"})");
  temporary.write("machines/foreign.json", R"({"context": {"num_cpus": 2}})");
  temporary.write("machines/nothing.json", "");
  for (const char* name : {"bench", "future", "foreign", "nothing"}) {
    const auto loaded = folder_of(temporary).load(name);
    ASSERT_FALSE(loaded.ok()) << name;
    EXPECT_EQ(loaded.error().code, Code::corrupt) << name << ": " << loaded.error().message;
  }
}

TEST(ProfileStore, RefusesAProfileWithAMissingField) {
  const TemporaryFolder temporary;
  Json json = to_json(some_machine());
  json["cpu"].erase("levels");
  temporary.write("machines/short.json", json_text(json));
  const auto loaded = folder_of(temporary).load("short");
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().message.find("levels"), std::string::npos) << loaded.error().message;
}

TEST(ProfileStore, TakesNoNameThatLeavesTheFolder) {
  const TemporaryFolder temporary;
  Machine machine = some_machine();
  for (const char* name : {"", "../escape", "a/b", ".hidden", "a b"}) {
    machine.id = name;
    EXPECT_FALSE(folder_of(temporary).save(machine).ok()) << name;
    EXPECT_FALSE(folder_of(temporary).load(name).ok()) << name;
    EXPECT_FALSE(folder_of(temporary).has(name)) << name;
  }
}

TEST(ProfileStore, SaysThatAFolderCannotBeWritten) {
  const TemporaryFolder temporary;
  temporary.write("machines", "a file where the folder should be");
  const auto path = folder_of(temporary).save(some_machine());
  ASSERT_FALSE(path.ok());
  EXPECT_EQ(path.error().code, Code::environment);
  EXPECT_FALSE(path.error().hint.empty());
}

}  // namespace
}  // namespace fulcrum::machine
