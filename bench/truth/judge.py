#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Holds `fulcrum trace` against programs whose defect is known. Each is timed broken and fixed in turns, which gives the
# true gain; then broken, fixed and clean ones are traced as a user would. Right is: the planted defect comes first, the
# true gain lies inside the predicted interval, the twin no longer has it, and what is clean is called clean. A finding on
# a twin is true where a variant of the twin without that cost gains what was promised, and false everywhere else.
"""usage: judge.py --fulcrum build/bin/fulcrum --programs build/truth [--out truth.json]"""

import argparse
import json
import os
import random
import subprocess
import sys
import time

# Program: the finding that must come first.
PLANTED = {
    "launch_bound": "launch_bound",
    "pageable_copy": "pageable_copy",
    "sync_stall": "sync_stall",
    "alloc_in_loop": "alloc_in_loop",
    "small_copies": "small_copies",
    "no_overlap": "no_overlap",
    "redundant_copy": "redundant_copy",
    "small_grid": "small_grid",
    "default_stream": "default_stream",
    "managed_faults": "managed_faults",
    "host_gap": "idle_gaps",
}
CLEAN = ["clean_graph", "clean_persistent", "clean_gemm", "clean_pipeline"]
# Sets that were written before their traces were seen.
UNSEEN = {
    "x": ({"x_heat": "pageable_copy", "x_checked": "sync_stall", "x_steps": "launch_bound", "x_workspace": "alloc_in_loop",
           "x_cameras": "default_stream", "x_prefetch": "managed_faults", "x_shared": "low_occupancy", "x_wave": "tail",
           "x_volumes": "no_overlap", "x_weights": "redundant_copy", "x_lists": "small_copies", "x_residual": "sync_stall"},
          ["x_clean_bodies", "x_clean_loader", "x_clean_sort"]),
    "y": ({"y_spectra": "pageable_copy", "y_staging": "alloc_in_loop", "y_attributes": "small_copies",
           "y_stages": "sync_stall", "y_total": "small_grid", "y_colours": "redundant_copy", "y_tiles": "no_overlap",
           "y_codec": "idle_gaps", "y_cells": "launch_bound", "y_window": "spill", "y_field": "managed_faults"},
          ["y_clean_frame", "y_clean_streams", "y_clean_layers"]),
    "z": ({"z_decode": "launch_bound", "z_clip": "sync_stall", "z_ingest": "pageable_copy", "z_kvcache": "small_copies",
           "z_asian": "low_occupancy", "z_quant": "tail", "z_fft": "no_overlap", "z_join": "redundant_copy",
           "z_particles": "alloc_in_loop", "z_neurons": "default_stream", "z_terrain": "managed_faults",
           "z_csvlog": "idle_gaps", "z_pyramid": "small_grid"},
          ["z_clean_rays", "z_clean_requests", "z_clean_wave"]),
}

# Costs that twins have: the finding, the variant that has it and the one that has not.
FURTHER = {
    "x_heat": {"idle_gaps": ("fixed", "further"), "no_overlap": ("further", "furthest")},
    "x_lists": {"sync_stall": ("fixed", "further")},
    "x_weights": {"idle_gaps": ("fixed", "further")},
    "x_workspace": {"launch_bound": ("fixed", "further")},
    "y_attributes": {"sync_stall": ("fixed", "further")},
    "y_colours": {"no_overlap": ("fixed", "further")},
    "y_field": {"idle_gaps": ("fixed", "further")},
    "y_staging": {"idle_gaps": ("fixed", "further")},
    "y_total": {"launch_bound": ("fixed", "further")},
}
NOTICED = 0.02  # of the time: what gains less than this proves nothing


def modes_of(name):
    further = {mode for pair in FURTHER.get(name, {}).values() for mode in pair}
    return ["broken", "fixed"] + sorted(further - {"fixed"})


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def interval(values, seed=1):
    """The 95 % interval of the median, by resampling with a fixed seed."""
    draw = random.Random(seed)
    medians = sorted(median([draw.choice(values) for _ in values]) for _ in range(2000))
    return medians[50], medians[1949]


def run_json(command, limit_seconds):
    """The last line of JSON that the command prints."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit_seconds)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-300:]}")
    return json.loads(lines[-1])


def bare_times(o, programs, after_round=lambda *_: None):
    """Microseconds an iteration of every program with a defect, its twin and variants of that, one list entry a round.
    From the fourth on, a round is only begun while there is time. A program that fails once has no times."""
    times, sums, failures = {}, {}, {}
    for number in range(o.rounds):
        if number > 2 and time.monotonic() - o.begin > o.limit:
            break
        for name in (name for name in programs if name not in failures):
            try:
                for mode in modes_of(name) if number % 2 == 0 else reversed(modes_of(name)):
                    row = run_json([os.path.join(o.programs, name), mode, str(o.seconds)], 30)
                    times.setdefault(name, {}).setdefault(mode, []).append(row["us"])
                    sums.setdefault(name, {})[mode] = row["sum"]
            except (RuntimeError, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as error:
                failures[name] = str(error)
                times.pop(name, None)
        after_round(times, sums, failures)
    return times, sums, failures


def findings_of(o, name, mode):
    """What the program says about one run, or about the trace of an earlier one."""
    stem = name if mode == "clean" else f"{name}.{mode}"
    saved = os.path.join(o.traces, stem + ".ftrace")
    out = os.path.join(o.traces, stem + ".json")
    if o.offline:
        subject = [saved]
    else:
        subject = ["--output", saved, "--", os.path.join(o.programs, name), mode, str(o.trace_seconds)]
    command = [o.fulcrum, "trace", "--json", out] + o.trace_options + subject
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    with open(os.path.join(o.traces, stem + ".txt"), "w") as text:
        text.write(done.stdout + done.stderr)
    if not os.path.exists(out) or done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-300:]}")
    with open(out) as text:
        return json.load(text)


def claims(document):
    """Findings that ask for something: information is none."""
    return [f for f in document.get("findings", []) if f.get("severity") != "info"]


def judge_further(name, times, fixed):
    """Which findings on the twin are true: what their variant saves, as a share of the twin's time, by round."""
    rows = []
    for f in claims(fixed):
        row = {"finding": f["id"], "saved_low": f["saved_low"], "saved_high": f["saved_high"], "is_true": False}
        one, other = FURTHER.get(name, {}).get(f["id"], ("", ""))
        if one in times and other in times:
            saved = [(a - b) / base for a, b, base in zip(times[one], times[other], times["fixed"])]
            low, high = interval(saved)
            row.update({"saved": round(median(saved), 4), "measured_low": round(low, 4), "measured_high": round(high, 4)})
            row["is_true"] = max(f["saved_low"], NOTICED) <= median(saved) <= f["saved_high"] and low > 0
        rows.append(row)
    return rows


def judge_pair(name, times, sums, broken, fixed):
    ratios = [b / f for b, f in zip(times["broken"], times["fixed"])]
    gain, (low, high) = median(ratios), interval(ratios)
    found = claims(broken)
    first = found[0] if found else {}
    right = [f for f in found if f["id"] == PLANTED[name]]
    row = {
        "program": name,
        "planted": PLANTED[name],
        "broken_us": round(median(times["broken"]), 3),
        "fixed_us": round(median(times["fixed"]), 3),
        "gain": round(gain, 4),
        "gain_low": round(low, 4),
        "gain_high": round(high, 4),
        "same_result": abs(sums["broken"] - sums["fixed"]) <= 1e-6 * abs(sums["broken"]),
        "findings": [f["id"] for f in found],
        "first": first.get("id", ""),
        "right": first.get("id") == PLANTED[name],
        "twin_findings": [f["id"] for f in claims(fixed)],
    }
    facts = broken.get("facts", {})
    row.update({key: facts.get(key) for key in ("model_error", "busy_share", "traced_share", "overhead_share")})
    row["twin_has_it"] = PLANTED[name] in row["twin_findings"]
    row["further"] = judge_further(name, times, fixed)
    if right:
        row["predicted_low"] = round(1 / (1 - min(right[0]["saved_low"], 0.999)), 4)
        row["predicted_high"] = round(1 / (1 - min(right[0]["saved_high"], 0.999)), 4)
    row["inside"] = bool(right) and row["predicted_low"] <= row["gain"] <= row["predicted_high"]
    return row


def summary_of(rows, clean, failures):
    others = sum(len(r["twin_findings"]) for r in rows) + sum(len(r["findings"]) for r in clean)
    true = sum(f["is_true"] for r in rows for f in r["further"])
    return {
        "programs": len(rows),
        "failed": len(failures),
        "right": sum(r["right"] for r in rows),
        "inside": sum(r["inside"] for r in rows),
        "twins_mended": sum(not r["twin_has_it"] for r in rows),
        "clean_programs": len(clean),
        "other_findings": others,
        "false_findings": others - true,
    }


def twin_text(f):
    promised = f"{100 * f['saved_low']:.1f}-{100 * f['saved_high']:.1f} %"
    if "saved" not in f:
        return f"{f['finding']} ({promised})"
    measured = f"{100 * f['saved']:.1f} [{100 * f['measured_low']:.1f}-{100 * f['measured_high']:.1f}] %"
    return f"{f['finding']} ({promised}, without it {measured}: {'true' if f['is_true'] else 'FALSE'})"


def table(rows, clean, summary):
    lines = [f"{'program':15} {'first finding':17} {'predicted':>13} {'measured gain':>19}  inside  twin finds"]
    for r in rows:
        predicted = f"{r['predicted_low']:.2f}-{r['predicted_high']:.2f}x" if "predicted_low" in r else "-"
        mark = r["first"] or "none"
        lines.append(f"{r['program']:15} {mark + ('' if r['right'] else ' (!)'):17} {predicted:>13} "
                     f"{r['gain']:6.2f} [{r['gain_low']:.2f}-{r['gain_high']:.2f}]x  {'yes' if r['inside'] else 'NO':6}  "
                     f"{', '.join(map(twin_text, r['further'])) or '-'}{'' if r['same_result'] else '  RESULTS DIFFER'}")
    for r in clean:
        lines.append(f"{r['program']:15} {', '.join(r['findings']) or '-'}")
    lines.append(" ".join(f"{key} {value}" for key, value in summary.items()))
    return "\n".join(lines)


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fulcrum", required=True)
    parser.add_argument("--programs", default="", help="folder of the programs")
    parser.add_argument("--set", default="own", choices=["own", *UNSEEN], help="which programs")
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--also", action="append", default=[], metavar="NAME=FINDING", help="one more program with a defect")
    parser.add_argument("--rounds", type=int, default=5, help="of bare timings")
    parser.add_argument("--seconds", type=float, default=0.3, help="of one bare timing")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which no round of them is begun")
    parser.add_argument("--trace-seconds", type=float, default=1)
    parser.add_argument("--trace-options", default="", help="more options of fulcrum trace")
    parser.add_argument("--traces", default="truth-traces", help="folder for traces and what was said about them")
    parser.add_argument("--offline", help="a document of an earlier run: its times, and the traces in --traces")
    parser.add_argument("--times", help="a document of an earlier run: its times, but new traces")
    parser.add_argument("--only-times", action="store_true", help="a document for --offline and --times")
    parser.add_argument("--out", default="truth.json")
    o = parser.parse_args()
    o.trace_options = o.trace_options.split()
    o.begin = time.monotonic()
    o.wanted = list(PLANTED) + CLEAN
    if o.set != "own":
        planted, clean = UNSEEN[o.set]
        PLANTED.update(planted)
        o.wanted = list(planted) + clean
    PLANTED.update(pair.split("=") for pair in o.also)
    o.wanted = [n for n in o.only.split(",") if n] or o.wanted
    os.makedirs(o.traces, exist_ok=True)
    return o


def only_times(o):
    def write(times, sums, failures):
        with open(o.out, "w") as out:
            json.dump({"schema": "fulcrum.truth/1", "times_us": times, "sums": sums, "failures": failures}, out, indent=1)
            out.write("\n")
    failures = bare_times(o, [name for name in o.wanted if name in PLANTED], write)[2]
    for name, why in failures.items():
        print(f"failed: {name}: {why}")
    return 1 if failures else 0


def main():
    o = options()
    if o.only_times:
        return only_times(o)
    failures, documents, untimed = [], {}, {}
    # Traces come first: they are what is judged, and more or fewer rounds of times fit behind them.
    for name in o.wanted:
        try:
            documents[name] = {mode: findings_of(o, name, mode)
                               for mode in (("broken", "fixed") if name in PLANTED else ("clean",))}
        except (RuntimeError, OSError, ValueError, subprocess.TimeoutExpired) as error:
            failures.append(f"{name}: {error}")
    if o.offline or o.times:
        with open(o.offline or o.times) as text:
            earlier = json.load(text)
        times, sums = earlier["times_us"], earlier["sums"]
    else:
        times, sums, untimed = bare_times(o, [name for name in documents if name in PLANTED])
    rows, clean = [], []
    for name, said in documents.items():
        if name not in PLANTED:
            clean.append({"program": name, "findings": [f["id"] for f in claims(said["clean"])]})
        elif name in times:
            rows.append(judge_pair(name, times[name], sums[name], said["broken"], said["fixed"]))
        else:
            failures.append(f"{name}: {untimed.get(name, 'no times')}")
    summary = summary_of(rows, clean, failures)
    with open(o.out, "w") as out:
        json.dump({"schema": "fulcrum.truth/1", "created_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                   "rounds": max((len(one) for modes in times.values() for one in modes.values()), default=0),
                   "pairs": rows, "clean": clean, "summary": summary, "failures": failures, "times_us": times,
                   "sums": sums}, out, indent=1)
        out.write("\n")
    print(table(rows, clean, summary))
    for failure in failures:
        print("failed:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
