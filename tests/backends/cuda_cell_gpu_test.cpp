// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Recurrent kernels of the CUDA module on a device: the bits of a batch row depend neither on the variant, the alignment
// and the rest of the batch, nor on whether steps share a launch; a neuron's not on where it stands.
#include <fulcrum/backends.h>
#include <gtest/gtest.h>

#include <cstring>

#include "support/on_device.h"

namespace fulcrum::backends {
namespace {

class CudaCell : public OnDevice {};

std::vector<float> values(std::int64_t n, int tensor, float scale) {
  std::vector<float> result(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = ops::random_uniform(ops::tensor_key(tensor), i, -scale, scale);
  return result;
}

bool same(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

struct Network {
  std::int64_t steps, batch, inputs, hidden;
  std::string text() const {
    return "T=" + std::to_string(steps) + ",B=" + std::to_string(batch) + ",I=" + std::to_string(inputs) +
           ",H=" + std::to_string(hidden);
  }
};

class CudaNetworks : public CudaCell {
 protected:
  /// Operands of a call in the order that both ops have; the first `batch` rows of the whole batch. One step only.
  fulcrum_args operands(const Network& n, std::int64_t batch, std::int64_t shift) {
    const std::int64_t state = n.batch * n.hidden;
    const std::vector<float> x = values(n.steps * n.batch * n.inputs, 0, 1), h = values(state, 1, 1),
                             c = values(state, 2, 1);
    const auto first = [&](const std::vector<float>& all, std::int64_t of) {
      return std::span(all).first(static_cast<std::size_t>(of));
    };
    fulcrum_args args = {};
    args.ptr[0] = place(first(x, n.steps * batch * n.inputs), shift);
    args.ptr[1] = place(first(h, batch * n.hidden), shift);
    args.ptr[2] = place(first(c, batch * n.hidden), shift);
    args.ptr[3] = place(values(4 * n.hidden * n.inputs, 3, 0.2F), shift);
    args.ptr[4] = place(values(4 * n.hidden * n.hidden, 4, 0.2F), shift);
    args.ptr[5] = place(values(4 * n.hidden, 5, 0.2F), shift);
    args.ptr[6] = place(values(n.steps * batch * n.hidden, 6, 1), shift);
    args.ptr[7] = place(values(batch * n.hidden, 7, 1), shift);
    return args;
  }
};

TEST_F(CudaNetworks, ACellHasTheSameBitsInEveryVariantBatchAndAlignment) {
  for (const Network n : {Network{1, 70, 64, 128}, Network{1, 33, 7, 45}, Network{1, 40, 300, 260},
                          Network{1, 9, 128, 512}, Network{1, 65, 20, 1000}}) {
    std::vector<float> chains[2], tensor[2];  // tensor cores add in another order
    for (const std::int64_t batch : {n.batch, std::int64_t{31}, std::int64_t{5}, std::int64_t{1}}) {
      for (const std::int64_t shift : {0, 1}) {
        if (batch > n.batch) continue;
        fulcrum_args args = operands(n, batch, shift);
        args.dim[0] = batch, args.dim[1] = n.inputs, args.dim[2] = n.hidden;
        for (const fulcrum_kernel* kernel : kernels_of("lstm_cell", args)) {
          run(*kernel, args);
          const std::int64_t state = batch * n.hidden;
          auto& expected = std::string_view(kernel->variant) == "tensor" ? tensor : chains;
          for (int output = 0; output < 2; ++output) {
            const std::vector<float> got = fetch(args.out<float>(6 + output), state);
            if (expected[output].empty()) expected[output] = got;
            EXPECT_TRUE(same(got, std::span(expected[output]).first(got.size())))
                << kernel->variant << " " << n.text() << " first " << batch << " shift " << shift;
          }
        }
        release();
      }
    }
  }
}

TEST_F(CudaNetworks, ASequenceHasTheBitsOfItsCells) {
  for (const Network n : {Network{9, 32, 64, 128}, Network{6, 5, 33, 77}, Network{5, 1, 256, 256},
                          Network{5, 70, 64, 256}, Network{4, 3, 100, 8}, Network{4, 13, 200, 130},
                          Network{3, 20, 300, 300}, Network{4, 40, 100, 500}, Network{2, 2, 1, 1}}) {
    for (const std::int64_t shift : {0, 1}) {
      fulcrum_args args = operands(n, n.batch, shift);
      args.dim[0] = n.steps, args.dim[1] = n.batch, args.dim[2] = n.inputs, args.dim[3] = n.hidden;
      const std::int64_t state = n.batch * n.hidden;
      std::vector<std::vector<float>> y, c;
      for (const fulcrum_kernel* kernel : kernels_of("lstm_sequence", args)) {
        run(*kernel, args);
        y.push_back(fetch(args.out<float>(6), n.steps * state)),
            c.push_back(fetch(args.out<float>(7), state));
        EXPECT_TRUE(same(y.back(), y[0])) << kernel->variant << " " << n.text() << " shift " << shift;
        EXPECT_TRUE(same(c.back(), c[0])) << kernel->variant << " " << n.text() << " shift " << shift;
      }
      fulcrum_args step = args;
      step.dim[0] = n.batch, step.dim[1] = n.inputs, step.dim[2] = n.hidden;
      const auto cells = kernels_of("lstm_cell", step);
      float* spare[2] = {place(y[0], 0), place(c[0], 0)};
      for (std::int64_t t = 0; t < n.steps; ++t) {
        step.ptr[0] = static_cast<float*>(args.ptr[0]) + t * n.batch * n.inputs;
        step.ptr[6] = spare[0] + t * state;
        step.ptr[7] = t % 2 == 0 ? spare[1] : args.ptr[7];
        run(*cells.at(0), step);
        step.ptr[1] = step.ptr[6], step.ptr[2] = step.ptr[7];
      }
      EXPECT_TRUE(same(fetch(spare[0], n.steps * state), y[0])) << n.text() << " cell by cell";
      EXPECT_TRUE(same(fetch(step.out<float>(7), state), c[0])) << n.text() << " cell by cell";
      release();
    }
  }
}

TEST_F(CudaCell, ANeuronHasTheSameBitsWhereverItStands) {
  struct Neurons {
    std::int64_t dendrites, synapses;
  };
  constexpr std::int64_t kNeurons = 77;
  for (const Neurons n : {Neurons{8, 16}, Neurons{3, 5}, Neurons{40, 64}, Neurons{1, 1000}, Neurons{70, 3}}) {
    const std::int64_t each = n.dendrites * n.synapses;
    const std::vector<float> in = values(kNeurons * each, 0, 1), w = values(kNeurons * each, 1, 1),
                             state = values(kNeurons, 2, 1);
    std::vector<float> expected;
    for (const std::int64_t first : {0, 1, 2, 5, 31, 76}) {
      for (const std::int64_t shift : {0, 1}) {
        const auto tail = [&](const std::vector<float>& all, std::int64_t of) {
          return std::span(all).subspan(static_cast<std::size_t>(first * of));
        };
        fulcrum_args args = {};
        args.ptr[0] = place(tail(in, each), shift), args.ptr[1] = place(tail(w, each), shift);
        args.ptr[2] = place(tail(state, 1), shift), args.ptr[3] = place(tail(state, 1), shift);
        args.dim[0] = kNeurons - first, args.dim[1] = n.dendrites, args.dim[2] = n.synapses;
        run(*kernels_of("dendritic_integration", args).at(0), args);
        const std::vector<float> got = fetch(args.out<float>(3), kNeurons - first);
        if (expected.empty()) expected = got;
        EXPECT_TRUE(same(got, tail(expected, 1)))
            << "D=" << n.dendrites << ",S=" << n.synapses << " from " << first << " shift " << shift;
        release();
      }
    }
  }
}

}  // namespace
}  // namespace fulcrum::backends
