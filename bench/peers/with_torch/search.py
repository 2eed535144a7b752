# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
"""Similarities of vectors, the best of them, and spreading over graphs."""
import torch

from with_torch.measuring import set_tf32

TOPK_CELLS = [(n, q) for n in (64, 1024, 10_000, 100_000, 1_000_000) for q in (1, 16, 1000)]


def cosine(b):
    """The same work as ours: lengths of rows are computed in the call unless the shape promises that they are 1."""
    d = 768

    def scores(x, t, out):
        torch.mm(x / torch.linalg.vector_norm(x, dim=1, keepdim=True), t.T, out=out)
        out.div_(torch.linalg.vector_norm(t, dim=1))

    def scores_of_units(x, t, out):
        torch.mm(x / torch.linalg.vector_norm(x, dim=1, keepdim=True), t.T, out=out)

    cases = [(1, 1024, False), (1, 10000, False), (1, 100000, False), (16, 100000, False), (1, 100000, True)]
    for q, n, units in cases:
        def make():
            t = torch.randn((n, d), device="cuda")
            if units:
                t = torch.nn.functional.normalize(t, dim=1)
            return torch.randn((q, d), device="cuda"), t, torch.empty((q, n), device="cuda")

        shape = f"Q={q},N={n},D={d}" + (",normalized=yes" if units else "")
        for precision in ("fp32", "tf32"):
            set_tf32(precision == "tf32")
            b.resident("cosine_similarity", shape, make, scores_of_units if units else scores, False, precision)
    set_tf32(False)


def cosine_topk(b):
    """Scores by a product of vectors that already have length 1, then the best ten."""
    d, k = 768, 10

    def best(x, t, scores, values, ids):
        torch.mm(x, t.T, out=scores)
        torch.topk(scores, k, dim=1, out=(values, ids))

    for n, q in TOPK_CELLS:
        def make():
            unit = torch.nn.functional.normalize
            return (unit(torch.randn((q, d), device="cuda"), dim=1), unit(torch.randn((n, d), device="cuda"), dim=1),
                    torch.empty((q, n), device="cuda"), torch.empty((q, k), device="cuda"),
                    torch.empty((q, k), dtype=torch.int64, device="cuda"))

        for precision in ("fp32", "tf32"):
            set_tf32(precision == "tf32")
            b.resident("cosine_topk", f"Q={q},N={n},D={d},k={k},normalized=yes", make, best, False, precision)
    set_tf32(False)


def spreading(b):
    """As many products of a sparse matrix with a vector as there are hops: cuSPARSE behind PyTorch's CSR tensors. Decay,
    threshold and cap are left out. Graphs like Fulcrum's: edges to random nodes, and recursive halves (R-MAT)."""
    def rmat(count, levels):
        at = torch.zeros((2, count), dtype=torch.int64, device="cuda")
        for _ in range(levels):
            draw = torch.rand(count, device="cuda")
            at[0] = at[0] * 2 + (draw >= 0.76)
            at[1] = at[1] * 2 + (((draw >= 0.57) & (draw < 0.76)) | (draw >= 0.95))
        return at

    for n, nnz, hops, data in ((10_000, 50_000, 3, "engram"), (200_000, 1_000_000, 4, "engram"),
                               (65_536, 1_048_576, 4, "rmat"), (1_000_000, 5_000_000, 3, "engram"),
                               (1_048_576, 16_777_216, 3, "rmat")):
        def make():
            if data == "rmat":
                source, row = rmat(nnz, n.bit_length() - 1)
            else:
                source = torch.arange(n, device="cuda").repeat_interleave(nnz // n)
                row = torch.randint(0, n, (nnz,), device="cuda")
            order = torch.argsort(row, stable=True)
            begin = torch.zeros(n + 1, dtype=torch.int64, device="cuda")
            begin[1:] = torch.cumsum(torch.bincount(row, minlength=n), 0)
            matrix = torch.sparse_csr_tensor(begin.int(), source[order].int(), torch.rand(nnz, device="cuda") + 0.1,
                                             size=(n, n))
            return matrix, (torch.rand(n, device="cuda") < 0.01).float()

        def products(matrix, x):
            for _ in range(hops):
                x = torch.mv(matrix, x)

        b.resident("activation_spreading", f"n={n},nnz={nnz},hops={hops}" + (",data=rmat" if data == "rmat" else ""),
                   make, products, variant="cusparse")
