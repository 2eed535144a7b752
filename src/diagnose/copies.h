// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies between host and device as the rules about them see them. Each copy belongs to one rule: those that bring what
// is there already to redundant_copy, many small ones in a row to small_copies, the rest from pageable memory to
// pageable_copy.
#pragma once

#include "diagnose/idle.h"

namespace fulcrum::diagnose {

bool is_pageable(const GpuTrace::Op&);
bool crosses(const GpuTrace::Op&);  // host to device or back
/// A few bytes to the host: what costs is that it waits for them.
bool is_readback(const GpuTrace::Op&);
/// Seconds a byte of a pinned copy: measured here or elsewhere, else PCIe 5.
double pinned_seconds_a_byte(const Facts&);
/// What any copy takes beside its bytes, on the GPU.
double copy_floor_seconds(const Facts&);
/// Bytes below which a copy's fixed cost is more than its bytes'.
double small_bytes(const Facts&);

/// Small copies of one direction that follow each other with no other work between: they could be one.
struct Batch {
  std::vector<std::uint32_t> ops;
  double bytes = 0;
};
/// Empty when there are not enough of them to matter.
std::vector<Batch> small_batches(const Facts&, const Joined&);

/// Uploads of what the device has already: the upload before it to that place came from the same place.
struct Repeats {
  std::vector<std::uint32_t> ops;
  bool hashed = false;  // and the contents were compared
  double seconds = 0, bytes = 0;
  bool sure = false;     // that, or the host had no time to change a value in each page of any of them
  double unwritten = 1;  // share of the bytes that the host had no time to write anew, the least of them
  bool addresses_seen = false;
};
/// Those that redundant_copy claims; none where every step brings the same input and takes its results back, as a
/// benchmark does on purpose, unless the contents were compared.
Repeats repeated_uploads(const Facts&, const Joined&);

}  // namespace fulcrum::diagnose
