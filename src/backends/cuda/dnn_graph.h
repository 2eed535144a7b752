// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// An operation graph of cuDNN's is written down with DnnGraph, the library proposes engines for it, a DnnEngine is one
// of them, built, and a DnnPlan calls it.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backends/cuda/dnn.h"

namespace fulcrum::backends::cuda {

using DnnSizes = std::vector<int64_t>;

/// Where a tensor lies: in memory of the caller, read or written, or only inside the engine.
enum class DnnPlace : int32_t { input, output, inside };

/// Number of a tensor in its graph.
using DnnId = int;
constexpr DnnId kNoTensor = -1;

/// An engine with its settings, and what it says of its arithmetic.
struct DnnProposal {
  DnnDescriptor config;
  bool tensor_core = false, down_converts = false, reduces_precision = false;
  bool winograd = false, fft = false, nondeterministic = false;
};

/// After a failure everything does nothing; propose() finds nothing then and trouble() tells the first.
class DnnGraph {
 public:
  /// Inputs and outputs are the operands of a plan, in the order in which they are made.
  DnnId tensor(DnnPlace place, cudnnDataType_t type, const DnnSizes& sizes, const DnnSizes& strides);
  /// A tensor inside, packed.
  DnnId inside(cudnnDataType_t type, const DnnSizes& sizes);
  /// One number that travels with each call.
  DnnId value(float number);
  DnnId value(int32_t number);

  void matmul(DnnId a, DnnId b, DnnId c);
  /// y = mode(x), mode(x, b), or t ? x : b.
  void pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t compute, DnnId y, DnnId x, DnnId b = kNoTensor,
                 DnnId t = kNoTensor);
  /// y = the place along the axis.
  void index_along(int64_t axis, DnnId y, DnnId like);
  void reduce(cudnnReduceTensorOp_t operation, DnnId y, DnnId x);
  void convolve(cudnnDataType_t compute, DnnId y, DnnId x, DnnId w, const DnnSizes& strides,
                const DnnSizes& padding);

  /// Ends the graph and asks for engines: the library's ranking, then those that it falls back to.
  std::vector<DnnProposal> propose();
  const DnnTrouble& trouble() const { return trouble_; }

 private:
  friend class DnnEngine;
  friend class DnnPlan;
  struct Tensor {
    DnnDescriptor descriptor;
    int64_t bytes = 0;
    DnnPlace place = DnnPlace::inside;
  };
  struct Value {
    DnnId id;
    std::array<char, 4> bytes;
  };

  DnnId describe(DnnPlace place, bool by_value, cudnnDataType_t type, const DnnSizes& sizes,
                 const DnnSizes& strides);
  DnnId add_value(const void* bytes, cudnnDataType_t type);
  void link(DnnDescriptor& operation, cudnnBackendAttributeName_t name, DnnId id);
  void add_operation(DnnDescriptor settings, DnnDescriptor operation);
  void finish();
  void ask(cudnnBackendHeurMode_t mode, std::vector<DnnProposal>& into);

  std::vector<Tensor> tensors_;
  std::vector<DnnId> operands_;
  std::vector<Value> values_;
  std::deque<DnnDescriptor> settings_, operations_;  // operations point to their settings
  DnnDescriptor graph_;
  DnnTrouble trouble_;
};

/// A proposal built for its graph: code on the device, nothing of a call. It does not need the graph any longer, and
/// many plans may share it: building takes from milliseconds to seconds.
class DnnEngine {
 public:
  static fulcrum_status make(const DnnGraph& graph, const DnnProposal& proposal,
                             std::shared_ptr<DnnEngine>* engine);
  /// The first of the proposals that can be built.
  static fulcrum_status first(const DnnGraph& graph, std::span<const DnnProposal> proposals,
                              std::shared_ptr<DnnEngine>* engine);

  struct Operand {
    int64_t uid;
    std::size_t bytes;
    bool written;
  };
  /// In the order of the graph's inputs and outputs.
  std::span<const Operand> operands() const { return operands_; }

 private:
  friend class DnnPlan;
  DnnDescriptor plan_;
  std::vector<Operand> operands_;
  std::vector<DnnGraph::Value> values_;
  std::size_t workspace_bytes_ = 0;
};

/// An engine with the memory that a call needs.
class DnnPlan {
 public:
  /// `operands` are looked at for their alignment only: those at odd addresses travel through a copy, for which room is
  /// made here.
  static fulcrum_status make(std::shared_ptr<DnnEngine> engine, std::span<void* const> operands,
                             std::unique_ptr<DnnPlan>* plan);
  /// Enqueues `count` calls; may be recorded.
  fulcrum_status run(std::span<void* const> operands, cudaStream_t stream, int64_t count);

 private:
  void* place(std::size_t i, void* operand) const { return copies_[i] ? copies_[i]->as<void>() : operand; }
  fulcrum_status pack(std::span<void* const> operands);
  fulcrum_status copy(std::span<void* const> operands, bool written, cudaStream_t stream) const;

  std::shared_ptr<DnnEngine> engine_;
  std::vector<std::unique_ptr<Scratch>> copies_;  // null for operands that are used where they are
  DnnDescriptor pack_;
  std::vector<void*> packed_;  // the places that pack_ names
  Scratch workspace_;
  std::mutex mutex_;
};

/// What was chosen, by what it was chosen for. Few: engines hold code on the device.
template <class Key, class Choice>
class DnnChoices {
 public:
  template <class Make>  // fulcrum_status(Choice*)
  fulcrum_status find(const Key& key, const Make& make, Choice* choice) {
    constexpr std::size_t kMost = 128;
    const std::lock_guard lock(mutex_);  // one search at a time: two would time each other
    if (const auto found = known_.find(key); found != known_.end()) {
      *choice = found->second;
      return done();
    }
    FULCRUM_STATUS(make(choice));
    if (known_.size() >= kMost) known_.clear();
    known_.emplace(key, *choice);
    return done();
  }

 private:
  std::mutex mutex_;
  std::map<Key, Choice> known_;
};

}  // namespace fulcrum::backends::cuda
