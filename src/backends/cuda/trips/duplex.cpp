// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The path `duplex`: a pipeline of pieces, their sizes and the ways they travel chosen by timing. It is also the
// answer to a call that the device's memory cannot hold: a ring of a few pieces then passes all of it through.
#include "backends/cuda/trips/pipeline.h"
#include "backends/cuda/trips/race.h"
#include "backends/cuda/trips/trip.h"

namespace fulcrum::backends::cuda::trips {
namespace {

/// Launching a graph of copies saves some microseconds a call at most: not worth trying beyond this.
constexpr std::int64_t kDuplexRecordedUpTo = 64 << 20;

/// Of the likeliest cuts, how many are also tried with copies in batches.
constexpr int kBatched = 3;

/// Pipelines worth timing for a call whose operands are all on the device at once.
std::vector<PipelineKind> kinds_for(const Cargo& cargo) {
  std::vector<PipelineKind> kinds;
  const auto add = [&](const PipelineKind& kind) {
    kinds.push_back(kind);
    if (cargo.bytes() > kDuplexRecordedUpTo) return;
    kinds.push_back(kind);
    kinds.back().recorded = true;
  };
  const auto inputs = std::count_if(cargo.buffers.begin(), cargo.buffers.end(),
                                    [](const Buffer& buffer) { return buffer.in && buffer.slice_bytes > 0; });
  int batched = inputs > 1 ? kBatched : 0;
  for (const Shares& shares : uneven_cuts(cargo)) {
    add(PipelineKind{.shares = shares});
    if (batched-- > 0) kinds.push_back(PipelineKind{.shares = shares, .batched = true});
  }
  for (const std::int64_t pieces : even_cuts(cargo)) add(PipelineKind{.pieces = pieces});
  if (kinds.empty()) kinds.push_back(PipelineKind{.pieces = 2});
  return kinds;
}

/// " 50/28/15/7t%": the shares; t: results written through, m: on mapped memory.
std::string shares_text(const Shares& shares) {
  std::string text;
  for (const Share& share : shares) {
    text += (text.empty() ? " " : "/") + std::to_string(share.percent) +
            (share.way == Way::mapped    ? "m"
             : share.way == Way::through ? "t"
                                         : "");
  }
  return text.empty() ? text : text + "%";
}

class DuplexTrip : public Trip {
 public:
  fulcrum_status open(const Cargo& cargo) override {
    if (!cargo.sliceable()) {
      return failed(FULCRUM_UNSUPPORTED,
                    "this call cannot be cut into pieces, so there is no duplex path for it");
    }
    parts_.cargo = cargo;
    std::size_t free_bytes = 0, total_bytes = 0;
    FULCRUM_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    const auto room = static_cast<std::int64_t>(free_bytes);
    const fulcrum_status whole = cargo.bytes() <= room / 2 ? parts_.memory.open(cargo)
                                                           : fulcrum_status{FULCRUM_OUT_OF_MEMORY, nullptr};
    if (whole.code == FULCRUM_OUT_OF_MEMORY) {
      FULCRUM_STATUS(open_ring(room / 4));
    } else {
      FULCRUM_STATUS(whole);
    }
    FULCRUM_STATUS(parts_.host.open(cargo));
    FULCRUM_STATUS(parts_.open_streams());
    return choose(parts_.ring_length > 0 ? std::vector<PipelineKind>{PipelineKind{.pieces = ring_pieces_}}
                                         : kinds_for(cargo));
  }

  fulcrum_status once() override { return pipeline_->once(); }

  std::string detail() const override {
    const PipelineKind& kind = pipeline_->kind();
    const std::string count = std::to_string(kind.pieces);
    return (parts_.ring_length > 0 ? "duplex, cut into " + count + " pieces"
                                   : "duplex, " + count + " chunks" + shares_text(kind.shares)) +
           (kind.recorded ? ", recorded" : "") + (kind.batched ? ", batched" : "") +
           (parts_.host.staged() ? ", operands staged" : "");
  }

 private:
  /// Memory for a few pieces within `cap_bytes`, or within less of it when even that is refused.
  fulcrum_status open_ring(std::int64_t cap_bytes) {
    constexpr std::int64_t ring = PipelineParts::kRing;
    fulcrum_status status{FULCRUM_OUT_OF_MEMORY, nullptr};
    for (; status.code == FULCRUM_OUT_OF_MEMORY; cap_bytes /= 2) {
      parts_.memory.clear();
      const std::int64_t pieces = pieces_within(parts_.cargo, cap_bytes, ring);
      if (pieces == 0)
        return failed(FULCRUM_OUT_OF_MEMORY, "not even one piece of the call fits on the device");
      const std::vector<Slice> slices = cut(parts_.cargo.length(), grain(parts_.cargo), pieces);
      ring_pieces_ = static_cast<std::int64_t>(slices.size());
      parts_.ring_length = slices.front().length;  // the longest
      status = take_ring();
    }
    return status;
  }

  fulcrum_status take_ring() {
    for (const Buffer& buffer : parts_.cargo.buffers) {
      const std::int64_t place_bytes = (buffer.slice_bytes * parts_.ring_length + 255) / 256 * 256;
      FULCRUM_STATUS(
          parts_.memory.add(buffer.slice_bytes == 0 ? buffer.bytes : place_bytes * PipelineParts::kRing));
    }
    return done();
  }

  fulcrum_status choose(const std::vector<PipelineKind>& kinds) {
    std::vector<std::unique_ptr<Pipeline>> pipelines;
    fulcrum_status last = done();
    for (const PipelineKind& kind : kinds) {
      pipelines.push_back(std::make_unique<Pipeline>());
      const fulcrum_status opened = pipelines.back()->open(parts_, kind);
      if (opened.code == FULCRUM_OK) continue;
      pipelines.pop_back();
      last = opened;
    }
    if (pipelines.empty()) return last;
    const RaceRules rules{.warm_ups = 3, .rounds = 9, .seconds_each = 0.012, .hopeless = 1.15};
    const int winner =
        pipelines.size() == 1 ? 0 : race(static_cast<int>(pipelines.size()), rules, [&](int i) {
          return seconds_of([&] { return last = pipelines[static_cast<std::size_t>(i)]->once(); });
        });
    if (winner < 0) return last;
    pipeline_ = std::move(pipelines[static_cast<std::size_t>(winner)]);
    return done();
  }

  PipelineParts parts_;
  std::int64_t ring_pieces_ = 0;
  std::unique_ptr<Pipeline> pipeline_;  // goes before the parts that it uses
};

}  // namespace

std::unique_ptr<Trip> make_duplex() { return std::make_unique<DuplexTrip>(); }

}  // namespace fulcrum::backends::cuda::trips
