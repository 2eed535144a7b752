// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a command may do to the world: print, show progress, hand out JSON, ask whether Ctrl-C was pressed, and look
// at this machine. Nothing else in the program prints or exits.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum::cli {

class Context {
 public:
  explicit Context(std::vector<std::string> arguments);

  /// As typed, the program's name first.
  const std::vector<std::string>& arguments() const { return arguments_; }
  /// Name under which the program was started: a program that brings its own ops is not called fulcrum.
  std::string program() const;

  /// Text for people on standard output; dropped when JSON goes there.
  void print(std::string_view text);
  /// A line on standard error for what is worth knowing and no result.
  void note(std::string_view text);
  /// One line that replaces itself, on terminals only. Empty: clear it.
  void progress(std::string_view line);
  /// Data on standard output, whatever else goes there.
  void write_output(std::string_view text);

  bool colour() const { return colour_; }
  /// Standard output is a terminal: its width is a limit and not only a wish.
  bool on_terminal() const { return on_terminal_; }
  /// Columns of the terminal; 100 where standard output is none.
  int width() const { return width_; }

  /// Where --json goes; fails at once when nothing can be written there or the file is not ours to replace.
  Status set_json(const std::string& path);
  bool wants_json() const { return !json_path_.empty(); }
  /// --json - was given: standard output carries the document alone.
  bool json_owns_output() const { return json_path_ == "-"; }
  /// Writes the document when --json asked for it.
  Status write_json(const Json& document);

  /// This machine: its profile when it was measured before, else topology and identity only.
  const Machine& machine();
  /// Null when this machine has no profile yet.
  const Machine* profile();

  /// Flushes standard output; an error when something that was printed did not arrive.
  Status finish();

 private:
  std::vector<std::string> arguments_;
  bool colour_ = false, on_terminal_ = false, progress_shown_ = false, progress_wanted_ = false;
  int width_ = 100;
  int output_error_ = 0;
  std::string json_path_;
  bool machine_known_ = false, machine_loaded_ = false;
  Machine machine_;
};

/// Handlers for Ctrl-C and a polite kill (the flag below), for closed pipes and for file size limits (the write
/// then fails with an error that can be reported). A second Ctrl-C ends the process at once.
void install_signal_handlers();
bool interrupted();

/// Whether `path` can become our output file: not a folder, writable, and no file that something else wrote.
Status check_output_file(const std::filesystem::path& path);

}  // namespace fulcrum::cli
