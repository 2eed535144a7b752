// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// OpenCV: filter2D for conv2d, and a threshold with a median filter beside image_segmentation. The latter votes
// differently from ours: it shows what such a filter costs, and its row says that the results differ.
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <string>

#include "part.h"

namespace fulcrum::peers::opencv {
namespace {

enum ConvDim { kBatch, kHeight, kWidth, kKernelHeight, kKernelWidth };

/// Two forms that filter2D has: the whole image with a border of zeros, and the inner part without a border.
bool keeps_size(const fulcrum_args& a, std::int64_t pad_y, std::int64_t pad_x) {
  return 2 * pad_y + 1 == a.dim[kKernelHeight] && 2 * pad_x + 1 == a.dim[kKernelWidth];
}

int supports_conv2d(const fulcrum_args* a) {
  const bool unit_steps = a->scalar[0].i == 1 && a->scalar[1].i == 1;
  const bool no_padding = a->scalar[2].i == 0 && a->scalar[3].i == 0;
  return unit_steps && (no_padding || keeps_size(*a, a->scalar[2].i, a->scalar[3].i));
}

void conv2d(const fulcrum_args& a) {
  const auto h = static_cast<int>(a.dim[kHeight]), w = static_cast<int>(a.dim[kWidth]);
  const auto kh = static_cast<int>(a.dim[kKernelHeight]), kw = static_cast<int>(a.dim[kKernelWidth]);
  const bool same = keeps_size(a, a.scalar[2].i, a.scalar[3].i);
  const int out_h = same ? h : h - kh + 1, out_w = same ? w : w - kw + 1;
  const cv::Mat taps(kh, kw, CV_32F, a.ptr[1]);
  for (std::int64_t b = 0; b < a.dim[kBatch]; ++b) {
    const cv::Mat image(h, w, CV_32F, a.out<float>(0) + b * h * w);
    cv::Mat out(out_h, out_w, CV_32F, a.out<float>(2) + b * out_h * out_w);
    if (same) {
      cv::filter2D(image, out, CV_32F, taps, cv::Point(kw / 2, kh / 2), 0, cv::BORDER_CONSTANT);
    } else {
      // A part of an image: filter2D reads on beyond it, so that no border enters.
      cv::filter2D(image(cv::Rect(kw / 2, kh / 2, out_w, out_h)), out, CV_32F, taps,
                   cv::Point(kw / 2, kh / 2), 0, cv::BORDER_REPLICATE);
    }
  }
}

/// Levels of t / 2 to labels: below 1 -> 0, then 3, 2, 1.
const cv::Mat& label_table() {
  static const cv::Mat table = [] {
    cv::Mat made(1, 256, CV_8U, cv::Scalar(1));
    made.at<unsigned char>(0) = 0;
    made.at<unsigned char>(1) = 3;
    made.at<unsigned char>(2) = 2;
    return made;
  }();
  return table;
}

void image_segmentation(const fulcrum_args& a) {
  const auto h = static_cast<int>(a.dim[0]), w = static_cast<int>(a.dim[1]);
  const cv::Mat image(h, w, CV_32F, a.ptr[0]);
  cv::Mat out(h, w, CV_8U, a.ptr[1]);
  auto& levels = *static_cast<cv::Mat*>(a.plan);
  image.convertTo(levels, CV_8U, 2 / a.scalar[0].f, -0.5);
  cv::LUT(levels, label_table(), levels);
  cv::medianBlur(levels, out, 3);
}
int supports_segmentation(const fulcrum_args* a) {
  return a->dim[0] > 0 && a->dim[1] > 0 && a->scalar[0].f > 0 && a->scalar[1].i == 0;
}
fulcrum_status plan_levels(const fulcrum_kernel*, const fulcrum_args*, void** plan) {
  *plan = new cv::Mat;
  return done();
}
void drop_levels(void* plan) { delete static_cast<cv::Mat*>(plan); }

template <void (*kCall)(const fulcrum_args&), bool kAll>
fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  cv::setNumThreads(kAll ? usable_threads() : 1);
  try {
    return repeat(count, [a] { kCall(*a); });
  } catch (const cv::Exception&) {
    return {FULCRUM_UNSUPPORTED, "OpenCV refused the call"};
  }
}

template <void (*kCall)(const fulcrum_args&)>
void add(Kernels& kernels, fulcrum_kernel entry) {
  entry.variant = "opencv";
  entry.threads = usable_threads();
  entry.run = run<kCall, true>;
  kernels.push_back(entry);
  if (usable_threads() == 1) return;
  entry.variant = "opencv_t1";
  entry.threads = 1;
  entry.run = run<kCall, false>;
  kernels.push_back(entry);
}

const char* isa() {
  return cv::checkHardwareSupport(CV_CPU_AVX_512F) ? "avx512"
         : cv::checkHardwareSupport(CV_CPU_AVX2)   ? "avx2"
                                                   : "sse";
}
const char* version() {
  static const std::string text = "OpenCV " + cv::getVersionString();
  return text.c_str();
}
const char* detail() {
  static const std::string text = std::string(version()) + ", " + cv::getCPUFeaturesLine();
  return text.c_str();
}

const Part* part() {
  static const Kernels kernels = [] {
    Kernels list;
    add<conv2d>(list, {.op = "conv2d", .supports = supports_conv2d});
    add<image_segmentation>(list, {.op = "image_segmentation",
                                   .supports = supports_segmentation,
                                   .plan = plan_levels,
                                   .drop = drop_levels});
    finish(list, isa, detail);
    return list;
  }();
  static const Part instance{kernels.data(), static_cast<std::int64_t>(kernels.size()), version(), isa()};
  return &instance;
}

}  // namespace
}  // namespace fulcrum::peers::opencv

FULCRUM_PEER_PART const fulcrum::peers::Part* fulcrum_peer_part() { return fulcrum::peers::opencv::part(); }
