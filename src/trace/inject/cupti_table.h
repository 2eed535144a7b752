// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// CUPTI by dlopen: the functions that we call, the structures that we read, and which versions of them we know. Only
// fields that lie in the same place in CUPTI 12 and 13 are read, except where a member of Cupti says otherwise.
#pragma once

#include <cstdint>
#include <string>

#include <cupti.h>

namespace fulcrum::trace::inject {

// The layouts that the parser was written against. A toolkit with others does not compile this in silence.
static_assert(sizeof(CUpti_ActivityDevice5) == 184);
static_assert(sizeof(CUpti_ActivityMemset4) == 88);
static_assert(sizeof(CUpti_ActivityOverhead3) == 56);
static_assert(sizeof(CUpti_ActivityAPI) == 40);
#if CUPTI_API_VERSION >= 130000
static_assert(sizeof(CUpti_ActivityKernel10) == 216);
static_assert(sizeof(CUpti_ActivityMemcpy6) == 96);
static_assert(sizeof(CUpti_ActivityMemcpyPtoP4) == 96);
#endif

#define FULCRUM_CUPTI_FUNCTIONS(X)          \
  X(cuptiGetVersion)                        \
  X(cuptiSubscribe)                         \
  X(cuptiEnableCallback)                    \
  X(cuptiGetCallbackName)                   \
  X(cuptiSetThreadIdType)                   \
  X(cuptiGetStreamIdEx)                     \
  X(cuptiActivitySetAttribute)              \
  X(cuptiActivityRegisterTimestampCallback) \
  X(cuptiActivityRegisterCallbacks)         \
  X(cuptiActivityEnable)                    \
  X(cuptiActivityDisable)                   \
  X(cuptiActivityFlushAll)                  \
  X(cuptiActivityGetNextRecord)             \
  X(cuptiActivityGetNumDroppedRecords)
// Later additions: absent in older libraries, and done without.
#define FULCRUM_CUPTI_EXTRAS(X)    \
  X(cuptiSubscribe_v2)             \
  X(cuptiActivityEnableRuntimeApi) \
  X(cuptiActivityEnableDriverApi)  \
  X(cuptiFinalize)                 \
  X(cuptiActivityConfigureUnifiedMemoryCounter)

struct Cupti {
#define FULCRUM_MEMBER(name) decltype(&::name) name = nullptr;
  FULCRUM_CUPTI_FUNCTIONS(FULCRUM_MEMBER)
  FULCRUM_CUPTI_EXTRAS(FULCRUM_MEMBER)
#undef FULCRUM_MEMBER
  std::uint32_t version = 0;
};

/// Finds the library and fills the table. An empty string, or why there is none.
std::string load_cupti(Cupti&);

/// 12 and 13 are known; 0 and others are not, whatever their number.
int major_of(std::uint32_t cupti_version);

/// The name of an activity kind as NVIDIA writes it, without the prefix: "CONCURRENT_KERNEL".
const char* name_of(CUpti_ActivityKind);

}  // namespace fulcrum::trace::inject
