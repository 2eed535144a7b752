// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// NVTX ranges. The header that programs are compiled with asks the library named by NVTX_INJECTION64_PATH to fill a
// table of functions; ours stamp begin and end and put the range into the calling thread's ring.
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>

#include <nvtx3/nvToolsExt.h>

#include "trace/inject/clock.h"
#include "trace/inject/session.h"

namespace fulcrum::trace::inject {
namespace {

constexpr int kMostDepth = 64;
struct Open {
  std::int64_t begin_ns;
  std::uint32_t name;
};
struct OpenRanges {
  int depth = 0;
  Open open[kMostDepth];
};
thread_local OpenRanges* nested = nullptr;

// Ranges that may end on another thread, by number. Few are open at a time.
std::mutex& started_mutex() {
  static std::mutex* const mutex = new std::mutex;
  return *mutex;
}
std::unordered_map<std::uint64_t, Open>& started() {
  static auto* const all = new std::unordered_map<std::uint64_t, Open>;
  return *all;
}
std::atomic<std::uint64_t> last_started{0};

Session* listening() {
  Session* const s = session();
  return s != nullptr && s->active() && s->is_in_window() ? s : nullptr;
}

std::string narrow(const wchar_t* wide) {
  std::string text;
  for (; wide != nullptr && *wide != 0; ++wide) text += *wide < 128 ? char(*wide) : '?';
  return text;
}

std::uint32_t name_of(Session& s, const nvtxEventAttributes_t* event) {
  if (event == nullptr) return 0;
  switch (event->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      return event->message.ascii == nullptr ? 0 : s.writer.text(event->message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE:
      return s.writer.text(narrow(event->message.unicode));
    case NVTX_MESSAGE_TYPE_REGISTERED: {
      const auto* text = reinterpret_cast<const std::string*>(event->message.registered);
      return text == nullptr ? 0 : s.writer.text(*text);
    }
    default:
      return 0;
  }
}

void write(Session& s, const Open& range) {
  ThreadCalls* const thread = s.rings.mine();
  if (thread == nullptr || range.begin_ns == 0) return;
  SeenCall seen{};
  seen.begin_ns = range.begin_ns;
  seen.end_ns = now_ns();
  seen.flags = 4;
  seen.event = range.name;
  if (thread->push(seen)) s.buffers.wake();
}

// Outside a window the range counts for the depth alone.
int push(Session* s, std::uint32_t name) noexcept {
  if (nested == nullptr) nested = new (std::nothrow) OpenRanges;
  if (nested == nullptr) return -1;
  const int level = nested->depth++;
  if (level < kMostDepth) nested->open[level] = {s != nullptr ? now_ns() : 0, name};
  return level;
}

int pop() noexcept {
  if (nested == nullptr || nested->depth == 0) return -1;
  const int level = --nested->depth;
  if (level < kMostDepth && nested->open[level].begin_ns != 0)
    if (Session* const s = session(); s != nullptr && s->active()) write(*s, nested->open[level]);
  return level;
}

nvtxRangeId_t start(Session* s, std::uint32_t name) noexcept {
  const std::uint64_t id = ++last_started;
  if (s == nullptr) return id;
  try {
    const std::lock_guard lock(started_mutex());
    started()[id] = {now_ns(), name};
  } catch (...) {
  }
  return id;
}

void end(nvtxRangeId_t id) noexcept {
  Session* const s = session();
  if (s == nullptr || !s->active()) return;
  try {
    Open range{};
    {
      const std::lock_guard lock(started_mutex());
      const auto found = started().find(id);
      if (found == started().end()) return;
      range = found->second;
      started().erase(found);
    }
    write(*s, range);
  } catch (...) {
  }
}

template <typename Text>
std::uint32_t text_of(Session* s, const Text* message) noexcept {
  if (s == nullptr || message == nullptr) return 0;
  try {
    if constexpr (sizeof(Text) == 1)
      return s->writer.text(message);
    else
      return s->writer.text(narrow(message));
  } catch (...) {
    return 0;
  }
}

std::uint32_t text_of(Session* s, const nvtxEventAttributes_t* event) noexcept {
  try {
    return s == nullptr ? 0 : name_of(*s, event);
  } catch (...) {
    return 0;
  }
}

template <typename Message>
int NVTX_API on_push(const Message* message) {
  Session* const s = listening();
  return push(s, text_of(s, message));
}
template <typename Message>
nvtxRangeId_t NVTX_API on_start(const Message* message) {
  Session* const s = listening();
  return start(s, text_of(s, message));
}
int NVTX_API on_pop() { return pop(); }
void NVTX_API on_end(nvtxRangeId_t id) { end(id); }
int NVTX_API on_domain_push(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) { return on_push(event); }
int NVTX_API on_domain_pop(nvtxDomainHandle_t) { return pop(); }
nvtxRangeId_t NVTX_API on_domain_start(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) {
  return on_start(event);
}
void NVTX_API on_domain_end(nvtxDomainHandle_t, nvtxRangeId_t id) { end(id); }
nvtxStringHandle_t NVTX_API on_register(nvtxDomainHandle_t, const char* text) {
  // Lives as long as the process, as the handle does.
  return reinterpret_cast<nvtxStringHandle_t>(new (std::nothrow) std::string(text != nullptr ? text : ""));
}
nvtxStringHandle_t NVTX_API on_register_wide(nvtxDomainHandle_t, const wchar_t* text) {
  return reinterpret_cast<nvtxStringHandle_t>(new (std::nothrow) std::string(narrow(text)));
}

struct Hook {
  unsigned id;
  NvtxFunctionPointer function;
};

template <typename Function>
NvtxFunctionPointer generic(Function* function) {
  return reinterpret_cast<NvtxFunctionPointer>(function);
}

template <std::size_t count>
void fill(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module,
          const Hook (&entries)[count]) {
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks.GetModuleFunctionTable(module, &table, &size) == 0 || table == nullptr) return;
  for (const Hook& entry : entries)
    if (entry.id < size && table[entry.id] != nullptr) *table[entry.id] = entry.function;
}

}  // namespace
}  // namespace fulcrum::trace::inject

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_table) {
  using namespace fulcrum::trace::inject;
  if (get_table == nullptr) return 0;
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable == nullptr) return 0;
  const Hook core[] = {
      {NVTX_CBID_CORE_RangePushEx, generic(on_push<nvtxEventAttributes_t>)},
      {NVTX_CBID_CORE_RangePushA, generic(on_push<char>)},
      {NVTX_CBID_CORE_RangePushW, generic(on_push<wchar_t>)},
      {NVTX_CBID_CORE_RangePop, generic(on_pop)},
      {NVTX_CBID_CORE_RangeStartEx, generic(on_start<nvtxEventAttributes_t>)},
      {NVTX_CBID_CORE_RangeStartA, generic(on_start<char>)},
      {NVTX_CBID_CORE_RangeStartW, generic(on_start<wchar_t>)},
      {NVTX_CBID_CORE_RangeEnd, generic(on_end)},
  };
  const Hook domains[] = {
      {NVTX_CBID_CORE2_DomainRangePushEx, generic(on_domain_push)},
      {NVTX_CBID_CORE2_DomainRangePop, generic(on_domain_pop)},
      {NVTX_CBID_CORE2_DomainRangeStartEx, generic(on_domain_start)},
      {NVTX_CBID_CORE2_DomainRangeEnd, generic(on_domain_end)},
      {NVTX_CBID_CORE2_DomainRegisterStringA, generic(on_register)},
      {NVTX_CBID_CORE2_DomainRegisterStringW, generic(on_register_wide)},
  };
  fill(*callbacks, NVTX_CB_MODULE_CORE, core);
  fill(*callbacks, NVTX_CB_MODULE_CORE2, domains);
  return 1;
}
