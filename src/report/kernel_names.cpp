// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Names of kernels in little room: what tells them apart stays.
#include "report/kernel_names.h"

#include <fulcrum/report/trace.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace fulcrum::report {
namespace {

std::string cut_in_the_middle(const std::string& text, std::size_t room) {
  if (text.size() <= room) return text;
  const std::size_t tail = room / 4, head = room - tail - 2;
  return text.substr(0, head) + ".." + text.substr(text.size() - tail);
}

}  // namespace

std::string bare_name(std::string_view name) {
  if (name.starts_with("void ")) name.remove_prefix(5);
  std::string text;
  std::size_t word = 0;  // where the identifier began that a :: would make a namespace
  int angles = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    constexpr std::string_view kNobody = "(anonymous namespace)::";
    if (name.substr(i).starts_with(kNobody)) {
      i += kNobody.size() - 1;
      continue;
    }
    const char c = name[i];
    if (c == '(' && angles == 0) break;  // the arguments
    if (c == ':' && i + 1 < name.size() && name[i + 1] == ':') {
      text.resize(word);
      ++i;
      continue;
    }
    angles += c == '<' ? 1 : c == '>' ? -1 : 0;
    if (c == ' ' && i + 1 < name.size() && name[i + 1] == '>') continue;
    text += c;
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') word = text.size();
  }
  if (text.empty()) text = name;
  return text;
}

std::vector<std::string> names_apart(const std::vector<std::string>& names, std::size_t room) {
  std::map<std::string, std::set<std::string>> alike;
  for (const std::string& name : names) alike[cut_in_the_middle(name, room)].insert(name);
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    std::string cut = cut_in_the_middle(name, room);
    const std::set<std::string>& group = alike[cut];
    if (group.size() > 1) {
      const std::string &first = *group.begin(), &last = *group.rbegin();  // sorted: what these share, all do
      const auto differ = std::mismatch(first.begin(), first.end(), last.begin(), last.end()).first;
      const auto shared = static_cast<std::size_t>(differ - first.begin());
      const std::size_t head = room / 3, rest = room - head - 2;
      const std::size_t from = std::clamp(shared, head + 6, std::max(head + 6, name.size() - rest + 4)) - 4;
      cut = name.substr(0, head) + ".." + name.substr(std::min(from, name.size() - 1), rest);
    }
    shown.push_back(std::move(cut));
  }
  return shown;
}

std::string kernel_name(std::string_view name, std::size_t room) {
  return cut_in_the_middle(bare_name(name), room);
}

}  // namespace fulcrum::report
