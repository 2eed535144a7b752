// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See virtual_gpu.h.
#include "support/virtual_gpu.h"

#include <fulcrum/backends/load.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "executor/device.h"

namespace fulcrum::testing {
namespace {

/// Ops of the machine, and the op each of them computes.
struct Known {
  const char* name;
  const char* like;
};
constexpr std::array<Known, 12> kOps = {{{"vec_add", "vec_add"},
                                         {"relu", "relu"},
                                         {"gelu", "gelu"},
                                         {"sigmoid", "sigmoid"},
                                         {"dot", "dot"},
                                         {"matmul", "matmul"},
                                         {"expression", "expression"},
                                         {"virtual_add", "vec_add"},
                                         {"virtual_gelu", "gelu"},
                                         {"virtual_matmul", "matmul"},
                                         {"virtual_segment", "image_segmentation"},
                                         {"virtual_topk", "cosine_topk"}}};
constexpr std::size_t kFirstVirtual = 7, kSegment = 10;

const ops::Op& op_of(std::size_t index) {
  static const auto found = [] {
    std::array<const ops::Op*, kOps.size()> result{};
    for (std::size_t i = 0; i < kOps.size(); ++i) result[i] = ops::find(kOps[i].name).value();
    return result;
  }();
  return *found[index];
}

/// The kernel that does the arithmetic.
const fulcrum_kernel& arithmetic_of(std::size_t index) {
  static const auto found = [] {
    std::array<const fulcrum_kernel*, kOps.size()> result{};
    for (std::size_t i = 0; i < kOps.size(); ++i)
      result[i] = &backends::kernel(kOps[i].like, "scalar").value().entry();
    return result;
  }();
  return *found[index];
}

std::int64_t bytes_behind(const ops::Op& op, const Args& args, int slot) {
  return op.extent(args, slot) * bytes_of(ops::dtype_of(op, slot, DType::f32));
}

/// The element in the middle of a result; the last pointer slot of all these ops is one.
void spoil(const ops::Op& op, const Args& args, int slot) {
  if (slot < 0) slot = op.pointers() - 1;
  const std::int64_t middle = op.extent(args, slot) / 2;
  switch (ops::dtype_of(op, slot, DType::f32)) {
    case DType::u8:
      args.out<std::uint8_t>(slot)[middle] ^= 1;
      break;
    case DType::i32:
      args.out<std::int32_t>(slot)[middle] += 1;
      break;
    default:
      args.out<float>(slot)[middle] += 100;
  }
}

int plain_arrays(const fulcrum_args* a) { return a->scalar[0].i == 0; }

/// 4 size classes an octave.
std::size_t size_class(std::size_t bytes) {
  std::size_t step = 64;
  while (step * 8 < bytes) step *= 2;
  return std::max<std::size_t>(1, (bytes + step - 1) / step) * step;
}

}  // namespace

struct VirtualMachine::Stream {
  double ready_seconds = 0;
  std::vector<std::function<std::int32_t()>> pending;  // a code of the first that fails is the stream's
};

/// The functions of the two tables.
struct VirtualTable {
  static VirtualMachine& machine() { return VirtualMachine::get(); }
  template <std::size_t kIndex>
  static fulcrum_status on_device(const fulcrum_args* a, void* stream, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const fulcrum_status status = machine().launch(kIndex, *a, stream);
      if (status.code != FULCRUM_OK) return status;
    }
    return {FULCRUM_OK, nullptr};
  }
  template <std::size_t kIndex>
  static fulcrum_status on_cpu(const fulcrum_args* a, void*, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const fulcrum_status status = machine().run_on_cpu(kIndex, *a);
      if (status.code != FULCRUM_OK) return status;
    }
    return {FULCRUM_OK, nullptr};
  }
  static fulcrum_status second_segment(const fulcrum_args* a, void* stream, std::int64_t count) {
    const double once = machine().cpu_seconds(op_of(kSegment), *a);
    machine().advance((machine().second_factor - 1) * once * static_cast<double>(count));
    const fulcrum_status status = on_cpu<kSegment>(a, stream, count);
    if (machine().second_is_wrong) spoil(op_of(kSegment), *a, -1);
    return status;
  }
  static fulcrum_status plan(const fulcrum_kernel*, const fulcrum_args*, void** made) {
    if (!machine().enter()) return machine().answer(FULCRUM_DEVICE_LOST);
    machine().counts.plans.fetch_add(1);
    *made = &machine();
    return {FULCRUM_OK, nullptr};
  }
  static void drop(void*) { machine().enter(); }
  template <std::size_t kIndex>
  static fulcrum_kernel kernel(bool device) {
    const bool planned = device && std::string_view(kOps[kIndex].name) == "virtual_matmul";
    return fulcrum_kernel{
        .op = kOps[kIndex].name,
        .variant = "default",
        .isa = [] { return "virtual"; },
        .supports = std::string_view(kOps[kIndex].like) == "vec_add" ? plain_arrays : nullptr,
        .plan = planned ? plan : nullptr,
        .drop = planned ? drop : nullptr,
        .run = device ? on_device<kIndex> : on_cpu<kIndex>};
  }
  template <std::size_t... kIndex>
  static std::vector<fulcrum_kernel> all(bool device, std::index_sequence<kIndex...>) {
    return {kernel<kIndex>(device)...};
  }
  static const fulcrum_kernel* gpu_kernels(std::int64_t* count) {
    static const auto list = all(true, std::make_index_sequence<kOps.size()>());
    *count = static_cast<std::int64_t>(list.size());
    return list.data();
  }
  static const fulcrum_kernel* cpu_kernels(std::int64_t* count) {
    static const auto list = [] {
      auto every = all(false, std::make_index_sequence<kOps.size()>());
      fulcrum_kernel second = every[kSegment];
      second.variant = "second";
      second.run = second_segment;
      every.erase(every.begin(), every.begin() + kFirstVirtual);
      every.push_back(second);
      return every;
    }();
    *count = static_cast<std::int64_t>(list.size());
    return list.data();
  }

  static fulcrum_backend base(const char* name, const char* kind) {
    return fulcrum_backend{.abi_version = FULCRUM_ABI_VERSION,
                           .struct_bytes = sizeof(fulcrum_backend),
                           .name = name,
                           .kind = kind,
                           .available = [] { return machine().in_use_.load() ? 1 : 0; },
                           .why_not = [] { return "no test uses it now"; },
                           .kernel_bytes = sizeof(fulcrum_kernel)};
  }
  static const fulcrum_backend& cpu() {
    static const fulcrum_backend table = [] {
      fulcrum_backend made = base(VirtualMachine::kCpu, "cpu");
      made.kernels = cpu_kernels;
      return made;
    }();
    return table;
  }
  static const fulcrum_backend& gpu() {
    static const fulcrum_backend table = [] {
      fulcrum_backend made = base(VirtualMachine::kGpu, "gpu");
      made.kernels = gpu_kernels;
      made.describe = [] {
        return R"({"name": "Virtual GPU", "compute_capability": "9.0", "sms": 132, "memory_bytes": 100000000000})";
      };
      made.allocate = [](std::int32_t memory, std::size_t bytes, void** pointer) {
        return machine().allocate(memory, bytes, pointer);
      };
      made.release = [](std::int32_t, void* pointer) { machine().release(pointer); };
      made.copy = [](void* to, const void* from, std::size_t bytes, void* stream) {
        return machine().copy(to, from, bytes, stream);
      };
      made.fill = [](void* pointer, std::int32_t byte, std::size_t bytes, void* stream) {
        return machine().fill(pointer, byte, bytes, stream);
      };
      made.stream_open = [](void** stream) {
        if (!machine().enter()) return machine().answer(FULCRUM_DEVICE_LOST);
        machine().counts.streams.fetch_add(1);
        const std::lock_guard lock(machine().mutex_);
        machine().streams_.push_back(std::make_unique<VirtualMachine::Stream>());
        *stream = machine().streams_.back().get();
        return fulcrum_status{FULCRUM_OK, nullptr};
      };
      made.stream_close = [](void*) { machine().enter(); };
      made.stream_wait = [](void* stream) { return machine().wait(stream); };
      return made;
    }();
    return table;
  }
};

VirtualCosts costs_of(const GpuCeilings& gpu) {
  VirtualCosts costs;
  const auto take = [](const std::map<std::string, Quantity>& from, const char* name, double& into) {
    if (const auto found = from.find(name); found != from.end() && found->second.value > 0)
      into = found->second.value;
  };
  double launch_sync = costs.launch_seconds + costs.sync_seconds;
  take(gpu.latencies, "launch", costs.launch_seconds);
  take(gpu.latencies, "launch_sync", launch_sync);
  costs.sync_seconds = std::max(1e-6, launch_sync - costs.launch_seconds);
  take(gpu.rates, "hbm_copy", costs.device_rate);
  take(gpu.flops, "fp32", costs.device_flops);
  const auto rate = [&gpu](const char* name, double& into) {  // of the largest copy
    const auto found = gpu.link.find(name);
    if (found == gpu.link.end() || found->second.empty()) return;
    const auto& [bytes, seconds] = found->second.back();
    into = static_cast<double>(bytes) / seconds.value;
  };
  rate("pinned_h2d", costs.pinned_rate);
  rate("pageable_h2d", costs.pageable_rate);
  return costs;
}

VirtualMachine& VirtualMachine::get() {
  static VirtualMachine& machine = *[] {  // never destroyed: executors that are static may outlive any order
    auto* made = new VirtualMachine;
    for (std::size_t i = kFirstVirtual; i < kOps.size(); ++i) {
      ops::Op op = *ops::find(kOps[i].like).value();
      op.name = kOps[i].name;
      op.symbols.clear();
      if (auto status = ops::add(op); !status.ok()) assertion_failed("ops::add", __FILE__, __LINE__);
    }
    return made;
  }();
  static const bool registered =
      backends::add_backend(VirtualTable::cpu()).ok() && backends::add_backend(VirtualTable::gpu()).ok();
  FULCRUM_ASSERT(registered);
  return machine;
}

VirtualMachine::VirtualMachine()
    : clock_{.now = [this] { return now(); }, .resolution_seconds = 1e-9, .read_seconds = 0} {}

void VirtualMachine::start() {
  costs = VirtualCosts{};
  slowdown = 1;
  second_factor = 2;
  second_is_wrong = false;
  memory_bytes = std::int64_t{80} << 30;
  script = {};
  allocation_script = {};
  cpu_script = {};
  for (auto* count : {&counts.calls, &counts.called_after_loss, &counts.allocations,
                      &counts.fresh_allocations, &counts.fresh_pinned, &counts.copies, &counts.launches,
                      &counts.waits, &counts.streams, &counts.plans, &counts.violations})
    *count = 0;
  const std::lock_guard lock(mutex_);
  live_.clear();
  kept_.clear();
  streams_.clear();
  used_bytes_ = 0;
  base_seconds_ = 1000;
  generation_.fetch_add(1);
  lost_ = false;
  executor::forget_losses();
  in_use_ = true;
}

void VirtualMachine::stop() { in_use_ = false; }

namespace {
struct ThreadTime {
  std::uint64_t generation = 0;
  double seconds = 0;
};
thread_local ThreadTime thread_time;

ThreadTime& time_of_thread(std::uint64_t generation) {
  if (thread_time.generation != generation) thread_time = ThreadTime{generation, 0};
  return thread_time;
}
}  // namespace

double VirtualMachine::now() const {
  return base_seconds_.load() + time_of_thread(generation_.load()).seconds;
}
void VirtualMachine::advance(double seconds) const { time_of_thread(generation_.load()).seconds += seconds; }

double VirtualMachine::kernel_seconds(const ops::Op& op, const Args& args) const {
  const Work work = op.work(args);
  return costs.kernel_seconds + std::max(work.flops / costs.device_flops, work.bytes() / costs.device_rate);
}
double VirtualMachine::cpu_seconds(const ops::Op& op, const Args& args) const {
  const Work work = op.work(args);
  return costs.cpu_call_seconds + std::max(work.flops / costs.cpu_flops, work.bytes() / costs.cpu_rate);
}

std::int64_t VirtualMachine::live_blocks() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(live_.size());
}

bool VirtualMachine::enter() {
  counts.calls.fetch_add(1);
  if (!lost_) return true;
  counts.called_after_loss.fetch_add(1);
  return false;
}

fulcrum_status VirtualMachine::answer(std::int32_t code) {
  switch (code) {
    case FULCRUM_OK:
      return {code, nullptr};
    case FULCRUM_OUT_OF_MEMORY:
      return {code, "the virtual device is full"};
    case FULCRUM_DEVICE_BUSY:
      return {code, "the virtual device is in use by somebody else"};
    case FULCRUM_DEVICE_LOST:
      lost_ = true;
      return {code, "an illegal memory access was encountered (700)"};
    default:
      return {code, "the virtual device does not like this launch"};
  }
}

const VirtualMachine::Block* VirtualMachine::block_of(const void* pointer, std::size_t bytes) const {
  const auto* at = static_cast<const std::byte*>(pointer);
  auto next = live_.upper_bound(at);
  if (next == live_.begin()) return nullptr;
  const auto& [begin, block] = *std::prev(next);
  return at + bytes <= begin + block.bytes ? &block : nullptr;
}

bool VirtualMachine::is_device(const void* pointer, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const Block* block = block_of(pointer, bytes);
  return block && block->memory == FULCRUM_MEMORY_DEVICE;
}

fulcrum_status VirtualMachine::allocate(std::int32_t memory, std::size_t bytes, void** pointer) {
  if (!enter()) return answer(FULCRUM_DEVICE_LOST);
  const std::size_t size = size_class(bytes);
  if (memory == FULCRUM_MEMORY_DEVICE) {
    const std::int64_t number = counts.allocations.fetch_add(1);
    const std::lock_guard lock(script_mutex_);
    if (allocation_script) {
      if (const std::int32_t code = allocation_script(number, bytes); code != FULCRUM_OK) return answer(code);
    }
  }
  const std::lock_guard lock(mutex_);
  Block block{.bytes = size, .memory = memory};
  if (memory == FULCRUM_MEMORY_DEVICE) {
    if (used_bytes_ + static_cast<std::int64_t>(size) > memory_bytes) return answer(FULCRUM_OUT_OF_MEMORY);
    used_bytes_ += static_cast<std::int64_t>(size);
    if (const auto kept = kept_.find(size); kept != kept_.end()) {
      block = std::move(kept->second);
      kept_.erase(kept);
    }
  }
  if (!block.data) {
    (memory == FULCRUM_MEMORY_DEVICE ? counts.fresh_allocations : counts.fresh_pinned).fetch_add(1);
    block.data = std::make_unique<std::byte[]>(size);
  }
  std::memset(block.data.get(), 0xEE, size);
  *pointer = block.data.get();
  live_.emplace(block.data.get(), std::move(block));
  return answer(FULCRUM_OK);
}

void VirtualMachine::release(void* pointer) {
  if (!enter() || !pointer) return;
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(static_cast<const std::byte*>(pointer));
  if (found == live_.end()) {
    counts.violations.fetch_add(1);
    return;
  }
  if (found->second.memory == FULCRUM_MEMORY_DEVICE) {
    used_bytes_ -= static_cast<std::int64_t>(found->second.bytes);
    const std::size_t size = found->second.bytes;
    kept_.emplace(size, std::move(found->second));
  }
  live_.erase(found);
}

fulcrum_status VirtualMachine::drain(Stream& stream) {
  std::vector<std::function<std::int32_t()>> work;
  work.swap(stream.pending);
  for (const auto& step : work) {
    if (const std::int32_t code = step(); code != FULCRUM_OK) return answer(code);
  }
  return answer(FULCRUM_OK);
}

fulcrum_status VirtualMachine::enqueue(void* stream, double seconds, std::function<std::int32_t()> work) {
  advance(slowdown * costs.launch_seconds);
  seconds *= slowdown;
  if (!stream) {  // as a stream that is waited for at once
    advance(seconds);
    const std::int32_t code = work();
    return answer(code);
  }
  auto& queue = *static_cast<Stream*>(stream);
  queue.ready_seconds = std::max(queue.ready_seconds, now()) + seconds;
  queue.pending.push_back(std::move(work));
  return answer(FULCRUM_OK);
}

fulcrum_status VirtualMachine::wait(void* stream) {
  if (!enter()) return answer(FULCRUM_DEVICE_LOST);
  counts.waits.fetch_add(1);
  advance(slowdown * costs.sync_seconds);
  if (!stream) return answer(FULCRUM_OK);
  auto& queue = *static_cast<Stream*>(stream);
  advance(std::max(0.0, queue.ready_seconds - now()));
  return drain(queue);
}

fulcrum_status VirtualMachine::copy(void* to, const void* from, std::size_t bytes, void* stream) {
  if (!enter()) return answer(FULCRUM_DEVICE_LOST);
  counts.copies.fetch_add(1);
  const bool in = is_device(to, bytes), out = is_device(from, bytes);
  if (!in && !out) counts.violations.fetch_add(1);
  double rate = costs.device_rate / 2;
  if (!in || !out) {
    const std::lock_guard lock(mutex_);
    rate = block_of(in ? from : to, bytes) ? costs.pinned_rate : costs.pageable_rate;
  }
  return enqueue(stream, costs.copy_seconds + static_cast<double>(bytes) / rate,
                 [this, to, from, bytes, in, out] {
                   if (is_device(to, bytes) != in || is_device(from, bytes) != out) {
                     counts.violations.fetch_add(1);  // freed before the copy was done
                     return FULCRUM_OK;
                   }
                   std::memcpy(to, from, bytes);
                   return FULCRUM_OK;
                 });
}

fulcrum_status VirtualMachine::fill(void* pointer, int byte, std::size_t bytes, void* stream) {
  if (!enter()) return answer(FULCRUM_DEVICE_LOST);
  if (!is_device(pointer, bytes)) counts.violations.fetch_add(1);
  return enqueue(stream, static_cast<double>(bytes) / costs.device_rate, [pointer, byte, bytes] {
    std::memset(pointer, byte, bytes);
    return FULCRUM_OK;
  });
}

fulcrum_status VirtualMachine::launch(std::size_t index, const fulcrum_args& args, void* stream) {
  if (!enter()) return answer(FULCRUM_DEVICE_LOST);
  const std::int64_t number = counts.launches.fetch_add(1);
  const ops::Op& op = op_of(index);
  VirtualFault fault;
  {
    const std::lock_guard lock(script_mutex_);
    if (script) fault = script(number, op.name);
  }
  if (fault.launch_code != FULCRUM_OK) return answer(fault.launch_code);
  const auto pointers_are_there = [this, &op](const fulcrum_args& a) {
    for (int slot = 0; slot < op.pointers(); ++slot) {
      const auto bytes = static_cast<std::size_t>(bytes_behind(op, a, slot));
      if (a.ptr[slot] && bytes > 0 && !is_device(a.ptr[slot], bytes)) return false;
    }
    return true;
  };
  if (!pointers_are_there(args)) counts.violations.fetch_add(1);
  const double seconds = fault.factor * kernel_seconds(op, args) + fault.extra_seconds;
  return enqueue(stream, seconds, [this, index, args, fault, pointers_are_there] {
    if (fault.wait_code != FULCRUM_OK) return fault.wait_code;
    if (!pointers_are_there(args)) {
      counts.violations.fetch_add(1);
      return static_cast<std::int32_t>(FULCRUM_OK);
    }
    const fulcrum_status status = arithmetic_of(index).run(&args, nullptr, 1);
    if (fault.wrong) spoil(op_of(index), args, fault.wrong_slot);
    return status.code;
  });
}

fulcrum_status VirtualMachine::run_on_cpu(std::size_t index, const fulcrum_args& args) {
  advance(cpu_seconds(op_of(index), args));
  const std::int32_t code = cpu_script ? cpu_script(op_of(index).name) : FULCRUM_OK;
  if (code != FULCRUM_OK) return {code, "the virtual CPU does not want to"};
  return arithmetic_of(index).run(&args, nullptr, 1);
}

}  // namespace fulcrum::testing
