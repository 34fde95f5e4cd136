# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains a small transformer on Gloo, without faults of its own: with DistributedDataParallel, or with
--sharded by fully_shard. Rank 0 prints its steps once a second.
"""
import sys
import time

import torch
import torch.distributed as dist

WIDTH, LAYERS, BATCH, LENGTH = 192, 3, 4, 64

torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(1)
layers = [torch.nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
          for _ in range(LAYERS)]
model = torch.nn.Sequential(*layers)
if "--sharded" in sys.argv:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
else:
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
steps, shown, shown_steps = 0, time.monotonic(), 0
while True:
    batch = torch.rand(BATCH, LENGTH, WIDTH)
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
    steps += 1
    now = time.monotonic()
    if dist.get_rank() == 0 and now - shown >= 1:
        print(f"step {steps}, {(now - shown) * 1e3 / (steps - shown_steps):.2f} ms a step", flush=True)
        shown, shown_steps = now, steps
