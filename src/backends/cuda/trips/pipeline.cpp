// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Pieces of a call on three streams: piece i+1 comes in while i is at work and i-1 goes out, so that the link carries
// both directions at once. With a ring, a piece takes the place of the one three before it, once that has left.
#include "backends/cuda/trips/pipeline.h"

#include <cstring>

namespace fulcrum::backends::cuda::trips {

fulcrum_status PipelineParts::open_streams() {
  for (std::int64_t i = 0; i < kRing; ++i) {
    FULCRUM_STATUS(arrived[i].open());
    FULCRUM_STATUS(worked[i].open());
    FULCRUM_STATUS(left[i].open());
  }
  FULCRUM_STATUS(finished.open());
  FULCRUM_STATUS(in.open());
  FULCRUM_STATUS(work.open());
  return out.open();
}

/// Where a piece's part of a buffer lies on the device.
char* Pipeline::device(std::size_t buffer, const Slice& slice, std::int64_t index) const {
  char* const base = parts_->memory.at(buffer);
  const std::int64_t slice_bytes = parts_->cargo.buffers[buffer].slice_bytes;
  if (parts_->ring_length == 0) return base + slice_bytes * slice.begin;
  const std::int64_t place_bytes = (slice_bytes * parts_->ring_length + 255) / 256 * 256;
  return base + place_bytes * (index % PipelineParts::kRing);
}

fulcrum_status Pipeline::open_piece(const Slice& slice, std::int64_t index) {
  const Cargo& cargo = parts_->cargo;
  fulcrum_args args = sliced(cargo, slice);
  for (std::size_t i = 0; i < cargo.buffers.size(); ++i) {
    const Buffer& buffer = cargo.buffers[i];
    const bool through = kind_.through && buffer.out;
    place(args, buffer,
          through ? parts_->host.device(i) + buffer.slice_bytes * slice.begin : device(i, slice, index));
  }
  Piece piece{slice, 0};
  for (; piece.station < stations_.size(); ++piece.station) {
    const fulcrum_args& known = stations_[piece.station]->args();
    if (std::memcmp(known.ptr, args.ptr, sizeof args.ptr) == 0 && known.dim[cargo.slice_dim] == slice.length)
      break;
  }
  if (piece.station == stations_.size()) {
    stations_.push_back(std::make_unique<Station>());
    FULCRUM_STATUS(stations_.back()->open(cargo.kernel, args));
  }
  pieces_.push_back(piece);
  return done();
}

fulcrum_status Pipeline::open(PipelineParts& parts, const PipelineKind& kind) {
  parts_ = &parts;
  kind_ = kind;
  std::int64_t index = 0;
  for (const Slice& slice : cut(parts.cargo.length(), grain(parts.cargo), kind.pieces)) {
    FULCRUM_STATUS(open_piece(slice, index++));
  }
  kind_.pieces = index;
  if (!kind_.recorded) return done();
  kind_.recorded =
      false;  // a first trip call by call loads the kernels, which the recorded launches should not have to
  FULCRUM_STATUS(once());
  kind_.recorded = true;
  return recording_.record(parts.in, [&] { return enqueue(); });
}

fulcrum_status Pipeline::enqueue_in(const Piece& piece, std::int64_t index) {
  const Cargo& cargo = parts_->cargo;
  const std::int64_t place = index % PipelineParts::kRing;
  if (parts_->ring_length > 0 && index >= PipelineParts::kRing) {
    FULCRUM_CUDA(cudaStreamWaitEvent(parts_->in, parts_->left[place], 0));
  }
  for (std::size_t i = 0; i < cargo.buffers.size(); ++i) {
    const Buffer& buffer = cargo.buffers[i];
    if (!buffer.in || buffer.slice_bytes == 0) continue;
    FULCRUM_STATUS(send(device(i, piece.slice, index),
                        parts_->host.host(i) + buffer.slice_bytes * piece.slice.begin,
                        buffer.slice_bytes * piece.slice.length, parts_->in));
  }
  FULCRUM_CUDA(cudaEventRecord(parts_->arrived[place], parts_->in));
  FULCRUM_CUDA(cudaStreamWaitEvent(parts_->work, parts_->arrived[place], 0));
  return done();
}

fulcrum_status Pipeline::enqueue_out(const Piece& piece, std::int64_t index) {
  const Cargo& cargo = parts_->cargo;
  const std::int64_t place = index % PipelineParts::kRing;
  FULCRUM_CUDA(cudaEventRecord(parts_->worked[place], parts_->work));
  FULCRUM_CUDA(cudaStreamWaitEvent(parts_->out, parts_->worked[place], 0));
  for (std::size_t i = 0; i < cargo.buffers.size(); ++i) {
    const Buffer& buffer = cargo.buffers[i];
    if (!buffer.out) continue;
    FULCRUM_STATUS(fetch(parts_->host.host(i) + buffer.slice_bytes * piece.slice.begin,
                         device(i, piece.slice, index), buffer.slice_bytes * piece.slice.length,
                         parts_->out));
  }
  if (parts_->ring_length > 0) FULCRUM_CUDA(cudaEventRecord(parts_->left[place], parts_->out));
  return done();
}

/// All of it, from `in` back to `in`: a recording must end on the stream where it began.
fulcrum_status Pipeline::enqueue() {
  const Cargo& cargo = parts_->cargo;
  for (std::size_t i = 0; i < cargo.buffers.size(); ++i) {
    const Buffer& buffer = cargo.buffers[i];
    if (buffer.slice_bytes == 0 && buffer.in) {
      FULCRUM_STATUS(send(parts_->memory.at(i), parts_->host.host(i), buffer.bytes, parts_->in));
    }
  }
  std::int64_t index = 0;
  for (const Piece& piece : pieces_) {
    FULCRUM_STATUS(enqueue_in(piece, index));
    FULCRUM_STATUS(stations_[piece.station]->enqueue(parts_->work, cargo.calls));
    if (!kind_.through) FULCRUM_STATUS(enqueue_out(piece, index));
    ++index;
  }
  FULCRUM_CUDA(cudaEventRecord(parts_->finished, kind_.through ? parts_->work : parts_->out));
  FULCRUM_CUDA(cudaStreamWaitEvent(parts_->in, parts_->finished, 0));
  return done();
}

fulcrum_status Pipeline::once() {
  parts_->host.load();
  const fulcrum_status status = kind_.recorded ? recording_.launch(parts_->in) : enqueue();
  if (status.code != FULCRUM_OK) {  // part of it may be under way, and plans and memory may go next
    for (const Stream* stream : {&parts_->in, &parts_->work, &parts_->out}) cudaStreamSynchronize(*stream);
    return status;
  }
  FULCRUM_STATUS(parts_->in.wait());
  parts_->host.store();
  return done();
}

}  // namespace fulcrum::backends::cuda::trips
