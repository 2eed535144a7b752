#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Judges what `plan` said of strangers' programs by what their CUDA twins did, and writes the document and its page:
#   judge.py FOLDER_OF_run.py... [--reasons reasons.json] --json results/h200/strangers.json --page docs/strangers.md
#   judge.py --from results/h200/strangers.json [FOLDER...] [--again FOLDER] [--clocked-again FOLDER] --page docs/strangers.md
# The rules are in verdict_is_right; they were written before any twin ran.
import argparse
import json
import math
import pathlib
import re
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
# What computes the reference results that a program checks itself with is not what its twin computes.
REFERENCE = re.compile(r"reference|_ref\b|_ref\.|_cpu|gold|host|verify|check", re.I)
OPEN_LOW, OPEN_HIGH = 0.5, 2.0


def hot_rows(plan, suite, named=None):
    rows = [r for r in plan["rows"] if r["action"] == "offload" and r["now"]["seconds"] > 0]
    wanted = (lambda n: n.startswith("kernel_")) if suite == "polybench" else (
        lambda n: "_omp_fn" in n and not REFERENCE.search(n))
    found = [r for r in rows if (re.search(named, r["name"]) if named else wanted(r["name"]))]
    if suite == "polybench" and not found:  # inlined
        found = [r for r in rows if r["name"].startswith("main")]
    return sorted(found, key=lambda r: -r["share"]["value"])


def verdict_is_right(verdict, over_best_cpu):
    """Against the best CPU run of the program, transfers included."""
    if verdict in ("offload now", "offload next"):
        return over_best_cpu > 1
    if verdict == "measure first":  # right only where the answer is really open
        return OPEN_LOW <= over_best_cpu <= OPEN_HIGH
    return over_best_cpu <= 1  # keep on the CPU, fix on the CPU first, already right


def regions(runs):
    return [one["region"] for one in runs if one["exit"] == 0 and one.get("region")]


def spans(run):
    """From the first of a program's regions to the end of the last, host code between them included."""
    found = {kind: [one["span"] for one in run[kind] if one["exit"] == 0 and one.get("span")] for kind in ("cpu", "best", "gpu")}
    return found if all(found.values()) else None


def gain(rows):
    """Of all hot rows together; none of them says: no prediction."""
    now = sum(r["now"]["seconds"] for r in rows)
    if not rows or any(not r["best_gpu"]["seconds"] for r in rows):
        return None
    at = {k: sum(r["best_gpu"][k] for r in rows) for k in ("seconds", "low", "high")}
    return {"value": now / at["seconds"], "low": now / at["high"], "high": now / at["low"]}


def judged(run, plan, programs):
    program = programs[run["name"]]
    out = {"name": run["name"], "suite": run["suite"], "set": run["set"],
           "input": program.get("args") if run["suite"] == "hecbench" else program["sizes"],
           "serial": bool(program.get("serial"))}
    rows = hot_rows(plan, run["suite"], program.get("rows")) if plan else []
    cpu, best, gpu = regions(run["cpu"]), regions(run["best"]), regions(run["gpu"])
    twin = run["gpu"][-1] if run["gpu"] else {}
    # lu's twin launches an empty grid after its last column, which CUDA refuses.
    fine = ("cudaSuccess", program.get("tolerates"))
    bad = [one for one in run["gpu"] if one.get("error") not in fine or one["exit"] or not one.get("launches")]
    if not rows or not cpu or not gpu or bad:
        why = "no row for its kernel" if not rows else "its program did not run" if not cpu else "its twin did not run"
        return {**out, "left_out": why}
    fastest, twin_seconds = min(cpu + best), statistics.median(gpu)
    over_best = fastest / twin_seconds
    verdict = rows[0]["verdict"]
    out.update(rows=[{"name": r["name"], "share": r["share"]["value"], "now": r["now"]["seconds"],
                      "verdict": r["verdict"], "why": r["why"],
                      "gpu": {k: r["best_gpu"][k] for k in ("seconds", "low", "high")}} for r in rows],
               verdict=verdict, right=verdict_is_right(verdict, over_best), predicted_gain=gain(rows),
               cpu_seconds=cpu, best_cpu_seconds=fastest, twin_seconds=gpu, twin_median=twin_seconds,
               measured_gain=statistics.median(cpu) / twin_seconds, over_best_cpu=over_best,
               bytes_in=twin.get("bytes_in"), bytes_out=twin.get("bytes_out"), launches=twin.get("launches"),
               phases=twin.get("phases"), spans=spans(run),
               passed={k: run[k][-1].get("passed") for k in ("cpu", "gpu") if run[k]})
    return out


def revise(document, folder):
    """What the last model says of programs that an earlier one planned; the twins had been seen by then."""
    described = {p["name"]: p for p in json.loads((HERE / "programs.json").read_text())["programs"]}
    for row in document["programs"]:
        file = folder / f"plan-{row['name']}.json"
        if not file.exists():
            continue
        rows = hot_rows(json.loads(file.read_text())["plans"][0], row["suite"], described[row["name"]].get("rows"))
        if rows:
            if row.get("revised", {}).get("by", LAST_MODEL) != LAST_MODEL:
                row.setdefault("revised_before", []).append(row["revised"])
            verdict = rows[0]["verdict"]
            row["revised"] = {"by": LAST_MODEL, "verdict": verdict, "right": verdict_is_right(verdict, row["over_best_cpu"]),
                              "predicted_gain": gain(rows), "why": rows[0]["why"],
                              "best_cpu": {k: rows[0]["best_cpu"][k] for k in ("seconds", "low", "high")},
                              "now": rows[0]["now"]["seconds"]}


TIMES = ("cpu_seconds", "best_cpu_seconds", "twin_seconds", "twin_median", "measured_gain", "over_best_cpu", "phases", "spans")


def clock_again(document, folder):
    """Runs with a later clock; what the first one said is kept, and so is what was planned."""
    for new in load([folder])["programs"]:
        for row in document["programs"]:
            if row["name"] == new["name"]:
                row.setdefault("first_clock", {key: row.get(key) for key in TIMES})
                row.update({key: new.get(key) for key in TIMES})
                row["right"] = verdict_is_right(row["verdict"], row["over_best_cpu"])
                if "revised" in row:
                    row["revised"]["right"] = verdict_is_right(row["revised"]["verdict"], row["over_best_cpu"])


def load(folders):
    described = json.loads((HERE / "programs.json").read_text())
    programs = {p["name"]: p for p in described["programs"]}
    rows, left, where = [], [], {}
    for folder in folders:
        for run in json.loads((folder / "runs.json").read_text())["runs"]:
            file = folder / f"plan-{run['name']}.json"
            plan = json.loads(file.read_text())["plans"][0] if file.exists() else None
            if plan:
                where = {"host": plan["machine"], "gpu": plan["gpu"], "gpu_measured": plan["gpu_measured"]}
            one = judged(run, plan, programs)
            (left if "left_out" in one else rows).append(one)
    return {"schema": "fulcrum.strangers/1", **where, "suites": described["suites"], "programs": rows,
            "left_out": left}


def factor(x):
    return f"{x:.0f}x" if x >= 99.5 else f"{x:.3g}x"


def seconds(x):
    return f"{x * 1e3:.3g} ms" if x < 1 else f"{x:.3g} s"


def said(p):
    return f"{factor(p['value'])} ({factor(p['low'])} to {factor(p['high'])})" if p else "none"


def by_last_model(rows):
    lines = ["| program | set | verdict as planned first | by the last model | predicted then | now | measured | against the best CPU | |",
             "|---|---:|---|---|---:|---:|---:|---:|---|"]
    for r in rows:
        n = final(r)
        first = r["verdict"] if "revised" in r else "the same"
        lines.append(f"| {r['name']}{' (serial)' if r['serial'] else ''} | {r['set']} | {first} | {n['verdict']} "
                     f"| {said(r['predicted_gain']) if 'revised' in r else ''} | {said(n['predicted_gain'])} "
                     f"| {factor(r['measured_gain'])} | {factor(r['over_best_cpu'])} | {'right' if n['right'] else 'wrong'} |")
    return lines


def final(row):
    """The row with the verdict of the last model."""
    return {**row, **row["revised"]} if "revised" in row else row


def table(rows):
    lines = ["| program | input | today | verdict | predicted gain | best CPU | twin | measured gain "
             "| against the best CPU | |",
             "|---|---|---:|---|---:|---:|---:|---:|---:|---|"]
    for r in rows:
        name = r["name"] + (" (serial)" if r["serial"] else "")
        today = seconds(statistics.median(r["cpu_seconds"]))
        lines.append(f"| {name} | `{r['input']}` | {today} | {r['verdict']} | {said(r['predicted_gain'])} "
                     f"| {seconds(r['best_cpu_seconds'])} | {seconds(r['twin_median'])} | {factor(r['measured_gain'])} "
                     f"| {factor(r['over_best_cpu'])} | {'right' if r['right'] else 'wrong'} |")
    return lines


def summary(rows):
    right = sum(r["right"] for r in rows)
    offload = [r for r in rows if r["verdict"] == "offload now"]
    slower = [r["name"] for r in offload if r["over_best_cpu"] <= 1]
    with_gain = [r for r in rows if r["predicted_gain"]]
    inside = sum(r["predicted_gain"]["low"] <= r["measured_gain"] <= r["predicted_gain"]["high"] for r in with_gain)
    off = [abs(math.log(r["predicted_gain"]["value"] / r["measured_gain"])) for r in with_gain]
    worst = f"slower than the best CPU run: {', '.join(slower)}." if slower else (
        "none of them is slower than the best CPU run.")
    said_now = f"{len(offload)} say *offload now*; {worst}" if offload else "None says *offload now*."
    text = [f"**{right} of {len(rows)} verdicts are right.** {said_now}"]
    if off:
        text.append(f"The measured gain lies inside the predicted interval in {inside} of {len(with_gain)} programs; the "
                    f"median factor between prediction and measurement is {math.exp(statistics.median(off)):.2g}.")
    return " ".join(text)


INTRO = """# Strangers' programs

`fulcrum plan -- program` on programs that nobody here wrote, and what their CUDA twins then did. Generated from
`results/h200/strangers.json` by `bench/record/strangers/judge.py`; the sources are public and none of them is in this
repository: {suites}.

- **Order.** For each program, on the machine with the GPU: first `plan -- program`, its output kept as written in
  `results/h200/strangers/`; then the
  program in its ordinary build (`-O3`) and in a better one (`-Ofast` for AVX-512, all threads; serial programs with the
  compiler's own parallel loops), twice each if they are short; then the twin, up to three times.
- **Region.** The hot part alone, transfers included: of the CPU program its own timer or its OpenMP target regions; of the
  twin from its first upload to the end of its last download, without what the host does while the device holds no memory
  of the program: there the CPU program is outside of its target regions too. The context, the loading of kernels and the
  allocation of device memory before the first upload are left out: a process pays them once.
- **Right** means, against the fastest CPU run: *offload now* and *offload next*: the twin is faster; *keep on the CPU*: it
  is not; *measure first*: the twin is between {low} and {high} times as fast, so that measuring was in fact
  needed. The verdict is that of the largest hot row. These rules were written before a twin ran.
- **Gain** is the ordinary build's region over the twin's. `plan` predicts it from sampled instructions, bytes touched and
  two machines' roofs; it has never seen the twin.
"""


SETS = {
    1: "First set, as planned first: the model of then",
    2: "Second set, as planned first: no twin had run when that model was frozen",
    3: "Third set, as planned first: the model of then, frozen before a program of it was planned or a twin had run",
    4: "Fourth set, as planned first: the same model, and programs that were chosen after it was frozen",
    5: "Fifth set, as planned first: the model of then, frozen before a program of it was planned or a twin had run",
    6: "Sixth set: the last model, frozen before a program of it was planned or a twin had run",
}
SEEN = (1, 2, 3, 4, 5)
LAST_MODEL = "doubt of both sides"


def last_model(rows):
    """All programs by one model; those of earlier sets had been seen by then."""
    unseen = [r for r in rows if r["set"] not in SEEN]
    again = [r for r in rows if r.get("revised", {}).get("by") == LAST_MODEL]
    not_yet = [r["name"] for r in rows if r not in unseen and r not in again]
    changed = [r["name"] for r in again if r["verdict"] != r["revised"]["verdict"]]
    lines = ["## All programs by the last model", ""]
    if unseen:
        lines += [f"Unseen, the {len(unseen)} of the sixth set: {summary(unseen)}", ""]
    lines += [f"All of them, planned with it on the same machine: {summary([final(r) for r in unseen + again])}", ""]
    lines += [f"The twins of the other {len(again)} had been seen when it was made, so for them this is no test. Its verdict differs "
              f"from the first one for {', '.join(changed)}."
              + (f" Not planned with it: {', '.join(not_yet)}." if not_yet else ""), ""]
    lines += [f"As each was planned first: {summary(rows)}", "", *by_last_model(unseen + again), ""]
    return lines


def page(document):
    suites = ", ".join(f"[{s['repository']}](https://github.com/{s['repository']}) at `{s['commit'][:12]}`"
                       for s in document["suites"].values())
    rows = document["programs"]
    lines = [INTRO.format(suites=suites, low=OPEN_LOW, high=OPEN_HIGH).rstrip(), "",
             f"Machine: `{document['host']}`" + (", with its own H200." if document["gpu"] == document["host"] else
                                                 f", planned for `{document['gpu']}`."), "", *last_model(rows)]
    for number, title in sorted(SETS.items(), reverse=True):
        of = [r for r in rows if r["set"] == number]
        if of:
            lines += [f"## {title}", "", summary(of), "", *table(of), ""]
    wrong = [r for r in rows if not r["right"] or not final(r)["right"]]
    if wrong:
        lines += ["## Wrong ones", ""]
        for r in wrong:
            now = "" if r["right"] == final(r)["right"] else f", by the last model {final(r)['verdict']}: right"
            now = ", by the last model wrong" if r["right"] else now
            lines.append(f"- **{r['name']}** ({r['verdict']}, {factor(r['over_best_cpu'])} against the best CPU{now}): "
                         f"{r.get('reason', 'not explained yet')}")
        lines.append("")
    if document.get("notes"):
        lines += ["## What was changed between the sets", "", *[f"- {n}" for n in document["notes"]], ""]
    if document["left_out"]:
        left = [f"- {r['name']}: {r.get('reason', r['left_out'])}" for r in document["left_out"]]
        lines += ["## Left out", "", *left, ""]
    return "\n".join(lines).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    parser.add_argument("--reasons", type=pathlib.Path, help='{"program": "why the verdict was wrong", "notes": [...]}')
    parser.add_argument("--again", type=pathlib.Path, action="append", default=[],
                        help="plans of programs that were judged, made with a later model")
    parser.add_argument("--clocked-again", type=pathlib.Path, help="runs of programs that were judged, with a later clock")
    parser.add_argument("--from", dest="source", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path)
    options = parser.parse_args()
    document = json.loads(options.source.read_text()) if options.source else load(options.folders)
    if options.source and options.folders:  # sets that were measured later
        more = load(options.folders)
        document["suites"] = more["suites"]
        for key in ("programs", "left_out"):
            names = {row["name"] for row in more["programs"] + more["left_out"]}
            document[key] = [row for row in document[key] if row["name"] not in names] + more[key]
    if options.clocked_again:
        clock_again(document, options.clocked_again)
    for folder in options.again:
        revise(document, folder)
    if options.reasons:
        reasons = json.loads(options.reasons.read_text())
        document["notes"] = reasons.get("all_notes") or document.get("notes", []) + reasons.get("notes", [])
        for row in [*document["programs"], *document["left_out"]]:
            if row["name"] in reasons:
                row["reason"] = reasons[row["name"]]
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    text = page(document)
    if options.page:
        options.page.write_text(text)
    rows = [final(r) for r in document["programs"]]
    print("\n".join(table(rows)), summary(rows), sep="\n\n")
    for one in document["left_out"]:
        print(f"left out: {one['name']}: {one['left_out']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
