// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How a program may end, and that nothing is lost then: exit, quick_exit, _exit and _Exit (which skip every handler, and
// are caught because this object is preloaded), SIGTERM and SIGINT where the program leaves them at their default. The
// status stays what it would have been. Forked children are left alone.
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "trace/inject/session.h"

#define FULCRUM_EXPORT extern "C" __attribute__((visibility("default")))

namespace fulcrum::trace::inject {
namespace {

void on_signal(int signal);

constexpr int kSignals[] = {SIGTERM, SIGINT};

void reset_to_default(int signal) {
  struct sigaction now {};
  if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == on_signal) {
    now.sa_handler = SIG_DFL;
    now.sa_flags = 0;
    sigaction(signal, &now, nullptr);
  }
}

void on_signal(int signal) {
  const int error = errno;
  Session* const s = session();
  if (s == nullptr || getpid() != s->owner() || !s->active()) {
    // A child, or nothing left to save: what would have happened without us, as soon as this returns.
    reset_to_default(signal);
    raise(signal);
  } else {
    s->end_by_signal(signal);
  }
  errno = error;
}

void at_exit() {
  if (Session* const s = session()) s->finish("exit");
}

void at_quick_exit_too() {
  if (Session* const s = session()) s->finish("quick_exit");
}

void in_child() {
  Session* const s = session();
  if (s == nullptr) return;
  s->abandon_after_fork();
  for (const int signal : kSignals) reset_to_default(signal);
}

using Ending = void (*)(int);
// Found before main(): a child of vfork, which may come through here, must not look for symbols.
Ending next_exit = nullptr, next_exit_c99 = nullptr;

[[noreturn]] void end(int status, Ending next) {
  if (Session* const s = session(); s != nullptr && s->active() && getpid() == s->owner()) s->finish("_exit");
  if (next != nullptr) next(status);
  for (;;) syscall(SYS_exit_group, status);
}

// NVTX looks for its listener when the first range is used, which may be before CUDA is.
void offer_nvtx() {
  const char* folder = getenv("FULCRUM_TRACE_FOLDER");
  if (folder == nullptr || folder[0] == '\0') return;
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&offer_nvtx), &self) != 0 && self.dli_fname != nullptr)
    setenv("NVTX_INJECTION64_PATH", self.dli_fname, 0);
}

__attribute__((constructor)) void prepare() {
  next_exit = reinterpret_cast<Ending>(dlsym(RTLD_NEXT, "_exit"));
  next_exit_c99 = reinterpret_cast<Ending>(dlsym(RTLD_NEXT, "_Exit"));
  offer_nvtx();
}

}  // namespace

void install_endings() noexcept {
  std::atexit(at_exit);
  at_quick_exit(at_quick_exit_too);
  pthread_atfork(nullptr, nullptr, in_child);
  for (const int signal : kSignals) {
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL ||
        before.sa_flags & SA_SIGINFO)
      continue;
    struct sigaction ours {};
    ours.sa_handler = on_signal;
    ours.sa_flags = SA_RESTART;
    sigemptyset(&ours.sa_mask);
    sigaction(signal, &ours, nullptr);
  }
}

}  // namespace fulcrum::trace::inject

FULCRUM_EXPORT [[noreturn]] void _exit(int status) {
  fulcrum::trace::inject::end(status, fulcrum::trace::inject::next_exit);
}
FULCRUM_EXPORT [[noreturn]] void _Exit(int status) noexcept {
  fulcrum::trace::inject::end(status, fulcrum::trace::inject::next_exit_c99);
}
