// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole files and the data folder, with every refusal the operating system has.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "core_support.h"

namespace fulcrum {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::error_text;
using test::ScopedVariable;
using test::TempFolder;

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(ReadFile, GivesTheBytesAsTheyAre) {
  const TempFolder folder;
  const std::string content = std::string("a\0b\r\n\xff", 6) + std::string(300'000, 'x');
  test::put(folder / "f", content);
  EXPECT_EQ(read_file(folder / "f").value(), content);
  test::put(folder / "empty", "");
  EXPECT_EQ(read_file(folder / "empty").value(), "");
  EXPECT_TRUE(contains(read_file("/proc/self/status").value(), "VmRSS"));  // its size is said to be 0
}

TEST(ReadFile, SaysWhatIsWrongAndWhatToDo) {
  const TempFolder folder;
  const auto absent = read_file(folder / "absent");
  EXPECT_EQ(absent.error().code, Code::environment);
  EXPECT_TRUE(contains(absent.error().message, (folder / "absent").string() + ": No such file"));
  EXPECT_TRUE(contains(absent.error().hint, "spelling"));
  EXPECT_TRUE(contains(error_text(read_file(folder.path())), "this is a folder"));
}

TEST(WriteFile, ReplacesTheWholeFileAndLeavesNothingBeside) {
  const TempFolder folder;
  ASSERT_TRUE(write_file(folder / "f", "old and longer").ok());
  ASSERT_TRUE(write_file(folder / "f", "new").ok());
  EXPECT_EQ(test::get(folder / "f"), "new");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(WriteFile, KeepsTheModeAndGoesThroughALink) {
  const TempFolder folder;
  test::put(folder / "f", "old");
  fs::permissions(folder / "f", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("f", folder / "link");
  ASSERT_TRUE(write_file(folder / "link", "new").ok());
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(test::get(folder / "f"), "new");
  EXPECT_EQ(fs::status(folder / "f").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(WriteFile, WritesToDevices) { EXPECT_TRUE(write_file("/dev/null", "text").ok()); }

TEST(WriteFile, AFullDiskIsAnEnvironmentErrorWithAHint) {
  const Status full = write_file("/dev/full", "text");
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, Code::environment);
  EXPECT_TRUE(contains(full.error().message, "/dev/full: No space left"));
  EXPECT_TRUE(contains(full.error().hint, "the disk is full"));
}

TEST(WriteFile, AFailedWriteKeepsTheOldFileAndRemovesItsOwn) {
  const TempFolder folder;
  test::put(folder / "f", "old");
  rlimit old_limit{};
  ::getrlimit(RLIMIT_FSIZE, &old_limit);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100, old_limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const Status status = write_file(folder / "f", std::string(1000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_TRUE(contains(error_text(status), "ulimit -f")) << error_text(status);
  EXPECT_EQ(test::get(folder / "f"), "old");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(WriteFile, RefusalsNameThePath) {
  const TempFolder folder;
  test::put(folder / "file", "");
  EXPECT_TRUE(contains(error_text(write_file(folder / "no/such/file", "x")), "a folder that is missing"));
  EXPECT_TRUE(contains(error_text(write_file(folder / "file/below", "x")), "is a file, not a folder"));
  EXPECT_TRUE(contains(error_text(write_file(folder.path(), "x")), "this is a folder"));
  EXPECT_TRUE(contains(error_text(write_file(folder / std::string(300, 'n'), "x")), "shorter name"));
}

TEST(WriteFile, AnUnwritableFolderIsAnEnvironmentError) {
  const TempFolder folder;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_exec);
  const bool root = ::geteuid() == 0;  // root may write everywhere: be nobody for a moment
  if (root) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const Status status = write_file(folder / "f", "x");
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  fs::permissions(folder.path(), fs::perms::owner_all);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::environment);
  EXPECT_TRUE(contains(status.error().message, "Permission denied"));
  EXPECT_TRUE(contains(status.error().hint, "no permission"));
}

TEST(WriteFile, ReadersSeeOneOfTheVersionsAndNeverHalf) {
  const TempFolder folder;
  const std::string a(200'000, 'a'), b(100'000, 'b');
  ASSERT_TRUE(write_file(folder / "f", a).ok());
  std::thread writer([&] {
    for (int i = 0; i < 50; ++i) EXPECT_TRUE(write_file(folder / "f", i % 2 ? a : b).ok());
  });
  for (int i = 0; i < 200; ++i) {
    const std::string seen = read_file(folder / "f").value();
    EXPECT_TRUE(seen == a || seen == b) << seen.size();
  }
  writer.join();
}

TEST(DataFolder, FollowsTheVariablesInOrderAndIsMade) {
  const TempFolder folder;
  const ScopedVariable home("HOME", (folder / "home").string());
  const ScopedVariable data("FULCRUM_DATA", std::nullopt);
  const ScopedVariable xdg("XDG_DATA_HOME", std::nullopt);
  EXPECT_EQ(data_folder().value(), folder / "home/.local/share/fulcrum");
  EXPECT_TRUE(fs::is_directory(folder / "home/.local/share/fulcrum"));
  {
    const ScopedVariable relative("XDG_DATA_HOME", "relative");  // the specification says: ignore it
    EXPECT_EQ(data_folder().value(), folder / "home/.local/share/fulcrum");
  }
  const ScopedVariable set_xdg("XDG_DATA_HOME", (folder / "xdg").string());
  EXPECT_EQ(data_folder().value(), folder / "xdg/fulcrum");
  const ScopedVariable set_data("FULCRUM_DATA", (folder / "mine").string());
  EXPECT_EQ(data_folder().value(), folder / "mine");
  EXPECT_TRUE(fs::is_directory(folder / "mine"));
}

TEST(DataFolder, SaysHowToChooseOne) {
  const TempFolder folder;
  test::put(folder / "file", "");
  const ScopedVariable data("FULCRUM_DATA", (folder / "file/below").string());
  EXPECT_TRUE(contains(error_text(data_folder()), "(set FULCRUM_DATA"));
  const ScopedVariable no_data("FULCRUM_DATA", std::nullopt), no_xdg("XDG_DATA_HOME", std::nullopt);
  const ScopedVariable no_home("HOME", std::nullopt);
  EXPECT_TRUE(contains(error_text(data_folder()), "HOME is not set (set FULCRUM_DATA"));
}

}  // namespace
}  // namespace fulcrum
