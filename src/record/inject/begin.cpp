// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Loaded into the recorded program before anything else: finds the recorder's memory.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/inject/shared.h"

namespace fulcrum::record::inject {

Memory* memory = nullptr;

namespace {

__attribute__((constructor)) void begin() {
  const char* path = getenv("FULCRUM_PRELOAD");
  const int descriptor = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (descriptor < 0) return;
  void* map = mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (map == MAP_FAILED) return;
  if (static_cast<Memory*>(map)->magic != kMagic) {
    munmap(map, sizeof(Memory));
    return;
  }
  memory = static_cast<Memory*>(map);
  if (memory->timer_period_ns != 0) start_timers();
}

}  // namespace
}  // namespace fulcrum::record::inject
