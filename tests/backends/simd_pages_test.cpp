// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Operands that end where the memory ends: a vector that reaches behind one of them, or an instruction that looks at lanes
// which it does not write, ends the test.
#include <fmt/format.h>
#include <fulcrum/backends.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <deque>

#include "support/instances.h"

namespace fulcrum::test {
namespace {

/// Memory whose last byte is the last one of its page, in front of a page that nobody may touch.
class BeforeTheEnd {
 public:
  explicit BeforeTheEnd(std::span<const std::byte> content) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t pages = (content.size() + page - 1) / page;
    size_ = (pages + 1) * page;
    void* memory = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FULCRUM_ASSERT(memory != MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
    FULCRUM_ASSERT(::mprotect(memory_ + pages * page, page, PROT_NONE) == 0);
    data_ = {memory_ + pages * page - content.size(), content.size()};
    if (!content.empty()) std::memcpy(data_.data(), content.data(), content.size());
  }
  BeforeTheEnd(const BeforeTheEnd&) = delete;
  BeforeTheEnd& operator=(const BeforeTheEnd&) = delete;
  ~BeforeTheEnd() { ::munmap(memory_, size_); }
  std::span<std::byte> data() const { return data_; }

 private:
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
  std::span<std::byte> data_;
};

class SimdPages : public ::testing::TestWithParam<std::string> {
 protected:
  static bool is_pointer(const ops::Slot& slot) {
    using Kind = ops::SlotKind;
    return slot.kind == Kind::in || slot.kind == Kind::out || slot.kind == Kind::inout;
  }
  void check(const ops::Op& op, std::string_view shape) {
    SCOPED_TRACE(fmt::format("{} {}", op.name, shape));
    auto problem = ops::Problem::make(op, *parse_shape(shape));
    const auto kernel = backends::kernel(op.name, "simd");
    if (!problem.ok() || !kernel.ok() || !kernel->supports(problem->args())) return;
    Args args = problem->args();
    std::deque<BeforeTheEnd> memory;
    std::vector<int> outputs;
    int pointer = 0;
    for (const ops::Slot& slot : op.slots) {
      if (!is_pointer(slot)) continue;
      const int number = pointer++;
      if (!args.ptr[number]) continue;
      args.ptr[number] = memory.emplace_back(problem->buffer(number)).data().data();
      if (slot.kind != ops::SlotKind::in) outputs.push_back(number);
    }
    for (const Args& at : {problem->args(), args}) {
      auto call = backends::Call::make(*kernel, at);
      ASSERT_TRUE(call.ok()) << call.error().message;
      ASSERT_EQ(call->run().code, FULCRUM_OK);
    }
    for (const int number : outputs) {
      const auto expected = problem->buffer(number);
      EXPECT_EQ(std::memcmp(args.ptr[number], expected.data(), expected.size()), 0) << "operand " << number;
    }
  }
  ForcedIsa isa_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Isas, SimdPages, ::testing::ValuesIn(backends::isas()),
                         [](const auto& info) { return info.param; });

TEST_P(SimdPages, OperandsMayEndWhereTheMemoryEnds) {
  for (const ops::Op* op : ops::all()) {
    if (op->is_probe() || op->needs_prepared || op->list_lengths) continue;
    for (const std::string_view shape : op->edge_shapes) ASSERT_NO_FATAL_FAILURE(check(*op, shape));
  }
}

TEST_P(SimdPages, SoMayThoseOfProductsAndConvolutionsOfEveryWidth) {
  const ops::Op& matmul = op_of("matmul");
  for (const char* rows : {"M=3", "M=20", "M=47"}) {
    for (int n = 15; n < 54; ++n) {
      for (const char* depth : {"K=1", "K=7", "K=40"})
        ASSERT_NO_FATAL_FAILURE(check(matmul, fmt::format("{},N={},{}", rows, n, depth)));
    }
  }
  for (int n = 50; n < 82; ++n) {
    for (const int k : {1, 3, 8, 12, 31})
      ASSERT_NO_FATAL_FAILURE(check(matmul, fmt::format("M=1,N={},K={}", n, k)));
  }
  ASSERT_NO_FATAL_FAILURE(check(matmul, "M=7,N=517,K=700"));
  const ops::Op& conv2d = op_of("conv2d");
  for (int w = 1; w < 140; ++w) {
    for (const char* rest :
         {"kh=4,kw=4,stride_y=2,stride_x=2", "kh=3,kw=3,stride_y=2,stride_x=2,pad_y=1,pad_x=1",
          "kh=3,kw=5,stride_x=3,pad_x=2", "kh=5,kw=5,pad_y=2,pad_x=2", "kh=3,kw=3"})
      ASSERT_NO_FATAL_FAILURE(check(conv2d, fmt::format("h=6,w={},{}", w, rest)));
  }
}

}  // namespace
}  // namespace fulcrum::test
