"""A fleet, its traffic and what befalls it, read from YAML into frozen values."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the fields' types
from typing import TYPE_CHECKING, Annotated, Any, Final

import yaml
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_core import ErrorDetails

_STATED: Final = ConfigDict(extra="forbid", allow_inf_nan=False, populate_by_name=True)
_MOST: Final = 1e9  # of anything: beyond it a run would never end

Positive = Annotated[float, Field(gt=0, le=_MOST)]
NotNegative = Annotated[float, Field(ge=0, le=_MOST)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=10_000_000)]


class BadFleet(ValueError):
    """The file does not describe a fleet; says where and why."""


@dataclass(frozen=True, slots=True, config=_STATED)
class ModeCurve:
    """What one mode does on the reference machine.

    `speed` is tokens per second of a lone request by class; `occupancy` the share of it that each
    of N parallel requests keeps; `accepted` the mean accepted length by class, empty where the
    engine reports no drafts.
    """

    speed: Mapping[str, Positive]
    occupancy: Annotated[Mapping[Count, Positive], Field(min_length=1)] = Field(
        default_factory=lambda: {1: 1.0}
    )
    accepted: Mapping[str, Annotated[float, Field(ge=1, le=_MOST)]] = Field(default_factory=dict)

    def share(self, parallel: int) -> float:
        """Speed that each of so many parallel requests keeps, between the stated points."""
        points = sorted(self.occupancy.items())
        low = points[0]
        for high in points:
            if high[0] >= parallel:
                if high[0] == low[0]:
                    return high[1]
                part = (parallel - low[0]) / (high[0] - low[0])
                return low[1] + part * (high[1] - low[1])
            low = high
        return low[1] * low[0] / parallel  # beyond the last point the total stays as it is


@dataclass(frozen=True, slots=True, config=_STATED)
class SimWorker:
    """`count` equal workers. `speed` is relative to the reference machine, `prompt_speed` tokens
    per second; `cache` is how many conversations one holds."""

    name: str
    mode: str
    count: Count = 1
    slots: Count = 4
    context: Count = 32768
    speed: Positive = 1.0
    prompt_speed: Positive = 800.0
    cache: Annotated[int, Field(ge=0)] = 8
    group: str = ""  # of one GPU: only one of the group is resident


@dataclass(frozen=True, slots=True, config=_STATED)
class Sizes:
    """A log-normal: median and sigma of its logarithm."""

    median: Annotated[float, Field(gt=0, le=1e7)]
    sigma: Annotated[float, Field(ge=0, le=5)] = 0.0


@dataclass(frozen=True, slots=True, config=_STATED)
class Traffic:
    """Sessions arrive at random, `burst` times as many during the first `burst_s` of every
    `burst_every_s`; a session's turns follow each other after a pause."""

    sessions_per_s: Annotated[float, Field(gt=0, le=1e6)]
    classes: Annotated[Mapping[str, NotNegative], Field(min_length=1)]
    answer: Mapping[str, Sizes]
    prompt: Sizes = Field(default_factory=lambda: Sizes(400.0, 1.0))
    turns: Sizes = Field(default_factory=lambda: Sizes(3.0, 0.7))
    pause_s: Sizes = Field(default_factory=lambda: Sizes(10.0, 1.0))
    burst: Annotated[float, Field(gt=0, le=1e4)] = 1.0
    burst_s: NotNegative = 60.0
    burst_every_s: Positive = 600.0
    noise: Annotated[float, Field(ge=0, le=5)] = 0.2  # sd of ln(speed) between like requests
    misread: Share = 0.0  # share of requests whose class the classifier gets wrong


@dataclass(frozen=True, slots=True, config=_STATED)
class Happening:
    """At `at` seconds: a crash of so many seconds, a swap to a worker of a group, or a change of
    speed of one mode (of one class, where named)."""

    at: NotNegative
    worker: str = ""
    crash: NotNegative = 0.0
    load: NotNegative = 0.0
    mode: str = ""
    workload_class: Annotated[str, Field(validation_alias="class")] = ""
    speed: Positive = 1.0


@dataclass(frozen=True, slots=True, config=_STATED)
class FleetPlan:
    """Everything a run depends on but the policy."""

    modes: Mapping[str, ModeCurve]
    workers: Annotated[tuple[SimWorker, ...], Field(min_length=1)]
    traffic: Traffic
    happenings: tuple[Happening, ...] = ()
    requests: Count = 5000
    seed: int = 0


def read_fleet(path: Path) -> FleetPlan:
    """A fleet from its YAML file.

    Raises:
        BadFleet: not YAML, an unknown or missing key, a mode or class that is not there.
        OSError: the file cannot be read.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadFleet(f"{path}: {error}") from error
    try:
        return parse_fleet(data)
    except BadFleet as error:
        raise BadFleet(f"{path}: {error}") from error


def parse_fleet(data: Mapping[str, Any]) -> FleetPlan:
    """See `read_fleet`; `data` is the document."""
    if not isinstance(data, dict):
        raise BadFleet("a fleet is a mapping with modes, workers and traffic")
    try:
        plan = _PLANS.validate_python(data)
    except ValidationError as error:
        raise BadFleet("; ".join(map(_told, error.errors()[:3]))) from error
    _check(plan)
    return plan


_PLANS: Final = TypeAdapter(FleetPlan)


def _told(problem: ErrorDetails) -> str:
    where = ".".join(map(str, problem["loc"]))
    if problem["type"] == "unexpected_keyword_argument":
        return f"{where}: unknown key"
    return f"{where}: {problem['msg']}"


def _check(plan: FleetPlan) -> None:
    for worker in plan.workers:
        if worker.mode not in plan.modes:
            raise BadFleet(f"worker {worker.name}: no mode {worker.mode!r} under modes")
    if not any(plan.traffic.classes.values()):
        raise BadFleet("traffic.classes: no class has a share")
    for name in plan.traffic.classes:
        if name not in plan.traffic.answer:
            raise BadFleet(f"traffic.answer: nothing for class {name!r}")
        for mode, curve in plan.modes.items():
            if name not in curve.speed:
                raise BadFleet(f"modes.{mode}.speed: nothing for class {name!r}")
