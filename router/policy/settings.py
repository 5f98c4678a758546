"""What an operator may set about routing; defaults are the policy design's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from router.telemetry.priors import Stated


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """Shares are of 1, times in seconds.

    `exploration_budget` is the share of the seconds served that may be spent on trying a worker
    that is not predicted to be the fastest. `horizon` is for how many requests a better worker
    found by trying is assumed to be of use (times the class's share of the traffic).
    `switch_margin` is the gain that makes a conversation leave the worker that holds it;
    `tie_margin` the gain that makes a class of requests change its worker.
    """

    seed: int = 0
    epoch_s: float = 300.0
    half_life_s: float = 1800.0
    exploration_budget: float = 0.02
    exploration_window: int = 1000  # requests over which the budget holds
    max_loss_s: float = 2.0
    max_loss_share: float = 0.5
    horizon: float = 400.0
    baseline_share: float = 0.005
    baseline_answers: int = 20
    baseline_max_loss_s: float = 10.0
    switch_margin: float = 0.15
    tie_margin: float = 0.005
    min_class_probability: float = 0.15
    priced_workers: int = 16  # of a bigger fleet only so many are priced in full
    static_worker: str = ""  # of the static policy
    observe_only_policy: str = "learned"  # whom the observe-only policy asks
    observe_only_control: str = "least_loaded"  # and by whom it serves
    priors: Stated = field(default_factory=dict)  # stated by the operator: mode -> class -> speed
