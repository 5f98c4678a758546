"""The drafter's last lessons: what the target says greedily, and where drafts are walked from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from net import Draft
from optim import Budget, Pair, save
from stopwatch import seconds
from train_dflash import SHARPEN
from train_target import SAVE_EVERY, report, trained

if TYPE_CHECKING:
    from pathlib import Path

    from net import Target
    from torch import Tensor

ROWS = 6
ANCHORS = 56
# A block is read from its start, so a position counts as far as the ones before it are right;
# a part of the weight goes to all positions, or what is still wrong would never be learned.
EVERYWHERE = 0.25
# Rows of similar length share a batch; so many are sorted at a time.
SORTED = 96
HOLD = 0.35


class Lessons:
    """Answers, one a row, with the target's features; each row is read by the target once.

    They take 1.5 kB a token in memory: 3 GB for all answers of make.py.
    """

    def __init__(self, folder: Path, target: Target, seed: int) -> None:
        self.folder, self.target = folder, target
        self.rng = np.random.default_rng(seed)
        self.known: dict[int, tuple[Tensor, Tensor]] = {}
        self.queue: list[np.ndarray] = []

    def refill(self) -> None:
        """Order all rows anew (there may be more by now) into batches."""
        self.tokens = np.load(self.folder / "tokens.npy", mmap_mode="r")
        self.weights = np.load(self.folder / "weights.npy", mmap_mode="r")
        lengths = (self.weights > 0).sum(1)
        enough = np.flatnonzero((self.weights == 1.0).sum(1) > 4)
        order = self.rng.permutation(enough)
        batches = []
        whole = len(order) // ROWS * ROWS
        for at in range(0, whole, SORTED):
            chunk = order[at : min(at + SORTED, whole)]
            batches += list(chunk[np.argsort(lengths[chunk])].reshape(-1, ROWS))
        self.queue = [batches[i] for i in self.rng.permutation(len(batches))]

    @torch.no_grad()
    def read(self, rows: np.ndarray) -> None:
        """Keep the features of rows met for the first time, and how unsure of each token it was."""
        fresh = [int(r) for r in rows if int(r) not in self.known]
        if not fresh:
            return
        tokens = torch.from_numpy(self.tokens[fresh].astype(np.int64))
        length = int((self.weights[fresh] > 0).sum(1).max())
        inputs, hidden = self.target.trace(tokens[:, :length])
        taps = torch.cat([inputs[k] for k in Draft().d.taps], dim=-1).half()
        chance = self.target.head(hidden[:, :-1]).softmax(-1)
        chance = chance.gather(2, tokens[:, 1:length, None]).squeeze(2)
        doubt = F.pad(1 - chance, (1, 0))
        for i, row in enumerate(fresh):
            size = int((self.weights[row] > 0).sum())
            self.known[row] = (taps[i, :size].clone(), doubt[i, :size].clone())

    def batch(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(tokens, features, doubt, answer mask), padded to the longest row."""
        if not self.queue:
            self.refill()
        rows = self.queue.pop()
        self.read(rows)
        pairs = [self.known[int(r)] for r in rows]
        length = max(len(doubt) for _, doubt in pairs)
        taps = torch.stack([F.pad(t, (0, 0, 0, length - len(t))) for t, _ in pairs])
        doubt = torch.stack([F.pad(d, (0, length - len(d))) for _, d in pairs])
        tokens = torch.from_numpy(self.tokens[rows, :length].astype(np.int64))
        answer = torch.from_numpy(self.weights[rows, :length] == 1.0)
        return tokens, taps.float(), doubt, answer


def anchors(doubt: Tensor, answer: Tensor) -> Tensor:
    """[B, ANCHORS] positions of the answer but its last; half of them by the target's doubt.

    A walk begins where the one before was wrong, and that is mostly where the target hesitates.
    """
    good = (answer & F.pad(answer, (0, 1))[:, 1:]).float()
    even = good / good.sum(1, keepdim=True)
    hard = good * (doubt + 1e-3)
    chance = even + hard / hard.sum(1, keepdim=True)
    return torch.multinomial(chance, ANCHORS, replacement=True)


def objective(
    target: Target, draft: Draft, batch: tuple[Tensor, Tensor, Tensor, Tensor]
) -> tuple[Tensor, list[float]]:
    """Cross-entropy of the logits to the target's, of the candidates' scores to what was said.

    Only the candidates of the walk get a score, as in llama.cpp, and the token itself where it is
    none of them. Also returned: how often each position agrees, and the mean accepted length.
    """
    tokens, taps, doubt, answer = batch
    block = draft.d.block
    at = anchors(doubt, answer)
    places = (at.unsqueeze(-1) + torch.arange(block)).flatten(1)
    words = F.pad(tokens, (0, block)).gather(1, places).unflatten(1, (-1, block))
    real = F.pad(answer, (0, block)).gather(1, places).unflatten(1, (-1, block))[..., 1:]
    first = target.embed(words[..., 0])
    out = draft(first, draft.fuse_norm(draft.fuse(taps)), at)[:, :, 1:][real]
    before, truth = words[..., :-1][real], words[..., 1:][real].unsqueeze(1)
    logits = target.head(out)
    scores, found = candidates(draft, logits, out, before, truth)
    chosen = -scores.log_softmax(-1)[:, -1]
    with torch.no_grad():
        soft = meant(target, taps, places, real)
        # The probability that the walk comes as far as this position.
        steps = torch.zeros(real.shape).masked_scatter(real, -chosen)
        reach = F.pad(steps.cumsum(-1), (1, 0))[..., :-1].exp()[real]
        weight = EVERYWHERE + (1 - EVERYWHERE) * reach
        won = (scores[:, -1] >= scores[:, :-1].amax(-1)) & found
        right = torch.zeros(real.shape).masked_scatter(real, won.float())
        agree = right.sum((0, 1)) / real.sum((0, 1)).clamp(min=1)
        walked = 1 + right.cumprod(-1).sum(-1).mean()
    plain = -(soft * logits.log_softmax(-1)).sum(-1)
    total = ((0.4 * plain + chosen) * weight).sum() / weight.sum()
    return total, [*agree.tolist(), walked.item()]


def meant(target: Target, taps: Tensor, places: Tensor, real: Tensor) -> Tensor:
    """What the target would say at each real position of the blocks, a little sharpened.

    The last of the features is the trunk's output, so the target need not be run again.
    """
    block = real.shape[-1] + 1
    trunk = F.pad(taps[..., -target.s.width :], (0, 0, 0, block))
    index = places.unsqueeze(-1).expand(-1, -1, target.s.width)
    before = trunk.gather(1, index).unflatten(1, (-1, block))[..., :-1, :]
    logits: Tensor = target.head(target.norm(before[real]))
    return (logits * SHARPEN).softmax(-1)


def candidates(
    draft: Draft, logits: Tensor, out: Tensor, before: Tensor, truth: Tensor
) -> tuple[Tensor, Tensor]:
    """Scores [N, top_k + 1], the true token's last, and whether it is among the candidates.

    Among the candidates the true token is struck out: it must not compete with itself.
    """
    best = logits.detach().topk(draft.d.top_k).indices
    ids = torch.cat((best, truth), dim=1)
    own = F.pad(best == truth, (0, 1))
    gate = draft.select(out) * F.embedding(before, draft.prev)
    low_rank = torch.bmm(F.embedding(ids, draft.next), gate.unsqueeze(2)).squeeze(2)
    return (logits.gather(1, ids) + low_rank).masked_fill(own, -1e4), own.any(1)


def run(folder: Path, minutes: float) -> None:
    """Continue dflash.pt for so many minutes on folder/greedy; what stands in the target stays."""
    torch.set_num_threads(1)
    torch.manual_seed(3)
    target = trained(folder)
    draft = Draft()
    source, path, step, spent = folder / "dflash.pt", folder / "greedy.pt", 0, 0.0
    draft.load_state_dict(torch.load(source)["net"])
    # The mask's row is part of the target's file.
    draft.mask_row.requires_grad_(False)
    pair = Pair(draft, 0.008, 1.2e-3, {"prev", "next"})
    if path.exists():
        state = torch.load(path)
        draft.load_state_dict(state["net"])
        pair.restore(state["pair"])
        step, spent = state["step"], state["spent"]
    budget, saved = Budget(minutes, spent), seconds()
    lessons = Lessons(folder / "greedy", target, step)
    mean: list[float] = []
    while not budget.over:
        loss, right = objective(target, draft, lessons.batch())
        loss.backward()
        pair.step(budget.factor(step, HOLD))
        step += 1
        right.append(loss.item())
        mean = [0.95 * m + 0.05 * r for m, r in zip(mean or right, right, strict=True)]
        if step % 10 == 0:
            text = " ".join(f"{h:.2f}" for h in mean[:-2])
            report("greedy", step, budget, f"loss {mean[-1]:.3f} agree {text} walk {mean[-2]:.2f}")
        if seconds() - saved > SAVE_EVERY or budget.over:
            save(path, net=draft.state_dict(), pair=pair.state(), step=step, spent=budget.spent)
            saved = seconds()
