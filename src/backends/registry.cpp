// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The list of backends: those of list.def, then modules, then those a program adds; and kernels by op and variant.
#include <fmt/format.h>
#include <fulcrum/backends.h>
#include <fulcrum/backends/load.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "backends/modules.h"

namespace fulcrum::backends {

#define FULCRUM_BACKEND(name)       \
  namespace name {                  \
  const fulcrum_backend* backend(); \
  }
#define FULCRUM_MODULE(name)
#include "backends/list.def"
#undef FULCRUM_BACKEND

namespace {

struct Registry {
  std::mutex mutex;
  std::deque<Backend> backends;
  std::deque<std::pair<std::string, fulcrum_backend>> made;  // backends that add() made, with their names
  /// Kernels of a backend together with those added; an entry is never changed, so that pointers stay valid.
  std::map<const fulcrum_backend*, std::deque<std::vector<fulcrum_kernel>>> with_added;

  Registry() {
#define FULCRUM_BACKEND(name) backends.emplace_back(name::backend());
#include "backends/list.def"
#undef FULCRUM_BACKEND
    const std::string module_path = environment("FULCRUM_MODULE_PATH").value_or("");
    for (const auto& path : find_modules(module_path, program_folder())) {
      const fulcrum_backend* table = load_module(path);
      if (!find(table->name)) {
        backends.emplace_back(table);
      } else {
        log(LogLevel::warning,
            fmt::format("{} is left out: there is already a backend '{}'", path.string(), table->name));
      }
    }
  }

  const Backend* find(std::string_view name) const {
    for (const Backend& backend : backends) {
      if (backend.name() == name) return &backend;
    }
    return nullptr;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const Backend& backend : backends) result.emplace_back(backend.name());
    return result;
  }
};

Registry& registry() {
  static Registry registry;
  return registry;
}

std::span<const fulcrum_kernel> own_kernels(const fulcrum_backend& table) {
  if (!table.kernels) return {};
  std::int64_t count = 0;
  const fulcrum_kernel* first = table.kernels(&count);
  return {first, static_cast<std::size_t>(count)};
}

Error unknown(std::string_view what, std::string_view name, const std::vector<std::string>& known) {
  const std::string near = nearest_name(name, known);
  return Error{Code::not_found, fmt::format("there is no {} '{}'", what, name),
               fmt::format("{}known: {}", near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                           known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")))};
}

std::optional<std::string> forced_backend() {
  auto name = environment("FULCRUM_FORCE_BACKEND");
  return name && !name->empty() ? name : std::nullopt;
}

Error not_available(const Backend& backend) {
  return Error{Code::environment,
               fmt::format("the backend {} is not available: {}", backend.name(), backend.why_not()),
               "fulcrum doctor lists what is there and what to install"};
}

std::vector<std::string> variants(std::string_view op, std::span<const Backend* const> from) {
  std::vector<std::string> result;
  for (const Backend* backend : from) {
    for (const fulcrum_kernel& entry : backend->kernels()) {
      if (entry.op == op) result.push_back(fmt::format("{}/{}", backend->name(), entry.variant));
    }
  }
  return result;
}

struct SourceHash {
  std::string_view backend, op, hash;
};
constexpr SourceHash kSourceHashes[] = {
#define FULCRUM_SOURCE_HASH(backend, op, hash) {#backend, #op, hash},
#include "generated/source_hashes.def"
#undef FULCRUM_SOURCE_HASH
};

}  // namespace

std::string Backend::why_not() const {
  if (available()) return {};
  const char* reason = table_->why_not ? table_->why_not() : nullptr;
  return reason ? reason : "it gives no reason";
}

Json Backend::describe() const {
  const char* text = table_->describe ? table_->describe() : nullptr;
  if (!text) return Json::object();
  auto parsed = json_parse(text, fmt::format("description of backend {}", name()));
  if (!parsed.ok()) return Json{{"error", parsed.error().message}};
  return std::move(parsed).value();
}

std::span<const fulcrum_kernel> Backend::kernels() const {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  const auto added = known.with_added.find(table_);
  return added != known.with_added.end() ? std::span<const fulcrum_kernel>(added->second.back())
                                         : own_kernels(*table_);
}

std::string Kernel::name() const { return fmt::format("{}/{}/{}", op(), backend_->name(), variant()); }

std::string Kernel::source_hash() const {
  const auto own = own_kernels(backend_->table());
  const bool built_in = std::any_of(own.begin(), own.end(), [this](const fulcrum_kernel& entry) {
    return op() == entry.op && variant() == entry.variant && entry.run == entry_->run;
  });
  if (!built_in) return {};
  // The threads backend runs the SIMD kernels' partial() where it has no file of its own.
  const std::string_view second = backend_->name() == "threads" ? "simd" : "";
  for (const std::string_view source : {backend_->name(), second}) {
    for (const SourceHash& known : kSourceHashes) {
      if (known.backend == source && known.op == op()) return std::string(known.hash);
    }
  }
  return {};
}

std::vector<const Backend*> all() {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  const auto forced = forced_backend();
  std::vector<const Backend*> result;
  for (const Backend& backend : known.backends) {
    if (!forced || backend.name() == *forced) result.push_back(&backend);
  }
  return result;
}

Result<const Backend*> find(std::string_view name) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  const Backend* backend = known.find(name);
  if (!backend) return unknown("backend", name, known.names());
  if (const auto forced = forced_backend(); forced && *forced != name) {
    return Error{Code::not_found,
                 fmt::format("the backend {} is switched off by FULCRUM_FORCE_BACKEND={}", name, *forced),
                 "unset FULCRUM_FORCE_BACKEND"};
  }
  return backend;
}

Status check_environment() {
  if (const auto forced = forced_backend()) {
    Registry& known = registry();
    const std::lock_guard lock(known.mutex);
    if (!known.find(*forced)) {
      Error error = unknown("backend", *forced, known.names());
      error.message += " (FULCRUM_FORCE_BACKEND)";
      return error;
    }
  }
  if (const auto isa = environment("FULCRUM_FORCE_ISA"); isa && !isa->empty()) {
    const std::vector<std::string> known = isas();
    if (std::find(known.begin(), known.end(), *isa) == known.end()) {
      Error error = unknown("instruction set", *isa, known);
      error.message += " (FULCRUM_FORCE_ISA)";
      return error;
    }
  }
  return {};
}

Result<std::vector<Kernel>> kernels(std::string_view op, std::string_view backend, std::string_view variant) {
  FULCRUM_CHECK(check_environment());
  FULCRUM_TRY(const ops::Op* known, ops::find(op));
  std::vector<const Backend*> from = all();
  if (!backend.empty()) {
    FULCRUM_TRY(const Backend* named, find(backend));
    if (!named->available()) return not_available(*named);
    from = {named};
  }
  std::erase_if(from, [&](const Backend* one) {
    return !one->available() || (backend.empty() && one->kind() == kPeerKind);
  });
  std::vector<Kernel> result;
  for (const Backend* one : from) {
    for (const fulcrum_kernel& entry : one->kernels()) {
      if (entry.op == known->name && (variant.empty() || variant == entry.variant))
        result.emplace_back(one, &entry);
    }
  }
  if (result.empty() && !(backend.empty() && variant.empty())) {
    const std::string wanted =
        fmt::format("{}/{}/{}", op, backend.empty() ? "*" : backend, variant.empty() ? "*" : variant);
    Error error = unknown("kernel", wanted, variants(op, all()));
    return error;
  }
  return result;
}

Result<Kernel> kernel(std::string_view op, std::string_view backend, std::string_view variant) {
  FULCRUM_TRY(std::vector<Kernel> found, kernels(op, backend, variant));
  if (found.size() != 1) {
    return Error{Code::not_found, fmt::format("{} kernels are {}/{}/{}", found.size(), op, backend, variant),
                 fmt::format("known: {}", fmt::join(variants(op, all()), ", "))};
  }
  return found.front();
}

Status load(std::string_view name) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  if (known.find(name)) return {};
  const std::string module_path = environment("FULCRUM_MODULE_PATH").value_or("");
  const std::filesystem::path file = find_module(name, module_path, program_folder());
  if (file.empty()) {
    return Error{Code::not_found, fmt::format("the module of the backend '{}' is not here", name),
                 fmt::format("build it (docs/{}.md), or name the folder of libfulcrum_{}.so in "
                             "FULCRUM_MODULE_PATH",
                             name, name)};
  }
  const fulcrum_backend* table = load_module(file);
  if (!table->kernels) {
    return Error{Code::environment, table->why_not(), "build the module and this program from one source"};
  }
  known.backends.emplace_back(table);
  return {};
}

Status add_backend(const fulcrum_backend& table) {
  if (table.abi_version != FULCRUM_ABI_VERSION || table.struct_bytes != sizeof(fulcrum_backend) ||
      !table.name || !table.kind || !table.kernels) {
    return Error{Code::invalid_argument, "a backend needs version, size, name, kind and kernels",
                 "fill these fields of fulcrum_backend"};
  }
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  if (known.find(table.name)) {
    return Error{Code::invalid_argument, fmt::format("there is already a backend '{}'", table.name),
                 "give yours another name"};
  }
  known.backends.emplace_back(&table);
  return {};
}

Status add(std::string_view backend, const fulcrum_kernel& entry) {
  if (!entry.op || !entry.variant || !entry.run) {
    return Error{Code::invalid_argument, "a kernel needs op, variant and run", "fill these fields"};
  }
  FULCRUM_CHECK(ops::find(entry.op));
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  if (!known.find(backend)) {
    auto& made = known.made.emplace_back(std::string(backend), fulcrum_backend{});
    made.second = fulcrum_backend{.abi_version = FULCRUM_ABI_VERSION,
                                  .struct_bytes = sizeof(fulcrum_backend),
                                  .name = made.first.c_str(),
                                  .kind = "cpu"};
    known.backends.emplace_back(&made.second);
  }
  const fulcrum_backend* table = &known.find(backend)->table();
  auto& versions = known.with_added[table];
  const auto own = versions.empty() ? own_kernels(*table) : std::span<const fulcrum_kernel>(versions.back());
  for (const fulcrum_kernel& other : own) {
    if (std::string_view(other.op) == entry.op && std::string_view(other.variant) == entry.variant) {
      if (versions.empty()) known.with_added.erase(table);
      return Error{Code::invalid_argument,
                   fmt::format("there is already a kernel {}/{}/{}", entry.op, backend, entry.variant),
                   "give yours another variant name"};
    }
  }
  std::vector<fulcrum_kernel> next(own.begin(), own.end());
  next.push_back(entry);
  versions.push_back(std::move(next));
  return {};
}

}  // namespace fulcrum::backends
