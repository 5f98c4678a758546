"""How much speeds differ: the standard deviations of the effects in `router.telemetry.speeds`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Spread:
    """How far each effect may be from its parent (sd of ln v).

    Variance components of 48 public setups by marginal likelihood, rounded up: a spread that is
    too narrow hides a worker for good, one too wide costs a few trials.
    """

    load: float = 0.35  # one occupancy bucket more slows every arm
    load_drafted: float = 0.30  # and drafters more or less than AR
    text_any: float = 0.10  # what a kind of text does to every arm
    text_drafted: float = 0.20  # and to every drafter alike
    text_part: float = 0.10  # language, thinking, context: likewise
    family: float = 0.22
    worker: float = 0.12
    loaded: float = 0.10
    occupancy: float = 0.08  # one bucket more, for one arm or for drafters
    family_class: float = 0.12
    worker_context: float = 0.04
    worker_class: float = 0.10
    worker_kind: float = 0.05
    leaf: float = 0.02
    plain: float = 0.03  # AR between classes: nearly constant
    length: float = 0.04  # one draft token more or less, on a machine
    length_class: float = 0.04  # and for a class of texts


FACTOR_SPREAD: Final = Spread(
    load=0.40,
    load_drafted=0.30,
    text_any=0.12,
    text_drafted=0.35,
    text_part=0.12,
    family=0.15,
    worker=0.20,
    loaded=0.15,
    occupancy=0.10,
    family_class=0.08,
    worker_context=0.10,
    length=0.06,
    length_class=0.05,
    worker_class=0.14,
    worker_kind=0.06,
    leaf=0.04,
    plain=0.10,
)
"""Of ln L and ln C, which differ more than ln v: who drafts more pays more per step."""
