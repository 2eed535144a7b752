// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// conv2d as a sum over taps of shifted rows, image_segmentation in its two passes, pixel_entropy with a histogram of
// its own for every pixel.
#include <algorithm>
#include <cmath>

#include "loops/loops.h"

namespace fulcrum::peers::loops {
namespace {

struct Conv {
  std::int64_t h, w, kh, kw, pad_y, pad_x, out_h, out_w;
  explicit Conv(const fulcrum_args& a)
      : h(a.dim[1]),
        w(a.dim[2]),
        kh(a.dim[3]),
        kw(a.dim[4]),
        pad_y(a.scalar[2].i),
        pad_x(a.scalar[3].i),
        out_h(h + 2 * pad_y - kh + 1),
        out_w(w + 2 * pad_x - kw + 1) {}
};

/// The image with its border of zeros, so that the loops below know no border; images without padding stay.
const float* padded(const Conv& s, const float* x, std::vector<float>& memory) {
  if (s.pad_y == 0 && s.pad_x == 0) return x;
  const std::int64_t width = s.w + 2 * s.pad_x;
  for (std::int64_t y = 0; y < s.h; ++y)
    std::copy(x + y * s.w, x + (y + 1) * s.w, memory.begin() + (y + s.pad_y) * width + s.pad_x);
  return memory.data();
}

/// The loop that a compiler vectorises. Three by three, which everybody writes out, keeps the sum in a register.
void row_of(const Conv& s, const float* __restrict x, const float* __restrict k, float* __restrict out) {
  const std::int64_t width = s.w + 2 * s.pad_x;
  if (s.kh == 3 && s.kw == 3) {
    const float* __restrict middle = x + width;
    const float* __restrict last = x + 2 * width;
    for (std::int64_t c = 0; c < s.out_w; ++c) {
      out[c] = k[0] * x[c] + k[1] * x[c + 1] + k[2] * x[c + 2] + k[3] * middle[c] + k[4] * middle[c + 1] +
               k[5] * middle[c + 2] + k[6] * last[c] + k[7] * last[c + 1] + k[8] * last[c + 2];
    }
    return;
  }
  std::fill(out, out + s.out_w, 0.0f);
  for (std::int64_t r = 0; r < s.kh; ++r) {
    for (std::int64_t t = 0; t < s.kw; ++t) {
      const float tap = k[r * s.kw + t];
      const float* __restrict p = x + r * width + t;
      for (std::int64_t c = 0; c < s.out_w; ++c) out[c] += tap * p[c];
    }
  }
}

void conv2d(const fulcrum_args& a) {
  const Conv s(a);
  auto& memory = *static_cast<std::vector<float>*>(a.plan);
  for (std::int64_t b = 0; b < a.dim[0]; ++b) {
    const float* x = padded(s, a.in<float>(0) + b * s.h * s.w, memory);
    float* out = a.out<float>(2) + b * s.out_h * s.out_w;
    for (std::int64_t y = 0; y < s.out_h; ++y)
      row_of(s, x + y * (s.w + 2 * s.pad_x), a.in<float>(1), out + y * s.out_w);
  }
}
fulcrum_status plan_border(const fulcrum_kernel*, const fulcrum_args* a, void** plan) {
  const Conv s(*a);
  *plan = new std::vector<float>(static_cast<std::size_t>((s.h + 2 * s.pad_y) * (s.w + 2 * s.pad_x)));
  return done();
}
void drop_border(void* plan) { delete static_cast<std::vector<float>*>(plan); }
int unit_steps(const fulcrum_args* a) { return a->scalar[0].i == 1 && a->scalar[1].i == 1; }

/// Nine label maps side by side: bytes counted and compared without a branch.
void vote_row(const std::uint8_t* __restrict labels, std::uint8_t* __restrict out, std::int64_t w) {
  for (std::int64_t c = 1; c + 1 < w; ++c) {
    const std::uint8_t* p = labels + c;
    const std::uint8_t around[8] = {p[-w - 1], p[-w], p[-w + 1], p[-1], p[1], p[w - 1], p[w], p[w + 1]};
    std::uint8_t result = p[0];
    for (std::uint8_t label = 0; label < 4; ++label) {
      std::uint8_t votes = 0;
      for (const std::uint8_t near : around) votes += near == label;
      result = votes > 5 ? label : result;
    }
    out[c] = result;
  }
}

void image_segmentation(const fulcrum_args& a) {
  const std::int64_t h = a.dim[0], w = a.dim[1], n = h * w;
  const float* __restrict x = a.in<float>(0);
  const auto t = static_cast<float>(a.scalar[0].f), high = static_cast<float>(1.5 * a.scalar[0].f),
             low = static_cast<float>(0.5 * a.scalar[0].f);
  auto& labels = *static_cast<std::vector<std::uint8_t>*>(a.plan);
  std::uint8_t* __restrict map = labels.data();
  for (std::int64_t i = 0; i < n; ++i) map[i] = x[i] > high ? 1 : x[i] > t ? 2 : x[i] > low ? 3 : 0;
  std::uint8_t* out = a.out<std::uint8_t>(1);
  std::copy(labels.begin(), labels.end(), out);
  if (a.scalar[1].i == 1) return;
  for (std::int64_t y = 1; y + 1 < h; ++y) vote_row(map + y * w, out + y * w, w);
}
fulcrum_status plan_labels(const fulcrum_kernel*, const fulcrum_args* a, void** plan) {
  *plan = new std::vector<std::uint8_t>(static_cast<std::size_t>(a->dim[0] * a->dim[1]));
  return done();
}
void drop_labels(void* plan) { delete static_cast<std::vector<std::uint8_t>*>(plan); }

/// c * log2(c) for every count that a window can have, and the bin of every pixel.
struct Entropy {
  std::vector<double> terms;
  std::vector<std::uint8_t> bins;
};
fulcrum_status plan_entropy(const fulcrum_kernel*, const fulcrum_args* a, void** plan) {
  auto* made = new Entropy;
  const std::int64_t most = a->scalar[0].i * a->scalar[0].i;
  for (std::int64_t c = 0; c <= most; ++c)
    made->terms.push_back(c > 0 ? static_cast<double>(c) * std::log2(static_cast<double>(c)) : 0);
  made->bins.resize(static_cast<std::size_t>(a->dim[0] * a->dim[1]));
  *plan = made;
  return done();
}
void drop_entropy(void* plan) { delete static_cast<Entropy*>(plan); }

float entropy_at(const Entropy& e, std::int64_t h, std::int64_t w, std::int64_t window, std::int64_t y,
                 std::int64_t x) {
  std::uint16_t counts[256] = {};
  const std::int64_t top = std::max<std::int64_t>(y - window / 2, 0),
                     bottom = std::min(y - window / 2 + window, h);
  const std::int64_t left = std::max<std::int64_t>(x - window / 2, 0),
                     right = std::min(x - window / 2 + window, w);
  for (std::int64_t r = top; r < bottom; ++r) {
    for (std::int64_t c = left; c < right; ++c) ++counts[e.bins[r * w + c]];
  }
  double sum = 0;
  for (const std::uint16_t count : counts) sum += e.terms[count];
  const auto n = (bottom - top) * (right - left);
  return static_cast<float>((e.terms[n] - sum) / static_cast<double>(n));
}

void pixel_entropy(const fulcrum_args& a) {
  auto& e = *static_cast<Entropy*>(a.plan);
  const std::int64_t h = a.dim[0], w = a.dim[1];
  const auto low = static_cast<float>(a.scalar[3].f), high = static_cast<float>(a.scalar[4].f);
  const float scale = 256 / (high - low);
  std::int64_t clamped = 0;
  for (std::int64_t i = 0; i < h * w; ++i) {
    const float x = a.in<float>(0)[i];
    clamped += x < low || x > high;
    e.bins[i] = static_cast<std::uint8_t>(std::min(std::max((x - low) * scale, 0.0f), 255.0f));
  }
  for (std::int64_t y = 0; y < h; ++y) {
    for (std::int64_t x = 0; x < w; ++x)
      a.out<float>(1)[y * w + x] = entropy_at(e, h, w, a.scalar[0].i, y, x);
  }
  *a.out<std::int64_t>(2) = clamped;
}
int plain_entropy(const fulcrum_args* a) { return a->scalar[1].i == 0 && a->scalar[2].i == 0; }

}  // namespace

void add_images(Kernels& kernels) {
  if (kFastMath) return;
  kernels.push_back(kernel<conv2d>("conv2d", kVariant, unit_steps));
  kernels.back().plan = plan_border;
  kernels.back().drop = drop_border;
  kernels.push_back(kernel<image_segmentation>("image_segmentation", kVariant));
  kernels.back().plan = plan_labels;
  kernels.back().drop = drop_labels;
  kernels.push_back(kernel<pixel_entropy>("pixel_entropy", kVariant, plain_entropy));
  kernels.back().plan = plan_entropy;
  kernels.back().drop = drop_entropy;
}

}  // namespace fulcrum::peers::loops
