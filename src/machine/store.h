// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Profiles in given folders, so that the store can be tested apart from this machine.
#pragma once

#include <fulcrum/machine.h>

namespace fulcrum::machine {

/// One folder of profiles, `<name>.json` each.
class ProfileFolder {
 public:
  ProfileFolder(std::filesystem::path folder, bool shipped) : folder_(std::move(folder)), shipped_(shipped) {}

  /// Also those that cannot be read: their description says why.
  std::vector<StoredProfile> list() const;
  bool has(std::string_view name) const;
  /// Not found, unreadable, cut off, of another kind or version: an error that says which.
  Result<Machine> load(std::string_view name) const;
  Result<std::filesystem::path> save(const Machine& machine) const;

 private:
  std::filesystem::path path_of(std::string_view name) const;
  std::filesystem::path folder_;
  bool shipped_;
};

/// A profile from any file.
Result<Machine> load_file(const std::filesystem::path& path);

}  // namespace fulcrum::machine
