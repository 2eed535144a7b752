// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the preloaded library beside the program or the library that we are part of, and reads what it wrote.
#include "record/preload.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace fulcrum::record {
namespace {

constexpr const char* kFile = "libfulcrum_preload.so";

std::string find_library() {
  namespace fs = std::filesystem;
  std::vector<fs::path> folders;
  if (const auto listed = environment("FULCRUM_MODULE_PATH")) {
    std::string_view rest = *listed;
    while (!rest.empty()) {
      const std::string_view folder = rest.substr(0, rest.find(':'));
      if (!folder.empty()) folders.emplace_back(folder);
      rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    }
  }
  std::error_code failed;
  std::vector<fs::path> origins{fs::read_symlink("/proc/self/exe", failed).parent_path()};
  Dl_info ours;
  if (::dladdr(reinterpret_cast<void*>(&find_library), &ours) != 0 && ours.dli_fname) {
    origins.push_back(fs::absolute(ours.dli_fname, failed).parent_path());
  }
  for (const fs::path& origin : origins) {
    for (const char* folder : {".", "../lib/fulcrum", "fulcrum", "lib/fulcrum"})
      folders.push_back(origin / folder);
  }
  for (const fs::path& folder : folders) {
    const fs::path file = (folder / kFile).lexically_normal();
    // The loader splits LD_PRELOAD at spaces and colons.
    if (fs::exists(file, failed) && file.string().find_first_of(" :") == std::string::npos)
      return file.string();
  }
  return "";
}

struct Known {
  std::string_view function, op;
  std::array<std::string_view, 3> dims;
};
// In the order of inject::Function. Double precision is no type of our ops, so those have none.
constexpr std::array kKnown{Known{"", "", {}},
                            Known{"sgemm", "matmul", {"M", "N", "K"}},
                            Known{"dgemm", "", {"M", "N", "K"}},
                            Known{"sgemv", "", {"M", "N", ""}},
                            Known{"dgemv", "", {"M", "N", ""}},
                            Known{"sdot", "dot", {"n", "", ""}},
                            Known{"ddot", "", {"n", "", ""}},
                            Known{"saxpy", "", {"n", "", ""}},
                            Known{"daxpy", "", {"n", "", ""}}};

}  // namespace

Preload::Preload(std::uint64_t timer_period_ns) : library_(find_library()) {
  if (library_.empty()) return;
  descriptor_ = ::memfd_create("fulcrum preload", MFD_CLOEXEC);
  if (descriptor_ < 0 || ::ftruncate(descriptor_, sizeof(inject::Memory)) != 0) return;
  void* map = ::mmap(nullptr, sizeof(inject::Memory), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (map == MAP_FAILED) return;
  memory_ = static_cast<inject::Memory*>(map);
  memory_->timer_period_ns = timer_period_ns;
  memory_->magic = inject::kMagic;
}

Preload::~Preload() {
  if (memory_) ::munmap(memory_, sizeof(inject::Memory));
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::vector<std::pair<std::string, std::string>> Preload::environment() const {
  if (!there()) return {};
  return {{"LD_PRELOAD", library_},
          {"FULCRUM_PRELOAD", fmt::format("/proc/{}/fd/{}", ::getpid(), descriptor_)}};
}

std::vector<CpuProfile::Call> Preload::calls() const {
  std::vector<CpuProfile::Call> result;
  if (!memory_) return result;
  for (const inject::CallEntry& entry : memory_->calls) {
    if (entry.function == 0 || entry.function >= kKnown.size() || entry.calls == 0) continue;
    const Known& known = kKnown[entry.function];
    CpuProfile::Call call{.function = std::string(known.function),
                          .op = std::string(known.op),
                          .calls = static_cast<double>(entry.calls),
                          .seconds = static_cast<double>(entry.nanoseconds) * 1e-9,
                          .how = "preload"};
    for (std::size_t i = 0; i < known.dims.size(); ++i) {
      if (!known.dims[i].empty()) call.shape.set(known.dims[i], entry.dims[i]);
    }
    result.push_back(std::move(call));
  }
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return result;
}

std::vector<inject::LoopEntry> Preload::loops() const {
  std::vector<inject::LoopEntry> result;
  if (!memory_) return result;
  for (const inject::LoopEntry& entry : memory_->loops) {
    if (entry.key != 0 && entry.entries > 0) result.push_back(entry);
  }
  return result;
}

void Preload::drain(const std::function<void(const inject::SampleSlot&)>& take) {
  if (!memory_) return;
  // In the order in which the places were handed out.
  const std::uint64_t next = std::atomic_ref(memory_->next_slot).load(std::memory_order_relaxed);
  for (std::uint64_t i = 0; i < inject::kSampleSlots; ++i) {
    inject::SampleSlot& slot = memory_->samples[(next + i) % inject::kSampleSlots];
    if (std::atomic_ref(slot.state).load(std::memory_order_acquire) != 2) continue;
    take(slot);
    std::atomic_ref(slot.state).store(0, std::memory_order_release);
  }
}

std::int64_t Preload::lost_samples() const {
  return memory_ ? static_cast<std::int64_t>(memory_->lost_samples) : 0;
}
std::int64_t Preload::threads() const { return memory_ ? static_cast<std::int64_t>(memory_->threads) : 0; }

}  // namespace fulcrum::record
