// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Unwinding with libdw. The library falls back to frame pointers where it has no CFI; we stop there instead and say
// so, because a stack that was guessed reads like one that was seen.
#include "record/unwind.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace fulcrum::record {
namespace {

// Deeper than any stack that fits the largest dump, at 16 bytes a frame.
constexpr std::size_t kMostFrames = 4096;
// The code at a file's entry point is a few instructions long.
constexpr std::uint64_t kEntryBytes = 64;

/// Where the kernel starts a program nobody has called: the stack ends there whether it is described or not.
bool is_entry(const Module& module, std::uint64_t address) {
  return module.entry != 0 && address >= module.entry && address - module.entry < kEntryBytes;
}

}  // namespace

struct Unwinder::Callbacks {
  static pid_t next_thread(Dwfl*, void* self, void** argument) {
    if (*argument) return 0;
    *argument = self;
    return static_cast<Unwinder*>(self)->pid_;
  }
  static bool get_thread(Dwfl*, pid_t, void* self, void** argument) {
    *argument = self;
    return true;
  }
  static bool memory_read(Dwfl*, DwarfAddress address, DwarfWord* result, void* self) {
    return static_cast<Unwinder*>(self)->read(address, result);
  }
  static bool set_initial_registers(DwflThread* thread, void* self) {
    const Registers& r = static_cast<Unwinder*>(self)->registers_;
#if defined(__aarch64__)
    libdw()->dwfl_thread_state_register_pc(thread, r[kDwarfPc]);
    return libdw()->dwfl_thread_state_registers(thread, 0, kDwarfRegisters - 1, r.data());
#else
    return libdw()->dwfl_thread_state_registers(thread, 0, kDwarfRegisters, r.data());
#endif
  }
  static int frame(DwflFrame* frame, void* self) { return static_cast<Unwinder*>(self)->take(frame); }
  static const DwflThreadCallbacks kTable;
};

const DwflThreadCallbacks Unwinder::Callbacks::kTable = [] {
  DwflThreadCallbacks c{};
  c.next_thread = next_thread;
  c.get_thread = get_thread;
  c.memory_read = memory_read;
  c.set_initial_registers = set_initial_registers;
  return c;
}();

Unwinder::~Unwinder() {
  if (dwfl_) libdw()->dwfl_end(dwfl_);
}

bool Unwinder::read(std::uint64_t address, std::uint64_t* result) {
  const std::uint64_t sp = sample_->registers[kDwarfSp];
  const std::span<const std::byte> stack = sample_->stack;
  if (address >= sp && address - sp + 8 <= stack.size()) {
    std::memcpy(result, stack.data() + (address - sp), 8);
    return true;
  }
  const bool above = address >= sp && address - sp < (std::uint64_t{8} << 20);
  read_beyond_ = above && stack.size() + 8 > sample_->stack_asked;
  read_elsewhere_ = !read_beyond_;
  return false;
}

bool Unwinder::has_cfi(std::uint64_t address) {
  const auto [entry, is_new] = cfi_.try_emplace(address, false);
  if (!is_new) return entry->second;
  const Libdw& dw = *libdw();
  DwflModule* module = dw.dwfl_addrmodule(dwfl_, address);
  if (!module) return false;
  DwarfAddress bias = 0;
  DwarfCfi* cfi = dw.dwfl_module_eh_cfi(module, &bias);
  // Looking for .debug_frame reads the module's debug information, which takes long and is vain where .eh_frame exists.
  if (!cfi) cfi = dw.dwfl_module_dwarf_cfi(module, &bias);
  DwarfFrame* frame = nullptr;
  if (!cfi || dw.dwarf_cfi_addrframe(cfi, address - bias, &frame) != 0) return false;
  std::free(frame);
  return entry->second = true;
}

int Unwinder::take(DwflFrame* frame) {
  // A register that could not be read on the way here is of no matter: the way went on.
  read_beyond_ = read_elsewhere_ = false;
  DwarfAddress pc = 0;
  bool activation = false;
  if (!libdw()->dwfl_frame_pc(frame, &pc, &activation)) return kDwarfAbort;
  if (out_->steps.size() >= kMostFrames) {
    out_->why = "deeper than we follow";
    stopped_ = true;
    return kDwarfAbort;
  }
  const std::uint64_t address = activation || pc == 0 ? pc : pc - 1;
  out_->steps.push_back({address});
  if (has_cfi(address)) return kDwarfContinue;
  stopped_ = true;
  const AddressSpace::Mapping* mapping = space_->find(address);
  if (mapping && mapping->placed && is_entry(modules_[mapping->module], address - mapping->bias)) {
    out_->complete = true;
    return kDwarfAbort;
  }
  const bool jit = mapping && modules_[mapping->module].kind == Module::Kind::jit;
  const JitMap::Entry* entry = jit ? jit_.find(address) : nullptr;
  if (entry && entry->python() && save_callee_registers(frame)) {
    stopped_at_trampoline_ = true;
    return kDwarfAbort;
  }
  out_->why = !mapping ? "code outside of every known file"
              : jit    ? "generated code without unwind information"
                       : "no unwind information in " + modules_[mapping->module].name;
  return kDwarfAbort;
}

/// What the caller of a trampoline finds in its registers: the trampoline changes none of those that calls keep.
bool Unwinder::save_callee_registers(DwflFrame* frame) {
#if defined(__x86_64__)
  const auto read_register = libdw()->dwfl_frame_reg;
  if (!read_register) return false;
  for (const unsigned number : {3u, 6u, 7u, 12u, 13u, 14u, 15u}) {
    if (read_register(frame, number, &registers_[number]) != 0) registers_[number] = 0;
  }
  // sub $8,%rsp; call; add $8,%rsp; ret: between the call and the add, the return address lies 8 bytes up.
  std::uint64_t& sp = registers_[kDwarfSp];
  std::uint64_t pc = 0;
  if (!read(sp + 8, &pc)) return false;
  registers_[kDwarfPc] = pc - 1;  // inside the call: a first frame is taken as it is
  sp += 16;
  return true;
#else
  (void)frame;
  return false;
#endif
}

bool Unwinder::prepare(const AddressSpace& space) {
  const Libdw* dw = libdw();
  if (!dw) return false;
  if (dwfl_ && space.replaced() != replaced_) {
    dw->dwfl_end(dwfl_);
    dwfl_ = nullptr;
    attached_ = false;
    reported_.clear();
    cfi_.clear();
  }
  if (!dwfl_) {
    dwfl_ = dw->dwfl_begin(local_callbacks());
    version_ = ~std::uint64_t{0};
    replaced_ = space.replaced();
  }
  if (!dwfl_) return false;
  if (version_ != space.version()) {
    dw->dwfl_report_begin_add(dwfl_);
    for (const auto& [begin, mapping] : space.mappings()) report(mapping);
    dw->dwfl_report_end(dwfl_, nullptr, nullptr);
    version_ = space.version();
    std::erase_if(cfi_, [](const auto& entry) { return !entry.second; });
  }
  if (!attached_ && !reported_.empty()) {
    attached_ = dw->dwfl_attach_state(dwfl_, nullptr, pid_, &Callbacks::kTable, this);
  }
  return attached_;
}

void Unwinder::report(const AddressSpace::Mapping& mapping) {
  const Module& module = modules_[mapping.module];
  if (!module.elf || !mapping.placed) return;
  const auto [entry, is_new] = reported_.try_emplace(mapping.module, mapping.bias);
  if (!is_new && entry->second == mapping.bias) return;
  const bool vdso = module.kind == Module::Kind::vdso;
  // The library closes what it is given.
  const int descriptor = vdso ? ::dup(vdso_descriptor()) : -1;
  libdw()->dwfl_report_elf(dwfl_, module.name.c_str(), vdso ? "[vdso]" : module.open_path.c_str(), descriptor,
                           mapping.bias, true);
}

void Unwinder::unwind(const AddressSpace& space, const SampleView& sample, UnwoundStack& out) {
  out.steps.clear();
  out.why.clear();
  out.complete = out.dump_too_small = false;
  space_ = &space;
  sample_ = &sample;
  out_ = &out;
  registers_ = sample.registers;
  if (!sample.has_registers) {
    out.why = "no user registers in the sample";
    return;
  }
  if (!prepare(space)) {
    out.steps.push_back({registers_[kDwarfPc]});
    out.why = libdw() ? "no file of the process could be read" : libdw_text();
    return;
  }
  // In a system call the address behind it is where the program goes on, which may be behind the function's end.
  std::uint64_t& pc = registers_[kDwarfPc];
  if (sample.in_kernel && !has_cfi(pc) && has_cfi(pc - 1)) --pc;
  while (walk()) {
  }
}

/// One run of the library; true when it ended at a trampoline and goes on behind it.
bool Unwinder::walk() {
  read_beyond_ = read_elsewhere_ = stopped_ = stopped_at_trampoline_ = false;
  const int result = libdw()->dwfl_getthread_frames(dwfl_, pid_, Callbacks::frame, this);
  if (stopped_at_trampoline_) return true;
  if (stopped_) return false;
  // A return address that cannot be read looks like the end of the stack to the library.
  if (result == 0 && !read_beyond_ && !read_elsewhere_) {
    out_->complete = true;
    return false;
  }
  if (out_->steps.empty()) out_->steps.push_back({registers_[kDwarfPc]});
  out_->dump_too_small = read_beyond_;
  const char* message = libdw()->dwfl_errmsg(-1);
  out_->why = read_beyond_      ? "dump too small"
              : read_elsewhere_ ? "the stack goes on elsewhere"
              : message         ? message
                                : "unwinding failed";
  return false;
}

}  // namespace fulcrum::record
