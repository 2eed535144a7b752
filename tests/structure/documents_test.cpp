// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The documents: their links lead somewhere, and the recipes of docs/extending.md stay short. That the code they show
// compiles is checked by building it (snippets.cmake).
#include <gtest/gtest.h>

#include <regex>

#include "structure/include_law.h"
#include "structure/tree.h"

namespace fulcrum::structure {
namespace {

std::vector<std::string> documents() {
  auto files = files_below("docs", {".md"});
  for (const char* file : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}) files.emplace_back(file);
  return files;
}

/// Targets of the links of a page, without those to other sites and to places on the same page. Code has none.
std::vector<std::string> local_links(const std::string& markdown) {
  static const std::regex pattern(R"(\]\(([^)#\s]+)[^)]*\))");
  std::vector<std::string> links;
  bool code = false;
  for (const std::string& line : lines_of(markdown)) {
    if (begins_with(line, "```")) code = !code;
    if (code) continue;
    for (std::sregex_iterator it(line.begin(), line.end(), pattern), end; it != end; ++it) {
      const std::string target = (*it)[1];
      if (target.find("://") == std::string::npos) links.push_back(target);
    }
  }
  return links;
}

/// Lines of each ```cpp block.
std::vector<std::size_t> block_lines(const std::string& markdown) {
  std::vector<std::size_t> counts;
  bool inside = false;
  for (const std::string& line : lines_of(markdown)) {
    if (line == "```cpp") {
      inside = true;
      counts.push_back(0);
    } else if (begins_with(line, "```")) {
      inside = false;
    } else if (inside) {
      ++counts.back();
    }
  }
  return counts;
}

TEST(Documents, LocalLinksLeadSomewhere) {
  for (const std::string& document : documents()) {
    const auto folder = (root() / document).parent_path();
    for (const std::string& link : local_links(content(document))) {
      EXPECT_TRUE(std::filesystem::exists(folder / link)) << document << " links to " << link;
    }
  }
}

TEST(Documents, LinksAreToldApart) {
  const auto links =
      local_links("[a](docs/a.md) [b](https://example.org/b) [c](#c) ![d](d.svg \"title\") [e](e.md#x)");
  EXPECT_EQ(links, (std::vector<std::string>{"docs/a.md", "d.svg", "e.md"}));
}

TEST(Documents, EveryRecipeForExtendingIsUnder25Lines) {
  const auto counts = block_lines(content("docs/extending.md"));
  EXPECT_GE(counts.size(), 4u);  // an op, a kernel, a backend, a command
  for (const std::size_t count : counts) EXPECT_LT(count, 25u);
}

}  // namespace
}  // namespace fulcrum::structure
