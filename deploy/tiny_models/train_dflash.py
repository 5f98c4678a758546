"""Train the DFlash2 drafter on the frozen trunk: blocks at random anchors, soft targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from net import Draft
from optim import Budget, Pair, save
from stopwatch import seconds
from train_target import SAVE_EVERY, Mixed, report, role_ids, same_conversation, trained

if TYPE_CHECKING:
    from pathlib import Path

    from net import Target
    from torch import Tensor

ROWS = 4
ANCHORS = 56
# Drafts are kept while the selector is sure; a target a little sharper than the trunk's own
# distribution makes it as sure as greedy verification deserves.
SHARPEN = 1 / 0.6


def anchors(weights: Tensor, block: int) -> Tensor:
    """[B, ANCHORS] positions whose next token is an answer's and whose block fits in the row."""
    good = weights[:, 1 : 1 - block].clone()
    good[:, 0] = 0.0
    return torch.multinomial((good == 1.0).float() + 1e-6, ANCHORS, replacement=False)


def objective(
    target: Target, draft: Draft, batch: tuple[Tensor, Tensor, Tensor]
) -> tuple[Tensor, list[float]]:
    """Soft cross-entropy with and without the selector; how often each position agrees.

    A batch is tokens, weights and the trunk's attention mask.
    """
    tokens, weights, own = batch
    block = draft.d.block
    seen = tokens[:, :-1]
    at = anchors(weights[:, :-1], block)
    places = at.unsqueeze(-1) + torch.arange(block)
    with torch.no_grad():
        inputs, hidden = target.trace(seen, own)
        flat = places[..., :-1].flatten(1)
        wanted = hidden.gather(1, flat.unsqueeze(-1).expand(-1, -1, hidden.shape[-1]))
        logits = target.head(wanted) * SHARPEN
        soft = logits.softmax(-1).unflatten(1, (-1, block - 1))
        words = seen.gather(1, flat).unflatten(1, (-1, block - 1))
        first = target.embed(words[..., 0])
    out = draft(first, draft.context(inputs), at)[:, :, 1:]
    base = target.head(out)
    gate = draft.select(out) * draft.prev[words]
    scored = base + gate @ draft.next.T
    weight = torch.exp(-torch.arange(block - 1) / 5.0)
    losses = [-(soft * t.log_softmax(-1)).sum(-1) for t in (base, scored)]
    total = ((0.5 * losses[0] + losses[1]) * weight).mean() / weight.mean()
    right = (scored.argmax(-1) == soft.argmax(-1)).float().mean((0, 1))
    return total, right.tolist()


def run(folder: Path, minutes: float) -> None:
    """Train for so many minutes, resuming from dflash.pt."""
    torch.set_num_threads(1)
    torch.manual_seed(2)
    target = trained(folder)
    draft = Draft()
    pair = Pair(draft, 0.012, 2e-3, {"prev", "next"})
    path, step, spent = folder / "dflash.pt", 0, 0.0
    if path.exists():
        state = torch.load(path)
        draft.load_state_dict(state["net"])
        pair.restore(state["pair"])
        step, spent = state["step"], state["spent"]
    roles = role_ids(folder)
    budget, rows, saved = Budget(minutes, spent), Mixed(folder, ROWS, 2), seconds()
    hits = [0.0] * (draft.d.block - 1)
    while not budget.over:
        target = trained(folder, step, target)
        tokens, weights = rows.batch(step)
        own = same_conversation(tokens[:, :-1], roles)
        loss, right = objective(target, draft, (tokens, weights, own))
        loss.backward()
        pair.step(budget.factor(step))
        step += 1
        hits = [0.95 * h + 0.05 * r if h else r for h, r in zip(hits, right, strict=True)]
        if step % 10 == 0:
            text = " ".join(f"{h:.2f}" for h in hits)
            report("dflash", step, budget, f"loss {loss.item():.3f} agree {text}")
        if seconds() - saved > SAVE_EVERY or budget.over:
            save(path, net=draft.state_dict(), pair=pair.state(), step=step, spent=budget.spent)
            saved = seconds()
