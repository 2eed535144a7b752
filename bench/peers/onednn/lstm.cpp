// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One time step of the LSTM primitive, whose gates have our order (i, f, candidate, o). Weights are packed once.
#include "onednn/onednn.h"

namespace fulcrum::peers::onednn {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

enum Pointer { kX, kH, kC, kInputWeights, kHiddenWeights, kBias, kNextH, kNextC };

/// Weights as we have them are [gate, out, in]; the primitive's own layout is its secret.
memory packed(const fulcrum_args& a, int slot, const memory::dims& dims, const memory::desc& wanted) {
  memory given({dims, kF32, Tag::ldgoi}, engine(), a.ptr[slot]);
  memory result(wanted, engine());
  dnnl::reorder(given, result).execute(stream(), given, result);
  stream().wait();
  return result;
}

std::unique_ptr<Plan> lstm_cell(const fulcrum_args& a) {
  auto plan = std::make_unique<Plan>();
  const std::int64_t batch = a.dim[0], inputs = a.dim[1], hidden = a.dim[2];
  const memory::desc x({1, batch, inputs}, kF32, Tag::tnc), layer_out({1, batch, hidden}, kF32, Tag::tnc);
  const memory::desc state({1, 1, batch, hidden}, kF32, Tag::ldnc), bias({1, 1, 4, hidden}, kF32, Tag::ldgo);
  const memory::dims input_dims{1, 1, inputs, 4, hidden}, hidden_dims{1, 1, hidden, 4, hidden};
  const memory::desc input_any(input_dims, kF32, Tag::any), hidden_any(hidden_dims, kF32, Tag::any);
  const dnnl::lstm_forward::desc operation(dnnl::prop_kind::forward_inference,
                                           dnnl::rnn_direction::unidirectional_left2right, x, state, state,
                                           input_any, hidden_any, bias, layer_out, state, state);
  const dnnl::lstm_forward::primitive_desc chosen(operation, engine());
  const memory unused(layer_out, engine());  // the layer's output is the last hidden state once more
  plan->steps.push_back(dnnl::lstm_forward(chosen));
  plan->arguments.push_back(
      {{DNNL_ARG_SRC_LAYER, bind(*plan, x, kX)},
       {DNNL_ARG_SRC_ITER, bind(*plan, state, kH)},
       {DNNL_ARG_SRC_ITER_C, bind(*plan, state, kC)},
       {DNNL_ARG_WEIGHTS_LAYER, packed(a, kInputWeights, input_dims, chosen.weights_layer_desc())},
       {DNNL_ARG_WEIGHTS_ITER, packed(a, kHiddenWeights, hidden_dims, chosen.weights_iter_desc())},
       {DNNL_ARG_BIAS, bind(*plan, bias, kBias)},
       {DNNL_ARG_DST_LAYER, unused},
       {DNNL_ARG_DST_ITER, bind(*plan, state, kNextH)},
       {DNNL_ARG_DST_ITER_C, bind(*plan, state, kNextC)}});
  return plan;
}

int has_batch(const fulcrum_args* a) { return a->dim[0] > 0; }

}  // namespace

void add_lstm(Kernels& kernels) { add<lstm_cell>(kernels, "lstm_cell", has_batch); }

}  // namespace fulcrum::peers::onednn
