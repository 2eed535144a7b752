// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// lstm_cell over weights that were transposed once, ar_forecast as a filter with its state in an array (the form in
// which signal libraries run it), dendritic_integration as written.
#include <algorithm>
#include <cmath>

#include "loops/loops.h"

namespace fulcrum::peers::loops {
namespace {

float logistic(float x) { return 1 / (1 + std::exp(-x)); }

struct Lstm {
  std::vector<float> weights;  // [inputs + hidden][4 hidden]
  std::vector<float> gates;    // [4 hidden]
};

fulcrum_status plan_lstm(const fulcrum_kernel*, const fulcrum_args* a, void** plan) {
  const std::int64_t inputs = a->dim[1], hidden = a->dim[2], rows = 4 * hidden;
  auto* made = new Lstm;
  made->weights.resize(static_cast<std::size_t>((inputs + hidden) * rows));
  made->gates.resize(static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < inputs; ++i)
      made->weights[i * rows + row] = a->in<float>(3)[row * inputs + i];
    for (std::int64_t i = 0; i < hidden; ++i)
      made->weights[(inputs + i) * rows + row] = a->in<float>(4)[row * hidden + i];
  }
  *plan = made;
  return done();
}
void drop_lstm(void* plan) { delete static_cast<Lstm*>(plan); }

void add_scaled(float* __restrict sums, const float* __restrict weights, float factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sums[i] += factor * weights[i];
}

void lstm_cell(const fulcrum_args& a) {
  auto& state = *static_cast<Lstm*>(a.plan);
  const std::int64_t inputs = a.dim[1], hidden = a.dim[2], rows = 4 * hidden;
  float* gates = state.gates.data();
  for (std::int64_t b = 0; b < a.dim[0]; ++b) {
    std::copy(a.in<float>(5), a.in<float>(5) + rows, gates);
    for (std::int64_t i = 0; i < inputs; ++i)
      add_scaled(gates, &state.weights[i * rows], a.in<float>(0)[b * inputs + i], rows);
    for (std::int64_t i = 0; i < hidden; ++i)
      add_scaled(gates, &state.weights[(inputs + i) * rows], a.in<float>(1)[b * hidden + i], rows);
    const float* __restrict before = a.in<float>(2) + b * hidden;
    float* __restrict out = a.out<float>(6) + b * hidden;
    float* __restrict cell = a.out<float>(7) + b * hidden;
    for (std::int64_t i = 0; i < hidden; ++i) {
      const float next =
          logistic(gates[hidden + i]) * before[i] + logistic(gates[i]) * std::tanh(gates[2 * hidden + i]);
      cell[i] = next;
      out[i] = logistic(gates[3 * hidden + i]) * std::tanh(next);
    }
  }
}

/// After y is known, every pending sum moves one step nearer and takes its share of y.
float step(float* __restrict pending, const float* __restrict c, std::int64_t lags) {
  const float y = pending[0];
  for (std::int64_t l = 0; l + 1 < lags; ++l) pending[l] = pending[l + 1] + c[l] * y;
  pending[lags - 1] = c[lags - 1] * y;
  return y;
}

void ar_forecast(const fulcrum_args& a) {
  const std::int64_t series = a.dim[0], length = a.dim[1], lags = a.dim[2], steps = a.dim[3];
  auto& pending = *static_cast<std::vector<float>*>(a.plan);
  for (std::int64_t s = 0; s < series; ++s) {
    const float* c = a.in<float>(1) + (a.dim[4] == 1 ? 0 : s * lags);
    const float* last = a.in<float>(0) + (s + 1) * length - lags;
    std::fill(pending.begin(), pending.end(), 0.0f);
    for (std::int64_t i = 0; i < lags; ++i) {
      pending[0] = last[i];
      step(pending.data(), c, lags);
    }
    for (std::int64_t t = 0; t < steps; ++t) a.out<float>(2)[s * steps + t] = step(pending.data(), c, lags);
  }
}
fulcrum_status plan_pending(const fulcrum_kernel*, const fulcrum_args* a, void** plan) {
  *plan = new std::vector<float>(static_cast<std::size_t>(a->dim[2]));
  return done();
}
void drop_pending(void* plan) { delete static_cast<std::vector<float>*>(plan); }

float response(std::int64_t type, float x) {
  switch (type) {
    case 0:
      return logistic(10 * (x - 0.5f));
    case 1:
      return -x * logistic(0.062f * x);
    case 2:
      return x > 0.3f ? 2 * (x - 0.3f) * std::exp(-0.5f * std::fabs(x)) : 0.1f * x;
    default:
      return std::tanh(x);
  }
}

void dendritic_integration(const fulcrum_args& a) {
  const std::int64_t dendrites = a.dim[1], synapses = a.dim[2];
  const float* in = a.in<float>(0);
  const float* weights = a.in<float>(1);
  for (std::int64_t n = 0; n < a.dim[0]; ++n) {
    float total = 0;
    for (std::int64_t d = 0; d < dendrites; ++d, in += synapses, weights += synapses) {
      float x = 0;
      for (std::int64_t s = 0; s < synapses; ++s) x += in[s] * weights[s];
      total += response(a.scalar[0].i, x + 0.5f * a.in<float>(2)[n]);
    }
    a.out<float>(3)[n] = total / static_cast<float>(dendrites);
  }
}

}  // namespace

void add_recurrent(Kernels& kernels) {
  kernels.push_back(kernel<lstm_cell>("lstm_cell", kVariant));
  kernels.back().plan = plan_lstm;
  kernels.back().drop = drop_lstm;
  kernels.push_back(kernel<dendritic_integration>("dendritic_integration", kVariant));
  if (kFastMath) return;
  kernels.push_back(kernel<ar_forecast>("ar_forecast", kVariant));
  kernels.back().plan = plan_pending;
  kernels.back().drop = drop_pending;
}

}  // namespace fulcrum::peers::loops
