// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels added up by shape and stream, so that totals of the whole run remain where single records are not kept or were
// never made. Windows speak for the launches between them (speakers.h). Pure: nothing here knows CUPTI.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "trace/file/format.h"
#include "trace/inject/calls.h"
#include "trace/inject/speakers.h"
#include "trace/inject/usual.h"

namespace fulcrum::trace::inject {

/// The part of a window that tells how a program goes on; 0 nanoseconds: all of it does.
struct Late {
  Launches launches;
  std::int64_t ns = 0;
};

class Totals {
 public:
  struct Kernel {
    std::uint32_t shape = 0, stream = 0, context = 0;
    bool is_of_graph = false;
    std::int64_t begin_ns = 0, duration_ns = 0;
    std::int64_t grid = 0;  // the driver's number of the launch
  };
  /// A stretch without records. Where launches of kernels were not counted, the numbers of grids tell: the driver counts
  /// them whether anybody looks or not. Behind the last window there are none, and the program's other calls tell; where
  /// nobody counted those (-1), the time does.
  struct Gap {
    Launches launches;
    bool is_counted = true;
  };

  Totals() : windows_(1) { windows_.front().kernels.is_first = windows_.front().graphs.is_first = true; }

  /// Belongs to the window that had begun when it did.
  void add(const Kernel&);
  /// `stay`: how often CUPTI had been attached again.
  void begin_window(std::int64_t begin_ns, int stay = 0);
  /// The window that began last has ended: the launches within, and what was between the one before and it.
  void end_window(std::int64_t end_ns, const Launches& within, const Gap& before, const Late& late = {});

  /// Nothing more will come. What was launched behind the last window, until `end_ns`.
  std::vector<file::Total> end(std::int64_t end_ns, const Gap& behind);
  /// What would stand there if the run ended now, and a window that is open with it.
  struct Open {
    Launches within;
    Gap before;
  };
  std::vector<file::Total> standing(std::int64_t now_ns, const Open* open, const Gap& behind) const;

  /// Whether kernels are numbered one by one, memsets and the like between them: then nobody need count.
  bool numbers_fit() const;
  /// Launches within windows whose kernels CUPTI never handed over, where they are so many that no edge explains them.
  std::int64_t lost() const { return lost_; }

 private:
  struct Hash {
    std::size_t operator()(std::uint64_t key) const { return std::size_t(key * 0x9e3779b97f4a7c15u >> 7); }
  };
  /// When tracing stops while nodes of a graph run, their ends are of when it goes on, or of the program's end.
  struct Doubtful {
    std::int64_t end_ns, duration_ns;
  };
  struct Sum {
    std::uint32_t shape, stream;
    bool is_of_graph;
    std::int64_t count, sum_ns, min_ns, max_ns;
    std::uint32_t histogram[40];
    std::vector<Doubtful> doubtful{};  // and not in the sums yet

    void add(std::int64_t duration_ns);
    /// Whether it takes so much longer than those before it that its end may be that of something else.
    bool is_doubtful(std::int64_t duration_ns) const;
  };
  struct Whole {  // since the start, weighted
    double count = 0, sum_ns = 0;
    std::int64_t min_ns = INT64_MAX, max_ns = 0;
    float histogram[40] = {};
  };
  struct Grids {
    std::int64_t first = INT64_MAX, last = INT64_MIN, count = 0;
    double span() const { return double(last - first) + 1; }
  };
  struct Launched {
    std::int64_t grid, duration_ns;
    std::uint64_t key;
  };
  struct Window {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::unordered_map<std::uint64_t, Sum, Hash> sums;
    std::unordered_map<std::uint32_t, Grids> grids;  // by context
    std::int64_t kernels_seen = 0;                   // launched one by one
    Speaker kernels, graphs;
    double others = 0;  // calls that launch nothing
    Late late;
    std::int64_t announced = 0;
    int stay = 0;
    std::vector<Launched> order;  // of kernels that were launched one by one; few enough to be looked at
    double whole = 1;             // launches over those in whole turns of the loop, which sums are of
    Gap before;
  };

  static double by_numbers(const Window& before, const Window& after);
  static double rate_within(const Window&);  // kernels a nanosecond
  double kernels_between(const Window& before, Window& after);
  double by_other_calls(const Window& before, const Gap&, double passed_ns) const;
  double kernels_behind(std::int64_t end_ns, const Gap&) const;
  void add_to(Whole&, const Sum&, const Window&, bool is_calm) const;
  void add_all(Window&);
  bool is_calm(const Window&) const;
  void settle_first();
  static void keep_whole_turns(Window&);
  static void judge_doubtful(Window&);
  void count_lost(const Window&);
  file::Total total_of(std::uint64_t key, const Whole&) const;

  std::deque<Window> windows_;  // whose weights may still change: the last two or three
  std::unordered_map<std::uint64_t, Whole, Hash> wholes_;
  std::unordered_map<std::uint64_t, Usual, Hash> usual_;  // of the first stay
  std::int64_t lost_ = 0;
  double gap_rate_ = 0;  // kernels a nanosecond, in the last gap
};

}  // namespace fulcrum::trace::inject
