// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's libraries, found at run time. One that is missing disables what needs it and nothing else.
#pragma once

#include <string>
#include <vector>

namespace fulcrum::backends::cuda {

/// A shared library looked for by soname, in CUDA_HOME, in the usual install folders and in PyTorch's own.
struct Library {
  void* handle = nullptr;
  std::string name;     // "cublasLt"
  std::string path;     // where it was found
  std::string why_not;  // when it was not: what was tried, in one line
  std::string version;  // "13.1.0"; empty: it does not say
  explicit operator bool() const { return handle != nullptr; }
  /// Address of a function, or null.
  void* symbol(const char* function) const;
};

/// Each is looked for once, at the first call.
const Library& cublas_lt();  // libcublasLt.so.13 or .12
const Library& cudnn();      // libcudnn.so.9
const Library& cupti();      // libcupti.so.13 or .12
const Library& nvml();       // libnvidia-ml.so.1

/// All of them for those who report, with what is off without each and how to get it. One that nothing wanted yet is
/// looked for and not loaded (no handle, and a version only where its name tells): descriptions are asked for often and
/// cuBLASLt is large, and a process that measures bare calls stays without the tracing library.
struct LibraryReport {
  const Library* library;
  const char* off_without;
  const char* how_to_get;
};
std::vector<LibraryReport> library_reports();

}  // namespace fulcrum::backends::cuda
