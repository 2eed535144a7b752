# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
"""Images of one channel: convolution, local entropy, labels."""
import math

import torch

from with_torch.measuring import uniform


def image(b):
    """conv2d of one channel, local entropy by 256 box filters, labels with a vote; cuDNN without TF32."""
    functional = torch.nn.functional

    def convolve(x, k, pad):
        return functional.conv2d(x[None, None], k[None, None], padding=pad)[0, 0]

    def entropy(x, window):
        bins = (x * 256).clamp(0, 255).floor()
        total = torch.zeros_like(x)
        for first in range(0, 256, 32):
            levels = torch.arange(first, first + 32, device="cuda", dtype=torch.float32)
            here = (bins[None] == levels[:, None, None]).float()
            share = functional.avg_pool2d(here[None], window, 1, window // 2, count_include_pad=False)
            total += torch.special.entr(share[0]).sum(0)
        return total * (1 / math.log(2))

    def segment(x, t):
        labels = torch.where(x > 1.5 * t, 1, torch.where(x > t, 2, torch.where(x > 0.5 * t, 3, 0)))
        ones = torch.stack([(labels == i).float() for i in range(4)])
        around = 9 * functional.avg_pool2d(ones[None], 3, 1, 1)[0] - ones
        most, which = around.max(0)
        return torch.where(most > 5.5, which, labels).to(torch.uint8)

    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        for h, w, size in ((256, 256, 3), (1080, 1920, 3), (4096, 4096, 3), (4096, 4096, 7)):
            pad = size // 2
            b.resident("conv2d", f"h={h},w={w},kh={size},kw={size},pad_y={pad},pad_x={pad}",
                       lambda: (uniform(0, 1, (h, w), torch.float32), uniform(-1, 1, (size, size), torch.float32)),
                       lambda x, k: convolve(x, k, pad))
        for h, w, window in ((1080, 1920, 3), (1080, 1920, 9)):
            b.resident("pixel_entropy", f"h={h},w={w},W={window}", lambda: (uniform(0, 1, (h, w), torch.float32),),
                       lambda x: entropy(x, window))
        for h, w in ((256, 256), (1080, 1920), (4096, 4096)):
            b.resident("image_segmentation", f"h={h},w={w}", lambda: (uniform(0, 1, (h, w), torch.float32),),
                       lambda x: segment(x, 0.5))
        h, w = 1080, 1920
        b.resident("conv_entropy_segment", f"h={h},w={w},kh=3,kw=3,pad_y=1,pad_x=1,W=9",
                   lambda: (uniform(0, 1, (h, w), torch.float32), uniform(-1, 1, (3, 3), torch.float32)),
                   lambda x, k: segment(entropy(convolve(x, k, 1), 9), 4.0))
