// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The report as one HTML file: the page that web/ builds, with the document put into it.
#include "report/page.h"

#include <fulcrum/report.h>

#include <nlohmann/json.hpp>

// The page's bytes, taken in by the assembler: a literal of this size would cost the compiler seconds.
asm(".section .rodata\n"
    ".hidden fulcrum_page_begin\n.globl fulcrum_page_begin\nfulcrum_page_begin:\n"
    ".incbin \"" FULCRUM_PAGE_FILE
    "\"\n"
    ".hidden fulcrum_page_end\n.globl fulcrum_page_end\nfulcrum_page_end:\n"
    ".byte 0\n.previous\n");
extern "C" const char fulcrum_page_begin[], fulcrum_page_end[];  // NOLINT(readability-identifier-naming)

namespace fulcrum::report {
namespace {

constexpr std::string_view kPlace = "/*REPORT*/";

/// Inside a script element only a closing tag or a comment could end the text early.
std::string inside_script(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string page_with(const Json& document) {
  const std::string_view page(fulcrum_page_begin,
                              static_cast<std::size_t>(fulcrum_page_end - fulcrum_page_begin));
  const std::size_t place = page.find(kPlace);
  FULCRUM_ASSERT(place != std::string_view::npos);
  std::string text(page.substr(0, place));
  text += inside_script(json_text(document));
  text += page.substr(place + kPlace.size());
  return text;
}

std::string html(const Report& report) { return page_with(to_json(report)); }

}  // namespace fulcrum::report
