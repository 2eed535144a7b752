// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The one list of environment variables; help texts and docs are made from it.
#include <fulcrum/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace fulcrum {
namespace {

constexpr std::array kVariables{
    EnvironmentVariable{"FULCRUM_FORCE_BACKEND", "use only this backend"},
    EnvironmentVariable{"FULCRUM_FORCE_ISA", "run the SIMD kernels on this instruction set"},
    EnvironmentVariable{"FULCRUM_THREADS",
                        "number of threads of the threads backend, at most those allowed to run on"},
    EnvironmentVariable{"FULCRUM_DATA", "folder for machine profiles and run records"},
    EnvironmentVariable{"FULCRUM_MODULE_PATH",
                        "folders with backend modules, before the usual ones, separated by ':'"},
    EnvironmentVariable{"XDG_DATA_HOME", "parent of the data folder when FULCRUM_DATA is not set"},
    EnvironmentVariable{"HOME", "data is kept in .local/share/fulcrum there when neither of them is set"},
    EnvironmentVariable{"NO_COLOR", "set and not empty: no colour in the output"},
    EnvironmentVariable{"TERM", "dumb: no colour and no progress line"},
    EnvironmentVariable{"COLUMNS", "width of the output when the terminal does not tell"},
    EnvironmentVariable{"PATH", "where commands to measure are looked for"},
    EnvironmentVariable{"OPENBLAS_CORETYPE",
                        "kernels OpenBLAS uses; set by fulcrum when OpenBLAS would choose wrongly"},
    EnvironmentVariable{"OPENBLAS_THREAD_TIMEOUT",
                        "how long idle OpenBLAS threads wait; short by default here"},
    EnvironmentVariable{"GOMP_SPINCOUNT", "how long idle OpenMP threads spin; short by default here"},
    EnvironmentVariable{"CUDA_HOME", "the CUDA toolkit, where NVIDIA's libraries are looked for"},
};

}  // namespace

std::span<const EnvironmentVariable> environment_variables() { return kVariables; }

std::optional<std::string> environment(std::string_view name) {
  const auto listed =
      std::find_if(kVariables.begin(), kVariables.end(), [&](const auto& v) { return v.name == name; });
  FULCRUM_ASSERT(listed != kVariables.end());
  // The names in the list are literals, so they end in a NUL.
  const char* value = std::getenv(listed->name.data());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace fulcrum
