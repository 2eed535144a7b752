# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
"""Products of matrices, convolutions with channels, attention."""
import torch

from with_torch.measuring import DTYPES, PRECISIONS, set_tf32, uniform


def matmul(b):
    for precision, dtype in PRECISIONS:
        set_tf32(precision == "tf32")
        t = DTYPES[dtype]
        for n in (256, 512, 1024, 2048, 4096):
            b.resident("matmul", f"M={n},N={n},K={n}",
                       lambda: (uniform(-1, 1, (n, n), t), uniform(-1, 1, (n, n), t),
                                torch.empty((n, n), dtype=t, device="cuda")),
                       lambda x, y, out: torch.mm(x, y, out=out), False, precision, dtype)
    set_tf32(False)
    for count, n in ((1000, 16), (100, 64), (8, 1024)):
        b.resident("batched_matmul", f"B={count},M={n},N={n},K={n},Bb={count}",
                   lambda: (uniform(-1, 1, (count, n, n), torch.float32), uniform(-1, 1, (count, n, n), torch.float32),
                            torch.empty((count, n, n), device="cuda")),
                   lambda x, y, out: torch.bmm(x, y, out=out))


def linear(b):
    """Product and gelu, without and with a bias: as two calls, and as PyTorch's fused kernel, which wants a bias."""
    n = 1024
    for precision, dtype in PRECISIONS:
        set_tf32(precision == "tf32")
        t = DTYPES[dtype]

        def make():
            return (uniform(-1, 1, (n, n), t), uniform(-1, 1, (n, n), t), uniform(-1, 1, n, t),
                    torch.empty((n, n), dtype=t, device="cuda"), torch.empty((n, n), dtype=t, device="cuda"))

        def plain_pair(x, w, bias, middle, out):
            torch.mm(x, w, out=middle)
            torch._C._nn.gelu(middle, approximate="tanh", out=out)

        def pair(x, w, bias, middle, out):
            torch.addmm(bias, x, w, out=middle)
            torch._C._nn.gelu(middle, approximate="tanh", out=out)

        def fused(x, w, bias, middle, out):
            torch._addmm_activation(bias, x, w, use_gelu=True, out=out)

        shape = f"M={n},N={n},K={n},epilogue=gelu"
        b.resident("matmul", shape, make, plain_pair, False, precision, dtype, "torch_pair")
        b.resident("matmul", shape, make, pair, False, precision, dtype, "torch_pair", "bias")
        b.resident("matmul", shape, make, fused, False, precision, dtype, "torch_fused", "bias")
    set_tf32(False)


def conv_channels(b):
    """With the engines that PyTorch finds fastest (cudnn.benchmark), in the layout of ours and channels last."""
    torch.backends.cudnn.benchmark = True
    for cin, cout, side in ((3, 32, 256), (64, 64, 56), (64, 64, 256)):
        shape = f"N=1,Cin={cin},h={side},w={side},Cout={cout},kh=3,kw=3,pad_y=1,pad_x=1"
        for layout, variant in ((torch.contiguous_format, "torch"), (torch.channels_last, "torch_channels_last")):
            def make():
                return (uniform(-1, 1, (1, cin, side, side), torch.float32).to(memory_format=layout),
                        uniform(-1, 1, (cout, cin, 3, 3), torch.float32).to(memory_format=layout))

            for precision in ("fp32", "tf32"):
                torch.backends.cudnn.allow_tf32 = precision == "tf32"
                b.resident("conv2d_channels", shape, make, lambda x, k: torch.conv2d(x, k, padding=1), False,
                           precision, variant=variant)
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False


def attend(b, shapes):
    """Each of PyTorch's backends by name, and what it takes by itself; one that refuses a shape is a row with an error."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    backends = (("torch", None), ("torch_flash", SDPBackend.FLASH_ATTENTION),
                ("torch_cudnn", SDPBackend.CUDNN_ATTENTION), ("torch_efficient", SDPBackend.EFFICIENT_ATTENTION))
    for dtype, batch, heads, length, d, causal in shapes:
        def make():
            return tuple(torch.randn((batch, heads, length, d), device="cuda").to(DTYPES[dtype]) for _ in range(3))

        shape = f"B={batch},H={heads},Sq={length},Skv={length},D={d}" + (",causal=yes" if causal else "")
        for variant, backend in backends:
            def call(q, k, v):
                if backend is None:
                    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
                with sdpa_kernel(backend):
                    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

            b.resident("attention", shape, make, call, False, "fp16" if dtype == "f16" else dtype, dtype, variant)


def attention(b):
    small = ((1, 32), (1, 64), (1, 128), (1, 256), (1, 512), (8, 128), (8, 512))
    attend(b, [(dtype, 1, heads, length, 64, False) for dtype in ("f16", "bf16") for heads, length in small])


def attention_large(b):
    attend(b, [("f16", *sizes) for sizes in (
        (4, 16, 2048, 64, False), (4, 16, 2048, 64, True), (4, 16, 2048, 128, True), (2, 16, 8192, 64, True),
        (2, 16, 8192, 128, True), (2, 16, 8192, 128, False), (1, 16, 16384, 128, True))])
