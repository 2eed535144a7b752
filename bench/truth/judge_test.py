#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# The judge itself, with programs and a `fulcrum` that are scripts of a few lines: no GPU and no clock.

import contextlib
import io
import json
import os
import stat
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

sys.dont_write_bytecode = True
import judge  # noqa: E402
import overhead  # noqa: E402
import turns  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))

PROGRAM = """#!/usr/bin/env python3
import json, sys
us = {"broken": 200.0, "fixed": 100.0, "clean": 50.0}[sys.argv[1]]
print(json.dumps({"us": us, "sum": 7.0}))
"""

FULCRUM = """#!/usr/bin/env python3
import json, os, sys
out = sys.argv[sys.argv.index("--json") + 1]
name, mode = os.path.basename(sys.argv[-3]), sys.argv[-2]
low, high = (0.4, 0.6) if name != "no_overlap" else (0.1, 0.2)
found = []
if mode == "broken":
    found = [{"id": "pageable_copy" if name == "sync_stall" else name, "severity": "fix",
              "saved_low": low, "saved_high": high}]
elif name in ("small_grid", "clean_gemm"):
    found = [{"id": "tail", "severity": "consider", "saved_low": 0, "saved_high": 0.03},
             {"id": "stale_build", "severity": "info", "saved_low": 0, "saved_high": 0}]
elif name == "alloc_in_loop":
    found = [{"id": name, "severity": "fix", "saved_low": 0.1, "saved_high": 0.2}]
json.dump({"findings": found}, open(out, "w"))
"""


def script(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as out:
        out.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


class Judge(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.names = ["launch_bound", "sync_stall", "no_overlap", "small_grid", "alloc_in_loop", "clean_gemm"]
        with tempfile.TemporaryDirectory() as folder:
            for name in cls.names:
                script(folder, name, PROGRAM)
            out = os.path.join(folder, "truth.json")
            done = subprocess.run(
                [sys.executable, os.path.join(HERE, "judge.py"), "--fulcrum", script(folder, "fulcrum", FULCRUM),
                 "--programs", folder, "--only", ",".join(cls.names), "--rounds", "2", "--out", out,
                 "--traces", os.path.join(folder, "traces")], capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
            with open(out) as text:
                cls.document = json.load(text)
        cls.rows = {row["program"]: row for row in cls.document["pairs"]}

    def test_a_right_first_finding_with_the_gain_inside_counts_as_both(self):
        row = self.rows["launch_bound"]
        self.assertTrue(row["right"] and row["inside"] and not row["twin_has_it"])
        self.assertEqual((row["gain"], row["predicted_high"]), (2.0, 2.5))

    def test_a_finding_on_a_twin_is_true_where_the_variant_without_its_cost_gains_what_it_promised(self):
        times = {"broken": [300.0] * 3, "fixed": [100.0, 110.0, 90.0], "further": [75.0, 82.0, 68.0],
                 "furthest": [74.0, 81.5, 67.0]}

        def is_true(finding, low, high, name="x_heat"):
            found = {"findings": [{"id": finding, "severity": "fix", "saved_low": low, "saved_high": high}]}
            return [row["is_true"] for row in judge.judge_further(name, times, found)]
        self.assertEqual(is_true("idle_gaps", 0.2, 0.3), [True])
        self.assertEqual(is_true("idle_gaps", 0.3, 0.4), [False])
        self.assertEqual(is_true("idle_gaps", 0.1, 0.2), [False])
        self.assertEqual(is_true("no_overlap", 0, 0.4), [False])  # it gains one percent, which nobody notices
        self.assertEqual(is_true("tail", 0, 0.4), [False])  # no variant says anything about it
        self.assertEqual(is_true("idle_gaps", 0.2, 0.3, "x_wave"), [False])
        self.assertEqual(judge.modes_of("x_heat"), ["broken", "fixed", "further", "furthest"])
        self.assertEqual(judge.modes_of("x_wave"), ["broken", "fixed"])

    def test_another_first_finding_is_wrong_and_never_inside(self):
        row = self.rows["sync_stall"]
        self.assertFalse(row["right"] or row["inside"])

    def test_a_gain_outside_the_interval_is_right_but_not_inside(self):
        row = self.rows["no_overlap"]
        self.assertTrue(row["right"] and not row["inside"])

    def test_a_twin_that_still_has_the_defect_is_told_from_a_mended_one(self):
        self.assertTrue(self.rows["alloc_in_loop"]["twin_has_it"])
        self.assertFalse(self.rows["small_grid"]["twin_has_it"])

    def test_findings_on_twins_and_clean_programs_are_false_unless_they_only_inform(self):
        self.assertEqual(self.document["summary"],
                         {"programs": 5, "failed": 0, "right": 4, "inside": 3, "twins_mended": 4, "clean_programs": 1,
                          "other_findings": 3, "false_findings": 3})

    def test_without_time_there_are_three_rounds_and_all_that_was_traced_is_judged(self):
        with tempfile.TemporaryDirectory() as folder:
            script(folder, "launch_bound", PROGRAM)
            out = os.path.join(folder, "truth.json")
            subprocess.run([sys.executable, os.path.join(HERE, "judge.py"), "--fulcrum", script(folder, "fulcrum", FULCRUM),
                            "--programs", folder, "--only", "launch_bound,sync_stall", "--rounds", "7", "--limit", "0",
                            "--out", out, "--traces", os.path.join(folder, "traces")], capture_output=True, check=False)
            with open(out) as text:
                document = json.load(text)
        self.assertEqual((document["rounds"], document["summary"]["right"], len(document["pairs"])), (3, 1, 1))
        self.assertEqual(document["summary"]["failed"], 1, "there is no such program to be timed")

    def test_the_interval_of_the_median_holds_it_and_is_the_same_every_time(self):
        values = [1.0, 1.1, 1.2, 1.3, 5.0]
        low, high = judge.interval(values)
        self.assertTrue(low <= judge.median(values) <= high)
        self.assertEqual((low, high), judge.interval(values))
        self.assertLess(low, high)


class Overhead(unittest.TestCase):
    def test_kernels_are_counted_over_processes_and_up_to_where_the_file_was_cut_off(self):
        def chunk(kind, records, size):
            return b"CHNK" + b"".join(n.to_bytes(4, "little") for n in (kind, size * records, records)) + bytes(size * records)

        head = b"FLCTRACE" + (1).to_bytes(4, "little") + (48).to_bytes(4, "little") + bytes(32)
        data = head + chunk(5, 3, 40) + chunk(7, 9, 56) + head + chunk(5, 4, 40) + chunk(5, 100, 40)[:-1]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.ftrace")
            with open(path, "wb") as out:
                out.write(data)
            self.assertEqual(overhead.kernels_in(path), 7)

    def test_totals_differ_by_the_worst_kernel_of_those_that_matter(self):
        full = {"a": (60, 0.6), "b": (36, 0.36), "c": (4, 0.04)}
        near = {"a": (63, 0.63), "b": (36, 0.36), "c": (1, 0.01)}
        self.assertEqual(overhead.totals_differ(near, full),
                         {"worst": 0.05, "kernel": "a", "counts": 0.0, "differences": [0.05, 0.0]})
        self.assertEqual(overhead.totals_differ({"a": (60, 0.6), "c": (4, 0.04)}, full)["worst"], -1)

    def test_what_totals_are_held_against_is_the_mean_of_full_runs_and_each_of_those_against_the_others(self):
        seconds = {"full.0": 1.0, "full.1": 1.04, "traced.0": 1.02, "traced.1": 0.51}

        class Told(overhead.Bench):
            def traced_file(self, name):
                return name.split(".", 1)[1]

        told = Told(types.SimpleNamespace(total_fulls=2, total_modes="traced", programs="", launches=0))
        with unittest.mock.patch.multiple(overhead, kernel_totals=lambda path: {"a": (100, seconds[path])},
                                          records_in=lambda *_: 3, kernels_in=lambda _: 50), \
                contextlib.redirect_stdout(io.StringIO()):
            rows = told.totals("loop", lambda mode, at: {"us": 1.0}, 2)
        self.assertEqual([(row["mode"], row["worst"]) for row in rows],
                         [("traced", 0.0), ("traced", -0.5), ("full", -0.0385), ("full", 0.04)])

    def test_the_interval_of_a_median_is_that_of_the_sign_test(self):
        self.assertEqual(overhead.sign_interval([3, 1, 2, 9, 5, 6, 7, 8, 4])[:2], (2, 8))
        self.assertEqual(overhead.sign_interval([1, 2, 3, 4, 5, 6]), (1, 6, 0.96875))
        self.assertLess(overhead.sign_interval([1, 2, 3, 4, 5])[2], 0.95)


class Turns(unittest.TestCase):
    def test_both_programs_take_as_many_turns_and_the_ratio_is_of_their_means(self):
        order = []

        class Player:
            def __init__(self, name, us):
                self.name, self.us = name, us

            def hear(self, key):
                return key

            def turn(self):
                order.append(self.name)
                return self.us

        means = turns.play([Player("bare", 4.0), Player("traced", 4.4)], 4)
        self.assertEqual(order, ["bare", "traced", "traced", "bare"] * 2)
        self.assertAlmostEqual(turns.summary([means] * 6)["ratio"], 1.1)
        self.assertEqual(turns.summary([means, [4.0, 4.0]])["pairs"], 2)

    def test_both_of_a_pair_have_the_same_cores_and_the_next_pair_has_others(self):
        self.assertEqual([turns.cores_of(n, {9, 3, 4, 7, 8}) for n in range(3)], [{3, 4}, {7, 8}, {3, 4}])
        self.assertEqual(turns.cores_of(5, {2}), {2})


if __name__ == "__main__":
    unittest.main()
