// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// perf_event_open and its ring buffers.
#include "record/events.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

#include "record/parse.h"

namespace fulcrum::record {
namespace {

const std::size_t kPageBytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
// Rings from large to small: an unprivileged user may lock 512 KiB a CPU by default, and less when others record.
constexpr std::size_t kRingBytes[] = {2 << 20, 1 << 20, 512 << 10, 256 << 10, 128 << 10, 64 << 10};
// A record that was begun before a moment is in the ring this much later.
constexpr std::uint64_t kSettleNs = 1'000'000;

int perf_event_open(perf_event_attr& attributes, pid_t thread, int cpu) {
  return static_cast<int>(::syscall(SYS_perf_event_open, &attributes, thread, cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

perf_event_attr attributes_for(Level level, const EventOptions& options, const EventAccess& access) {
  perf_event_attr a;
  std::memset(&a, 0, sizeof(a));
  a.size = sizeof(a);
  const bool fast = level == Level::burst || level == Level::deep_burst;
  const bool deep = level == Level::deep || level == Level::deep_burst;
  const double rate = fast ? options.burst_rate_hz : options.rate_hz;
  if (access.hardware && !options.force_clock) {
    a.type = PERF_TYPE_HARDWARE;
    a.config = PERF_COUNT_HW_CPU_CYCLES;
    a.freq = 1;
    a.sample_freq = static_cast<std::uint64_t>(std::max(1.0, rate));
  } else {
    a.type = PERF_TYPE_SOFTWARE;
    a.config = PERF_COUNT_SW_CPU_CLOCK;
    a.sample_period = static_cast<std::uint64_t>(1e9 / rate);
  }
  const bool kernel = access.kernel && !options.force_user_only;
  a.sample_type = kSampleType | (kernel ? static_cast<std::uint64_t>(PERF_SAMPLE_CALLCHAIN) : 0);
  a.exclude_callchain_user = 1;
  a.exclude_kernel = kernel ? 0 : 1;
  a.exclude_hv = 1;
  a.disabled = 1;
  a.inherit = 1;
  a.inherit_thread = options.children ? 0 : 1;
  a.mmap = a.mmap2 = a.comm = a.comm_exec = a.task = 1;
  a.context_switch = options.switches ? 1 : 0;
  a.sample_id_all = 1;
  a.use_clockid = 1;
  a.clockid = CLOCK_MONOTONIC;
  a.sample_regs_user = kRegisterMask;
  a.sample_stack_user = deep ? options.deep_stack_bytes : options.stack_bytes;
  return a;
}

/// Descriptors are a thread times a CPU times a level, and the usual soft limit is 1024.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Error open_error(int number, pid_t thread) {
  const std::string reason = std::generic_category().message(number);
  if (number == EACCES || number == EPERM) {
    return Error{
        Code::environment, fmt::format("the kernel does not let us sample process {}: {}", thread, reason),
        "it belongs to another user, or kernel.perf_event_paranoid is above 2, or a container forbids "
        "perf_event_open; a program that `fulcrum record -- program` starts itself needs none of that"};
  }
  if (number == ESRCH) return Error{Code::not_found, fmt::format("there is no process {}", thread), ""};
  if (number == EMFILE || number == ENFILE) {
    return Error{Code::environment, "too many threads and CPUs for the limit of open files",
                 "raise it: ulimit -n"};
  }
  return Error{Code::environment, fmt::format("perf_event_open failed: {}", reason), ""};
}

std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    int first = 0;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), first);
    if (error != std::errc()) break;
    int last = first;
    if (end < item.data() + item.size() && *end == '-') {
      std::from_chars(end + 1, item.data() + item.size(), last);
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    text.remove_prefix(std::min(text.size(), item.size() + 1));
  }
  return cpus;
}

struct Ring {
  int descriptor = -1;  // of the event that owns it
  perf_event_mmap_page* control = nullptr;
  std::size_t data_bytes = 0;
  std::byte* data() const { return reinterpret_cast<std::byte*>(control) + kPageBytes; }
};

/// Records copied out of the rings, each at a multiple of 8 bytes.
struct Batch {
  struct Item {
    std::uint64_t time_ns;
    std::size_t offset, size;
  };
  std::vector<std::byte> bytes;
  std::vector<Item> items;

  std::span<const std::byte> at(const Item& item) const { return {bytes.data() + item.offset, item.size}; }
  void add(std::span<const std::byte> record) {
    const std::size_t offset = bytes.size();
    bytes.insert(bytes.end(), record.begin(), record.end());
    items.push_back({record_time_ns(record), offset, record.size()});
  }
};

void copy_ring(const Ring& ring, Batch& batch) {
  std::atomic_ref<__u64> head_word(ring.control->data_head), tail_word(ring.control->data_tail);
  const std::uint64_t head = head_word.load(std::memory_order_acquire);
  std::uint64_t tail = tail_word.load(std::memory_order_relaxed);
  const std::size_t mask = ring.data_bytes - 1;
  std::vector<std::byte> wrapped;
  while (tail + sizeof(perf_event_header) <= head) {
    // Records begin at multiples of 8 and the ring's size is one, so a header never wraps.
    perf_event_header header;
    std::memcpy(&header, ring.data() + (tail & mask), sizeof(header));
    if (header.size < sizeof(header) || header.size > head - tail) break;
    const std::size_t begin = tail & mask;
    if (begin + header.size <= ring.data_bytes) {
      batch.add({ring.data() + begin, header.size});
    } else {
      wrapped.resize(header.size);
      const std::size_t first = ring.data_bytes - begin;
      std::memcpy(wrapped.data(), ring.data() + begin, first);
      std::memcpy(wrapped.data() + first, ring.data(), header.size - first);
      batch.add(wrapped);
    }
    tail += header.size;
  }
  tail_word.store(tail, std::memory_order_release);
}

}  // namespace

struct Events::State {
  std::vector<Ring> rings;
  std::array<std::vector<int>, kLevels> descriptors;  // by level
  Level level = Level::normal;
  bool with_callchain = false;
  Batch pending;

  ~State() {
    for (const Ring& ring : rings) ::munmap(ring.control, ring.data_bytes + kPageBytes);
    for (const auto& of_level : descriptors) {
      for (const int descriptor : of_level) ::close(descriptor);
    }
  }
  std::vector<int>& of(Level l) { return descriptors[static_cast<std::size_t>(l)]; }
};

Events::Events(std::unique_ptr<State> state) : state_(std::move(state)) {}
Events::Events(Events&&) noexcept = default;
Events& Events::operator=(Events&&) noexcept = default;
Events::~Events() = default;

namespace {

/// Each clone copies every event, and descriptors are limited: crowds of threads and CPUs get fewer levels.
std::vector<Level> levels_for(const EventOptions& options, std::size_t places) {
  std::vector<Level> levels{Level::normal};
  const bool deep = options.deep_stack_bytes > options.stack_bytes, burst = options.burst_rate_hz > 0;
  if (deep && places <= 1500) levels.push_back(Level::deep);
  if (burst && places <= 256) levels.push_back(Level::burst);
  if (burst && deep && places <= 256) levels.push_back(Level::deep_burst);
  return levels;
}

/// Maps one ring, as large as the kernel lets us.
Result<Ring> map_ring(int descriptor) {
  int number = 0;
  for (const std::size_t bytes : kRingBytes) {
    void* map = ::mmap(nullptr, bytes + kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (map != MAP_FAILED) return Ring{descriptor, static_cast<perf_event_mmap_page*>(map), bytes};
    number = errno;
    if (number != EPERM && number != ENOMEM) break;
  }
  return Error{
      Code::environment,
      fmt::format("cannot map the ring of a perf event: {}", std::generic_category().message(number)),
      "another recording of this user holds the locked memory (kernel.perf_event_mlock_kb)"};
}

}  // namespace

Result<Events> Events::open(std::span<const pid_t> threads, std::span<const int> cpus,
                            const EventOptions& options, const EventAccess& access) {
  raise_descriptor_limit();
  auto state = std::make_unique<State>();
  state->with_callchain = access.kernel && !options.force_user_only;
  const std::vector<Level> levels = levels_for(options, threads.size() * cpus.size());
  const bool fast = std::find(levels.begin(), levels.end(), Level::burst) != levels.end();
  const Level first = fast ? Level::burst : Level::normal;
  for (const int cpu : cpus) {
    int owner = -1;
    for (const pid_t thread : threads) {
      for (const Level level : levels) {
        perf_event_attr attributes = attributes_for(level, options, access);
        attributes.enable_on_exec = options.enable_on_exec && level == first;
        attributes.watermark = 1;
        attributes.wakeup_watermark = 128 * 1024;
        const int descriptor = perf_event_open(attributes, thread, cpu);
        if (descriptor < 0) {
          const int number = errno;
          // A thread that ended, or a CPU that went away, between the list and now.
          if ((number == ESRCH && threads.size() > 1) || number == ENODEV) continue;
          return open_error(number, thread);
        }
        state->of(level).push_back(descriptor);
        if (owner < 0) {
          FULCRUM_TRY(Ring ring, map_ring(descriptor));
          state->rings.push_back(ring);
          owner = descriptor;
        } else if (::ioctl(descriptor, PERF_EVENT_IOC_SET_OUTPUT, owner) != 0) {
          return open_error(errno, thread);
        }
      }
    }
  }
  if (state->rings.empty()) return open_error(ESRCH, threads.empty() ? 0 : threads[0]);
  state->level = first;
  return Events(std::move(state));
}

bool Events::has(Level level) const { return !state_->of(level).empty(); }
Level Events::level() const { return state_->level; }

void Events::enable(Level level) {
  for (const int descriptor : state_->of(level)) ::ioctl(descriptor, PERF_EVENT_IOC_ENABLE, 0);
  for (std::size_t other = 0; other < kLevels; ++other) {
    if (other == static_cast<std::size_t>(level)) continue;
    for (const int descriptor : state_->descriptors[other]) ::ioctl(descriptor, PERF_EVENT_IOC_DISABLE, 0);
  }
  state_->level = level;
}

void Events::disable() {
  for (const auto& of_level : state_->descriptors) {
    for (const int descriptor : of_level) ::ioctl(descriptor, PERF_EVENT_IOC_DISABLE, 0);
  }
}

void Events::drop_burst() {
  for (const Level level : {Level::burst, Level::deep_burst}) {
    for (const int descriptor : state_->of(level)) ::close(descriptor);
    state_->of(level).clear();
  }
}

void Events::wait(int timeout_ms, int process) const {
  std::vector<pollfd> polled;
  if (process >= 0) polled.push_back({process, POLLIN, 0});
  for (const Ring& ring : state_->rings) polled.push_back({ring.descriptor, POLLIN, 0});
  if (::poll(polled.data(), polled.size(), timeout_ms) <= 0) return;
  for (const pollfd& p : polled) {
    if ((p.revents & POLLIN) != 0) return;
  }
  // An event whose task is gone hangs up for ever; waiting for it would be a busy loop.
  const timespec pause{0, std::min(timeout_ms, 5) * 1'000'000L};
  ::nanosleep(&pause, nullptr);
}

void Events::drain(bool all, const std::function<void(const Record&)>& take) {
  const std::uint64_t settled = monotonic_ns() - kSettleNs;
  Batch& batch = state_->pending;
  for (const Ring& ring : state_->rings) copy_ring(ring, batch);
  std::stable_sort(batch.items.begin(), batch.items.end(),
                   [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
  Batch later;
  for (const Batch::Item& item : batch.items) {
    if (!all && item.time_ns > settled) {
      later.add(batch.at(item));
    } else if (const auto record = parse_record(batch.at(item), state_->with_callchain)) {
      take(*record);
    }
  }
  // Keep the larger buffer: the next drain needs no allocation.
  batch.bytes.clear();
  batch.items.clear();
  for (const Batch::Item& item : later.items) batch.add(later.at(item));
}

std::size_t Events::ring_bytes() const { return state_->rings.empty() ? 0 : state_->rings[0].data_bytes; }

EventAccess probe_access() {
  EventAccess access;
  const auto level = read_file("/proc/sys/kernel/perf_event_paranoid");
  access.paranoid_level = level.ok() ? std::atoi(level->c_str()) : -2;
  EventOptions options;
  options.enable_on_exec = false;
  const auto opens = [&](bool hardware, bool kernel) {
    EventAccess wanted;
    wanted.hardware = hardware;
    wanted.kernel = kernel;
    perf_event_attr attributes = attributes_for(Level::normal, options, wanted);
    attributes.inherit = 0;
    const int descriptor = perf_event_open(attributes, 0, -1);
    if (descriptor < 0) access.error_number = errno;
    if (descriptor >= 0) ::close(descriptor);
    return descriptor >= 0;
  };
  for (const bool kernel : {true, false}) {
    if (!opens(false, kernel)) continue;
    access.allowed = true;
    access.kernel = kernel;
    access.hardware = opens(true, kernel);
    access.error_number = 0;
    break;
  }
  return access;
}

std::vector<int> online_cpus() {
  const auto text = read_file("/sys/devices/system/cpu/online");
  const std::vector<int> cpus = text.ok() ? parse_cpu_list(*text) : std::vector<int>{};
  return cpus.empty() ? allowed_cpus() : cpus;
}

std::vector<int> allowed_cpus() {
  constexpr int kMost = 8192;
  std::vector<int> cpus;
  cpu_set_t* set = CPU_ALLOC(kMost);
  const std::size_t bytes = CPU_ALLOC_SIZE(kMost);
  if (::sched_getaffinity(0, bytes, set) == 0) {
    for (int cpu = 0; cpu < kMost; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(cpu);
    }
  }
  CPU_FREE(set);
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

std::uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace fulcrum::record
