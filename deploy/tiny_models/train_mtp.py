"""Train the MTP head on the frozen trunk: three chained steps, soft targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from net import Mtp
from optim import Budget, Pair, save
from stopwatch import seconds
from train_target import SAVE_EVERY, Mixed, report, role_ids, same_conversation, trained

if TYPE_CHECKING:
    from pathlib import Path

    from net import Target
    from torch import Tensor

ROWS = 4
STEP_WEIGHTS = (1.0, 0.7, 0.5)
Step = tuple["Tensor", "Tensor", "Tensor"]


def start_from(mtp: Mtp, target: Target) -> None:
    """Begin as the trunk's last attention layer, reading mostly the trunk's hidden."""
    last = [layer for layer in target.layers if layer.kind == "A"][-1]
    mtp.layer.load_state_dict(last.state_dict())
    mtp.norm.load_state_dict(target.norm.state_dict())
    width = target.s.width
    with torch.no_grad():
        mtp.join.weight.copy_(torch.cat((torch.eye(width), torch.eye(width)), dim=1) * 0.5)


def shift(x: Tensor) -> Tensor:
    """Each position gets what stood before it; the first gets zero."""
    return F.pad(x, (0, 0, 1, 0))[:, :-1]


def chain(mtp: Mtp, embedded: Tensor, hidden: Tensor, table: tuple[Tensor, Tensor]) -> list[Tensor]:
    """Normed hiddens of the three steps, each [B, T, width]; entry q predicts token q + 1.

    Step k at q was fed by step k-1 at q-1; its attention sees the true keys up to q-k+1 and then
    the keys of the steps that lead to it, as at run time.
    """
    first, k1, v1 = mtp.first(mtp.enter(embedded, shift(hidden)), table)
    outs, earlier = [first], [(k1, v1)]
    for depth in (1, 2):
        x = mtp.enter(embedded, shift(outs[-1]))
        q, k, v, gate = mtp.layer.mixer.heads(mtp.layer.norm(x), table)
        earlier.append((k, v))
        mixed = look_back(mtp, q, earlier, depth)
        outs.append(mtp.leave(x, mixed, gate))
    return outs


def look_back(mtp: Mtp, q: Tensor, steps: list[tuple[Tensor, Tensor]], depth: int) -> Tensor:
    """Attention of step `depth` (0-based): true keys, then one key of each step of the chain."""
    k1, v1 = (mtp.wide(t).transpose(1, 2) for t in steps[0])
    q = q.transpose(1, 2) * q.shape[-1] ** -0.5
    length = q.shape[2]
    mask = torch.ones(length, length, dtype=torch.bool).tril(-depth)
    scores = [(q @ k1.transpose(-1, -2)).masked_fill(~mask, -1e9)]
    values = []
    for back in range(depth):
        # The step `depth - back` of this chain stands `back` positions before.
        k, v = (mtp.wide(t).transpose(1, 2) for t in steps[depth - back])
        k, v = (t.roll(back, dims=2) for t in (k, v))
        scores.append((q * k).sum(-1, keepdim=True))
        values.append(v)
    weights = torch.cat(scores, dim=-1).softmax(-1)
    mixed = weights[..., :length] @ v1
    for i, v in enumerate(values):
        mixed = mixed + weights[..., length + i : length + i + 1] * v
    return mixed.transpose(1, 2).flatten(2)


def run(folder: Path, minutes: float) -> None:
    """Train for so many minutes, resuming from mtp.pt."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    target = trained(folder)
    mtp = Mtp()
    start_from(mtp, target)
    pair = Pair(mtp, 0.015, 2e-3, set())
    path, step, spent = folder / "mtp.pt", 0, 0.0
    if path.exists():
        state = torch.load(path)
        mtp.load_state_dict(state["net"])
        pair.restore(state["pair"])
        step, spent = state["step"], state["spent"]
    roles = role_ids(folder)
    budget, rows, saved = Budget(minutes, spent), Mixed(folder, ROWS, 1), seconds()
    hits = [0.0] * 3
    while not budget.over:
        target = trained(folder, step, target)
        tokens, weights = rows.batch(step)
        own = same_conversation(tokens[:, :-1], roles)
        loss, right = objective(target, mtp, (tokens, weights, own))
        loss.backward()
        pair.step(budget.factor(step))
        step += 1
        hits = [0.95 * h + 0.05 * r if h else r for h, r in zip(hits, right, strict=True)]
        if step % 10 == 0:
            text = " ".join(f"{h:.3f}" for h in hits)
            report("mtp", step, budget, f"loss {loss.item():.3f} agree {text}")
        if seconds() - saved > SAVE_EVERY or budget.over:
            save(path, net=mtp.state_dict(), pair=pair.state(), step=step, spent=budget.spent)
            saved = seconds()


def objective(
    target: Target, mtp: Mtp, batch: tuple[Tensor, Tensor, Tensor]
) -> tuple[Tensor, list[float]]:
    """Weighted soft cross-entropy of the three steps and how often each agrees with the trunk.

    A batch is tokens, weights and the trunk's attention mask.
    """
    tokens, weights, own = batch
    seen = tokens[:, :-1]
    with torch.no_grad():
        hidden = target.trace(seen, own)[1]
        table = target.table(seen.shape[1])
        picked = (weights[:, 1:] == 1.0) & (torch.rand(seen.shape) < 0.5)
        soft = target.head(hidden[picked]).softmax(-1)
        best = soft.argmax(-1)
    total, right = torch.zeros(()), []
    outs = chain(mtp, target.embed(seen), hidden, table)
    for out, weight in zip(outs, STEP_WEIGHTS, strict=True):
        logits = target.head(out[picked])
        total = total + weight * F.cross_entropy(logits, soft)
        right.append((logits.argmax(-1) == best).float().mean().item())
    return total, right
