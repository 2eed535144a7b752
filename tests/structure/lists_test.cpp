// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// list.def, files and run-time registries name the same things in the same order.
#include <fulcrum/backends.h>
#include <fulcrum/ops.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "structure/include_law.h"
#include "structure/tree.h"

namespace fulcrum::structure {
namespace {

/// Names in the lines of one macro. Lines of another are passed over when a list has two; nothing else may stand there.
std::vector<std::string> names_in(const std::string& list, const std::string& macro,
                                  const std::string& other = "no other") {
  const std::regex pattern("^" + macro + R"(\((\w+)\)\s*(//.*)?$)");
  std::vector<std::string> names;
  for (const std::string& line : lines_of(content(list))) {
    std::smatch match;
    if (std::regex_match(line, match, pattern)) {
      names.push_back(match[1]);
    } else {
      EXPECT_TRUE(line.empty() || begins_with(line, "//") || begins_with(line, other + "("))
          << list << ": " << line;
    }
  }
  return names;
}

/// First groups of the paths below src/ that match, sorted.
std::set<std::string> stems(const std::string& pattern) {
  std::set<std::string> result;
  for (const std::string& file : files_below("src", {".cpp", ".cu"})) {
    std::smatch match;
    if (std::regex_match(file, match, std::regex(pattern))) result.insert(match[1]);
  }
  return result;
}

std::set<std::string> sorted(const std::vector<std::string>& names) {
  const std::set<std::string> set(names.begin(), names.end());
  EXPECT_EQ(set.size(), names.size()) << "a name stands twice";
  return set;
}

TEST(Lists, EveryOpHasItsFileAndEveryFileItsLine) {
  EXPECT_EQ(sorted(names_in("src/ops/list.def", "FULCRUM_OP")), stems(R"(src/ops/([^/]+)\.cpp)"));
}

TEST(Lists, EveryBackendHasItsFolderAndEveryFolderItsLine) {
  auto listed = names_in("src/backends/list.def", "FULCRUM_BACKEND", "FULCRUM_MODULE");
  for (const std::string& module : names_in("src/backends/list.def", "FULCRUM_MODULE", "FULCRUM_BACKEND"))
    listed.push_back(module);
  EXPECT_EQ(sorted(listed), stems(R"(src/backends/([^/]+)/backend\.cpp)"));
}

TEST(Lists, EveryCommandHasItsFileAndEveryFileItsLine) {
  EXPECT_EQ(sorted(names_in("src/cli/commands/list.def", "FULCRUM_COMMAND")),
            stems(R"(src/cli/commands/([^/]+)\.cpp)"));
}

TEST(Lists, EveryKernelFileIsNamedAfterAnOp) {
  const auto ops = sorted(names_in("src/ops/list.def", "FULCRUM_OP"));
  for (const std::string& stem : stems(R"(src/backends/[^/]+/kernels/([^/]+)\.(?:cpp|cu))")) {
    EXPECT_TRUE(ops.count(stem)) << stem;
  }
}

TEST(Lists, TheOpRegistryHoldsTheListInItsOrder) {
  std::vector<std::string> registered;
  for (const ops::Op* op : ops::all()) registered.emplace_back(op->name);
  EXPECT_EQ(registered, names_in("src/ops/list.def", "FULCRUM_OP"));
}

TEST(Lists, TheBackendRegistryBeginsWithTheListInItsOrder) {
  const auto listed = names_in("src/backends/list.def", "FULCRUM_BACKEND", "FULCRUM_MODULE");
  std::vector<std::string> registered;
  for (const backends::Backend* backend : backends::all()) registered.emplace_back(backend->name());
  ASSERT_GE(registered.size(), listed.size());
  registered.resize(listed.size());  // modules found at run time come after
  EXPECT_EQ(registered, listed);
}

TEST(Lists, EveryKernelFileOfABackendGivesAKernelOfItsOp) {
  for (const backends::Backend* backend : backends::all()) {
    const std::string name(backend->name());
    std::set<std::string> provided;
    for (const fulcrum_kernel& kernel : backend->kernels()) provided.insert(kernel.op);
    for (const std::string& op : stems("src/backends/" + name + R"(/kernels/([^/]+)\.(?:cpp|cu))")) {
      EXPECT_TRUE(!backend->available() || provided.count(op)) << name << "/" << op;
    }
  }
}

}  // namespace
}  // namespace fulcrum::structure
