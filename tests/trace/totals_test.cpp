// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Totals of a run that was traced in windows: which window speaks for which gap, and what is left when a window saw
// little or nothing.
#include "trace/inject/totals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "trace/inject/course.h"
#include "trace/inject/turns.h"

namespace fulcrum::trace::inject {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

/// A program that launches one kernel after the other, seen in windows.
struct Watched {
  Totals totals;
  std::int64_t now_ns = kSecond, grid = 1, launched = 0, end_launched = 0;
  std::int64_t gap = 0, others = 0, begin_others = 0, end_others = 0;
  std::int64_t unseen_ns = 10'000;  // from a launch to the next, while nobody looks
  std::int64_t unannounced = 0;     // launches within a window that have records alone
  bool is_counted = true;
  int stay = 0;

  void launch(std::uint32_t shape, int count, bool is_seen, std::int64_t duration_ns = 1000) {
    for (int i = 0; i < count; ++i, ++grid, ++launched, now_ns += is_seen ? 10'000 : unseen_ns)
      if (is_seen)
        totals.add({.shape = shape,
                    .stream = 1,
                    .context = 1,
                    .begin_ns = now_ns,
                    .duration_ns = duration_ns,
                    .grid = grid});
  }
  void open() {
    gap = launched - end_launched;
    totals.begin_window(now_ns, stay);
    begin_launched = launched;
    begin_others = others;
  }
  void close() {
    totals.end_window(now_ns,
                      {.kernels = launched - begin_launched - unannounced, .others = others - begin_others},
                      {{.kernels = is_counted ? gap : 0, .others = begin_others - end_others}, is_counted});
    end_launched = launched;
    end_others = others;
    begin_others = others;
  }
  /// {shape: (count, nanoseconds)}
  std::map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> end() {
    std::map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> out;
    const std::int64_t behind = launched - end_launched;
    for (const file::Total& t : totals.end(
             now_ns, {{.kernels = is_counted ? behind : 0, .others = others - begin_others}, is_counted}))
      out[t.shape] = {t.count, t.sum_ns};
    return out;
  }
  std::int64_t begin_launched = 0;
};

TEST(Totals, without_windows_they_are_what_was_seen) {
  Watched run;
  run.launch(1, 100, true, 2000);
  run.launch(2, 50, true);
  run.close();
  const auto totals = run.end();
  EXPECT_EQ(totals.at(1), std::pair(std::int64_t{100}, std::int64_t{200'000}));
  EXPECT_EQ(totals.at(2), std::pair(std::int64_t{50}, std::int64_t{50'000}));
}

TEST(Totals, what_runs_once_at_the_start_counts_once) {
  Watched run;
  run.launch(9, 10, true);  // as it fills the weights of a model
  run.launch(1, 490, true, 900);
  run.close();
  run.launch(1, 9'000, false);
  run.open();
  run.launch(1, 500, true, 1100);
  run.close();
  run.launch(1, 1'000, false);
  const auto totals = run.end();
  EXPECT_EQ(totals.at(9).first, 10);
  EXPECT_EQ(totals.at(1).first, 490 + 9'000 + 500 + 1'000);
  // All but the first 490 are taken to be like the second window's.
  EXPECT_EQ(totals.at(1).second, 490 * 900 + (9'000 + 500 + 1'000) * 1'100);
}

TEST(Totals, both_windows_around_a_gap_speak_for_half_of_it_however_long_they_looked) {
  Watched run;
  run.launch(1, 100, true);
  run.close();
  run.open();
  run.launch(1, 300, true);
  run.close();
  run.launch(1, 4'000, false);
  run.open();
  run.launch(2, 100, true);
  run.close();
  run.open();
  run.launch(2, 100, true);
  run.close();
  const auto totals = run.end();
  EXPECT_EQ(totals.at(1).first, 100 + 300 + 2'000);
  EXPECT_EQ(totals.at(2).first, 100 + 100 + 2'000);
}

TEST(Totals, of_two_windows_around_a_gap_the_one_that_was_cut_short_speaks_for_little) {
  Watched run;
  run.launch(1, 100, true);
  run.close();
  run.open();
  run.launch(1, 400, true);
  run.close();
  run.launch(1, 5'000, false);
  run.open();
  run.launch(2, 25, true);  // a quarter of the quarter that would be enough
  run.close();
  const auto totals = run.end();
  EXPECT_EQ(totals.at(1).first, 100 + 400 + 4'000);
  EXPECT_EQ(totals.at(2).first, 25 + 1'000);
}

TEST(Totals, a_kernel_that_becomes_slower_evenly_is_added_up_right) {
  Watched run;
  const auto launch = [&](int count, bool is_seen) {
    for (int i = 0; i < count; ++i) run.launch(1, 1, is_seen, 30'000 + run.launched);
  };
  launch(500, true);
  run.close();
  for (const int seen : {400, 600, 1'000, 1'600, 2'400}) {
    launch(4'000, false);
    run.open();
    launch(seen, true);
    run.close();
  }
  // But for the first gap, of which the start has to be left out, and the end behind the last window.
  const double true_ns =
      30'000. * double(run.launched) + 0.5 * double(run.launched) * double(run.launched - 1);
  const double first_gap_ns = 4'000 * (4'000 + 400) / 2.;
  EXPECT_NEAR(double(run.end().at(1).second), true_ns + first_gap_ns, 0.003 * true_ns);
}

TEST(Totals, a_window_that_was_cut_short_does_not_speak_for_a_long_gap) {
  Watched run;
  run.launch(1, 400, true);
  run.close();
  run.launch(1, 4'000, false);
  run.open();
  run.launch(2, 10, true);  // and the program ends
  run.close();
  const auto totals = run.end();
  // Ten are a tenth of the quarter that would be enough.
  EXPECT_EQ(totals.at(1).first, 400 + 3'600);
  EXPECT_EQ(totals.at(2).first, 10 + 400);
}

TEST(Totals, launches_behind_a_window_without_any_belong_to_the_one_before) {
  Watched run;
  run.launch(1, 400, true);
  run.close();
  run.launch(1, 1'000, false);
  run.open();
  run.close();
  run.launch(1, 600, false);
  const auto totals = run.end();
  EXPECT_EQ(totals.at(1).first, 2'000);
}

TEST(Totals, what_nobody_before_can_speak_for_waits_for_the_next_window) {
  Watched run;
  run.close();
  run.launch(1, 1'000, false);
  run.open();
  run.close();
  run.launch(1, 500, false);
  run.open();
  run.launch(1, 500, true);
  run.close();
  const auto totals = run.end();
  EXPECT_EQ(totals.at(1).first, 2'000);
}

TEST(Totals, records_that_come_late_belong_to_the_window_they_began_in) {
  Watched run;
  run.launch(1, 100, true);
  run.close();
  run.open();
  run.launch(1, 100, true);
  run.close();
  run.launch(1, 900, false);
  const std::int64_t before_ns = run.now_ns;
  run.open();
  run.launch(1, 50, true);
  // The last one of the second window, a long one.
  run.totals.add(
      {.shape = 3, .stream = 1, .context = 1, .begin_ns = before_ns - 1, .duration_ns = 5, .grid = 0});
  run.launch(1, 50, true);
  run.close();
  run.launch(1, 2'000, false);  // which the third window speaks for
  const auto totals = run.end();
  EXPECT_EQ(totals.at(3).first, std::lround(1 + 900. / 2 / 100));
}

TEST(Totals, launches_that_nobody_counted_are_known_by_the_numbers_of_grids) {
  Watched run;
  run.unseen_ns = 7'000;
  run.unannounced = 40;
  run.launch(1, 400, true);
  run.close();
  run.is_counted = false;
  run.launch(1, 3'000, false);
  run.open();
  run.launch(1, 400, true);
  run.close();
  run.launch(1, 2'000, false);
  run.open();
  run.launch(1, 400, true);
  run.close();
  run.launch(1, 1'000, false);  // at the pace of the last gap
  EXPECT_NEAR(double(run.end().at(1).first), double(run.launched), 3);
}

/// Forty launches and one other call each.
void alike_steps(Watched& run, int count, bool is_seen) {
  for (int i = 0; i < count; ++i) run.launch(1, 40, is_seen), ++run.others;
}

/// Two windows, and much that was launched behind the last one; nobody counts launches.
void run_beyond_the_last_window(Watched& run) {
  alike_steps(run, 100, true);
  run.close();
  run.is_counted = false;
  alike_steps(run, 100, false);
  run.open();
  alike_steps(run, 30, true);
  run.close();
  alike_steps(run, 200, false);
}

TEST(Totals, behind_the_last_window_other_calls_tell_how_much_was_launched) {
  Watched run;
  run_beyond_the_last_window(run);
  run.now_ns += 9 * kSecond;  // in which it did nothing
  EXPECT_NEAR(double(run.end().at(1).first), double(run.launched), 3);
}

TEST(Totals, a_window_that_opens_when_all_is_done_has_no_numbers_and_other_calls_tell) {
  Watched run;
  run_beyond_the_last_window(run);
  run.now_ns += kSecond;
  run.open();
  run.close();
  EXPECT_NEAR(double(run.end().at(1).first), double(run.launched), 3);
}

TEST(Totals, numbers_that_other_work_has_too_are_taken_by_their_share) {
  Watched run;
  const auto step = [&](bool is_seen) {
    run.launch(1, 3, is_seen);
    ++run.grid;  // a memset
  };
  for (int i = 0; i < 200; ++i) step(true);
  run.close();
  run.is_counted = false;
  for (int i = 0; i < 1'000; ++i) step(false);
  run.open();
  for (int i = 0; i < 200; ++i) step(true);
  run.close();
  EXPECT_NEAR(double(run.end().at(1).first), double(run.launched), 0.01 * double(run.launched));
}

TEST(Totals, numbers_fit_where_each_kernel_has_one_and_little_else_has) {
  const auto fit = [](int launched, int numbers_apart) {
    Watched run;
    for (int i = 0; i < launched; ++i) {
      run.launch(1, 1, true);
      run.grid += numbers_apart - 1;
    }
    return run.totals.numbers_fit();
  };
  EXPECT_TRUE(fit(300, 1));
  EXPECT_TRUE(fit(300, 2));
  EXPECT_FALSE(fit(300, 3)) << "what else is numbered nobody knows";
  EXPECT_FALSE(fit(300, 0)) << "all have the same";
  EXPECT_FALSE(fit(100, 1)) << "too few to tell";
}

TEST(Totals, numbers_that_stand_still_between_windows_are_not_believed) {
  Watched run;
  alike_steps(run, 100, true);
  run.close();
  run.is_counted = false;
  const std::int64_t grid = run.grid;
  alike_steps(run, 200, false);
  run.grid = grid;
  run.open();
  alike_steps(run, 50, true);
  run.close();
  EXPECT_NEAR(double(run.end().at(1).first), double(run.launched), 3);
}

TEST(Totals, a_thread_whose_kernels_never_came_is_told) {
  Watched run;
  run.launch(1, 1'000, true);
  run.close();
  run.open();
  run.launch(1, 600, true);
  run.launch(2, 400, false);
  run.close();
  run.end();
  EXPECT_EQ(run.totals.lost(), 400);
  Watched edges;
  edges.launch(1, 1'000, true);
  edges.launch(1, 5, false);
  edges.close();
  edges.end();
  EXPECT_EQ(edges.totals.lost(), 0);
}

/// Four launches with each other call, and forty calls at the start that never come again.
struct Started : Watched {
  Late late;
  Started() {
    others = 40;
    launch(1, 100, true);
    Course course;
    for (int i = 0; i < 400; ++i) {
      course.note(now_ns, {.kernels = launched, .others = others});
      launch(1, 4, true);
      ++others;
    }
    late = course.later_half(now_ns, {.kernels = launched, .others = others});
  }
  std::int64_t end_after(int more, bool is_seen) {
    totals.end_window(now_ns, {.kernels = launched, .others = others}, {}, late);
    const std::int64_t before = others;
    launch(1, 4 * more, false);
    const auto all =
        totals.end(now_ns, {{.kernels = 0, .others = is_seen ? others + more - before : -1}, false});
    return all.at(0).count;
  }
};

TEST(Totals, calls_at_the_start_do_not_tell_how_many_launches_go_with_one) {
  EXPECT_NEAR(double(Started().end_after(3'000, true)), 1'700 + 12'000, 100);
  Started pause;  // nobody counted, and the program took two seconds to start
  pause.totals = Totals();
  pause.now_ns = kSecond;
  pause.launched = 0;
  pause.launch(1, 1, true);
  pause.now_ns += 2 * kSecond;
  pause.launch(1, 1'699, true);
  pause.late = {{.kernels = 800}, 8'000'000};
  EXPECT_NEAR(double(pause.end_after(3'000, false)), 1'700 + 12'000, 100);
}

TEST(Totals, as_they_stand_they_are_what_they_would_be_at_the_end) {
  Watched run;
  const auto standing = [&run](const Totals::Open* open, std::int64_t behind) {
    const auto all = run.totals.standing(run.now_ns, open, {{.kernels = behind}, true});
    return all.size() == 1 ? all[0].count : -1;
  };
  run.launch(1, 100, true);
  const Totals::Open first{{.kernels = 100}, {}};
  EXPECT_EQ(standing(&first, 0), 100);
  run.close();
  run.launch(1, 700, false);
  EXPECT_EQ(standing(nullptr, 700), 800);
  run.open();
  run.launch(1, 60, true);
  const Totals::Open second{{.kernels = 60}, {{.kernels = 700}, true}};
  EXPECT_EQ(standing(&second, 0), 860);
  run.launch(1, 40, true);
  run.close();
  EXPECT_EQ(standing(nullptr, 0), 900);
  EXPECT_EQ(run.end().at(1).first, 900) << "to look changes nothing";
}

/// Ten kernels of which the first takes longer in the second window, and the others as said; the second window is of
/// `stay`. Returns the mean of the first kernel's.
double mean_of_one_that_changed(int stay, std::int64_t by_ns, std::int64_t others_by_ns) {
  Watched run;
  const auto steps = [&](int count, std::int64_t one_ns, std::int64_t other_ns) {
    for (int i = 0; i < count; ++i) {
      run.launch(1, 1, true, one_ns);
      for (std::uint32_t other = 2; other <= 10; ++other) run.launch(other, 1, true, other_ns);
    }
  };
  steps(2, 90'000, 90'000);  // cold
  steps(98, 1'000, 2'000);
  run.close();
  run.stay = stay;
  run.open();
  steps(900, 1'000 + by_ns, 2'000 + others_by_ns);
  run.close();
  const auto [count, sum_ns] = run.end().at(1);
  return double(sum_ns - 2 * 90'000) / double(count - 2);
}

TEST(Totals, what_attaching_cupti_again_does_to_a_short_kernel_is_not_the_programs) {
  EXPECT_NEAR(mean_of_one_that_changed(1, 100, 0), 1'000, 1);
  EXPECT_NEAR(mean_of_one_that_changed(1, -80, 0), 1'000, 1);
}

TEST(Totals, what_changes_within_a_stay_or_by_much_or_with_all_others_is_the_programs) {
  const double seen = (98 * 1'000 + 900 * 1'100) / 998.;
  EXPECT_NEAR(mean_of_one_that_changed(0, 100, 0), seen, 1);
  EXPECT_NEAR(mean_of_one_that_changed(1, 100, 200), seen, 1) << "the clock is lower";
  EXPECT_NEAR(mean_of_one_that_changed(1, 500, 0), (98 * 1'000 + 900 * 1'500) / 998., 1);
}

TEST(Totals, a_kernel_that_was_launched_too_rarely_before_has_no_usual_time) {
  Watched run;
  run.launch(1, 15, true, 1'000);
  run.launch(2, 400, true, 2'000);
  run.close();
  run.stay = 1;
  run.open();
  run.launch(1, 15, true, 1'100);
  run.launch(2, 400, true, 2'000);
  run.close();
  EXPECT_EQ(run.end().at(1).second, 15 * 1'000 + 15 * 1'100);
}

/// A step of forty launches: ten of each of three shapes, a fourth shape at its end.
void step_of_forty(Watched& run, int from, int to, bool is_seen) {
  for (int i = from; i < to; ++i) run.launch(i < 30 ? 1 + std::uint32_t(i) % 3 : 4, 1, is_seen);
}

TEST(Totals, windows_that_all_begin_and_end_at_the_same_place_of_a_step_count_whole_steps) {
  Watched run;
  for (int i = 0; i < 20; ++i) step_of_forty(run, 0, 40, true);
  run.close();
  for (int window = 0; window < 4; ++window) {
    for (int i = 0; i < 100; ++i) step_of_forty(run, 0, 40, false);
    run.open();
    for (int i = 0; i < 6; ++i) step_of_forty(run, 0, 40, true);
    step_of_forty(run, 0, 30, true);  // and the last ten never
    run.close();
    step_of_forty(run, 30, 40, false);
  }
  const auto totals = run.end();
  const double steps = 20 + 4 * 107;
  EXPECT_NEAR(double(totals.at(1).first), 10 * steps, 0.003 * 10 * steps);
  EXPECT_NEAR(double(totals.at(4).first), 10 * steps, 0.003 * 10 * steps);
}

TEST(Totals, what_runs_in_the_part_that_is_left_out_stays) {
  Watched run;
  for (int i = 0; i < 20; ++i) step_of_forty(run, 0, 40, true);
  run.close();
  run.open();
  run.launch(9, 1, true);
  step_of_forty(run, 20, 40, true);
  for (int i = 0; i < 6; ++i) step_of_forty(run, 0, 40, true);
  run.close();
  const auto totals = run.end();
  EXPECT_EQ(totals.at(9).first, 1);
}

TEST(Turns, are_the_least_distance_at_which_launches_repeat) {
  const auto of = [](const char* text) {
    std::vector<std::uint64_t> launches;
    for (; *text != '\0'; ++text) launches.push_back(std::uint64_t(*text));
    return launches_a_turn(launches);
  };
  EXPECT_EQ(of("aaaaaaaa"), 1u);
  EXPECT_EQ(of("bcabcabcab"), 3u);
  EXPECT_EQ(of("aabaacaabaacaabaac"), 6u) << "what repeats within a turn is no turn";
  EXPECT_EQ(of("abcdefgh"), 0u);
  EXPECT_EQ(of("abcdefga"), 0u) << "once is no turn";
  EXPECT_EQ(of(""), 0u);
}

TEST(Turns, may_have_something_odd_between_them) {
  std::vector<std::uint64_t> launches;
  for (int step = 0; step < 40; ++step)
    for (int i = 0; i < 50; ++i) launches.push_back(step % 10 == 3 && i == 7 ? 99u : std::uint64_t(i));
  EXPECT_EQ(launches_a_turn(launches), 50u);
  for (std::size_t i = 0; i < launches.size(); ++i) launches[i] = i * i % 509;
  EXPECT_EQ(launches_a_turn(launches), 509u) << "or seem to have no order";
}

}  // namespace
}  // namespace fulcrum::trace::inject
