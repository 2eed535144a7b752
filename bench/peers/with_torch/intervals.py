# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
"""Medians with their intervals, and contestants that take turns. Knows neither PyTorch nor a device."""
import math
import time

MIN_REPLAYS = 30
MAX_REPLAYS = 1000


def interval(samples):
    """Median and the narrowest order-statistic interval that holds it in at least 95 of 100 cases."""
    values = sorted(samples)
    n = len(values)
    median = values[n // 2] if n % 2 else 0.5 * (values[n // 2 - 1] + values[n // 2])
    tail, rank, term = 0.0, 0, 0.5**n if n < 1000 else 0.0
    if term > 0:
        for k in range(n):
            tail += term
            if 2 * tail > 0.05:
                break
            rank = k + 1
            term *= (n - k) / (k + 1)
    else:
        rank = max(0, math.floor(n / 2 - 0.98 * math.sqrt(n)))
    low, high = (values[rank - 1], values[n - rank]) if rank > 0 else (values[0], values[-1])
    return {"median": median, "ci_low": low, "ci_high": high, "level": 0.95, "samples": n}


def in_turns(contestants, budget, clock=time.perf_counter):
    """Seconds of every contestant, one sample a round. `contestants` maps names to functions that return the seconds of
    one replay. They go forwards and backwards by turns, so that a clock that drifts favours nobody."""
    samples = {name: [] for name in contestants}
    order = list(contestants)
    begin, rounds = clock(), 0
    while rounds < MAX_REPLAYS:
        spent = clock() - begin
        # Calls of a tenth of a second: fewer rounds, and the count says so.
        if (spent > budget and rounds >= MIN_REPLAYS) or (spent > 20 * budget and rounds >= 6):
            break
        for name in order:
            samples[name].append(contestants[name]())
        order.reverse()
        rounds += 1
    return samples


def advantage(ours, theirs):
    """How many times as fast we were, with the interval of the rounds' ratios."""
    return interval([t / o for o, t in zip(ours, theirs)])
