// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_read: loads every element and keeps only the sum of the bit patterns. Integer addition is exact in any
// order, costs less than the load beside it everywhere, and counts the passes: a kernel that skipped one is wrong.
#include <bit>

#include "ops/probe_stream.h"

namespace fulcrum::ops {
namespace {

enum Pointer { kX, kSum };

std::int32_t signed_sum(std::uint32_t sum) { return std::bit_cast<std::int32_t>(sum); }

void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  const auto* x = args.in<float>(kX);
  std::uint32_t sum = 0;
  for (std::int64_t i = 0; i < args.dim[0]; ++i) sum += std::bit_cast<std::uint32_t>(x[i]);
  sum *= static_cast<std::uint32_t>(args.scalar[kProbePasses].i);
  for (std::size_t i = 0; i < index.size(); ++i)
    truth[i] = Truth{.value = static_cast<double>(signed_sum(sum))};
}

void combine(const Args& args, int, void* scratch) {
  const auto* part = static_cast<const std::uint32_t*>(scratch);
  const std::int64_t pieces = probe_pieces(args, 0);
  std::uint32_t sum = 0;
  for (std::int64_t i = 0; i < pieces; ++i) sum += part[i];
  *args.out<std::int32_t>(kSum) = signed_sum(sum);
}

Work work(const Args& args) {
  Work work = stream_work<1, 0, 0>(args);
  work.write_bytes = 4;
  work.link_out_bytes = 4;
  return work;
}

}  // namespace

Op probe_read() {
  return Op{
      .name = "probe_read",
      .summary = "sum = passes * (sum of the bits of x[i]) modulo 2^32",
      .category = "probe",
      .slots = {in("x", uniform(-1, 1)), out("sum", DType::i32), dim("n"), integer("passes", 1)},
      .extent = [](const Args& args, int slot) { return slot == kSum ? std::int64_t{1} : args.dim[0]; },
      .validate = check_passes,
      .work = work,
      .reference = reference,
      .split = Split{.phases = 1,
                     .pieces = probe_pieces,
                     .scratch_bytes = [](const Args& args) { return 4 * probe_pieces(args, 0); },
                     .combine = combine},
      .default_sizes = {"n=4096,passes=1000", "n=131072,passes=100", "n=2097152", "n=67108864"},
      .reference_cost = [](const Args& args) { return static_cast<double>(args.dim[0]); },
  };
}

}  // namespace fulcrum::ops
