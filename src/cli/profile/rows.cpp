// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See rows.h.
#include "cli/profile/rows.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <fulcrum/ops.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "cli/profile/math.h"

namespace fulcrum::cli {
namespace {

constexpr double kLeastShare = 0.005;
constexpr double kMostOfIt = 0.5, kSeveralThreads = 1.5;
constexpr std::size_t kMostRows = 14, kMostShapes = 3;

using Words = std::span<const std::string_view>;
constexpr std::array<std::string_view, 8> kLocks = {"pthread_mutex*", "*lll_lock*",       "pthread_cond*",
                                                    "*futex*",        "*sem_wait*",       "*rwlock*",
                                                    "*spin_lock*",    "*pthread_barrier*"};
constexpr std::array<std::string_view, 13> kAllocation = {
    "malloc",        "free",          "calloc",           "realloc", "_int_malloc",
    "_int_free",     "operator new*", "operator delete*", "*cfree*", "malloc_consolidate",
    "unlink_chunk*", "*mi_malloc*",   "je_*alloc*"};
constexpr std::array<std::string_view, 18> kSystem = {
    "read",  "write",  "*_read",  "*_write", "pread*", "pwrite*", "open*", "close",     "send*",
    "recv*", "fread*", "fwrite*", "poll",    "select", "epoll_*", "ioctl", "nanosleep", "*syscall*"};
constexpr std::array<std::string_view, 12> kSystemModules = {
    "libc.so*",  "libm.so*", "libstdc++*", "ld-linux*", "*vdso*",   "libpthread*",
    "libgcc_s*", "libgomp*", "libomp*",    "libiomp*",  "[kernel*", "libfulcrum_preload*"};
/// Time inside these is threads that wait for each other.
constexpr std::array<std::string_view, 3> kThreadModules = {"libgomp*", "libomp*", "libiomp*"};

/// What is done around an op and not by it: making an index is no search.
constexpr std::array<std::string_view, 10> kNotTheOp = {
    "*build*", "*make_*", "*create*", "*load*", "*save*", "*init*", "*free*", "*test*", "*print*", "*parse*"};

/// What compilers make of a parallel loop, and what their libraries call it from.
constexpr std::array<std::string_view, 9> kParallel = {
    "*._omp_fn.*",   "*omp_outlined*", "GOMP_parallel*", "gomp_thread_start", "GOMP_taskloop*",
    "__kmpc_fork_*", "__kmp_invoke_*", "*parallel_for*", "*parallel_reduce*"};

bool matches(std::string_view text, Words patterns) {
  const std::string name(text);
  return std::any_of(patterns.begin(), patterns.end(), [&name](std::string_view pattern) {
    return fnmatch(std::string(pattern).c_str(), name.c_str(), 0) == 0;
  });
}

/// "void ns::work<int>(float)" -> "ns::work": arguments and types name no function.
std::string bare_name(std::string_view function) {
  constexpr std::string_view kNobody = "(anonymous namespace)::", kClone = " [clone ";
  std::string text(function);
  for (std::size_t at = text.find(kNobody); at != std::string::npos; at = text.find(kNobody)) {
    text.erase(at, kNobody.size());
  }
  // "work(int) [clone ._omp_fn.0]": compilers split functions, and what they made is a function of its own.
  std::string clones;
  for (std::size_t at = text.rfind(kClone); at != std::string::npos; at = text.rfind(kClone)) {
    const std::size_t end = text.find(']', at);
    clones.insert(0,
                  text.substr(at + kClone.size(), end == std::string::npos ? end : end - at - kClone.size()));
    text.erase(at);
  }
  std::string out;
  int depth = 0;
  for (const char c : text) {
    if (c == '<' || c == '(') ++depth;
    if (depth == 0) out += c;
    if ((c == '>' || c == ')') && depth > 0) --depth;
  }
  // Templates are shown with the type they return; "const" follows arguments.
  if (out.ends_with(" const")) out.resize(out.size() - 6);
  const std::size_t space = out.rfind(' ');
  if (space != std::string::npos && out.find("operator") == std::string::npos && out.front() != '[') {
    out.erase(0, space + 1);
  }
  return out.empty() ? std::string(function) : out + clones;
}

/// The name with what it is in: "Index::search".
std::string shown_name(std::string_view function) {
  const std::string bare = bare_name(function);
  const std::size_t last = bare.rfind("::");
  const std::size_t before = last == std::string::npos || last == 0 ? last : bare.rfind("::", last - 1);
  return before == std::string::npos ? bare : bare.substr(before + 2);
}

std::string last_name(const std::string& bare) {
  const std::size_t colons = bare.rfind("::");
  return colons == std::string::npos ? bare : bare.substr(colons + 2);
}

/// The op whose longest pattern the name matches; empty: none.
std::string op_of_name(const std::string& name) {
  std::string best;
  std::size_t longest = 0;
  for (const ops::Op* op : ops::all()) {
    for (const std::string_view pattern : op->symbols) {
      if (pattern.size() <= longest || fnmatch(std::string(pattern).c_str(), name.c_str(), 0) != 0) continue;
      longest = pattern.size();
      best = op->name;
    }
  }
  return best;
}

/// What is known of a frame, looked up once.
struct FrameFacts {
  std::string op;
  bool around_op = false;  // named like an op, and like what is done before or after it
  bool of_system = false, lock = false, allocation = false, system_call = false, parallel = false,
       of_threads = false;
  std::string math;  // of the math library: which function
};

/// Sums of one row while samples come in.
struct Sums {
  CodeRow row;
  double on_cpu = 0, waiting = 0, cpu_seconds = 0, locks = 0, allocation = 0, system = 0, parallel = 0;
  std::unordered_map<std::string, double> functions;  // that made it a row, by seconds
  std::unordered_map<std::size_t, double> loops;      // numbers of profile.loops around it, by CPU seconds
  std::map<std::string, double> math;                 // CPU seconds by scalar math function
};

class Attribution {
 public:
  Attribution(const CpuProfile& profile, const record::Hot& hot) : profile_(profile), hot_(hot) {
    for (const Frame& frame : profile.frames) facts_.push_back(facts_of(frame));
    for (const CpuProfile::Region& region : profile.regions) named_.push_back(named_op(region.name));
    weights_ = record::path_seconds(profile);
    if (!weights_.empty()) return;
    for (const CpuProfile::Sample& sample : profile.samples) {
      weights_.push_back(sample.blocked ? 0 : sample.weight_seconds);
    }
  }

  std::vector<CodeRow> rows() {
    for (std::size_t i = 0; i < profile_.samples.size(); ++i) {
      // Threads beside the one that carries the time line have no seconds of their own, and show how many compute.
      if (weights_[i] > 0 || !profile_.samples[i].blocked) add(profile_.samples[i], weights_[i]);
    }
    std::vector<CodeRow> rows;
    for (auto& [key, sums] : sums_) {
      if (sums.on_cpu + sums.waiting > 0) finish(sums, rows);
    }
    std::sort(rows.begin(), rows.end(), [](const CodeRow& a, const CodeRow& b) {
      return a.share.value != b.share.value ? a.share.value > b.share.value : a.name < b.name;
    });
    return with_rest(std::move(rows));
  }

 private:
  static FrameFacts facts_of(const Frame& frame) {
    const std::string bare = bare_name(frame.function), last = last_name(bare);
    FrameFacts facts;
    facts.around_op = matches(last, kNotTheOp) && !op_of_name(last).empty();
    facts.math = math_function(frame);
    // tanhf of one number is no op of ours.
    if (facts.math.empty()) facts.op = op_of_symbol(frame.function);
    // The linker's stub for a call is part of who calls.
    facts.of_system = matches(frame.module, kSystemModules) || frame.function == "[plt]";
    facts.lock = matches(last, kLocks);
    facts.allocation = matches(last, kAllocation);
    facts.system_call = facts.of_system && matches(last, kSystem);
    facts.parallel = matches(last, kParallel);
    facts.of_threads = matches(frame.module, kThreadModules);
    return facts;
  }

  struct Owner {
    std::string key;
    CodeRow::Kind kind;
    std::string name, op;
    std::optional<Shape> shape;
    std::size_t frame = 0;  // place in the stack: frames before it lie below the row
  };

  Owner owner_of(const CpuProfile::Sample& sample) const {
    const auto& frames = profile_.stacks[sample.stack].frames;
    if (sample.blocked) return {"waiting", CodeRow::Kind::waiting, "waiting", "", {}, 0};
    // The innermost region that names an op.
    for (std::uint32_t r = sample.region; r != 0; r = profile_.regions[r - 1].parent) {
      if (!named_[r - 1]) continue;
      const std::string& name = profile_.regions[r - 1].name;
      return {"region " + name,  CodeRow::Kind::region, name,
              named_[r - 1]->op, named_[r - 1]->shape,  frames.size()};
    }
    for (std::size_t i = frames.size(); i-- > 0;) {
      // Making an index is one piece of work, whatever searches it does on the way.
      if (facts_[frames[i]].around_op) return function_at(frames, i);
      const std::string& op = facts_[frames[i]].op;
      if (!op.empty()) return {"op " + op, CodeRow::Kind::op, op, op, {}, i};
    }
    if (sample.region != 0) {
      const std::string& name = profile_.regions[sample.region - 1].name;
      return {"region " + name, CodeRow::Kind::region, name, "", {}, frames.size()};
    }
    return function_of(frames);
  }

  Owner function_at(const std::vector<std::uint32_t>& frames, std::size_t place) const {
    const Frame& frame = profile_.frames[frames[place]];
    return {.key = "function " + frame.function + "\n" + frame.module,
            .kind = CodeRow::Kind::function,
            .name = shown_name(frame.function),
            .frame = place};
  }
  /// The innermost function of the program itself; a leaf in a system library is part of its caller.
  Owner function_of(const std::vector<std::uint32_t>& frames) const {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      if (!profile_.frames[frames[i]].inlined && !facts_[frames[i]].of_system) return function_at(frames, i);
    }
    if (!frames.empty()) return function_at(frames, 0);
    return {.key = "unknown", .kind = CodeRow::Kind::function, .name = "[unknown]"};
  }

  void add(const CpuProfile::Sample& sample, double seconds) {
    Owner owner = owner_of(sample);
    const auto& frames = profile_.stacks[sample.stack].frames;
    const auto [at, added] = sums_.try_emplace(owner.key);
    Sums& sums = at->second;
    if (added) {
      sums.row.kind = owner.kind;
      sums.row.name = std::move(owner.name);
      sums.row.op = std::move(owner.op);
      sums.row.shape = std::move(owner.shape);
    }
    (sample.blocked ? sums.waiting : sums.on_cpu) += seconds;
    if (sample.blocked) return;
    sums.cpu_seconds += sample.weight_seconds;
    const std::size_t below = std::min(owner.frame, frames.size());
    bool lock = false, allocation = false, system = false;
    for (std::size_t i = 0; i < below; ++i) {
      const FrameFacts& facts = facts_[frames[i]];
      lock = lock || facts.lock;
      allocation = allocation || facts.allocation;
      system = system || facts.system_call;
    }
    const bool waits = owner.frame < frames.size() && facts_[frames[owner.frame]].of_threads;
    lock = lock || waits;
    // Its own name, or who called it; what an op or a region calls is part of it.
    const bool whole = owner.kind == CodeRow::Kind::op || owner.kind == CodeRow::Kind::region;
    const bool parallel =
        !waits && std::any_of(frames.begin() + static_cast<std::ptrdiff_t>(whole ? 0 : below), frames.end(),
                              [this](std::uint32_t frame) { return facts_[frame].parallel; });
    sums.parallel += parallel ? seconds : 0;
    for (std::size_t i = whole ? 0 : below; i < frames.size() && !profile_.loops.empty(); ++i) {
      const auto loop = loop_of(frames[i]);
      if (!loop) continue;
      sums.loops[*loop] += sample.weight_seconds;
      break;
    }
    if (const std::string* math = math_below(frames, below)) sums.math[*math] += sample.weight_seconds;
    sums.locks += lock ? seconds : 0;
    sums.allocation += allocation ? seconds : 0;
    sums.system += system ? seconds : 0;
    if (owner.frame < frames.size()) {
      const Frame& frame = profile_.frames[frames[owner.frame]];
      sums.functions[frame.function + "\n" + frame.module] += seconds;
    }
  }

  /// The math function that a sample ended in, by the name that it was called by; none: it ended elsewhere.
  const std::string* math_below(const std::vector<std::uint32_t>& frames, std::size_t below) const {
    const std::string* found = nullptr;
    for (std::size_t i = 0; i < below && !facts_[frames[i]].math.empty(); ++i) {
      const std::string& name = facts_[frames[i]].math;
      if (found == nullptr || name != "libm") found = &name;
    }
    return found;
  }

  std::optional<std::size_t> loop_of(std::uint32_t number) const {
    const Frame& frame = profile_.frames[number];
    for (std::size_t i = 0; i < profile_.loops.size(); ++i) {
      const CpuProfile::Loop& loop = profile_.loops[i];
      if (loop.function == frame.function && loop.module == frame.module) return i;
    }
    return {};
  }

  Doubtful share_of(const Sums& sums) const {
    const double on_cpu = hot_.seconds * (1 - hot_.waiting_share), whole = hot_.seconds;
    if (!(whole > 0)) return {};
    const Doubtful sampled = record::wilson(on_cpu > 0 ? sums.on_cpu / on_cpu : 0, hot_.effective_samples);
    const double part = on_cpu / whole, waits = sums.waiting / whole;
    return {sampled.value * part + waits, sampled.low * part + waits, sampled.high * part + waits, false};
  }

  void finish(Sums& sums, std::vector<CodeRow>& rows) const {
    CodeRow& row = sums.row;
    row.share = share_of(sums);
    row.seconds = sums.on_cpu + sums.waiting;
    if (sums.on_cpu > 0) {
      row.threads = std::max(1.0, sums.cpu_seconds / sums.on_cpu);
      row.locks = sums.locks / sums.on_cpu;
      row.allocation = sums.allocation / sums.on_cpu;
      row.system = sums.system / sums.on_cpu;
      if (sums.parallel > kMostOfIt * sums.on_cpu) {
        row.parallel = "a parallel loop of the program";
      } else if (row.threads > kSeveralThreads) {
        row.parallel = fmt::format("{:.0f} threads inside at once", row.threads);
      }
    }
    for (const auto& [function, seconds] : sums.math) row.math[function] = seconds / sums.cpu_seconds;
    const auto loop = std::max_element(sums.loops.begin(), sums.loops.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (loop != sums.loops.end() && loop->second > kMostOfIt * sums.cpu_seconds) {
      row.iterations = profile_.loops[loop->first].iterations;
      row.entries = profile_.loops[loop->first].entries;
    }
    const auto main = std::max_element(sums.functions.begin(), sums.functions.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (main != sums.functions.end()) {
      const std::size_t end = main->first.find('\n');
      row.function = main->first.substr(0, end);
      row.module = main->first.substr(end + 1);
      for (const record::HotFunction& f : hot_.functions) {
        if (f.function == row.function && f.module == row.module) row.recursive = f.recursive;
      }
      for (const CpuProfile::Mix& mix : profile_.mixes) {
        if (mix.function == row.function && (mix.module.empty() || mix.module == row.module)) row.mix = &mix;
      }
    }
    if (row.kind == CodeRow::Kind::op && !row.function.empty()) row.name = shown_name(row.function);
    take_region(row);
    if (!split_by_calls(row, rows)) rows.push_back(row);
  }

  /// Entries are calls; the work of one of them is the size of an op that has a single dim.
  void take_region(CodeRow& row) const {
    if (row.kind != CodeRow::Kind::region) return;
    double entries = 0, work = 0;
    for (const CpuProfile::Region& region : profile_.regions) {
      if (region.name != row.name) continue;
      entries += region.entries;
      work += region.work;
    }
    row.calls = entries;
    if (row.op.empty() || row.shape || !(entries > 0) || !(work > 0)) return;
    const auto op = ops::find(row.op);
    if (!op.ok()) return;
    std::vector<std::string_view> dims;
    for (const ops::Slot& slot : (*op)->slots) {
      if (slot.kind == ops::SlotKind::dim) dims.push_back(slot.name);
    }
    if (dims.size() != 1) return;
    Shape shape;
    shape.set(dims.front(), static_cast<std::int64_t>(std::llround(work / entries)));
    row.shape = std::move(shape);
  }

  /// One row a recognised shape, by the time each took; false when no call of the op was recognised.
  bool split_by_calls(const CodeRow& row, std::vector<CodeRow>& rows) const {
    if (row.op.empty() || row.shape) return false;
    struct Weighed {
      const CpuProfile::Call* call;
      double weight;
    };
    std::vector<Weighed> calls;
    double sum = 0;
    const bool timed =
        std::all_of(profile_.calls.begin(), profile_.calls.end(),
                    [&](const CpuProfile::Call& call) { return call.op != row.op || call.seconds > 0; });
    for (const CpuProfile::Call& call : profile_.calls) {
      if (call.op != row.op || !(call.calls > 0)) continue;
      const double weight = timed ? call.seconds : call.calls * work_of(call);
      calls.push_back({&call, weight});
      sum += weight;
    }
    if (calls.empty() || !(sum > 0)) return false;
    std::stable_sort(calls.begin(), calls.end(),
                     [](const Weighed& a, const Weighed& b) { return a.weight > b.weight; });
    calls.resize(std::min(calls.size(), kMostShapes));
    double kept = 0;
    for (const Weighed& one : calls) kept += one.weight;
    for (const Weighed& one : calls) {
      CodeRow part = row;
      // Shapes that are left out go with the others: their time is in the profile either way.
      const double share = one.weight / kept;
      part.kind = CodeRow::Kind::call;
      part.shape = one.call->shape;
      part.calls = one.call->calls * (sum / kept);
      part.seconds = row.seconds * share;
      part.share = {row.share.value * share, row.share.low * share, row.share.high * share, false};
      part.name = fmt::format("{} {}", one.call->function, one.call->shape.text());
      rows.push_back(std::move(part));
    }
    return true;
  }
  static double work_of(const CpuProfile::Call& call) {
    const auto op = ops::find(call.op);
    if (!op.ok()) return 1;
    const auto args = ops::resolve(**op, call.shape);
    if (!args.ok() || (*op)->work == nullptr) return 1;
    const Work work = (*op)->work(*args);
    return std::max({work.flops, work.bytes(), 1.0});
  }

  std::vector<CodeRow> with_rest(std::vector<CodeRow> rows) const {
    std::vector<CodeRow> kept;
    Sums rest;
    std::size_t small = 0;
    for (CodeRow& row : rows) {
      if (kept.size() < kMostRows && row.share.value >= kLeastShare) {
        kept.push_back(std::move(row));
        continue;
      }
      rest.on_cpu += row.seconds;
      ++small;
    }
    if (small == 0 || !(rest.on_cpu > 0)) return kept;
    rest.row.kind = CodeRow::Kind::rest;
    rest.row.name = fmt::format("{} smaller one{}", small, small == 1 ? "" : "s");
    rest.row.share = share_of(rest);
    rest.row.seconds = rest.on_cpu;
    kept.push_back(std::move(rest.row));
    return kept;
  }

  const CpuProfile& profile_;
  const record::Hot& hot_;
  std::vector<FrameFacts> facts_;
  std::vector<std::optional<NamedOp>> named_;
  std::vector<double> weights_;
  std::map<std::string, Sums> sums_;
};

}  // namespace

std::optional<NamedOp> named_op(std::string_view region) {
  const std::size_t space = std::min(region.find(' '), region.size());
  const auto op = ops::find(region.substr(0, space));
  if (!op.ok()) return {};
  NamedOp named{std::string((*op)->name), {}};
  if (space == region.size()) return named;
  auto shape = parse_shape(region.substr(space + 1));
  // Words that are no sizes: the name only happens to begin with that of an op.
  if (!shape.ok() || !ops::complete(**op, *shape).ok()) return {};
  named.shape = *std::move(shape);
  return named;
}

std::string op_of_symbol(std::string_view function) {
  const std::string last = last_name(bare_name(function));
  return matches(last, kNotTheOp) ? std::string() : op_of_name(last);
}

std::vector<CodeRow> code_rows(const CpuProfile& profile, const record::Hot& hot) {
  return Attribution(profile, hot).rows();
}

}  // namespace fulcrum::cli
