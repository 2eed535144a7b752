#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# The tables of docs/truth.md from results/<machine>/truth.json, truth-unseen-*.json, truth-again-*.json, overhead.json,
# ends.json, turns.json and overhead-causes.json: `page.py` writes them, `page.py --check` says whether they are what the files hold.

import glob
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs", "truth.md")
BEGIN, END = "<!-- tables: made by bench/truth/page.py from results/ -->\n", "<!-- end of tables -->\n"


def twin_text(row):
    """What was found on the twin; where a variant without that cost was timed, what it saved."""
    out = []
    for f in row.get("further", [{"finding": name} for name in row["twin_findings"]]):
        text = f["finding"]
        if "saved" in f:
            text += (f" ({100 * f['saved_low']:.0f} to {100 * f['saved_high']:.0f} %; without it {100 * f['saved']:.1f} % less: "
                     f"{'true' if f['is_true'] else 'false'})")
        out.append(text)
    return ", ".join(out) or "nothing"


def pair_table(document):
    out = ["| program | first finding | predicted | measured | inside | on the twin |", "|---|---|---|---|---|---|"]
    for r in document["pairs"]:
        predicted = f"{r['predicted_low']:.2f}x to {r['predicted_high']:.2f}x" if "predicted_low" in r else "none"
        doubt = f" [{r['gain_low']:.2f}, {r['gain_high']:.2f}]" if document["rounds"] > 1 else ""
        first = (r["first"] or "none") + ("" if r["right"] else f", should be {r['planted']}")
        out.append(f"| {r['program']} | {first} | {predicted} | {r['gain']:.2f}x{doubt} | "
                   f"{'yes' if r['inside'] else 'no'} | {twin_text(r)} |")
    for r in document["clean"]:
        out.append(f"| {r['program']} | {', '.join(r['findings']) or 'nothing'} | | | | |")
    s = document["summary"]
    out += ["", f"The planted defect came first in {s['right']} of {s['programs']}, the measured gain lies inside the "
            f"predicted interval in {s['inside']}, {s['twins_mended']} twins no longer have it, and twins and "
            f"{s['clean_programs']} clean programs together have {s['false_findings']} false findings."]
    if s.get("other_findings", s["false_findings"]) > s["false_findings"]:
        out[-1] += (f" {s['other_findings'] - s['false_findings']} more are true: the twin without that cost is faster by "
                    "as much as was said.")
    return out


def doubt(row):
    """An interval where the rounds suffice for one, and what there is where they do not."""
    low, high = 100 * (row["low"] - 1), 100 * (row["high"] - 1)
    if row["rounds"] < 2:
        return ", one round: no interval"
    return f" [{low:+.1f}, {high:+.1f}]" if row["rounds"] >= 5 else f", rounds {low:+.1f} to {high:+.1f}"


def overhead_table(document):
    out = ["| program | how | time | against bare | rounds |", "|---|---|---|---|---|"]
    units = {"launch_loop": "us a launch", "mlp": "us a step"}
    for name, unit in units.items():
        for mode, row in document.get(name, {}).items():
            against = "" if mode == "bare" else f"{100 * (row['ratio'] - 1):+.1f} %{doubt(row)}"
            out.append(f"| {name} | {mode} | {row['us']:.2f} {unit} | {against} | {row['rounds']} |")
    if len(out) == 2:  # nothing was timed
        out = []
    if "totals" in document:
        out += ["", f"Among the kernels that make up 95 % of the GPU's time, no total of a trace with "
                f"default options is further than {100 * document['totals']['worst']:.1f} % from that with --full"
                + (f"; one run with --full is up to {100 * document['totals']['worst_of_full']:.1f} % from the others."
                   if "worst_of_full" in document["totals"] else ".")]
    if "bytes" in document:
        sizes = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in document["bytes"].items())
        out += ["", f"Files of {document['steps']} steps: {sizes}."]
    if "durations" in document:
        worst = max(abs(row["ratio"] - 1) for row in document["durations"].values())
        out += ["", f"Durations of kernels of 1 ms and more differ from CUDA events by at most {100 * worst:.2f} %."]
    if "earlier" in document:
        out += ["", f"From an earlier run ({document['earlier']['created_utc']}): {', '.join(document['earlier']['parts'])}."]
    if "losses" in document:
        out += ["", "| end | launched | lost |", "|---|---|---|"]
        out += [f"| {end} | {row['launched']} | {row['lost']} |" for end, row in document["losses"].items()]
    return out


def turns_table(document):
    out = ["| program | bare | traced | slower by | pairs of processes |", "|---|---|---|---|---|"]
    for name, unit in (("launch_loop", "us a launch"), ("mlp", "us a step")):
        if name in document:
            row = document[name]
            out.append(f"| {name} | {row['bare_us']:.2f} {unit} | {row['traced_us']:.2f} {unit} | "
                       f"{100 * (row['ratio'] - 1):+.1f} %{doubt({**row, 'rounds': row['pairs']})} | {row['pairs']} |")
    return out


def ends_table(document):
    out = [f"A training run of {document['steps']} steps, traced in windows, that ends as said:", "",
           "| end | kernels in the totals | missing, against runs that return | seconds of the run |", "|---|---|---|---|"]
    for run in document["runs"]:
        out.append(f"| {run['end']} | {run['kernels']} | {100 * run['lost']:.1f} % | {run.get('lost_seconds', 0):.2f} |")
    return out


def causes_table(document):
    out = ["| what is attached to a training step | slower by, median | from, to | generations of processes |", "|---|---|---|---|"]
    for name, row in document["modes"].items():
        low, middle, high = (f"{100 * (row[key] - 1):+.1f} %" for key in ("least", "ratio", "most"))
        out.append(f"| {name} | {middle} | {low}, {high} | {len(row['ratios'])} |")
    return out


def tables():
    lines = []
    for folder in sorted(glob.glob(os.path.join(ROOT, "results", "*"))):
        for name, title, render in (("truth.json", "Findings", pair_table), ("overhead.json", "Cost", overhead_table),
                                    ("ends.json", "What a killed run leaves", ends_table),
                                    ("turns.json", "Cost where bare and traced take turns", turns_table),
                                    ("overhead-causes.json", "Where the cost comes from", causes_table)):
            path = os.path.join(folder, name)
            if os.path.exists(path):
                with open(path) as text:
                    lines += [f"### {title} on {os.path.basename(folder)}", "", *render(json.load(text)), ""]
        unseen, again = (sorted(glob.glob(os.path.join(folder, f"truth-{kind}-*.json"))) for kind in ("unseen", "again"))
        for path in unseen + again:
            with open(path) as text:
                document = json.load(text)
            lines += [f"### {document['title']}, on {os.path.basename(folder)}", "", *pair_table(document), ""]
    return "\n".join(lines) + "\n" if lines else ""


def main():
    with open(PAGE) as text:
        page = text.read()
    head, rest = page.split(BEGIN)
    wanted = head + BEGIN + tables() + END + rest.split(END)[1]
    if "--check" in sys.argv[1:]:
        if wanted != page:
            print("docs/truth.md is not what results/ holds: run bench/truth/page.py")
        return int(wanted != page)
    with open(PAGE, "w") as out:
        out.write(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
