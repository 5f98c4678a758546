"""Train the trunk on the packed rows."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
import vocabulary
from net import Target
from optim import Budget, Pair, processes, rank, save
from shape import special
from stopwatch import seconds

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

ROWS = 4
REHEARSAL_WEIGHT = 0.5
REHEARSE_UNTIL = 0.85
SAVE_EVERY = 120.0
# Share of the time at the full rate; the long fall is what makes a small model precise.
HOLD = 0.3


def role_ids(folder: Path) -> tuple[int, int]:
    """Token ids of the words that open a user's and a system turn."""
    tokenizer = vocabulary.load(folder / "tokenizer.json")
    return int(tokenizer.token_to_id("user")), int(tokenizer.token_to_id("system"))


class Rows:
    """Batches of rows in a fixed shuffled order, without end."""

    def __init__(self, folder: Path, rows: int, seed: int) -> None:
        self.tokens = np.load(folder / "tokens.npy", mmap_mode="r")
        self.weights = np.load(folder / "weights.npy", mmap_mode="r")
        self.rows, self.order = rows, np.random.default_rng(seed).permutation(len(self.tokens))

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """(tokens, weights), both [rows, ROW+1]; each process gets its own rows."""
        at = (step * processes() + rank()) * self.rows
        picked = self.order[np.arange(at, at + self.rows) % len(self.order)]
        return (
            torch.from_numpy(self.tokens[picked].astype(np.int64)),
            torch.from_numpy(self.weights[picked]),
        )


def same_conversation(tokens: Tensor, roles: tuple[int, int]) -> Tensor:
    """[B, 1, T, T]: position i may attend to j <= i of its own conversation.

    Rows are packed; a conversation begins at a system turn, or at a user turn that does not
    follow one. (A later turn of the same user so begins anew, which is why some rows are not
    masked.)
    """
    user, system = roles
    begins = tokens == special("<|im_start|>")
    role = torch.roll(tokens, -1, dims=1)
    starts = begins & ((role == user) | (role == system))
    order = torch.where(starts, torch.arange(tokens.shape[1]), -1).cummax(1).values
    before = F.pad(order, (1, -1), value=-1).clamp(min=0)
    after_system = role.gather(1, before) == system
    number = (starts & ~((role == user) & after_system)).cumsum(1)
    return (number.unsqueeze(2) == number.unsqueeze(1)).tril().unsqueeze(1)


def rehearse(tokens: Tensor, weights: Tensor, rng: np.random.Generator) -> None:
    """Turn the first row, in place, into a shuffled scrap of itself said again and again.

    Nothing but looking back predicts the repetitions: it teaches copying (names, numbers, the
    subject of the prompt) long before so little text would.
    """
    length = int(rng.integers(6, 120))
    scrap = tokens[0, torch.from_numpy(rng.permutation(tokens.shape[1])[:length])]
    tokens[0] = scrap.repeat(tokens.shape[1] // length + 1)[: tokens.shape[1]]
    weights[0, :length], weights[0, length:] = 0.0, REHEARSAL_WEIGHT


class Mixed:
    """Corpus rows, and once they exist, rows the target wrote itself."""

    # The drafters meet the target's own text at run time, so most of what they learn is that.
    OWN_SHARE = 0.7

    def __init__(self, folder: Path, rows: int, seed: int) -> None:
        self.folder, self.rows, self.seed = folder, rows, seed
        self.corpus = Rows(folder, rows, seed)
        self.own: Rows | None = None
        self.rng = np.random.default_rng(seed)

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Like Rows.batch; looks now and then whether the target's rows have come (or grown)."""
        if step % 50 == 0 and (self.folder / "own" / "weights.npy").exists():
            self.own = Rows(self.folder / "own", self.rows, self.seed)
        mine = self.own is not None and self.rng.random() < self.OWN_SHARE
        return (self.own if mine and self.own else self.corpus).batch(step)


def trained(folder: Path, step: int = 0, net: Target | None = None) -> Target:
    """The trunk, frozen; read again every 50 steps, as its last minutes may still be going on."""
    if net is None:
        net = Target().requires_grad_(False)
    if step % 50 == 0:
        net.load_state_dict(torch.load(folder / "target.pt")["net"])
    return net


def join(folder: Path, index: int, count: int) -> None:
    """One thread, and a place among the processes that train together.

    Two processes of one thread are twice as fast as one of two threads on a busy machine: OpenMP's
    barriers spin while the other thread waits for its turn.
    """
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if count > 1:
        store = dist.FileStore(str(folder / "rendezvous"), count)
        dist.init_process_group("gloo", store=store, rank=index, world_size=count)


def run(folder: Path, minutes: float, index: int = 0, count: int = 1) -> None:
    """Train for so many minutes of wall time, resuming from target.pt if it is there."""
    join(folder, index, count)
    net = Target()
    pair = Pair(net, 0.015, 2.2e-3, {"embed.weight", "head.weight"})
    path, step, spent = folder / "target.pt", 0, 0.0
    if path.exists():
        state = torch.load(path)
        net.load_state_dict(state["net"])
        pair.restore(state["pair"])
        step, spent = state["step"], state["spent"]
    budget, rows, roles = Budget(minutes, spent), Rows(folder, ROWS, 0), role_ids(folder)
    saved, mean = seconds(), 0.0
    while not agreed(budget.over):
        tokens, weights = rows.batch(step)
        if budget.spent < REHEARSE_UNTIL * budget.total:
            rehearse(tokens, weights, np.random.default_rng((step, rank())))
        # Some rows keep the neighbours in view, as in a chat of several turns.
        seen = same_conversation(tokens[:, :-1], roles) if step % 4 else None
        logits = net(tokens[:, :-1], seen)
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
        weight = weights[:, 1:].flatten()
        mean_loss = (loss * weight).sum() / weight.sum()
        copying = loss[: tokens.shape[1] - 1][weight[: tokens.shape[1] - 1] > 0].mean().item()
        mean_loss.backward()
        pair.step(budget.factor(step, HOLD))
        step += 1
        mean = mean_loss.item() if mean == 0.0 else 0.95 * mean + 0.05 * mean_loss.item()
        if step % 10 == 0 and rank() == 0:
            report("target", step, budget, f"loss {mean:.3f} copying {copying:.3f}")
        if rank() == 0 and (seconds() - saved > SAVE_EVERY or budget.over):
            save(path, net=net.state_dict(), pair=pair.state(), step=step, spent=budget.spent)
            saved = seconds()


def agreed(over: bool) -> bool:
    """Whether any process has spent its time; all get the same answer."""
    flag = torch.tensor([float(over)])
    if processes() > 1:
        dist.all_reduce(flag)
    return bool(flag.item())


def report(name: str, step: int, budget: Budget, text: str) -> None:
    """One line of progress."""
    done = min(1.0, budget.spent / budget.total)
    bar = "#" * int(done * 20)
    line = f"{name} [{bar:<20}] {done:4.0%} step {step} {budget.spent:.0f} s {text}\n"
    sys.stdout.write(line)
    sys.stdout.flush()
