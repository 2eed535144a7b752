// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// profile.proto in, from whatever wrote it: the sample type that is time on a CPU is taken, and where there is none,
// the one that counts samples.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fulcrum/report/formats.h>

#include <algorithm>
#include <cmath>

#include "report/formats/builder.h"
#include "report/formats/protobuf.h"

namespace fulcrum::report {
namespace {

struct ValueType {
  std::uint64_t type = 0, unit = 0;
};
struct SourceLine {
  std::uint64_t function = 0, line = 0;
};
struct Location {
  std::uint64_t module = 0, address = 0;
  std::vector<SourceLine> lines;
};
struct Function {
  std::uint64_t name = 0, file = 0;
};
struct Label {
  std::uint64_t key = 0, text = 0, number = 0;
};
struct RawSample {
  std::vector<std::uint64_t> locations, values;
  std::vector<Label> labels;
};
/// The message as it stands in the file: ids and text numbers not looked up yet.
struct Message {
  std::vector<ValueType> types;
  std::vector<RawSample> samples;
  std::map<std::uint64_t, Location> locations;
  std::map<std::uint64_t, Function> functions;
  std::map<std::uint64_t, std::uint64_t> modules;  // id to text
  std::vector<std::string> texts;
  std::vector<std::uint64_t> comments;
  ValueType period_type;
  std::uint64_t period = 0, duration = 0, default_type = 0;
};

/// Calls `take(field)` for each field of `content`; false when something in it does not fit.
template <class Take>
bool each(std::string_view content, const Take& take) {
  ProtoReader reader(content);
  while (const auto field = reader.next()) {
    if (!take(*field)) return false;
  }
  return reader.ok();
}

using Field = ProtoReader::Field;

bool read(std::string_view content, ValueType& type) {
  return each(content, [&](const Field& f) {
    if (f.number == 1) type.type = f.value;
    if (f.number == 2) type.unit = f.value;
    return true;
  });
}

bool read(std::string_view content, RawSample& sample) {
  return each(content, [&](const Field& f) {
    if (f.number == 1) return ProtoReader::append(f, sample.locations);
    if (f.number == 2) return ProtoReader::append(f, sample.values);
    if (f.number != 3 || !f.is_content) return true;
    Label& label = sample.labels.emplace_back();
    return each(f.content, [&](const Field& l) {
      if (l.number == 1) label.key = l.value;
      if (l.number == 2) label.text = l.value;
      if (l.number == 3) label.number = l.value;
      return true;
    });
  });
}

bool read_location(std::string_view content, Message& message) {
  std::uint64_t id = 0;
  Location location;
  const bool fits = each(content, [&](const Field& f) {
    if (f.number == 1) id = f.value;
    if (f.number == 2) location.module = f.value;
    if (f.number == 3) location.address = f.value;
    if (f.number != 4 || !f.is_content) return true;
    SourceLine& line = location.lines.emplace_back();
    return each(f.content, [&](const Field& l) {
      if (l.number == 1) line.function = l.value;
      if (l.number == 2) line.line = l.value;
      return true;
    });
  });
  message.locations[id] = std::move(location);
  return fits;
}

bool read_named(std::string_view content, int name, int file, Message& message, bool is_module) {
  std::uint64_t id = 0;
  Function function;
  const bool fits = each(content, [&](const Field& f) {
    if (f.number == 1) id = f.value;
    if (f.number == name) function.name = f.value;
    if (f.number == file) function.file = f.value;
    return true;
  });
  if (is_module) {
    message.modules[id] = function.name;
  } else {
    message.functions[id] = function;
  }
  return fits;
}

bool read(std::string_view content, Message& message) {
  return each(content, [&](const Field& f) {
    switch (f.number) {
      case 1:
        return read(f.content, message.types.emplace_back());
      case 2:
        return read(f.content, message.samples.emplace_back());
      case 3:
        return read_named(f.content, 5, -1, message, true);
      case 4:
        return read_location(f.content, message);
      case 5:
        return read_named(f.content, 2, 4, message, false);
      case 6:
        message.texts.emplace_back(f.content);
        return true;
      case 10:
        message.duration = f.value;
        return true;
      case 11:
        return read(f.content, message.period_type);
      case 12:
        message.period = f.value;
        return true;
      case 13:
        return ProtoReader::append(f, message.comments);
      case 14:
        message.default_type = f.value;
        return true;
      default:
        return true;
    }
  });
}

double seconds_of(std::string_view unit) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"nanoseconds", 1e-9}, {"microseconds", 1e-6}, {"milliseconds", 1e-3}, {"seconds", 1},
      {"ns", 1e-9},          {"us", 1e-6},           {"ms", 1e-3},           {"s", 1}};
  for (const auto& [name, seconds] : kUnits) {
    if (unit == name) return seconds;
  }
  return 0;
}

/// Which of the values of a sample are read, and as what.
struct Columns {
  std::optional<std::size_t> count, cpu, wait;
  double cpu_unit = 0, wait_unit = 0;
};

class Reader {
 public:
  Reader(const Message& message, std::string_view origin)
      : message_(message), origin_(origin), builder_("pprof") {}

  Result<CpuProfile> read() {
    FULCRUM_TRY(const Columns columns, choose());
    for (std::size_t i = 0; i < message_.samples.size(); ++i) FULCRUM_CHECK(add(i, columns));
    CpuProfile profile = std::move(builder_.profile);
    if (profile.samples.empty()) return damaged(origin_, "the file", "has no sample with any time");
    profile.wall_seconds = static_cast<double>(message_.duration) * 1e-9;
    const double period = seconds_of(text(message_.period_type.unit)) * static_cast<double>(message_.period);
    if (period > 0) profile.rate_hz = 1 / period;
    for (const std::uint64_t comment : message_.comments) take_comment(text(comment), profile);
    profile.cpu_seconds = profile.sampled_seconds();
    profile.event = "cpu";
    if (!columns.cpu) {
      profile.event = "count";
      profile.notes.emplace_back(
          "pprof: no column is time on a CPU; samples count alike, and only shares mean anything");
    }
    if (weights_only_) {
      profile.notes.emplace_back("pprof: the numbers of samples are not known, so intervals are wide");
    }
    profile.notes.emplace_back(
        "pprof carries no times of samples: waiting and threads side by side are not checked");
    return profile;
  }

 private:
  std::string text(std::uint64_t number) const {
    return number < message_.texts.size() ? message_.texts[number] : std::string();
  }

  Result<Columns> choose() const {
    Columns columns;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < message_.types.size(); ++i) {
      const std::string type = text(message_.types[i].type), unit = text(message_.types[i].unit);
      names.push_back(fmt::format("{}/{}", type, unit));
      const double seconds = seconds_of(unit);
      const bool waits = type == "wait" || type == "off-cpu" || type == "delay";
      if (type == "samples" && unit == "count") columns.count = i;
      if (seconds > 0 && waits) {
        columns.wait = i;
        columns.wait_unit = seconds;
      } else if (seconds > 0 && (!columns.cpu || type == "cpu")) {
        columns.cpu = i;
        columns.cpu_unit = seconds;
      }
    }
    // Counts of an event that goes with time serve as weights.
    for (std::size_t i = 0; i < names.size() && !columns.count && !columns.cpu; ++i) {
      const std::string type = text(message_.types[i].type);
      if (text(message_.types[i].unit) != "count") continue;
      if (type.starts_with("cycles") || type.starts_with("cpu") || type.starts_with("task-clock"))
        columns.count = i;
    }
    if (columns.count || columns.cpu) return columns;
    return Error{Code::unsupported,
                 fmt::format("{}: holds {}, which is no profile of CPU time", origin_,
                             names.empty() ? "no sample type" : fmt::format("{}", fmt::join(names, ", "))),
                 "export a profile with a column of CPU time or sample counts"};
  }

  Result<CpuProfile::Stack> stack_of(const RawSample& sample, const std::string& place) {
    CpuProfile::Stack stack;
    for (const std::uint64_t id : sample.locations) {
      const auto found = message_.locations.find(id);
      if (found == message_.locations.end()) {
        return damaged(origin_, place, fmt::format("location {} is not in the file", id));
      }
      const Location& location = found->second;
      const auto module = message_.modules.find(location.module);
      const std::string file = module == message_.modules.end()
                                   ? ""
                                   : std::filesystem::path(text(module->second)).filename().string();
      if (location.lines.empty()) {
        Frame frame;
        frame.function = fmt::format("[{}+{:#x}]", file.empty() ? "unknown" : file, location.address);
        frame.module = file;
        frame.address = location.address;
        stack.frames.push_back(builder_.frame(std::move(frame)));
      }
      for (std::size_t i = 0; i < location.lines.size(); ++i) {
        const auto function = message_.functions.find(location.lines[i].function);
        if (function == message_.functions.end()) {
          return damaged(origin_, place,
                         fmt::format("function {} is not in the file", location.lines[i].function));
        }
        Frame frame;
        frame.function = text(function->second.name);
        frame.module = file;
        frame.file = text(function->second.file);
        frame.line = static_cast<int>(std::min<std::uint64_t>(location.lines[i].line, 1U << 30));
        frame.inlined = i + 1 < location.lines.size();
        frame.address = frame.inlined ? 0 : location.address;
        stack.frames.push_back(builder_.frame(std::move(frame)));
      }
    }
    return stack;
  }

  Status add(std::size_t number, const Columns& columns) {
    const RawSample& raw = message_.samples[number];
    const std::string place = fmt::format("sample {}", number);
    if (raw.values.size() != message_.types.size()) {
      return damaged(origin_, place,
                     fmt::format("has {} values, but there are {} sample types", raw.values.size(),
                                 message_.types.size()));
    }
    FULCRUM_TRY(CpuProfile::Stack stack, stack_of(raw, place));
    std::int64_t pid = 0, tid = 0;
    std::string name;
    CpuProfile::Sample sample;
    for (const Label& label : raw.labels) {
      const std::string key = text(label.key);
      if (key == "pid") pid = static_cast<std::int64_t>(label.number);
      if (key == "tid" || key == "thread_id") tid = static_cast<std::int64_t>(label.number);
      if (key == "thread" || key == "thread_name" || key == "comm") name = text(label.text);
      if (key == "region") sample.region = builder_.region(text(label.text));
      if (key == "truncated") {
        stack.truncated = true;
        stack.why = text(label.text);
      }
    }
    sample.stack = builder_.stack(std::move(stack));
    sample.thread = builder_.thread(pid, tid, name);
    const auto value = [&raw](const std::optional<std::size_t>& column) {
      return column ? static_cast<double>(
                          std::max<std::int64_t>(0, static_cast<std::int64_t>(raw.values[*column])))
                    : 0.0;
    };
    add_cpu(sample, value(columns.count), value(columns.cpu) * columns.cpu_unit, columns);
    if (const double wait = value(columns.wait) * columns.wait_unit; wait > 0) {
      sample.weight_seconds = wait;
      sample.blocked = sample.approximate = true;
      builder_.profile.samples.push_back(sample);
    }
    return {};
  }

  /// So many samples that took so long together.
  void add_cpu(CpuProfile::Sample sample, double count, double seconds, const Columns& columns) {
    const double sum = columns.cpu ? seconds : count;
    if (!(sum > 0)) return;
    const double room = kMostSamples - static_cast<double>(builder_.profile.samples.size());
    const bool known = columns.count && count >= 1 && count <= room;
    weights_only_ = weights_only_ || !known;
    const double copies = known ? count : 1;
    sample.weight_seconds = sum / copies;
    builder_.profile.samples.insert(builder_.profile.samples.end(), static_cast<std::size_t>(copies), sample);
  }

  static void take_comment(const std::string& text, CpuProfile& profile) {
    const auto after = [&text](std::string_view head) { return text.substr(head.size()); };
    if (text.starts_with("command: ")) {
      profile.command = after("command: ");
    } else if (text.starts_with("machine: ")) {
      profile.machine_id = after("machine: ");
    } else if (text.starts_with("written by: ")) {
      profile.program = after("written by: ");
    } else if (text.starts_with("note: ")) {
      profile.notes.push_back(after("note: "));
    }
  }

  const Message& message_;
  std::string_view origin_;
  ProfileBuilder builder_;
  bool weights_only_ = false;
};

}  // namespace

Result<CpuProfile> from_pprof(std::string_view bytes, std::string_view origin) {
  std::string content;
  if (bytes.starts_with("\x1f\x8b")) {
    FULCRUM_TRY(content, gunzip(bytes, origin));
    bytes = content;
  }
  Message message;
  if (!read(bytes, message)) return damaged(origin, "the file", "is no profile.proto, or cut off");
  if (message.texts.empty() || !message.texts.front().empty()) {
    return damaged(origin, "the string table", "does not begin with the empty text");
  }
  return Reader(message, origin).read();
}

}  // namespace fulcrum::report
