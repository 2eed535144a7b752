// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The ops that typed calls know by number, and below which size each of them is not worth a decision.
#pragma once

#include <fulcrum/ops.h>

#include <array>
#include <atomic>

namespace fulcrum::executor {

enum class Known : std::uint8_t {
  vec_add,
  relu,
  leaky_relu,
  elu,
  clip,
  sigmoid,
  tanh,
  swish,
  gelu,
  dot,
  softmax,
  log_softmax,
  matmul,
  batched_matmul,
  conv2d_channels,
  lstm_cell,
  lstm_sequence,
  dendritic_integration,
  ar_forecast,
  cosine_similarity,
  cosine_topk,
  attention,
  activation_spreading,
  conv2d,
  pixel_entropy,
  image_segmentation,
  conv_entropy_segment,
  hnsw_search,
};
/// By number.
inline constexpr std::array<std::string_view, 28> kKnownNames = {"vec_add",
                                                                 "relu",
                                                                 "leaky_relu",
                                                                 "elu",
                                                                 "clip",
                                                                 "sigmoid",
                                                                 "tanh",
                                                                 "swish",
                                                                 "gelu",
                                                                 "dot",
                                                                 "softmax",
                                                                 "log_softmax",
                                                                 "matmul",
                                                                 "batched_matmul",
                                                                 "conv2d_channels",
                                                                 "lstm_cell",
                                                                 "lstm_sequence",
                                                                 "dendritic_integration",
                                                                 "ar_forecast",
                                                                 "cosine_similarity",
                                                                 "cosine_topk",
                                                                 "attention",
                                                                 "activation_spreading",
                                                                 "conv2d",
                                                                 "pixel_entropy",
                                                                 "image_segmentation",
                                                                 "conv_entropy_segment",
                                                                 "hnsw_search"};
inline constexpr std::size_t kKnownCount = kKnownNames.size();
constexpr std::size_t number_of(Known op) { return static_cast<std::size_t>(op); }
/// The first of them, up to dot, look at their guard.
inline constexpr std::size_t kGuardedCount = number_of(Known::dot) + 1;

/// Calls on host memory with fewer elements than `below` run on `kernel`, which needs no plan and takes every shape.
struct GuardEntry {
  std::atomic<std::int64_t> below{0};                  // 0: no guard
  std::atomic<const fulcrum_kernel*> kernel{nullptr};  // set before `below`
};

struct Guards {
  std::array<GuardEntry, kKnownCount> of;
  std::array<const ops::Op*, kKnownCount> op{};
};

/// Fills in the ops; guards stay 0.
void find_known_ops(Guards& guards);

}  // namespace fulcrum::executor
