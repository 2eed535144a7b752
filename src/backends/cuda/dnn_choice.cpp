// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See dnn_choice.h.
#include "backends/cuda/dnn_choice.h"

#include "backends/cuda/trial.h"

namespace fulcrum::backends::cuda {
namespace {

/// Operands with numbers in them: a device that multiplies zeros runs at other clocks.
class ScratchOperands {
 public:
  bool take(const DnnEngine& engine, Element element, cudaStream_t stream) {
    std::size_t bytes = 0, free_bytes = 0, total_bytes = 0;
    for (const DnnEngine::Operand& operand : engine.operands()) bytes += operand.bytes;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess || bytes > free_bytes / 4) return false;
    for (const DnnEngine::Operand& operand : engine.operands()) {
      memory_.push_back(std::make_unique<Scratch>());
      if (memory_.back()->take(operand.bytes).code != FULCRUM_OK) return false;
      places_.push_back(memory_.back()->as<void>());
      const auto elements = static_cast<int64_t>(operand.bytes / bytes_of(element));
      if (!operand.written) enqueue_random(element, places_.back(), elements, stream);
    }
    return true;
  }
  std::span<void* const> places() const { return places_; }

 private:
  std::vector<std::unique_ptr<Scratch>> memory_;
  std::vector<void*> places_;
};

}  // namespace

fulcrum_status fastest_engine(const DnnGraph& graph, std::span<const DnnProposal> proposals, int most,
                              Element element, std::shared_ptr<DnnEngine>* into, float* milliseconds) {
  std::vector<std::shared_ptr<DnnEngine>> engines;
  for (const DnnProposal& proposal : proposals) {
    if (static_cast<int>(engines.size()) >= most) break;
    std::shared_ptr<DnnEngine> engine;
    if (DnnEngine::make(graph, proposal, &engine).code == FULCRUM_OK) engines.push_back(std::move(engine));
  }
  if (engines.empty()) return DnnEngine::first(graph, proposals, into);  // tells why
  *into = engines.front();
  const cudaStream_t stream = stream_of(nullptr);
  ScratchOperands operands;
  if (!operands.take(*engines.front(), element, stream)) return done();
  Trial trial(stream);
  const auto time = [&](const std::shared_ptr<DnnEngine>& engine) {
    std::unique_ptr<DnnPlan> plan;
    if (DnnPlan::make(engine, operands.places(), &plan).code != FULCRUM_OK)
      return std::numeric_limits<float>::infinity();
    return trial.milliseconds([&] { return plan->run(operands.places(), stream, 1).code == FULCRUM_OK; });
  };
  (void)time(engines.front());  // so that the first is not timed on idle clocks
  float least = std::numeric_limits<float>::infinity();
  for (const auto& engine : engines) {
    const float taken = time(engine);
    if (taken >= least) continue;
    least = taken;
    *into = engine;
  }
  *milliseconds = least;
  return done();
}

}  // namespace fulcrum::backends::cuda
