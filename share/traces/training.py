# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# A small training loop with habits that cost time: what training.ftrace is a trace of, on an H200 with PyTorch 2.11.
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(*[m for _ in range(6) for m in (torch.nn.Linear(256, 256), torch.nn.ReLU())], torch.nn.Linear(256, 10)).cuda()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
loss_fn = torch.nn.CrossEntropyLoss()
x, y = torch.randn(64, 256), torch.randint(0, 10, (64,))
total = 0.0
for step in range(60):
    opt.zero_grad()
    loss = loss_fn(net(x.cuda()), y.cuda())
    loss.backward()
    opt.step()
    total += loss.item()
print("loss %.3f" % (total / 60))
