// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A "CUDA program" without CUDA: it loads the fake CUPTI, calls the injected library as the driver would, launches, and
// ends as asked: `injected COUNT END`. It prints one line, so that a test can see that its output stays what it is.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>

#include "support/cupti/fake_cupti.h"

namespace {

void* cupti = nullptr;

template <typename Function>
Function* find(const char* name) {
  return cupti == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(cupti, name));
}

void sleep_seconds(double seconds) {
  timespec t{};
  t.tv_sec = time_t(seconds);
  t.tv_nsec = long((seconds - double(t.tv_sec)) * 1e9);
  while (nanosleep(&t, &t) != 0) {
  }
}

int initialize() {
  const char* path = getenv("CUDA_INJECTION64_PATH");
  void* library = path != nullptr ? dlopen(path, RTLD_NOW) : nullptr;
  if (library == nullptr) return 1;
  const auto start = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  return start != nullptr ? start() : 1;
}

void work(int count) {
  const auto launch = find<FakeLaunch>("fake_launch");
  if (launch == nullptr) return;
  for (int i = 0; i < count; ++i) launch(i % 2 == 0 ? "_Z4evenv" : "_Z3oddv", 2, 128);
}

void other_calls() {
  const auto copy = find<FakeCopy>("fake_copy");
  if (copy == nullptr) return;
  static const char source[256] = "the same bytes";
  copy(reinterpret_cast<void*>(0x7000), source, sizeof source);
  copy(reinterpret_cast<void*>(0x7000), source, sizeof source);
  find<FakeAlloc>("fake_alloc")(4096, 0x5000);
  const auto record = find<FakeEvent>("fake_event_record"), wait = find<FakeEvent>("fake_stream_wait");
  record(0xe1, 13);
  record(0xe1, 13);
  wait(0xe1, 0);
  wait(0xe2, 0);
  find<FakeSync>("fake_stream_sync")(13);
}

/// Work of the host that no launch may come before: 2 ms of this thread's own processor time, however busy the machine.
__attribute__((noinline)) void prepare() {
  const auto now = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
  };
  static volatile double sum = 0;
  for (const double end = now() + 0.002; now() < end;) {
    for (int i = 0; i < 1000; ++i) sum = sum * 0.5 + 1;
  }
}

void die_a_second_later() {
  sleep_seconds(1.2);  // longer than the collector may keep anything to itself
  raise(SIGKILL);
}

void on_term(int) { _exit(7); }

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 10;
  const std::string end = argc > 2 ? argv[2] : "return";
  if (end == "handler") signal(SIGTERM, on_term);
  if (getenv("FAKE_CUPTI_PATH") != nullptr) cupti = dlopen(getenv("FAKE_CUPTI_PATH"), RTLD_NOW | RTLD_GLOBAL);
  const int answer = initialize();
  work(count);
  if (end == "calls") other_calls();
  printf("answer %d, launched %d\n", answer, count);
  fflush(stdout);

  if (end == "fork" || end == "vfork") {
    int status = 0;
    const pid_t child = end == "fork" ? fork() : vfork();
    if (child == 0) {
      if (end == "vfork") _exit(3);
      work(count);
      other_calls();
      const auto foreign = find<int()>("fake_foreign_calls");
      exit(foreign != nullptr && foreign() == 0 ? 3 : 4);
    }
    waitpid(child, &status, 0);
    work(count);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
  }
  if (end == "term" || end == "handler") {
    raise(SIGTERM);
    sleep_seconds(5);
  }
  if (end == "int") {
    raise(SIGINT);
    sleep_seconds(5);
  }
  if (end == "kill") die_a_second_later();
  if (end == "_exit") _exit(5);
  if (end == "_Exit") _Exit(5);
  if (end == "quick_exit") quick_exit(5);
  if (end == "started") {  // calls that never come again
    const auto wait = find<FakeSync>("fake_stream_sync");
    for (int i = 0; i < 2000 && wait != nullptr; ++i) wait(13);
  }
  if (end == "steps" || end == "steps_kill" ||
      end == "started") {  // as "slow", with other calls between the launches
    const auto wait = find<FakeSync>("fake_stream_sync");
    for (int i = 0; i < 400; ++i) {
      work(count / 10);
      if (wait != nullptr) wait(13);
      if (i % 10 == 9) sleep_seconds(0.05);
    }
    if (end == "steps_kill") die_a_second_later();
  }
  if (end == "threads") {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([count] {
        const auto wait = find<FakeSync>("fake_stream_sync");
        for (int i = 0; i < 2000; ++i) {
          work(count / 10);
          if (wait != nullptr) wait(13);
          if (i % 10 == 9) sleep_seconds(0.005);
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
  if (end == "host") {
    for (int i = 0; i < 200; ++i) {
      prepare();
      work(1);
    }
  }
  if (end == "slow") {
    for (int i = 0; i < 40; ++i) {
      work(count);
      sleep_seconds(0.05);
    }
  }
  return 5;
}
