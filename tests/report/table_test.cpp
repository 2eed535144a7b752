// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include <fulcrum/report.h>
#include <gtest/gtest.h>

namespace fulcrum::report {
namespace {

Table sample() {
  Table table({{"name", Align::left}, {"value", Align::right}, {"note", Align::left}});
  table.add({"a", "1", "first"});
  table.add({"longer", "1000", ""});
  return table;
}

TEST(Table, ColumnsAreAsWideAsTheirWidestCellAndNoLineEndsInBlanks) {
  EXPECT_EQ(sample().text(false),
            "name    value  note\n"
            "a           1  first\n"
            "longer   1000\n");
}

TEST(Table, WidthCountsColumnsOfTheTerminalAndNotBytes) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("\u00b5s"), 2);       // one two-byte letter
  EXPECT_EQ(display_width("e\u0301"), 1);       // letter and combining accent
  EXPECT_EQ(display_width("\u6f22\u5b57"), 4);  // two wide characters
  EXPECT_EQ(display_width("\xff\xfe"), 2);      // broken text: a column a byte
  Table table({{"n", Align::left}, {"v", Align::left}});
  table.add({"\u00b5", "x"});
  table.add({"ab", "y"});
  EXPECT_EQ(table.text(false), "n   v\n\u00b5   x\nab  y\n");
}

TEST(Table, ColourChangesNothingButEscapes) {
  Table table({{"n", Align::right}, {"v", Align::left}});
  table.add({{"1", Tone::good}, {"x", Tone::bad}});
  table.add({{"22", Tone::plain}, {"y", Tone::dim}});
  std::string coloured = table.text(true);
  EXPECT_NE(coloured.find("\x1b[32m1\x1b[0m"), std::string::npos);
  for (std::size_t at = coloured.find('\x1b'); at != std::string::npos; at = coloured.find('\x1b')) {
    coloured.erase(at, coloured.find('m', at) - at + 1);
  }
  EXPECT_EQ(coloured, table.text(false));
}

TEST(Table, ControlCharactersCannotMoveTheCursor) {
  Table table({{"n", Align::left}});
  table.add({"a\x1b[2Jb\nc"});
  EXPECT_EQ(table.text(false), "n\na?[2Jb?c\n");
}

TEST(Table, FoldingTakesOutOnlyFoldableColumnsThatSayOneThing) {
  Table table({{"op", Align::left, true},
               {"kernel", Align::left},
               {"isa", Align::left, true},
               {"none", Align::left, true}});
  table.add({"dot", "a", "x", ""});
  table.add({"dot", "a", "y", ""});
  EXPECT_EQ(table.fold(), "op dot");
  EXPECT_EQ(table.text(false), "kernel  isa\na       x\na       y\n");
}

TEST(Table, NarrowingTakesTheMostSpareColumnsAndNoMoreThanNeeded) {
  Table table({{"kernel", Align::left}, {"isa", Align::left, false, 1}, {"samples", Align::right, false, 2}});
  table.add({"simd/default", "avx3", "100"});
  Table wide = table;
  EXPECT_TRUE(wide.narrow(27).empty());
  EXPECT_EQ(wide.text(false), table.text(false));
  EXPECT_EQ(table.narrow(26), std::vector<std::string>{"samples"});
  EXPECT_EQ(table.narrow(1), std::vector<std::string>{"isa"});
  EXPECT_EQ(table.text(false), "kernel\nsimd/default\n");
}

TEST(Table, MarkdownEscapesBarsAndKeepsAlignment) {
  Table table({{"n", Align::left}, {"v", Align::right}});
  table.add({"a|b", "1"});
  EXPECT_EQ(table.markdown(), "| n | v |\n| --- | --: |\n| a\\|b | 1 |\n");
}

TEST(Table, CsvDoublesQuotes) {
  Table table({{"n", Align::left}});
  table.add({"say \"hi\", twice"});
  EXPECT_EQ(table.csv(), "\"n\"\n\"say \"\"hi\"\", twice\"\n");
}

TEST(Wrap, BreaksBetweenWordsAndIndentsWhatFollows) {
  EXPECT_EQ(wrap("one two three four", 9, 2), "one two\n  three\n  four");
  EXPECT_EQ(wrap("a-word-longer-than-the-line b", 5, 0), "a-word-longer-than-the-line\nb");
  EXPECT_EQ(wrap("", 10, 2), "");
}

}  // namespace
}  // namespace fulcrum::report
