# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
"""Our module's kernels on PyTorch's tensors, in PyTorch's process: both as graphs of the same calls, replayed in turns.

Two programs that run one after the other do so at other clocks, and may load another release of the same library;
here neither can differ. What a row compares is checked: outputs that differ more than rounding explains are an error.
"""
import torch

from with_torch.intervals import advantage, in_turns, interval
from with_torch.measuring import Bench
from with_torch.module import Unavailable

# Of the largest output: far above what a precision's rounding does to sums of these lengths, far below what other
# operands or another op would give.
FARTHEST = {"fp32": 1e-3, "tf32": 2e-2, "fp16": 2e-2, "bf16": 5e-2}


class Bound:
    """Our side of a row: slots, sizes, parameters, our output and the tensor of theirs that it must agree with, to a share
    of `scale` (the largest output where none is given)."""

    def __init__(self, slots, dims, scalars, ours, theirs, variant="default", scale=None):
        self.slots, self.dims, self.scalars = slots, dims, scalars
        self.ours, self.theirs, self.variant, self.scale = ours, theirs, variant, scale


def _sizes(shape, names):
    values = dict(word.split("=") for word in shape.split(","))
    return [int(values.get(name, 1)) for name in names]


def _unary(*parameters):
    def bind(row, x, out):
        ours = torch.empty_like(out)
        return Bound([x, ours], [x.numel()], list(parameters), ours, out)
    return bind


def _vec_add(row, x, y, out):
    ours = torch.empty_like(out)
    return Bound([x, y, None, ours], [x.numel(), 1], [0], ours, out)


def _dot(row, x, y, out):
    ours = torch.empty(1, device="cuda")
    # Terms cancel: rounding is a share of what they add up to without their signs.
    return Bound([x, y, ours], [x.numel()], [], ours, out, scale=torch.dot(x.abs(), y.abs()).item())


def _softmax(row, x, out):
    ours = torch.empty_like(out)
    return Bound([x, ours], list(x.shape), [], ours, out)


_PRODUCTS = {"fp32": "default", "tf32": "tf32", "fp16": "f16", "bf16": "bf16"}


def _matmul(row, *operands):
    (m, k), n = operands[0].shape, operands[1].shape[1]
    x, y, bias, out = operands[0], operands[1], None, operands[-1]
    if row.get("inputs") == "bias":
        bias = operands[2].float()
    ours = torch.empty_like(out)
    epilogue = 2 if "epilogue=gelu" in row["shape"] else 0
    return Bound([x, y, bias, ours], [m, n, k], [epilogue], ours, out, _PRODUCTS[row["precision"]])


def _batched_matmul(row, x, y, out):
    ours = torch.empty_like(out)
    return Bound([x, y, ours], _sizes(row["shape"], ("B", "M", "N", "K", "Bb")), [], ours, out,
                 _PRODUCTS[row["precision"]])


def _cosine(row, x, t, out):
    ours = torch.empty_like(out)
    return Bound([x, t, None, ours], _sizes(row["shape"], "QND"), [int("normalized=yes" in row["shape"])], ours, out,
                 "tf32" if row["precision"] == "tf32" else "default")


def _cosine_topk(row, x, t, scores, values, ids):
    ours = torch.empty_like(values)
    return Bound([x, t, None, torch.empty(ids.shape, dtype=torch.int32, device="cuda"), ours],
                 _sizes(row["shape"], ("Q", "N", "D", "k")), [int("normalized=yes" in row["shape"])], ours, values,
                 "tf32" if row["precision"] == "tf32" else "default")


def _attention(row, q, k, v):
    ours = torch.empty_like(q)
    return Bound([q, k, v, ours, None], _sizes(row["shape"], ("B", "H", "Sq", "Skv", "D")),
                 [int("causal=yes" in row["shape"]), 0.0, 0], ours, None,
                 "bf16" if row["dtype"] == "bf16" else "default")


BINDINGS = {
    "vec_add": _vec_add, "relu": _unary(), "leaky_relu": _unary(0.01), "elu": _unary(1.0), "clip": _unary(-1.0, 1.0),
    "sigmoid": _unary(), "tanh": _unary(), "swish": _unary(), "gelu": _unary(), "dot": _dot, "softmax": _softmax,
    "log_softmax": _softmax, "matmul": _matmul, "batched_matmul": _batched_matmul, "cosine_similarity": _cosine,
    "cosine_topk": _cosine_topk, "attention": _attention,
}


class Beside(Bench):
    """Takes the groups of torch_peers as they are; rows of ops that have no binding are left out."""

    def __init__(self, budget, module, match=""):
        super().__init__(budget)
        self.module, self.match = module, match

    def resident(self, op, shape, make, call, cold=False, precision="fp32", dtype="f32", variant="torch", inputs=""):
        row = {"op": op, "shape": shape, "dtype": dtype, "precision": precision, "variant": variant,
               "regime": "resident", "cache": "cold" if cold else "warm"}
        if inputs:
            row["inputs"] = inputs
        if op not in BINDINGS or self.match not in f"{op} {shape} {precision} {variant}":
            return
        try:
            self.compare(row, self.sets_for(make, cold), call)
        except (RuntimeError, Unavailable) as error:
            row["error"] = str(error).splitlines()[0]
        self.add(row)

    def roundtrip(self, *_):
        """Calls from the host have no graph to replay."""

    def compare(self, row, sets, call):
        bound = [BINDINGS[row["op"]](row, *operands) for operands in sets]
        ours = [self.module.call(row["op"], b.variant, row["dtype"],
                                 [None if t is None else t.data_ptr() for t in b.slots], b.dims, b.scalars)
                for b in bound]
        try:
            graphs = {"theirs": self.capture(call, sets),
                      "ours": self.capture(lambda c: c(torch.cuda.current_stream().cuda_stream), [(c,) for c in ours])}
            samples = in_turns({name: self.replayer(*graph) for name, graph in graphs.items()}, self.budget)
            expected = bound[0].theirs
            if expected is None:
                expected = call(*sets[0])
            torch.cuda.synchronize()
            row["difference"] = self.difference(bound[0].ours, expected, bound[0].scale)
        finally:
            torch.cuda.synchronize()
            for c in ours:
                c.close()
        if not row["difference"] <= FARTHEST[row["precision"]]:
            raise RuntimeError(f"outputs differ by {row['difference']:.3g} of the largest: not the same work")
        row["ours"] = bound[0].variant
        row["device_calls"], row["device_sets"] = [graphs[name][1] for name in ("ours", "theirs")], len(sets)
        row["ours_seconds"] = interval(samples["ours"])
        row["theirs_seconds"] = interval(samples["theirs"])
        row["advantage"] = advantage(samples["ours"], samples["theirs"])

    @staticmethod
    def difference(ours, theirs, scale):
        a, b = ours.double().flatten(), theirs.double().flatten()
        return (a - b).abs().max().item() / (scale or max(b.abs().max().item(), 1e-30))

    def add(self, row):
        self.rows.append(row)
        text = row.get("error", "")
        if "advantage" in row:
            ratio = row["advantage"]
            text = (f"{row['ours']} {row['ours_seconds']['median'] * 1e6:.2f} us, theirs "
                    f"{row['theirs_seconds']['median'] * 1e6:.2f} us, {ratio['median']:.3f} "
                    f"[{ratio['ci_low']:.3f}, {ratio['ci_high']:.3f}] x, {ratio['samples']} rounds")
        print(f"{row['op']:<18} {row['shape']:<42} {row['precision']:<5} {row['cache']:<5} {row['variant']:<12} {text}",
              flush=True)
        torch.cuda.empty_cache()
