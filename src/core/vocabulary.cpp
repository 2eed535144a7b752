// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The words of each enumeration, one table each; to_string, names_of and parse_enum all read it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fulcrum/core.h>
#include <fulcrum/core/finding.h>
#include <fulcrum/core/plan.h>
#include <fulcrum/core/suite.h>

#include <array>

namespace fulcrum {
namespace {

using Word = std::string_view;

template <class E>
constexpr int kWords = 0;  // no table: not an enumeration of the vocabulary
template <>
constexpr std::array kWords<DType>{Word("f32"), Word("f16"), Word("bf16"),
                                   Word("u8"),  Word("i32"), Word("i64")};
template <>
constexpr std::array kWords<Regime>{Word("host"),  Word("first_call"), Word("roundtrip"), Word("resident"),
                                    Word("reuse"), Word("overlapped"), Word("managed")};
template <>
constexpr std::array kWords<Cache>{Word("warm"), Word("cold")};
template <>
constexpr std::array kWords<StopReason>{Word("precision"), Word("decision"), Word("budget"),
                                        Word("interrupted"), Word("invalid")};
template <>
constexpr std::array kWords<Quality>{Word("stable"), Word("fair"), Word("noisy"), Word("unstable"),
                                     Word("invalid")};
template <>
constexpr std::array kWords<Verdict>{Word("faster"),     Word("slower"),  Word("same"),
                                     Word("unresolved"), Word("invalid"), Word("not_run")};
template <>
constexpr std::array kWords<Source>{Word("measured"), Word("datasheet"), Word("assumed")};
template <>
constexpr std::array kWords<Mark>{Word("claimed"), Word("measured"), Word("wrong")};
template <>
constexpr std::array kWords<Grade>{Word("A"), Word("B"), Word("C"), Word("D")};
template <>
constexpr std::array kWords<PlanVerdict>{Word("already right"),        Word("keep on the CPU"),
                                         Word("fix on the CPU first"), Word("measure first"),
                                         Word("offload now"),          Word("offload next")};
template <>
constexpr std::array kWords<BreakEven::Kind>{Word("at"), Word("always"), Word("never"), Word("indifferent"),
                                             Word("unknown")};
template <>
constexpr std::array kWords<GpuOpKind>{Word("kernel"), Word("copy"), Word("memset"), Word("graph")};
template <>
constexpr std::array kWords<MemoryKind>{Word("unknown"), Word("pageable"), Word("pinned"),
                                        Word("device"),  Word("array"),    Word("managed")};
template <>
constexpr std::array kWords<CopyKind>{Word("unknown"), Word("h2d"), Word("d2h"),
                                      Word("d2d"),     Word("h2h"), Word("p2p")};
template <>
constexpr std::array kWords<CallKind>{
    Word("other"),        Word("launch"),        Word("graph_launch"), Word("copy"),
    Word("memset"),       Word("device_sync"),   Word("stream_sync"),  Word("event_sync"),
    Word("event_record"), Word("stream_wait"),   Word("query"),        Word("alloc"),
    Word("free"),         Word("pool_alloc"),    Word("pool_free"),    Word("host_alloc"),
    Word("host_free"),    Word("host_register"), Word("module_load"),  Word("graph_instantiate"),
    Word("prefetch")};
template <>
constexpr std::array kWords<GapCause>{Word("host"),  Word("launch"),      Word("sync"),
                                      Word("alloc"), Word("copy"),        Word("dependency"),
                                      Word("queue"), Word("module_load"), Word("unknown")};
template <>
constexpr std::array kWords<Severity>{Word("fix"), Word("consider"), Word("info")};
template <>
constexpr std::array kWords<Evidence>{Word("measured"), Word("bounded"), Word("modelled")};
template <>
constexpr std::array kWords<Code>{Word("ok"),           Word("invalid_shape"), Word("invalid_argument"),
                                  Word("unsupported"),  Word("out_of_memory"), Word("device_error"),
                                  Word("device_lost"),  Word("usage"),         Word("not_found"),
                                  Word("environment"),  Word("corrupt"),       Word("interrupted"),
                                  Word("wrong_result"), Word("inconclusive"),  Word("internal"),
                                  Word("device_busy"),  Word("data_lost")};

template <class E>
std::string_view word_of(E value) {
  const auto index = static_cast<std::size_t>(value);
  FULCRUM_ASSERT(index < kWords<E>.size());
  return kWords<E>[index];
}

}  // namespace

std::string_view to_string(DType value) { return word_of(value); }
std::string_view to_string(Regime value) { return word_of(value); }
std::string_view to_string(Cache value) { return word_of(value); }
std::string_view to_string(StopReason value) { return word_of(value); }
std::string_view to_string(Quality value) { return word_of(value); }
std::string_view to_string(Verdict value) { return word_of(value); }
std::string_view to_string(Source value) { return word_of(value); }
std::string_view to_string(Mark value) { return word_of(value); }
std::string_view to_string(Grade value) { return word_of(value); }
std::string_view to_string(PlanVerdict value) { return word_of(value); }
std::string_view to_string(BreakEven::Kind value) { return word_of(value); }
std::string_view to_string(GpuOpKind value) { return word_of(value); }
std::string_view to_string(MemoryKind value) { return word_of(value); }
std::string_view to_string(CopyKind value) { return word_of(value); }
std::string_view to_string(CallKind value) { return word_of(value); }
std::string_view to_string(GapCause value) { return word_of(value); }
std::string_view to_string(Severity value) { return word_of(value); }
std::string_view to_string(Evidence value) { return word_of(value); }
std::string_view to_string(Code value) { return word_of(value); }

template <class E>
std::span<const std::string_view> names_of() {
  return kWords<E>;
}

template <class E>
Result<E> parse_enum(std::string_view what, std::string_view text) {
  for (std::size_t i = 0; i < kWords<E>.size(); ++i) {
    if (kWords<E>[i] == text) return static_cast<E>(i);
  }
  const std::vector<std::string> known(kWords<E>.begin(), kWords<E>.end());
  const std::string near = nearest_name(text, known);
  return Error{Code::not_found, fmt::format("unknown {} '{}'", what, text),
               fmt::format("{}known: {}", near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                           fmt::join(known, ", "))};
}

#define FULCRUM_VOCABULARY(E)                               \
  template std::span<const std::string_view> names_of<E>(); \
  template Result<E> parse_enum<E>(std::string_view, std::string_view);
FULCRUM_VOCABULARY(DType)
FULCRUM_VOCABULARY(Regime)
FULCRUM_VOCABULARY(Cache)
FULCRUM_VOCABULARY(StopReason)
FULCRUM_VOCABULARY(Quality)
FULCRUM_VOCABULARY(Verdict)
FULCRUM_VOCABULARY(Source)
FULCRUM_VOCABULARY(Mark)
FULCRUM_VOCABULARY(Grade)
FULCRUM_VOCABULARY(PlanVerdict)
FULCRUM_VOCABULARY(BreakEven::Kind)
FULCRUM_VOCABULARY(GpuOpKind)
FULCRUM_VOCABULARY(MemoryKind)
FULCRUM_VOCABULARY(CopyKind)
FULCRUM_VOCABULARY(CallKind)
FULCRUM_VOCABULARY(GapCause)
FULCRUM_VOCABULARY(Severity)
FULCRUM_VOCABULARY(Evidence)
FULCRUM_VOCABULARY(Code)

std::int64_t bytes_of(DType dtype) {
  static constexpr std::array<std::int64_t, 6> kBytes{4, 2, 2, 1, 4, 8};
  static_assert(kBytes.size() == kWords<DType>.size());
  return kBytes[static_cast<std::size_t>(dtype)];
}

}  // namespace fulcrum
