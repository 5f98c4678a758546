"""Decayed, shrunken cell statistics: every learned quantity of the gateway is such a table.

A table explains the logarithm of a positive quantity (speed, length, ratio) as a sum of effects:
y = offset + effect(level 1) + ... + effect(leaf) + noise. An effect has a prior of mean 0 and the
standard deviation its level states, so cells with little data lean on their parents and on each
other (additive shrinkage). State is nothing but decayed moments per leaf cell: they add up, so any
number of gateways can merge theirs (see `router.telemetry.store`). Pure: no clock, no I/O.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from router.telemetry.residuals import Run, Scatter
from router.telemetry.triangular import solve

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

EXACT_FANOUT: Final = 48
"""Up to so many cells under an effect it is solved at once per observation; beyond, by `settle`."""

EXACT_CELLS: Final = 64
"""Up to so many observed cells a table is settled exactly, in a few ms; beyond, by `sweep`."""

CONTEXT_EDGES: Final = (2048, 8192, 32768)
"""Tokens at which a context bucket ends; drafters lose acceptance from about 2K tokens on."""


def context_bucket(tokens: float) -> int:
    """0 for short prompts up to 3 for more than 32K tokens."""
    return bisect_left(CONTEXT_EDGES, tokens)


def occupancy_bucket(requests: int) -> int:
    """0 alone, then 1 for 2, 2 for 3-4, 3 for 5-8, 4 for 9-16, and so on."""
    return max(0, requests - 1).bit_length()


class Role(Enum):
    """How a level's uncertainty enters an estimate's variance."""

    SHARED = "shared"  # the same for every arm of one request: cancels in a comparison
    GROUP = "group"  # the same for some arms: cancels among them only
    NESTED = "nested"  # refines the level above it
    CROSSED = "crossed"  # independent of the levels above it


_COMMON: Final = (Role.SHARED, Role.GROUP)


class Level(NamedTuple):
    """One effect of a cell: which node, how far it may be from 0 (sd), and its role."""

    node: Hashable
    sd: float
    role: Role = Role.NESTED


class Estimate(NamedTuple):
    """A predicted logarithm. `contrast` is the variance without what other arms share, `group` the
    variance of what only its group shares."""

    mean: float
    contrast: float
    group: float
    variance: float  # of the expectation, shared levels included; without the noise
    weight: float  # effective observations of this very cell


@dataclass(slots=True)
class Moments:
    """Additive sufficient statistics of weighted observations."""

    n: float = 0.0
    w: float = 0.0
    wy: float = 0.0
    wyy: float = 0.0

    def add(self, y: float, weight: float) -> None:
        """Count one observation."""
        self.n += 1.0
        self.w += weight
        self.wy += weight * y
        self.wyy += weight * y * y

    def plus(self, other: Moments, scale: float = 1.0) -> Moments:
        """Self + scale x other."""
        return Moments(
            self.n + scale * other.n,
            self.w + scale * other.w,
            self.wy + scale * other.wy,
            self.wyy + scale * other.wyy,
        )

    def scaled(self, factor: float) -> Moments:
        """Moments of the same data at `factor` times its weight."""
        return Moments(self.n * factor, self.w * factor, self.wy * factor, self.wyy * factor)

    def shifted(self, by: float) -> Moments:
        """Moments of the same data with `by` added to every observation."""
        wyy = self.wyy + 2.0 * by * self.wy + self.w * by * by
        return Moments(self.n, self.w, self.wy + self.w * by, wyy)


class _Node:
    """One effect and the observed cells that share it."""

    __slots__ = ("above", "cells", "effect", "penalty", "precision", "var", "weight")

    def __init__(self, sd: float, noise_var: float) -> None:
        self.effect = 0.0
        self.var = sd * sd
        self.penalty = noise_var / self.var
        self.weight = 0.0
        self.precision = 0.0  # what its cells tell about it, each limited by its own deviation
        self.above = 0.0  # what they tell about the level that this one refines
        self.cells: dict[Cell, None] = {}  # insertion order keeps sums reproducible

    def relax(self) -> None:
        """Move this effect to its best value given all the others."""
        pull = -self.penalty * self.effect
        for cell in self.cells:
            pull += cell.moments.wy - cell.moments.w * cell.fitted
        step = pull / (self.weight + self.penalty)
        self.effect += step
        for cell in self.cells:
            cell.fitted += step


class Cell:
    """One leaf: its moments and the chain of effects above it."""

    __slots__ = (
        "below",
        "crossed",
        "falling",
        "finer",
        "fitted",
        "grouped",
        "key",
        "moments",
        "moved",
        "name",
        "nested",
        "nodes",
        "offset",
        "rising",
        "shared",
        "shares",
    )

    def __init__(
        self, key: Hashable, offset: float, levels: tuple[Level, ...], nodes: tuple[_Node, ...]
    ) -> None:
        self.key = key
        self.name = ""  # the key as text, made when first stored
        self.offset = offset
        self.moved = 0.0  # by how much changes took the offset from its prior, all together
        self.nodes = nodes
        rows = [
            (node, i, level.role) for i, (node, level) in enumerate(zip(nodes, levels, strict=True))
        ]
        nested = [(node, i) for node, i, role in rows if role is Role.NESTED]
        finer = (*(node for node, _ in nested[1:]), None)
        self.nested = tuple((node, i, f) for (node, i), f in zip(nested, finer, strict=True))
        by_level = {i: node for _, i, node in self.nested}
        self.finer = tuple(by_level.get(i) for i in range(len(nodes)))  # what refines each level
        self.crossed = tuple((node, i) for node, i, role in rows if role is Role.CROSSED)
        self.grouped = tuple(node for node, _, role in rows if role is Role.GROUP)
        self.shared = tuple(node for node, _, role in rows if role is Role.SHARED)
        self.below = _below(levels)
        self.moments = Moments()
        self.fitted = offset
        self.shares = [0.0] * len(nodes)  # precision this cell lends to each of its nodes
        self.rising = Run()
        self.falling = Run()


def _covariances(cells: list[Cell], noise_var: float) -> tuple[list[list[float]], list[float]]:
    """How the cells' means vary together, a lower triangle; and their distance from the prior."""
    place = {cell: i for i, cell in enumerate(cells)}
    rows = [[0.0] * (i + 1) for i in range(len(cells))]
    for node in dict.fromkeys(node for cell in cells for node in cell.nodes):
        places = sorted(place[cell] for cell in node.cells if cell in place)
        for k, i in enumerate(places):
            row = rows[i]
            for j in places[: k + 1]:
                row[j] += node.var
    off = []
    for i, cell in enumerate(cells):
        rows[i][i] += noise_var / cell.moments.w
        off.append(cell.moments.wy / cell.moments.w - cell.offset)
    return rows, off


def _below(levels: tuple[Level, ...]) -> tuple[float, ...]:
    """Per level the variance of what else a cell's data may be due to: it blurs what they tell.

    For most levels that is what deviates below them. A group's effect is also blurred by what all
    arms share in the same conditions, all but the scale (the first level).
    """
    shared = sum(level.sd**2 for level in levels[1:] if level.role is Role.SHARED)
    out = [0.0]
    for level in reversed(levels[1:]):
        out.append(out[-1] + (0.0 if level.role in _COMMON else level.sd**2))
    rows = zip(levels, reversed(out), strict=True)
    return tuple(v + shared if level.role is Role.GROUP else v for level, v in rows)


@dataclass(frozen=True, slots=True)
class Shape:
    """How a table treats its data. `noise_sd` is of one observation of weight 1, in ln units.

    `keep` is the effective weight that time alone never takes from a cell: old figures fade as new
    ones come, a cell without traffic keeps what it knew. The change detector is a two-sided CUSUM
    on standardised residuals: it raises when they exceed `cusum_slack` per observation by
    `cusum_limit` in total. `after_change` is the weight left to a cell that changed.
    """

    noise_sd: float = 0.2
    keep: float = 100.0
    cusum_slack: float = 0.75
    cusum_limit: float = 7.0
    cusum_clip: float = 3.0
    after_change: float = 1.0


class EffectTable:
    """Leaf cells and their effects; grows on demand, bounded by `max_cells`.

    `listener` hears of every observation, `on_change` of every cell that was taken to have changed.
    """

    def __init__(self, shape: Shape | None = None, *, max_cells: int = 20_000) -> None:
        self.shape = shape if shape is not None else Shape()
        self.version = 0
        self.listener: Callable[[Cell, float, float], None] | None = None
        self.on_change: Callable[[Cell], None] | None = None
        self._noise_var = self.shape.noise_sd**2
        self._scatter = Scatter()
        self._nodes: dict[Hashable, _Node] = {}
        self._cells: dict[Hashable, Cell] = {}
        self._max_cells = max_cells

    def find(self, key: Hashable) -> Cell | None:
        """The cell of that key, if it was ever asked for."""
        return self._cells.get(key)

    def cell(self, key: Hashable, levels: tuple[Level, ...], offset: float) -> Cell:
        """The cell of that key, made if new. `offset` is the prior mean of y."""
        found = self._cells.get(key)
        if found is not None:
            return found
        if len(self._cells) >= self._max_cells:
            self._evict()
        nodes = tuple(self._node(level) for level in levels)
        made = self._cells[key] = Cell(key, offset, levels, nodes)
        return made

    def add(self, cell: Cell, y: float, weight: float) -> bool:
        """Learn one observation; True when it made the change detector raise."""
        changed = self._watch(cell, y, weight)
        weight /= self._scatter.excess
        if not cell.moments.w:
            self._attach(cell)
        cell.moments.add(y, weight)
        self._reweigh(cell, weight)
        for node in cell.nodes:
            if len(node.cells) <= EXACT_FANOUT:
                node.relax()
        self.version += 1
        if self.listener is not None:
            self.listener(cell, y, weight)
        return changed

    def estimate(self, cell: Cell) -> Estimate:
        """The predicted y of a cell and how sure that is."""
        mean, own, shares = cell.offset, 0.0, cell.shares
        for node, i, finer in cell.nested:
            mean += node.effect
            own += node.var
            # What the cells of the finer level tell is counted there, once.
            told = node.precision - (finer.above if finer is not None else shares[i])
            if told > 0.0:
                own /= 1.0 + own * told
        for node, i in cell.crossed:
            mean += node.effect
            own += node.var / (1.0 + node.var * (node.precision - shares[i]))
        group = 0.0
        for node in cell.grouped:
            mean += node.effect
            group += node.var / (1.0 + node.var * node.precision)
        whole = own + group
        for node in cell.shared:
            mean += node.effect
            whole += node.var / (1.0 + node.var * node.precision)
        weight = cell.moments.w
        told = weight / self._noise_var  # by the cell's own data, of the sum of all its effects
        return Estimate(mean, own / (1.0 + own * told), group, whole / (1.0 + whole * told), weight)

    def put(self, cell: Cell, moments: Moments) -> None:
        """Replace a cell's moments (after a merge); call `sweep` when all are in."""
        if not cell.moments.w and moments.w > 0:
            self._attach(cell)
        before = cell.moments.w
        cell.moments = moments
        self._reweigh(cell, moments.w - before)
        self.version += 1

    def move(self, cell: Cell, moved: float) -> None:
        """Let a cell's offset be `moved` from its prior: another gateway saw the cell change.

        What was taken for the begin of a change here is that change, and not another one.
        """
        by = moved - cell.moved
        if by:
            self._shift(cell, by)

    def forget(self, cell: Cell, factor: float) -> None:
        """Keep a share of what a cell knew."""
        self.put(cell, cell.moments.scaled(factor))

    def decay(self, factor: float) -> None:
        """Fade every cell by `factor`, but none below `keep`."""
        for cell in self.observed():
            weight = cell.moments.w
            if weight > self.shape.keep:
                self.forget(cell, max(factor, self.shape.keep / weight))

    def settle(self) -> None:
        """Bring every effect to where all the others leave it: exactly, if the cells are few.

        Effects that share cells hardly move when they are relaxed one after the other, the less
        the more is known of the cells: a scale that all share stays with the workers it was seen
        on, and those still unknown do not learn it.
        """
        cells = self.observed()
        if not cells:
            return
        if len(cells) > EXACT_CELLS:
            self.sweep()
            return
        pulls = solve(*_covariances(cells, self._noise_var))
        for node in self._nodes.values():
            node.effect = 0.0
        for cell, pull in zip(cells, pulls, strict=True):
            for node in cell.nodes:
                node.effect += node.var * pull
        for cell in cells:
            cell.fitted = cell.offset + sum(node.effect for node in cell.nodes)
        self.version += 1

    def sweep(self, times: int = 1) -> None:
        """Relax every effect against all the others (Gauss-Seidel); more is more exact."""
        for cell in self.observed():
            cell.fitted = cell.offset + sum(node.effect for node in cell.nodes)
        for _ in range(times):
            for node in self._nodes.values():
                if node.cells:
                    node.relax()
        self.version += 1

    def observed(self) -> list[Cell]:
        """Cells with data."""
        return [cell for cell in self._cells.values() if cell.moments.w > 0]

    def export(self) -> Mapping[Hashable, Moments]:
        """The moments of every observed cell."""
        return {cell.key: cell.moments for cell in self.observed()}

    def _node(self, level: Level) -> _Node:
        node = self._nodes.get(level.node)
        if node is None:
            node = self._nodes[level.node] = _Node(level.sd, self._noise_var)
        return node

    def _attach(self, cell: Cell) -> None:
        cell.fitted = cell.offset + sum(node.effect for node in cell.nodes)
        for node in cell.nodes:
            node.cells[cell] = None

    def _reweigh(self, cell: Cell, added: float) -> None:
        weight = cell.moments.w
        for i, node in enumerate(cell.nodes):
            share = 1.0 / (self._noise_var / weight + cell.below[i]) if weight > 0 else 0.0
            node.weight += added
            node.precision += share - cell.shares[i]
            finer = cell.finer[i]
            if finer is not None:
                finer.above += share - cell.shares[i]
            cell.shares[i] = share

    def _watch(self, cell: Cell, y: float, weight: float) -> bool:
        """The two-sided CUSUM; a change empties the cell so that it is learned anew."""
        if cell.moments.w < 4.0:
            return False
        guess = self.estimate(cell)
        noise, off = self._noise_var / max(weight, 1e-3), y - guess.mean
        self._scatter.follow(off * off / (guess.variance + noise))
        spread = (guess.variance + noise * self._scatter.excess) ** 0.5
        clip, slack = self.shape.cusum_clip, self.shape.cusum_slack
        score = max(-clip, min(clip, off / spread))
        for run, drift in ((cell.rising, score), (cell.falling, -score)):
            run.follow(drift - slack, off)
        raised = max(cell.rising, cell.falling, key=lambda run: run.total)
        if raised.total < self.shape.cusum_limit:
            return False
        self._cut(cell, raised.offs / raised.answers)
        return True

    def _cut(self, cell: Cell, jump: float) -> None:
        """The cell changed by `jump`, which is its own affair: what it shares stays as it was.

        Without the shift the others would be thought to have changed as well: a drop of one arm
        would be put down to the text, and the arm that is now the best would never be found.
        """
        factor = min(1.0, self.shape.after_change / cell.moments.w)
        self._shift(cell, jump)
        self.put(cell, cell.moments.scaled(factor).shifted(jump))
        if self.on_change is not None:
            self.on_change(cell)

    def _shift(self, cell: Cell, by: float) -> None:
        cell.rising, cell.falling = Run(), Run()
        cell.moved += by
        cell.offset += by
        cell.fitted += by

    def _evict(self) -> None:
        """Drop the cells that never saw data, else the lightest tenth."""
        ranked = sorted(self._cells.values(), key=lambda cell: cell.moments.w)
        for cell in ranked[: max(1, len(ranked) // 10)]:
            self._detach(cell)
            del self._cells[cell.key]

    def _detach(self, cell: Cell) -> None:
        if cell.moments.w:
            self.put(cell, Moments())
        for node in cell.nodes:
            node.cells.pop(cell, None)
