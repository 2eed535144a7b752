// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Opens a plugin with a scope of its own, out of the order in which symbols are looked for, and runs it.
#include <dlfcn.h>
#include <stddef.h>

int main(int count, char** arguments) {
  void* library = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  int (*run)(void) = library ? (int (*)(void))dlsym(library, "run_blas") : NULL;
  return run ? run() : 2;
}
