// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// ar_forecast as matrix-vector products or dot products, dendritic_integration as a reduction per dendrite.
#include "eigen/eigen.h"

namespace fulcrum::peers::eigen {
namespace {

enum ArDim { kSeries, kHistory, kLags, kSteps, kCoefficients };

/// One series: a dot product with the reversed coefficients per step.
void forecast_one(const float* history, const Eigen::VectorXf& reversed, Eigen::VectorXf& values, float* out,
                  std::int64_t steps) {
  const std::int64_t lags = reversed.size();
  values.head(lags) = Eigen::Map<const Eigen::VectorXf>(history, lags);
  for (std::int64_t t = 0; t < steps; ++t) values[lags + t] = reversed.dot(values.segment(t, lags));
  Eigen::Map<Eigen::VectorXf>(out, steps) = values.tail(steps);
}

/// All series of one model at once: time runs over columns, so that a step is a matrix-vector product.
void forecast_together(const fulcrum_args& a) {
  const std::int64_t series = a.dim[kSeries], lags = a.dim[kLags], steps = a.dim[kSteps];
  const ConstMatrix history(a.in<float>(0), series, a.dim[kHistory]);
  const Eigen::VectorXf reversed = Eigen::Map<const Eigen::VectorXf>(a.in<float>(1), lags).reverse();
  Eigen::MatrixXf values(series, lags + steps);
  values.leftCols(lags) = history.rightCols(lags);
  for (std::int64_t t = 0; t < steps; ++t)
    values.col(lags + t).noalias() = values.middleCols(t, lags) * reversed;
  Matrix(a.out<float>(2), series, steps) = values.rightCols(steps);
}

void ar_forecast(const fulcrum_args& a) {
  constexpr std::int64_t kWorthTransposing = 16;
  const std::int64_t lags = a.dim[kLags], steps = a.dim[kSteps];
  if (a.dim[kCoefficients] == 1 && a.dim[kSeries] >= kWorthTransposing) return forecast_together(a);
  Eigen::VectorXf values(lags + steps), reversed;
  for (std::int64_t s = 0; s < a.dim[kSeries]; ++s) {
    const std::int64_t row = a.dim[kCoefficients] == 1 ? 0 : s;
    if (s == 0 || row > 0) {
      reversed = Eigen::Map<const Eigen::VectorXf>(a.in<float>(1) + row * lags, lags).reverse();
    }
    forecast_one(a.in<float>(0) + (s + 1) * a.dim[kHistory] - lags, reversed, values,
                 a.out<float>(2) + s * steps, steps);
  }
}

/// The four nonlinearities over the potentials of one neuron's dendrites.
float mean_response(std::int64_t type, const Eigen::ArrayXf& x) {
  switch (type) {
    case 0:
      return (10.0f * (x - 0.5f)).logistic().mean();
    case 1:
      return (-x * (0.062f * x).logistic()).mean();
    case 2:
      return (x > 0.3f).select(2.0f * (x - 0.3f) * (-0.5f * x.abs()).exp(), 0.1f * x).mean();
    default:
      return x.tanh().mean();
  }
}

void dendritic_integration(const fulcrum_args& a) {
  const std::int64_t neurons = a.dim[0], dendrites = a.dim[1], synapses = a.dim[2];
  const std::int64_t each = dendrites * synapses;
  const auto* state = a.in<float>(2);
  Eigen::ArrayXf potentials(dendrites);
  for (std::int64_t n = 0; n < neurons; ++n) {
    const ConstMatrix in(a.in<float>(0) + n * each, dendrites, synapses);
    const ConstMatrix weights(a.in<float>(1) + n * each, dendrites, synapses);
    potentials = in.cwiseProduct(weights).rowwise().sum().array() + 0.5f * state[n];
    a.out<float>(3)[n] = mean_response(a.scalar[0].i, potentials);
  }
}

}  // namespace

void add_recurrent(Kernels& kernels) {
  kernels.insert(kernels.end(), {kernel<ar_forecast>("ar_forecast", "eigen"),
                                 kernel<dendritic_integration>("dendritic_integration", "eigen")});
}

}  // namespace fulcrum::peers::eigen
