"""Muon in float32 for matrices, AdamW for the rest, and a schedule by wall time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from stopwatch import seconds

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from torch import Tensor, nn


def orthogonal(g: Tensor, steps: int = 5) -> Tensor:
    """The nearest orthogonal matrix, roughly, by the quintic Newton-Schulz iteration."""
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = g.shape[0] > g.shape[1]
    x = g.T if tall else g
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if tall else x


def processes() -> int:
    """How many train this network together."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """Which of them this is."""
    return dist.get_rank() if dist.is_initialized() else 0


def share(tensors: list[Tensor], mean: bool) -> None:
    """Add up (or average) tensors over the processes, in place, in one message."""
    if processes() == 1:
        return
    flat = torch.cat([t.flatten() for t in tensors])
    dist.all_reduce(flat)
    if mean:
        flat /= processes()
    for t, part in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
        t.copy_(part.view_as(t))


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised."""

    def __init__(self, params: Iterable[nn.Parameter], lr: float, momentum: float = 0.95) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            updates = [self.update(i, p, group["momentum"]) for i, p in enumerate(group["params"])]
            share(updates, mean=False)
            for p, update in zip(group["params"], updates, strict=True):
                scale = max(1.0, p.shape[0] / p.shape[1]) ** 0.5
                p.mul_(1 - group["lr"] * 0.01).add_(update, alpha=-group["lr"] * scale)

    def update(self, index: int, p: nn.Parameter, momentum: float) -> Tensor:
        """The direction of one matrix; with several processes each does its share of them."""
        if p.grad is None:
            return torch.zeros_like(p)
        buffer = self.state[p].setdefault("buffer", torch.zeros_like(p))
        buffer.lerp_(p.grad, 1 - momentum)
        if index % processes() != rank():
            return torch.zeros_like(p)
        return orthogonal(p.grad.lerp(buffer, momentum))


class Pair:
    """Both optimisers over a network, with the rates at their peak remembered."""

    def __init__(self, net: nn.Module, muon_lr: float, adam_lr: float, plain: set[str]) -> None:
        matrices, rest = [], []
        for name, p in net.named_parameters():
            if not p.requires_grad:
                continue
            is_matrix = p.ndim == 2 and min(p.shape) > 32 and name not in plain
            (matrices if is_matrix else rest).append(p)
        self.params = matrices + rest
        self.muon = Muon(matrices, muon_lr)
        self.adam = torch.optim.AdamW(rest, adam_lr, betas=(0.9, 0.97), weight_decay=0.0)
        self.peaks = (muon_lr, adam_lr)

    def step(self, factor: float) -> None:
        """Clip, apply at a fraction of the peak rates, clear."""
        share([p.grad for p in self.params if p.grad is not None], mean=True)
        torch.nn.utils.clip_grad_norm_(self.params, 1.0)
        for optimizer, peak in zip((self.muon, self.adam), self.peaks, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = peak * factor
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def state(self) -> dict[str, object]:
        return {"muon": self.muon.state_dict(), "adam": self.adam.state_dict()}

    def restore(self, state: dict[str, dict[str, object]]) -> None:
        self.muon.load_state_dict(state["muon"])
        self.adam.load_state_dict(state["adam"])


class Budget:
    """Minutes to spend; survives a restart through `spent`, and sets the rate."""

    def __init__(self, minutes: float, spent: float = 0.0) -> None:
        self.total, self.before, self.start = minutes * 60, spent, seconds()

    @property
    def spent(self) -> float:
        """Seconds, over all runs."""
        return self.before + seconds() - self.start

    @property
    def over(self) -> bool:
        return self.spent >= self.total

    def factor(self, step: int, hold: float = 0.5) -> float:
        """Warm-up over 20 steps, constant, then linear to 0.02 at the end."""
        done = min(1.0, self.spent / self.total)
        fall = 1.0 if done < hold else max(0.02, (1 - done) / (1 - hold))
        return fall * min(1.0, (step + 1) / 20)


def save(path: Path, **content: object) -> None:
    """Write a checkpoint whole or not at all."""
    part = path.with_suffix(".part")
    torch.save(content, part)
    part.replace(path)
