// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Pieces of a call on several streams: piece i+1 comes in while i is at work and i-1 goes out, so that the link carries
// both directions at once. With a ring, a piece takes the place of the one three before it, once that has left.
#include "backends/cuda/trips/pipeline.h"

#include <cstring>

namespace fulcrum::backends::cuda::trips {

fulcrum_status PipelineParts::open_streams() {
  FULCRUM_STATUS(forked.open());
  for (std::int64_t i = 0; i < kRing; ++i) {
    FULCRUM_STATUS(arrived[i].open());
    FULCRUM_STATUS(left[i].open());
  }
  for (Event& event : finished) FULCRUM_STATUS(event.open());
  FULCRUM_STATUS(in.open());
  // What the copy engines wait for goes first: a kernel on mapped memory may have filled the device.
  for (Stream& stream : lane) FULCRUM_STATUS(stream.open(Stream::kUrgent));
  return aside.open();
}

/// Where a piece's part of a buffer lies on the device.
char* Pipeline::device(std::size_t buffer, const Slice& slice, std::int64_t index) const {
  char* const base = parts_->memory.at(buffer);
  const std::int64_t slice_bytes = parts_->cargo.buffers[buffer].slice_bytes;
  if (parts_->ring_length == 0) return base + slice_bytes * slice.begin;
  const std::int64_t place_bytes = (slice_bytes * parts_->ring_length + 255) / 256 * 256;
  return base + place_bytes * (index % PipelineParts::kRing);
}

fulcrum_status Pipeline::open_piece(const Leg& leg) {
  const Cargo& cargo = parts_->cargo;
  fulcrum_args args = sliced(cargo, leg.slice);
  for (std::size_t i = 0; i < cargo.buffers.size(); ++i) {
    const Buffer& buffer = cargo.buffers[i];
    const bool on_host = leg.way == Way::mapped || (leg.way == Way::through && buffer.out);
    place(args, buffer,
          on_host ? parts_->host.device(i) + buffer.slice_bytes * leg.slice.begin
                  : device(i, leg.slice, count()));
  }
  Piece piece{leg, 0};
  for (; piece.station < stations_.size(); ++piece.station) {
    const fulcrum_args& known = stations_[piece.station]->args();
    if (std::memcmp(known.ptr, args.ptr, sizeof args.ptr) == 0 &&
        known.dim[cargo.slice_dim] == leg.slice.length)
      break;
  }
  if (piece.station == stations_.size()) {
    stations_.push_back(std::make_unique<Station>());
    FULCRUM_STATUS(stations_.back()->open(cargo.kernel, args));
  }
  (leg.way == Way::mapped ? aside_ : pieces_).push_back(piece);
  return done();
}

fulcrum_status Pipeline::open(PipelineParts& parts, const PipelineKind& kind) {
  parts_ = &parts;
  kind_ = kind;
  const std::int64_t length = parts.cargo.length(), unit = grain(parts.cargo);
  for (const Leg& leg :
       kind.shares.empty() ? legs_of(length, unit, kind.pieces) : legs_of(length, unit, kind.shares)) {
    FULCRUM_STATUS(open_piece(leg));
  }
  if (pieces_.empty()) return failed(FULCRUM_UNSUPPORTED, "too short to be cut like this");
  kind_.pieces = count() + static_cast<std::int64_t>(aside_.size());
  if (!kind_.recorded) return kind_.batched ? once() : done();  // batches may not be there
  // A first trip call by call loads the kernels, which the recorded launches should not have to.
  kind_.recorded = false;
  FULCRUM_STATUS(once());
  kind_.recorded = true;
  return recording_.record(parts.in, [&] { return enqueue(); });
}

fulcrum_status Pipeline::enqueue_in(std::int64_t index) {
  const Cargo& cargo = parts_->cargo;
  const Slice& slice = pieces_[static_cast<std::size_t>(index)].leg.slice;
  const std::int64_t place = index % PipelineParts::kRing;
  if (parts_->ring_length > 0 && index >= PipelineParts::kRing) {
    FULCRUM_CUDA(cudaStreamWaitEvent(parts_->in, parts_->left[place], 0));
  }
  Sending together;
  for (std::size_t i = 0; i < cargo.buffers.size(); ++i) {
    const Buffer& buffer = cargo.buffers[i];
    if (!buffer.in || buffer.slice_bytes == 0) continue;
    char* const to = device(i, slice, index);
    const char* const from = parts_->host.host(i) + buffer.slice_bytes * slice.begin;
    const std::int64_t bytes = buffer.slice_bytes * slice.length;
    if (kind_.batched) {
      together.add(to, from, bytes);
    } else {
      FULCRUM_STATUS(send(to, from, bytes, parts_->in));
    }
  }
  if (kind_.batched) FULCRUM_STATUS(together.enqueue(parts_->in));
  FULCRUM_CUDA(cudaEventRecord(parts_->arrived[place], parts_->in));
  return done();
}

fulcrum_status Pipeline::enqueue_work(std::int64_t index) {
  const Cargo& cargo = parts_->cargo;
  const Piece& piece = pieces_[static_cast<std::size_t>(index)];
  const std::int64_t place = index % PipelineParts::kRing;
  const Stream& lane = parts_->lane[place];
  FULCRUM_CUDA(cudaStreamWaitEvent(lane, parts_->arrived[place], 0));
  FULCRUM_STATUS(stations_[piece.station]->enqueue(lane, cargo.calls));
  for (std::size_t i = 0; i < cargo.buffers.size() && piece.leg.way == Way::copied; ++i) {
    const Buffer& buffer = cargo.buffers[i];
    if (!buffer.out) continue;
    FULCRUM_STATUS(fetch(parts_->host.host(i) + buffer.slice_bytes * piece.leg.slice.begin,
                         device(i, piece.leg.slice, index), buffer.slice_bytes * piece.leg.slice.length,
                         lane));
  }
  if (parts_->ring_length > 0) FULCRUM_CUDA(cudaEventRecord(parts_->left[place], lane));
  return done();
}

/// Nothing has to come first; only a recording must be told that this stream belongs to it.
fulcrum_status Pipeline::enqueue_aside() {
  for (const Piece& piece : aside_) {
    FULCRUM_STATUS(stations_[piece.station]->enqueue(parts_->aside, parts_->cargo.calls));
  }
  return done();
}

/// All of it. The inputs of a piece are enqueued before the work on the one before it, so that the link does not wait
/// for the host; what goes on beside the copies is launched behind the first of them.
fulcrum_status Pipeline::enqueue() {
  const Cargo& cargo = parts_->cargo;
  if (kind_.recorded && !aside_.empty()) {
    FULCRUM_CUDA(cudaEventRecord(parts_->forked, parts_->in));
    FULCRUM_CUDA(cudaStreamWaitEvent(parts_->aside, parts_->forked, 0));
  }
  for (std::size_t i = 0; i < cargo.buffers.size(); ++i) {
    const Buffer& buffer = cargo.buffers[i];
    if (buffer.slice_bytes == 0 && buffer.in) {
      FULCRUM_STATUS(send(parts_->memory.at(i), parts_->host.host(i), buffer.bytes, parts_->in));
    }
  }
  FULCRUM_STATUS(enqueue_in(0));
  FULCRUM_STATUS(enqueue_aside());
  for (std::int64_t index = 0; index < count(); ++index) {
    if (index + 1 < count()) FULCRUM_STATUS(enqueue_in(index + 1));
    FULCRUM_STATUS(enqueue_work(index));
  }
  return kind_.recorded ? join() : done();
}

/// A recording must end on the stream where it began.
fulcrum_status Pipeline::join() {
  const auto joined = [&](const Stream& stream, const Event& event) -> fulcrum_status {
    FULCRUM_CUDA(cudaEventRecord(event, stream));
    FULCRUM_CUDA(cudaStreamWaitEvent(parts_->in, event, 0));
    return done();
  };
  for (std::int64_t i = 0; i < std::min(count(), PipelineParts::kRing); ++i) {
    FULCRUM_STATUS(joined(parts_->lane[i], parts_->finished[i]));
  }
  return aside_.empty() ? done() : joined(parts_->aside, parts_->finished[PipelineParts::kRing]);
}

/// The lane of the last piece first: the others are then mostly done. Everything on `in` came before one of them.
fulcrum_status Pipeline::wait() const {
  if (kind_.recorded) return parts_->in.wait();
  for (std::int64_t index = count() - 1; index >= std::max<std::int64_t>(0, count() - PipelineParts::kRing);
       --index) {
    FULCRUM_STATUS(parts_->lane[index % PipelineParts::kRing].wait());
  }
  return aside_.empty() ? done() : parts_->aside.wait();
}

fulcrum_status Pipeline::once() {
  parts_->host.load();
  fulcrum_status status = kind_.recorded ? recording_.launch(parts_->in) : enqueue();
  if (status.code == FULCRUM_OK) status = wait();
  if (status.code != FULCRUM_OK) {  // part of it may be under way, and plans and memory may go next
    cudaStreamSynchronize(parts_->in);
    cudaStreamSynchronize(parts_->aside);
    for (const Stream& stream : parts_->lane) cudaStreamSynchronize(stream);
    return status;
  }
  parts_->host.store();
  return done();
}

}  // namespace fulcrum::backends::cuda::trips
