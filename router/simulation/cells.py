"""A policy against an oracle and the best single arm on measured profiles.

Setting: each request draws its cell uniformly; the policy sees the cell's name as the class and
its concurrency as occupancy; ln v gets Gaussian noise per request; tokens are log-normal. Policy,
oracle and single arms answer the same requests with the same noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Final

from router.core import Reason
from router.policy import PolicySettings, build_policy
from router.simulation.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from router.core import RoutingDecision
    from router.policy.base import Policy
    from router.simulation.profiles import Profile

NOISE_SD: Final = 0.20
MEDIAN_TOKENS: Final = 300.0
TOKENS_SIGMA: Final = 0.8
RECOVERED: Final = 0.95
RECOVERY_REQUESTS: Final = 80
_WINDOW: Final = 20  # requests over which a recovered state is judged


@dataclass(frozen=True, slots=True)
class Run:
    """One seed: seconds per request of ours and the oracle's, totals of each single arm."""

    ours: tuple[float, ...]
    oracle: tuple[float, ...]
    singles: tuple[float, ...]
    exploration_share: float
    after_change: tuple[float, ...]  # oracle's over our seconds, request by request


@dataclass(frozen=True, slots=True)
class ProfileResult:
    """One profile over all seeds; ratios are the other's seconds over ours, so 1 is as good."""

    profile: str
    cells: int
    arms: int
    vs_oracle: float
    vs_best_single: float
    recovery_requests: int | None
    exploration_share: float
    flips: float = 1.0  # most that another arm than the best single one gains in a cell

    def as_dict(self) -> dict[str, object]:
        """The row of `simulate --json`."""
        return {
            "profile": self.profile,
            "cells": self.cells,
            "arms": self.arms,
            "vs_oracle": round(self.vs_oracle, 5),
            "vs_best_single": round(self.vs_best_single, 5),
            "recovery_requests": self.recovery_requests,
            "exploration_share": round(self.exploration_share, 5),
        }


def learned(seed: int) -> Policy:
    """The policy that serves, with its defaults."""
    return build_policy("learned", PolicySettings(seed=seed))


def simulate_profile(
    profile: Profile, requests: int, seeds: int, make: Callable[[int], Policy] = learned
) -> ProfileResult:
    """All seeds of one profile."""
    runs = [run(profile, requests, seed, make(seed)) for seed in range(seeds)]
    half = requests // 2
    return ProfileResult(
        profile=profile.name,
        cells=len(profile.cells),
        arms=len(profile.common),
        vs_oracle=fmean(sum(r.oracle[half:]) / sum(r.ours[half:]) for r in runs),
        vs_best_single=_vs_single(runs),
        recovery_requests=_recovery([r.after_change for r in runs]),
        exploration_share=max(r.exploration_share for r in runs),
        flips=_flips(profile, profile.common[_best_single(runs)]),
    )


def _vs_single(runs: Sequence[Run]) -> float:
    best = _best_single(runs)
    return fmean(r.singles[best] / sum(r.ours) for r in runs)


def _best_single(runs: Sequence[Run]) -> int:
    """One arm for all seeds: the one with the least time over all."""
    totals = [sum(r.singles[i] for r in runs) for i in range(len(runs[0].singles))]
    return totals.index(min(totals))


def _flips(profile: Profile, single: str) -> float:
    return max(max(cell.speeds.values()) / cell.speeds[single] for cell in profile.cells)


def _recovery(curves: Sequence[Sequence[float]]) -> int | None:
    """Requests of the changed cell until the mean over a window is RECOVERED again; None if not."""
    means = [fmean(curve[i] for curve in curves) for i in range(min(map(len, curves)))]
    for start in range(len(means) - _WINDOW + 1):
        if fmean(means[start : start + _WINDOW]) >= RECOVERED:
            return start
    return None


def run(profile: Profile, requests: int, seed: int, policy: Policy) -> Run:
    """One seed of one profile."""
    rng = Random(f"{profile.name}|{seed}")  # noqa: S311 - a simulation, not a secret
    stage = Stage(profile, policy)
    ours, oracle = [], []
    singles = dict.fromkeys(profile.common, 0.0)
    spent = served = 0.0
    for _ in range(requests):
        cell = rng.randrange(len(profile.cells))
        tokens, noise = _draw(rng)
        speeds = profile.cells[cell].speeds
        decision = stage.serve(cell, tokens, noise, speeds)
        scale = tokens / math.exp(noise)
        ours.append(scale / speeds[decision.worker])
        oracle.append(scale / max(speeds.values()))
        for arm in singles:
            singles[arm] += scale / speeds[arm]
        loss, time = predicted_loss(decision)
        spent, served = spent + loss, served + time
    after = _after_change(stage, profile, rng)
    share = spent / served if served > 0 else 0.0  # a control predicts nothing
    return Run(tuple(ours), tuple(oracle), tuple(singles.values()), share, after)


def _after_change(stage: Stage, profile: Profile, rng: Random) -> tuple[float, ...]:
    """Halve the best arm of one cell and serve only that cell."""
    cell = rng.randrange(len(profile.cells))
    speeds = dict(profile.cells[cell].speeds)
    speeds[max(speeds, key=speeds.__getitem__)] *= 0.5
    best = max(speeds.values())
    curve = []
    for _ in range(RECOVERY_REQUESTS):
        tokens, noise = _draw(rng)
        decision = stage.serve(cell, tokens, noise, speeds)
        curve.append(speeds[decision.worker] / best)
    return tuple(curve)


def _draw(rng: Random) -> tuple[int, float]:
    tokens = max(2, round(MEDIAN_TOKENS * math.exp(rng.gauss(0.0, TOKENS_SIGMA))))
    return tokens, rng.gauss(0.0, NOISE_SD)


def predicted_loss(decision: RoutingDecision) -> tuple[float, float]:
    """Predicted extra seconds spent on exploring, and predicted seconds of the choice."""
    chosen = decision.estimate()
    if chosen is None:
        return 0.0, 0.0
    if decision.reason is not Reason.EXPLORATION:
        return 0.0, chosen.total_s
    totals = (c.estimate.total_s for c in decision.candidates if c.estimate is not None)
    return chosen.total_s - min(totals), chosen.total_s
