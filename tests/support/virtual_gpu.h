// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A machine that is not there: a GPU with memory, streams and kernels that compute right results on the host, and a CPU,
// both with the times of a cost model on a clock of their own. Work on a stream happens when somebody waits for it, so
// that a missing wait, a host pointer handed to a kernel or memory freed too early shows. Faults are scripted by launch.
#pragma once

#include <fulcrum/backends.h>
#include <fulcrum/measure.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace fulcrum::testing {

/// Seconds, bytes and operations per second.
struct VirtualCosts {
  double launch_seconds = 4e-6, sync_seconds = 5e-6, kernel_seconds = 2e-6, copy_seconds = 6e-6;
  double pinned_rate = 50e9, pageable_rate = 12e9, device_rate = 4e12, device_flops = 40e12;
  double cpu_call_seconds = 2e-7, cpu_rate = 70e9, cpu_flops = 1e12;
};

/// With the device side of a machine profile; what it does not say stays as it is above.
VirtualCosts costs_of(const GpuCeilings& gpu);

/// What goes wrong with one launch.
struct VirtualFault {
  std::int32_t launch_code = FULCRUM_OK;  // returned by the launch
  std::int32_t wait_code = FULCRUM_OK;    // found out by whoever waits
  double factor = 1;                      // of the kernel's time
  double extra_seconds = 0;
  bool wrong = false;   // one element of the result is off
  int wrong_slot = -1;  // of which pointer slot; -1: the last
};

/// Everything that was asked of the device.
struct VirtualCounts {
  std::atomic<std::int64_t> calls{0};  // of any function of the table that touches the device
  std::atomic<std::int64_t> called_after_loss{0};
  std::atomic<std::int64_t> allocations{0}, fresh_allocations{0}, fresh_pinned{0}, copies{0}, launches{0},
      waits{0}, streams{0}, plans{0};
  std::atomic<std::int64_t> violations{0};  // host pointers in kernels, freed memory in use
};

/// The one virtual machine. Ops: vec_add, relu, gelu, sigmoid, dot, matmul and expression on the device, and
/// virtual_add, virtual_gelu, virtual_matmul, virtual_segment (image_segmentation: classes) and virtual_topk (cosine_topk:
/// ids), which run nowhere but on it and on its CPU (backend "virtualcpu"). On the device virtual_matmul has a plan, which
/// says nothing. On the CPU virtual_segment has a `second` kernel, which costs more.
/// While none is in use() the backends say that they are not available.
class VirtualMachine {
 public:
  static constexpr const char* kGpu = "virtualgpu";
  static constexpr const char* kCpu = "virtualcpu";
  static VirtualMachine& get();

  /// A new machine, as long as the token lives; one at a time. No executor of before may be alive.
  class Use {
   public:
    Use() { get().start(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { get().stop(); }
    VirtualMachine* operator->() const { return &get(); }
  };

  const measure::Clock* clock() const { return &clock_; }
  /// Time of the calling thread: each has its own, so that what others do costs it nothing.
  double now() const;
  void advance(double seconds) const;
  /// For all threads.
  void advance_all(double seconds) { base_seconds_.store(base_seconds_.load() + seconds); }

  double kernel_seconds(const ops::Op& op, const Args& args) const;  // on the device, without launch and wait
  double cpu_seconds(const ops::Op& op, const Args& args) const;

  VirtualCosts costs;
  std::atomic<double> slowdown{1};       // of everything the device does
  std::atomic<double> second_factor{2};  // time of a second CPU kernel over that of the first
  std::atomic<bool> second_is_wrong{false};
  std::atomic<std::int64_t> memory_bytes{0};
  /// By number of the launch, from 0, and op. Called by one thread at a time. Empty: no fault.
  std::function<VirtualFault(std::int64_t launch, std::string_view op)> script;
  /// The same for allocations of device memory: a code.
  std::function<std::int32_t(std::int64_t allocation, std::size_t bytes)> allocation_script;
  /// What a call on the CPU returns, by op. Empty: no fault.
  std::function<std::int32_t(std::string_view op)> cpu_script;
  VirtualCounts counts;
  bool lost() const { return lost_.load(); }
  std::int64_t live_blocks() const;

 private:
  friend struct VirtualTable;
  struct Stream;
  struct Block {
    std::size_t bytes = 0;  // of its size class
    std::int32_t memory = FULCRUM_MEMORY_DEVICE;
    std::unique_ptr<std::byte[]> data;
  };
  VirtualMachine();
  void start();
  void stop();
  /// Counts a call; false: the device is lost, and this one should not have been made.
  bool enter();
  fulcrum_status answer(std::int32_t code);
  fulcrum_status allocate(std::int32_t memory, std::size_t bytes, void** pointer);
  void release(void* pointer);
  fulcrum_status copy(void* to, const void* from, std::size_t bytes, void* stream);
  fulcrum_status fill(void* pointer, int byte, std::size_t bytes, void* stream);
  fulcrum_status wait(void* stream);
  fulcrum_status launch(std::size_t op, const fulcrum_args& args, void* stream);
  fulcrum_status run_on_cpu(std::size_t op, const fulcrum_args& args);
  fulcrum_status enqueue(void* stream, double seconds, std::function<std::int32_t()> work);
  fulcrum_status drain(Stream& stream);
  const Block* block_of(const void* pointer, std::size_t bytes) const;
  bool is_device(const void* pointer, std::size_t bytes) const;

  measure::Clock clock_;
  std::atomic<bool> in_use_{false}, lost_{false};
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<double> base_seconds_{0};
  mutable std::mutex mutex_;
  std::map<const std::byte*, Block> live_;
  std::multimap<std::size_t, Block> kept_;  // freed device memory, by size class
  std::int64_t used_bytes_ = 0;
  std::mutex script_mutex_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace fulcrum::testing
