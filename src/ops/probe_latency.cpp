// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_latency: follows one random cycle through n nodes; each load needs the one before it. Nodes are two cache
// lines apart, so that fetching lines in pairs helps nobody. Inside blocks of 4 MiB the order is random, blocks
// follow each other: the translation of 4 KiB pages then stays in the TLB as that of huge pages does, and
// the answer is the memory's latency with either.
#include <fulcrum/ops/probes.h>

#include <numeric>

#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

constexpr std::int64_t kBlockNodes = (std::int64_t{4} << 20) / (8 * kProbeNode);

enum Pointer { kNext, kStart, kEnd };
enum Scalar { kHops };

Status validate(const Args& args) {
  if (args.scalar[kHops].i >= 0) return {};
  return Error{Code::invalid_argument, "hops of probe_latency must not be negative",
               "hops=0 is one lap over all nodes"};
}

std::int64_t hops(const Args& args) { return args.scalar[kHops].i > 0 ? args.scalar[kHops].i : args.dim[0]; }

std::int64_t extent(const Args& args, int slot) {
  return slot == kNext ? product(args.dim[0], kProbeNode) : std::int64_t{1};
}

/// Shuffles each block (Fisher-Yates) and links the nodes in that order; the last leads back to the first.
void make_inputs(const Args& args, std::uint64_t key) {
  const std::int64_t n = args.dim[0];
  auto* next = static_cast<std::int64_t*>(args.ptr[kNext]);
  *static_cast<std::int64_t*>(args.ptr[kStart]) = 0;
  std::fill_n(next, n * kProbeNode, std::int64_t{0});
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::int64_t block = 0; block < n; block += kBlockNodes) {
    for (std::int64_t i = std::min(kBlockNodes, n - block) - 1; i > 0; --i) {
      const auto other = static_cast<std::int64_t>(random_bits(key, static_cast<std::uint64_t>(block + i)) %
                                                   static_cast<std::uint64_t>(i + 1));
      std::swap(order[static_cast<std::size_t>(block + i)], order[static_cast<std::size_t>(block + other)]);
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t follower = order[static_cast<std::size_t>(i + 1 < n ? i + 1 : 0)];
    next[order[static_cast<std::size_t>(i)] * kProbeNode] = follower * kProbeNode;
  }
}

Work work(const Args& args) {
  const auto loads = static_cast<double>(args.dim[0] > 0 ? hops(args) : 0);
  return Work{.issue_slots = loads, .read_bytes = 8 * loads, .write_bytes = 8};
}

void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  const auto* next = args.in<std::int64_t>(kNext);
  std::int64_t at = *args.in<std::int64_t>(kStart);
  if (args.dim[0] > 0) {
    for (std::int64_t i = hops(args) % args.dim[0]; i > 0; --i) at = next[at];
  }
  for (std::size_t i = 0; i < index.size(); ++i) truth[i] = Truth{.value = static_cast<double>(at)};
}

}  // namespace

Op probe_latency() {
  return Op{
      .name = "probe_latency",
      .summary = "end = start after hops times at = next[at]; hops = 0: one lap",
      .category = "probe",
      .slots = {in("next", Fill{}, DType::i64), in("start", Fill{}, DType::i64), out("end", DType::i64),
                dim("n"), integer("hops", 0)},
      .extent = extent,
      .validate = validate,
      .work = work,
      .reference = reference,
      .make_inputs = make_inputs,
      .default_sizes = {"n=128", "n=4096", "n=65536", "n=2097152"},
      .reference_cost = [](const Args& args) { return 100.0 * static_cast<double>(args.dim[0]); },
  };
}

}  // namespace fulcrum::ops
