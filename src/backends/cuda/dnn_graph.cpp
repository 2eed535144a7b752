// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See dnn_graph.h.
#include "backends/cuda/dnn_graph.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace fulcrum::backends::cuda {
namespace {

// The header marks both as deprecated; libraries before 9.8 cannot do without.
constexpr auto kGraphHandle = static_cast<cudnnBackendAttributeName_t>(800);
constexpr auto kPlanHandle = static_cast<cudnnBackendAttributeName_t>(400);
constexpr int64_t kAlignment = 16;  // what fast engines want; others get a copy of the operand

int64_t bytes_of(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    case CUDNN_DATA_BOOLEAN:
      return 1;
    default:
      return 4;
  }
}

/// Tensors are told apart by numbers that are not 0.
int64_t uid_of(DnnId id) { return id + 1; }

DnnSizes packed_strides(const DnnSizes& sizes) {
  DnnSizes strides(sizes.size(), 1);
  for (std::size_t i = sizes.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

void read_notes(const DnnDescriptor& config, DnnProposal& proposal) {
  DnnTrouble ignored;  // an engine that says nothing of itself has no notes
  const DnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR, "an engine", ignored);
  cudnnBackendDescriptor_t raw = engine.raw();
  int64_t count = 0;
  if (!raw || dnn().get(config.raw(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                        &raw) != CUDNN_STATUS_SUCCESS)
    return;
  std::array<cudnnBackendNumericalNote_t, 32> notes{};
  if (dnn().get(raw, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                static_cast<int64_t>(notes.size()), &count, notes.data()) != CUDNN_STATUS_SUCCESS)
    return;
  for (int64_t i = 0; i < std::min<int64_t>(count, notes.size()); ++i) {
    switch (notes[static_cast<std::size_t>(i)]) {
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        proposal.tensor_core = true;
        break;
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        proposal.down_converts = true;
        break;
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        proposal.reduces_precision = true;
        break;
      case CUDNN_NUMERICAL_NOTE_FFT:
        proposal.fft = true;
        break;
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
        proposal.nondeterministic = true;
        break;
      case CUDNN_NUMERICAL_NOTE_WINOGRAD:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
        proposal.winograd = true;
        break;
      default:
        break;
    }
  }
}

}  // namespace

DnnId DnnGraph::describe(DnnPlace place, bool by_value, cudnnDataType_t type, const DnnSizes& sizes,
                         const DnnSizes& strides) {
  const auto id = static_cast<DnnId>(tensors_.size());
  const auto rank = static_cast<int64_t>(sizes.size());
  DnnDescriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "a tensor", trouble_);
  made.set_one(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, uid_of(id), trouble_);
  made.set_one(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type, trouble_);
  made.set_one(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kAlignment, trouble_);
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, sizes.data(), trouble_);
  made.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, strides.data(), trouble_);
  const bool is_inside = place == DnnPlace::inside && !by_value;
  if (is_inside) made.set_one(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true, trouble_);
  if (by_value) made.set_one(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true, trouble_);
  made.finalize(trouble_);
  int64_t elements = 1;
  for (const int64_t size : sizes) elements *= size;
  tensors_.push_back(Tensor{std::move(made), elements * bytes_of(type), place});
  return id;
}

DnnId DnnGraph::tensor(DnnPlace place, cudnnDataType_t type, const DnnSizes& sizes, const DnnSizes& strides) {
  const DnnId id = describe(place, false, type, sizes, strides);
  if (place != DnnPlace::inside) operands_.push_back(id);
  return id;
}

DnnId DnnGraph::inside(cudnnDataType_t type, const DnnSizes& sizes) {
  return tensor(DnnPlace::inside, type, sizes, packed_strides(sizes));
}

DnnId DnnGraph::add_value(const void* bytes, cudnnDataType_t type) {
  const DnnSizes ones{1, 1, 1, 1};
  Value value{describe(DnnPlace::inside, true, type, ones, ones), {}};
  std::memcpy(value.bytes.data(), bytes, value.bytes.size());
  values_.push_back(value);
  return value.id;
}
DnnId DnnGraph::value(float number) { return add_value(&number, CUDNN_DATA_FLOAT); }
DnnId DnnGraph::value(int32_t number) { return add_value(&number, CUDNN_DATA_INT32); }

void DnnGraph::link(DnnDescriptor& operation, cudnnBackendAttributeName_t name, DnnId id) {
  operation.set_link(name, tensors_[static_cast<std::size_t>(id)].descriptor, trouble_);
}

void DnnGraph::add_operation(DnnDescriptor settings, DnnDescriptor operation) {
  operation.finalize(trouble_);
  settings_.push_back(std::move(settings));
  operations_.push_back(std::move(operation));
}

void DnnGraph::matmul(DnnId a, DnnId b, DnnId c) {
  DnnDescriptor settings(CUDNN_BACKEND_MATMUL_DESCRIPTOR, "a product's settings", trouble_);
  settings.set_one(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT, trouble_);
  settings.finalize(trouble_);
  DnnDescriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "a product", trouble_);
  link(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
  link(operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  link(operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
  operation.set_link(CUDNN_ATTR_OPERATION_MATMUL_DESC, settings, trouble_);
  add_operation(std::move(settings), std::move(operation));
}

void DnnGraph::pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t compute, DnnId y, DnnId x, DnnId b,
                         DnnId t) {
  DnnDescriptor settings(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "a pointwise operation's settings", trouble_);
  settings.set_one(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode, trouble_);
  settings.set_one(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, compute, trouble_);
  settings.finalize(trouble_);
  DnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "a pointwise operation", trouble_);
  operation.set_link(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, settings, trouble_);
  link(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b != kNoTensor) link(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  if (t != kNoTensor) link(operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
  link(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  add_operation(std::move(settings), std::move(operation));
}

void DnnGraph::index_along(int64_t axis, DnnId y, DnnId like) {
  DnnDescriptor settings(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "an index's settings", trouble_);
  settings.set_one(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_GEN_INDEX, trouble_);
  settings.set_one(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT, trouble_);
  settings.set_one(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis, trouble_);
  settings.finalize(trouble_);
  DnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "an index", trouble_);
  operation.set_link(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, settings, trouble_);
  link(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, like);
  link(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  add_operation(std::move(settings), std::move(operation));
}

void DnnGraph::reduce(cudnnReduceTensorOp_t how, DnnId y, DnnId x) {
  DnnDescriptor settings(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "a reduction's settings", trouble_);
  settings.set_one(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, how, trouble_);
  settings.set_one(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT, trouble_);
  settings.finalize(trouble_);
  DnnDescriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "a reduction", trouble_);
  operation.set_link(CUDNN_ATTR_OPERATION_REDUCTION_DESC, settings, trouble_);
  link(operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
  link(operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
  add_operation(std::move(settings), std::move(operation));
}

void DnnGraph::convolve(cudnnDataType_t compute, DnnId y, DnnId x, DnnId w, const DnnSizes& strides,
                        const DnnSizes& padding) {
  const auto axes = static_cast<int64_t>(strides.size());
  const DnnSizes ones(strides.size(), 1);
  DnnDescriptor settings(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "a convolution's settings", trouble_);
  settings.set_one(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, axes, trouble_);
  settings.set_one(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute, trouble_);
  settings.set_one(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION,
                   trouble_);
  settings.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, axes, padding.data(), trouble_);
  settings.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, axes, padding.data(), trouble_);
  settings.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, axes, ones.data(), trouble_);
  settings.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, axes, strides.data(), trouble_);
  settings.finalize(trouble_);
  DnnDescriptor operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, "a convolution", trouble_);
  operation.set_link(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, settings, trouble_);
  link(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
  link(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
  link(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
  constexpr float kOne = 1, kZero = 0;
  operation.set_one(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, kOne, trouble_);
  operation.set_one(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, kZero, trouble_);
  add_operation(std::move(settings), std::move(operation));
}

void DnnGraph::finish() {
  DnnHandle& handle = DnnHandle::shared();
  if (!trouble_.any()) trouble_ = handle.trouble();
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const DnnDescriptor& operation : operations_) raw.push_back(operation.raw());
  graph_ = DnnDescriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "an operation graph", trouble_);
  graph_.set_one(kGraphHandle, CUDNN_TYPE_HANDLE, handle.raw(), trouble_);
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()),
             raw.data(), trouble_);
  graph_.finalize(trouble_);
}

/// Engines of one kind of ranking; a ranking that does not exist for this graph adds none.
void DnnGraph::ask(cudnnBackendHeurMode_t mode, std::vector<DnnProposal>& into) {
  DnnTrouble trouble;
  DnnDescriptor ranking(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "a ranking of engines", trouble);
  ranking.set_link(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_, trouble);
  ranking.set_one(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode, trouble);
  ranking.finalize(trouble);
  int64_t count = 0;
  if (!trouble.any()) {
    trouble.note(dnn().get(ranking.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                           &count, nullptr),
                 "counting engines");
  }
  std::vector<DnnDescriptor> configs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < count && !trouble.any(); ++i) {
    configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "an engine's settings", trouble);
    raw.push_back(configs.back().raw());
  }
  if (!trouble.any() && count > 0) {
    trouble.note(dnn().get(ranking.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                           &count, raw.data()),
                 "reading engines");
  }
  if (trouble.any()) {
    if (mode == CUDNN_HEUR_MODE_A) trouble_ = trouble;  // told when nothing else is found either
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    DnnProposal proposal;
    read_notes(configs[static_cast<std::size_t>(i)], proposal);
    proposal.config = std::move(configs[static_cast<std::size_t>(i)]);
    into.push_back(std::move(proposal));
  }
}

std::vector<DnnProposal> DnnGraph::propose() {
  std::vector<DnnProposal> found;
  if (!graph_) finish();
  if (trouble_.any()) return found;
  ask(CUDNN_HEUR_MODE_A, found);
  ask(CUDNN_HEUR_MODE_FALLBACK, found);
  if (!found.empty()) {
    trouble_ = {};
  } else if (!trouble_.any()) {
    trouble_.note(CUDNN_STATUS_NOT_SUPPORTED, "cuDNN proposes no engine");
  }
  return found;
}

fulcrum_status DnnEngine::make(const DnnGraph& graph, const DnnProposal& proposal,
                               std::shared_ptr<DnnEngine>* into) {
  DnnTrouble trouble = graph.trouble();
  auto engine = std::make_shared<DnnEngine>();
  engine->plan_ = DnnDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "a plan", trouble);
  engine->plan_.set_one(kPlanHandle, CUDNN_TYPE_HANDLE, DnnHandle::shared().raw(), trouble);
  engine->plan_.set_link(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, proposal.config, trouble);
  engine->plan_.finalize(trouble);
  int64_t bytes = 0, count = 0;
  if (!trouble.any()) {
    trouble.note(dnn().get(engine->plan_.raw(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                           &count, &bytes),
                 "the size of a plan's workspace");
  }
  FULCRUM_STATUS(trouble.as_status());
  engine->workspace_bytes_ = static_cast<std::size_t>(bytes);
  engine->values_ = graph.values_;
  for (const DnnId id : graph.operands_) {
    const DnnGraph::Tensor& tensor = graph.tensors_[static_cast<std::size_t>(id)];
    engine->operands_.push_back(
        Operand{uid_of(id), static_cast<std::size_t>(tensor.bytes), tensor.place == DnnPlace::output});
  }
  *into = std::move(engine);
  return done();
}

fulcrum_status DnnEngine::first(const DnnGraph& graph, std::span<const DnnProposal> proposals,
                                std::shared_ptr<DnnEngine>* engine) {
  if (proposals.empty()) {
    return graph.trouble().any() ? graph.trouble().as_status()
                                 : failed(FULCRUM_UNSUPPORTED, "cuDNN proposes no engine that may be used");
  }
  std::string reason;
  fulcrum_status status = done();
  for (const DnnProposal& proposal : proposals) {
    status = make(graph, proposal, engine);
    if (status.code == FULCRUM_OK) return status;
    if (reason.empty()) reason = status.message;  // the best engine's reason says most
  }
  return failed(status.code, reason.c_str());
}

fulcrum_status DnnPlan::make(std::shared_ptr<DnnEngine> engine, std::span<void* const> operands,
                             std::unique_ptr<DnnPlan>* into) {
  auto plan = std::make_unique<DnnPlan>();
  if (engine->workspace_bytes_ > 0) FULCRUM_STATUS(plan->workspace_.take(engine->workspace_bytes_));
  for (std::size_t i = 0; i < engine->operands_.size(); ++i) {
    plan->copies_.emplace_back();
    if (reinterpret_cast<uintptr_t>(operands[i]) % kAlignment == 0) continue;
    plan->copies_[i] = std::make_unique<Scratch>();
    FULCRUM_STATUS(plan->copies_[i]->take(engine->operands_[i].bytes));
  }
  plan->engine_ = std::move(engine);
  *into = std::move(plan);
  return done();
}

/// Makes pack_ for these operands, unless it is.
fulcrum_status DnnPlan::pack(std::span<void* const> operands) {
  std::vector<void*> places;
  std::vector<int64_t> uids;
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    places.push_back(place(i, operands[i]));
    uids.push_back(engine_->operands_[i].uid);
    if (reinterpret_cast<uintptr_t>(places.back()) % kAlignment == 0) continue;
    return failed(FULCRUM_INVALID_ARGUMENT,
                  "an operand is not aligned to 16 bytes, unlike the one that the plan was made for");
  }
  if (pack_ && places == packed_) return done();
  packed_ = places;
  for (DnnGraph::Value& value : engine_->values_) {
    places.push_back(value.bytes.data());
    uids.push_back(uid_of(value.id));
  }
  DnnTrouble trouble;
  pack_ = DnnDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "the operands of a call", trouble);
  const auto count = static_cast<int64_t>(places.size());
  pack_.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, places.data(), trouble);
  pack_.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, uids.data(), trouble);
  pack_.set_one(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace_.as<void>(), trouble);
  pack_.finalize(trouble);
  if (trouble.any()) pack_ = {};
  return trouble.as_status();
}

/// Inputs into their copies, or outputs out of them.
fulcrum_status DnnPlan::copy(std::span<void* const> operands, bool written, cudaStream_t stream) const {
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    const DnnEngine::Operand& operand = engine_->operands_[i];
    if (!copies_[i] || operand.written != written) continue;
    void* own = copies_[i]->as<void>();
    FULCRUM_CUDA(cudaMemcpyAsync(written ? operands[i] : own, written ? own : operands[i], operand.bytes,
                                 cudaMemcpyDeviceToDevice, stream));
  }
  return done();
}

fulcrum_status DnnPlan::run(std::span<void* const> operands, cudaStream_t stream, int64_t count) {
  const std::lock_guard lock(mutex_);
  FULCRUM_STATUS(pack(operands));
  for (int64_t call = 0; call < count; ++call) {
    FULCRUM_STATUS(copy(operands, false, stream));
    FULCRUM_STATUS(DnnHandle::shared().execute(engine_->plan_, pack_, stream));
    FULCRUM_STATUS(copy(operands, true, stream));
  }
  return done();
}

}  // namespace fulcrum::backends::cuda
