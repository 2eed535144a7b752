#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# What recording costs the program that is recorded: the same fixed work bare and recorded, in turn, by the CPU time of the
# program itself and by that of the recorder beside it; ratios of pairs, with a bootstrap interval.
#   overhead.py --fulcrum build/bin/fulcrum [--pairs 20] [--seconds 1] [--json FILE]
# With --turns N one process runs on and is recorded for --seconds at a time, N times, bare in between: runs of a program
# differ among themselves by more than recording costs, and within one run that cannot be.
import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

WORK = r"""
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
static double seconds(int who) {
  struct rusage u;
  getrusage(who, &u);
  return u.ru_utime.tv_sec + u.ru_stime.tv_sec + 1e-6 * (u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}
__attribute__((noinline)) double inner(double x, int n) {
  for (int i = 0; i < n; ++i) x = sin(x) + 1e-3 * i;
  return x;
}
static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}
static volatile sig_atomic_t ended;
static void end(int signal) { ended = signal; }
// Pieces of the same work until it is told to end, each with the time and the CPU time at its end.
static int turns(const char* file) {
  enum { kMost = 1 << 20 };
  signal(SIGTERM, end);
  double (*ends)[2] = calloc(kMost, sizeof *ends);
  double x = 0.5;
  long n = 0;
  for (; n < kMost && !ended; ++n) {
    x = inner(x, 100000);
    ends[n][0] = now(CLOCK_MONOTONIC);
    ends[n][1] = now(CLOCK_PROCESS_CPUTIME_ID);
  }
  FILE* out = fopen(file, "w");
  for (long i = 0; i < n; ++i) fprintf(out, "%.9f %.9f\n", ends[i][0], ends[i][1]);
  return fclose(out) != 0 || x == 0;
}
int main(int count, char** arguments) {
  if (count > 3) return turns(arguments[2]);
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


def piece_seconds(ends, begin, end):
    """CPU seconds of a piece in this window."""
    inside = [cpu for at, cpu in ends if begin <= at <= end]
    return (inside[-1] - inside[0]) / (len(inside) - 1) if len(inside) > 8 else None


def in_turns(fulcrum, program, out, turns, length, profile):
    """Recorded against bare before and after, of one process."""
    start, settle = 0.3, 0.05  # a recorder needs some time until it samples
    process = subprocess.Popen([program, "0", out, "turns"])
    time.sleep(0.5)
    bare, recorded = [], []
    for _ in range(turns):
        began = time.monotonic()
        time.sleep(length)
        bare.append((began + settle, time.monotonic() - settle))
        began = time.monotonic()
        subprocess.run([fulcrum, "record", "--output", profile, "--duration", str(length + start), "--pid", str(process.pid)],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        recorded.append((began + start, began + start + length - settle))
    began = time.monotonic()
    time.sleep(length)
    bare.append((began + settle, time.monotonic() - settle))
    process.terminate()
    process.wait()
    ends = [tuple(map(float, line.split())) for line in open(out)]
    pairs = []
    for i, window in enumerate(recorded):
        before, during, after = (piece_seconds(ends, *w) for w in (bare[i], window, bare[i + 1]))
        if before and during and after:
            pairs.append(during / ((before + after) / 2) - 1)
    return pairs


def interval(values, draws=4000):
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(values, k=len(values))) for _ in range(draws))
    return statistics.median(values), medians[int(0.025 * draws)], medians[int(0.975 * draws)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fulcrum", required=True)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--turns", type=int, default=0)
    parser.add_argument("--rates", default="default", help="of --rate, separated by commas")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program, out = os.path.join(folder, "work"), os.path.join(folder, "out")
        with open(program + ".c", "w") as source:
            source.write(WORK)
        subprocess.run(["cc", "-O2", "-g", program + ".c", "-o", program, "-lm"], check=True)
        if arguments.turns:
            pairs = in_turns(arguments.fulcrum, program, out, arguments.turns, arguments.seconds,
                             os.path.join(folder, "profile.json"))
            target = interval(pairs)
            print(f"in turns: target {100 * target[0]:+.2f} % ({100 * target[1]:+.2f} to {100 * target[2]:+.2f}), "
                  f"{len(pairs)} turns")
            row = {"rate": "default", "seconds": arguments.seconds, "turns": len(pairs), "target_share": target,
                   "each": [round(p, 6) for p in pairs]}
            if arguments.json:
                json.dump({"schema": "fulcrum.record_overhead/1", "rows": [row]}, open(arguments.json, "w"), indent=1)
            return 0
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
