#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# What recording costs the program that is recorded: the same fixed work bare and recorded, in turn, by the CPU time of the
# program itself and by that of the recorder beside it; ratios of pairs, with a bootstrap interval.
#   overhead.py --fulcrum build/bin/fulcrum [--pairs 20] [--seconds 1] [--json FILE]
import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile

WORK = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
static double seconds(int who) {
  struct rusage u;
  getrusage(who, &u);
  return u.ru_utime.tv_sec + u.ru_stime.tv_sec + 1e-6 * (u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}
__attribute__((noinline)) double inner(double x, int n) {
  for (int i = 0; i < n; ++i) x = sin(x) + 1e-3 * i;
  return x;
}
int main(int count, char** arguments) {
  const long rounds = atol(arguments[1]);
  double x = 0.5;
  for (long i = 0; i < rounds; ++i) x = inner(x, 1000);
  FILE* out = fopen(arguments[2], "w");
  fprintf(out, "%.9f %g\n", seconds(RUSAGE_SELF), x);
  return fclose(out) != 0;
}
"""


def run(prefix, program, rounds, out):
    """CPU seconds of the program, as it says itself, and of everything that was started beside it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(prefix + [program, str(rounds), out], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = float(open(out).read().split()[0])
    everything = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return own, everything


def interval(values, draws=4000):
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(values, k=len(values))) for _ in range(draws))
    return statistics.median(values), medians[int(0.025 * draws)], medians[int(0.975 * draws)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fulcrum", required=True)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rates", default="default", help="of --rate, separated by commas")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program, out = os.path.join(folder, "work"), os.path.join(folder, "out")
        with open(program + ".c", "w") as source:
            source.write(WORK)
        subprocess.run(["cc", "-O2", "-g", program + ".c", "-o", program, "-lm"], check=True)
        rounds = 2000
        rounds = max(1, int(rounds * arguments.seconds / run([], program, rounds, out)[0]))
        rows = []
        cases = arguments.rates.split(",")
        pairs = {case: [] for case in cases}
        for _ in range(arguments.pairs):
            for case in random.Random(len(pairs[cases[0]])).sample(cases, len(cases)):
                rate = [] if case == "default" else ["--rate", case]
                prefix = [arguments.fulcrum, "record", "--output", os.path.join(folder, "profile.json")] + rate + ["--"]
                # Bare runs on both sides of the recorded one: a machine that warms up or gets busy shifts both.
                first = run([], program, rounds, out)[0]
                own, everything = run(prefix, program, rounds, out)
                second = run([], program, rounds, out)[0]
                bare = (first + second) / 2
                pairs[case].append((own / bare - 1, (everything - own) / bare))
        for case in cases:
            target, beside = interval([p[0] for p in pairs[case]]), interval([p[1] for p in pairs[case]])
            rows.append({"rate": case, "seconds": arguments.seconds, "pairs": arguments.pairs,
                         "target_share": target, "beside_share": beside,
                         "each": [[round(v, 6) for v in p] for p in pairs[case]]})
            print(f"{case:>8} Hz: target {100 * target[0]:+.2f} % ({100 * target[1]:+.2f} to {100 * target[2]:+.2f}), "
                  f"recorder and symbols beside it {100 * beside[0]:.1f} % ({100 * beside[1]:.1f} to {100 * beside[2]:.1f})")
        if arguments.json:
            json.dump({"schema": "fulcrum.record_overhead/1", "rows": rows}, open(arguments.json, "w"), indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
