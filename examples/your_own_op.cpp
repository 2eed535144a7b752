// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// An op of yours with two kernels of yours, and the whole command line for them: bench, ops, doctor, machine.
// run: bench saxpy --shape n=1000 --vs mine/plain --budget 0.2
#include <fulcrum/fulcrum.h>

#include <cstdio>

using namespace fulcrum;

namespace {

// What the op is: its arguments, its work, and its truth in double precision. No backend appears here.
ops::Op saxpy() {
  return ops::Op{
      .name = "saxpy",
      .summary = "out[i] = a*x[i] + y[i]",
      .category = "streaming",
      .slots = {ops::in("x", ops::uniform(-1, 1)), ops::in("y", ops::uniform(-1, 1)), ops::out("out"),
                ops::dim("n"), ops::real("a", 2.5)},
      .extent = [](const Args& args, int) { return args.dim[0]; },
      .work =
          [](const Args& args) {
            const auto n = static_cast<double>(args.dim[0]);
            return Work{.flops = 2 * n, .issue_slots = n, .read_bytes = 8 * n, .write_bytes = 4 * n};
          },
      .reference =
          [](const Args& args, int, std::span<const std::int64_t> index, ops::Truth* truth) {
            for (std::size_t i = 0; i < index.size(); ++i) {
              const double product = args.scalar[0].f * args.in<float>(0)[index[i]];
              truth[i].value = product + args.in<float>(1)[index[i]];
              // One rounding of the product and one of the sum, which may cancel: the product's stays.
              truth[i].allowed = ops::ulps(1, product) + ops::ulps(1, truth[i].value);
            }
          },
      .default_sizes = {"n=1000", "n=100000", "n=1000000"},
  };
}

// Arguments are in slots, numbered in the order above: pointers x, y, out; size n; scalar a.
fulcrum_status plain(const Args* args, void*, std::int64_t count) {
  const auto a = static_cast<float>(args->scalar[0].f);
  const auto *x = args->in<float>(0), *y = args->in<float>(1);
  auto* out = args->out<float>(2);
  for (std::int64_t call = 0; call < count; ++call) {
    for (std::int64_t i = 0; i < args->dim[0]; ++i) out[i] = a * x[i] + y[i];
  }
  return {};
}

fulcrum_status unrolled(const Args* args, void*, std::int64_t count) {
  const auto a = static_cast<float>(args->scalar[0].f);
  const auto *x = args->in<float>(0), *y = args->in<float>(1);
  auto* out = args->out<float>(2);
  for (std::int64_t call = 0; call < count; ++call) {
    std::int64_t i = 0;
    for (; i + 4 <= args->dim[0]; i += 4) {
      const float r0 = a * x[i] + y[i], r1 = a * x[i + 1] + y[i + 1];
      const float r2 = a * x[i + 2] + y[i + 2], r3 = a * x[i + 3] + y[i + 3];
      out[i] = r0, out[i + 1] = r1, out[i + 2] = r2, out[i + 3] = r3;
    }
    for (; i < args->dim[0]; ++i) out[i] = a * x[i] + y[i];
  }
  return {};
}

Status register_saxpy() {
  FULCRUM_CHECK(ops::add(saxpy()));
  FULCRUM_CHECK(backends::add("mine", fulcrum_kernel{.op = "saxpy", .variant = "plain", .run = plain}));
  return backends::add("mine", fulcrum_kernel{.op = "saxpy", .variant = "unrolled", .run = unrolled});
}

}  // namespace

int main(int argc, char** argv) {
  if (const Status registered = register_saxpy(); !registered.ok()) {
    std::fprintf(stderr, "%s\n", registered.error().message.c_str());
    return 1;
  }
  return cli::run(argc, argv);
}
