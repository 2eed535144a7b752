// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables of docs/architecture.md against every #include of the tree; and that the checker finds what is planted.
#include <gtest/gtest.h>

#include "structure/include_law.h"
#include "structure/tree.h"

namespace fulcrum::structure {
namespace {

const Law& law() {
  static const Law instance = read_law(content("docs/architecture.md"));
  return instance;
}

std::string verdict(const std::string& file, const std::string& source) {
  const auto includes = includes_of(source);
  if (includes.size() != 1) return "expected one #include";
  return violation(law(), file, includes[0]).value_or("");
}

TEST(Architecture, EveryIncludeIsAllowedByTheTable) {
  std::size_t includes_seen = 0;
  for (const char* folder : {"include", "src"}) {
    for (const std::string& file : files_below(folder, {".h", ".cpp", ".cu", ".cuh"})) {
      for (const Include& include : includes_of(content(file))) {
        ++includes_seen;
        const auto wrong = violation(law(), file, include);
        if (wrong) ADD_FAILURE() << file << ":" << include.line << ": " << *wrong;
      }
    }
  }
  EXPECT_GT(includes_seen, 0u);
}

TEST(Architecture, EveryModuleFolderAndPublicHeaderIsInTheTable) {
  for (const auto& entry : std::filesystem::directory_iterator(root() / "src")) {
    EXPECT_TRUE(law().find(entry.path().filename())) << "src/" << entry.path().filename() << " is no module";
  }
  for (const std::string& header : files_below("include/fulcrum", {".h"})) {
    const std::string module = module_of(header);
    EXPECT_TRUE(module == "fulcrum" || law().find(module)) << header << " belongs to no module";
  }
}

TEST(Architecture, AModuleMayOnlyNameModulesAboveIt) {
  ASSERT_FALSE(law().modules.empty());
  std::set<std::string> above;
  for (const Module& module : law().modules) {
    for (const std::string& name : module.may_include) {
      EXPECT_TRUE(name == "all" || above.count(name)) << module.name << " names " << name;
    }
    above.insert(module.name);
  }
}

TEST(Architecture, AllowedIncludesPass) {
  EXPECT_EQ(verdict("src/ops/relu.cpp", "#include <fulcrum/ops.h>"), "");
  EXPECT_EQ(verdict("src/ops/relu.cpp", "#include <fulcrum/core.h>"), "");
  EXPECT_EQ(verdict("src/ops/relu.cpp", "#include \"ops/support/extents.h\""), "");
  EXPECT_EQ(verdict("src/ops/relu.cpp", "#include \"generated/source_hashes.def\""), "");
  EXPECT_EQ(verdict("src/ops/relu.cpp", "#include <vector>"), "");
  EXPECT_EQ(verdict("src/backends/registry.cpp", "#include <fulcrum/abi.h>"), "");
  EXPECT_EQ(verdict("src/backends/simd/backend.cpp", "#include <hwy/targets.h>"), "");
  EXPECT_EQ(verdict("src/cli/main.cpp", "#include <fulcrum/fulcrum.h>"), "");
  EXPECT_EQ(verdict("src/backends/cuda/backend.cpp", "#include <cuda_runtime.h>"), "");
  EXPECT_EQ(verdict("include/fulcrum/fulcrum.h", "#include <fulcrum/cli.h>"), "");
}

TEST(Architecture, PlantedViolationsAreFound) {
  const std::pair<const char*, const char*> planted[] = {
      {"src/ops/relu.cpp", "#include <fulcrum/backends.h>"},           // upwards
      {"src/stats/summary.cpp", "  #  include <fulcrum/ops.h>"},       // sideways, oddly spaced
      {"src/measure/runner.cpp", "#include \"backends/pool.h\""},      // private header of another module
      {"src/cli/main.cpp", "#include \"core/json.h\""},                // "all" is all public headers
      {"src/ops/relu.cpp", "#include \"extents.h\""},                  // not written from src/
      {"src/ops/relu.cpp", "#include \"../core/json.h\""},             // around the rule
      {"src/ops/relu.cpp", "#include \"support/../../core/json.h\""},  // the same, deeper
      {"src/ops/relu.cpp", "#include <fulcrum/fulcrum.h>"},            // everything at once
      {"src/ops/relu.cpp", "#include <fulcrum/secrets.h>"},            // a header of no module
      {"include/fulcrum/ops.h", "#include \"ops/support/a.h\""},       // public needs private
      {"include/fulcrum/core.h", "#include <fulcrum/stats.h>"},        // a header obeys its module's row
      {"src/machine/probe.cpp", "#include <cuda_runtime.h>"},          // vendor headers have their place
      {"src/backends/simd/backend.cpp", "#include <cupti.h>"},         // the same for CUPTI
      {"src/stats/summary.cpp", "#include <hwy/highway.h>"},           // and for Highway
      {"src/nonsense/a.cpp", "#include <fulcrum/core.h>"},             // a folder that is no module
  };
  for (const auto& [file, source] : planted) EXPECT_NE(verdict(file, source), "") << file << ": " << source;
}

TEST(Architecture, AnIncludeKeepsItsLineNumber) {
  const auto includes = includes_of("// text\n\n#include <a.h>\n// #include <b.h>\n#include \"c/d.h\"\n");
  ASSERT_EQ(includes.size(), 2u);
  EXPECT_EQ(includes[0].line, 3u);
  EXPECT_FALSE(includes[0].quoted);
  EXPECT_EQ(includes[1].line, 5u);
  EXPECT_EQ(includes[1].path, "c/d.h");
  EXPECT_TRUE(includes[1].quoted);
}

}  // namespace
}  // namespace fulcrum::structure
