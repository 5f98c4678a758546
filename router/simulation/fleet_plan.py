"""A fleet, its traffic and what befalls it, read from YAML into frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

T = TypeVar("T")


class BadFleet(ValueError):
    """The file does not describe a fleet; says where and why."""


@dataclass(frozen=True, slots=True)
class ModeCurve:
    """What one mode does on the reference machine.

    `speed` is tokens per second of a lone request by class; `occupancy` the share of it that each
    of N parallel requests keeps; `accepted` the mean accepted length by class, empty where the
    engine reports no drafts.
    """

    speed: Mapping[str, float]
    occupancy: Mapping[int, float] = field(default_factory=lambda: {1: 1.0})
    accepted: Mapping[str, float] = field(default_factory=dict)

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


@dataclass(frozen=True, slots=True)
class SimWorker:
    """`count` equal workers. `speed` is relative to the reference machine, `prompt_speed` tokens
    per second; `cache` is how many conversations one holds."""

    name: str
    mode: str
    count: int = 1
    slots: int = 4
    context: int = 32768
    speed: float = 1.0
    prompt_speed: float = 800.0
    cache: int = 8
    group: str = ""  # of one GPU: only one of the group is resident


@dataclass(frozen=True, slots=True)
class Sizes:
    """A log-normal: median and sigma of its logarithm."""

    median: float
    sigma: float = 0.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """Sessions arrive at random, `burst` times as many during the first `burst_s` of every
    `burst_every_s`; a session's turns follow each other after a pause."""

    sessions_per_s: float
    classes: Mapping[str, float]
    answer: Mapping[str, Sizes]
    prompt: Sizes = field(default_factory=lambda: Sizes(400.0, 1.0))
    turns: Sizes = field(default_factory=lambda: Sizes(3.0, 0.7))
    pause_s: Sizes = field(default_factory=lambda: Sizes(10.0, 1.0))
    burst: float = 1.0
    burst_s: float = 60.0
    burst_every_s: float = 600.0
    noise: float = 0.2  # sd of ln(speed) between like requests
    misread: float = 0.0  # share of requests whose class the classifier gets wrong


@dataclass(frozen=True, slots=True)
class Happening:
    """At `at` seconds: a crash of so many seconds, a swap to a worker of a group, or a change of
    speed of one mode (of one class, where named)."""

    at: float
    worker: str = ""
    crash: float = 0.0
    load: float = 0.0
    mode: str = ""
    workload_class: str = ""
    speed: float = 1.0


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """Everything a run depends on but the policy."""

    modes: Mapping[str, ModeCurve]
    workers: tuple[SimWorker, ...]
    traffic: Traffic
    happenings: tuple[Happening, ...] = ()
    requests: int = 5000
    seed: int = 0


def read_fleet(path: Path) -> FleetPlan:
    """A fleet from its YAML file.

    Raises:
        BadFleet: not YAML, an unknown or missing key, a mode or class that is not there.
        OSError: the file cannot be read.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        return parse_fleet(data)
    except (yaml.YAMLError, TypeError, ValueError, AttributeError) as error:
        raise BadFleet(f"{path}: {error}") from error


def parse_fleet(data: Mapping[str, Any]) -> FleetPlan:
    """See `read_fleet`; `data` is the document."""
    if not isinstance(data, dict):
        raise BadFleet("a fleet is a mapping with modes, workers and traffic")
    traffic = dict(data.get("traffic") or {})
    for key in ("prompt", "turns", "pause_s"):
        if key in traffic:
            traffic[key] = _made(Sizes, traffic[key], f"traffic.{key}")
    answer = traffic.get("answer") or {}
    traffic["answer"] = {c: _made(Sizes, row, f"traffic.answer.{c}") for c, row in answer.items()}
    modes = {m: _made(ModeCurve, row, f"modes.{m}") for m, row in (data.get("modes") or {}).items()}
    workers = [_made(SimWorker, row, f"workers[{i}]") for i, row in enumerate(data["workers"])]
    happenings = data.get("happenings") or ()
    plan = {
        **data,
        "modes": modes,
        "workers": tuple(workers),
        "traffic": _made(Traffic, traffic, "traffic"),
        "happenings": tuple(
            _made(Happening, {_renamed(k): v for k, v in row.items()}, f"happenings[{i}]")
            for i, row in enumerate(happenings)
        ),
    }
    made = _made(FleetPlan, plan, "the file")
    _check(made)
    return made


def _renamed(key: str) -> str:
    return "workload_class" if key == "class" else key


def _made(kind: type[T], row: Any, where: str) -> T:
    if not isinstance(row, dict):
        raise BadFleet(f"{where} must be a mapping")
    known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    unknown = [key for key in row if key not in known]
    if unknown:
        raise BadFleet(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(known)}")
    try:
        return kind(**row)
    except TypeError as error:
        raise BadFleet(f"{where}: {error}") from error


def _check(plan: FleetPlan) -> None:
    if not plan.workers or plan.requests < 1 or plan.traffic.sessions_per_s <= 0:
        raise BadFleet("at least one worker, one request and some sessions per second are needed")
    for worker in plan.workers:
        if worker.mode not in plan.modes:
            raise BadFleet(f"worker {worker.name}: no mode {worker.mode!r} under modes")
        if min(worker.slots, worker.count) < 1 or min(worker.speed, worker.prompt_speed) <= 0:
            raise BadFleet(f"worker {worker.name}: slots, count and speeds must be positive")
    for name in plan.traffic.classes:
        if name not in plan.traffic.answer:
            raise BadFleet(f"traffic.answer: nothing for class {name!r}")
        for mode, curve in plan.modes.items():
            if curve.speed.get(name, 0.0) <= 0.0:
                raise BadFleet(f"modes.{mode}.speed: nothing positive for class {name!r}")
