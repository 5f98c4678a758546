"""Time lines, the mix of classes and its drift; pure."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from router.dashboard.figures import CLASSES, DAY_S
from router.telemetry.history import merged, ttft_quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from router.dashboard.figures import Snapshot
    from router.telemetry.history import Sums

HOUR_S: Final = 3600
RANGES: Final[Mapping[str, int]] = {"1h": HOUR_S, "3h": 3 * HOUR_S, "24h": DAY_S, "7d": 7 * DAY_S}
MIN_FOR_DRIFT: Final = 50
"""Fewer requests in the last hour or in the day before it say nothing about a changed mix."""

PSI_NOTICED, PSI_MUCH = 0.1, 0.25
"""Usual thresholds of the population stability index: below the first nothing has changed."""


def _ratio(sums: Sums, above: str, below: str, scale: float = 1.0) -> float | None:
    under = sums.get(below, 0.0)
    return scale * sums.get(above, 0.0) / under if under else None


def _speed(sums: Sums) -> float | None:
    answers = sums.get("answers", 0.0)
    return math.exp(sums["ln_speed"] / answers) if answers else None


METRICS: Final[Mapping[str, Callable[[Sums], float | None]]] = {
    "speed": _speed,
    "acceptance": lambda sums: _ratio(sums, "draft_n_accepted", "draft_n"),
    "length": lambda sums: _ratio(sums, "decoded_n", "steps"),
    "ttft": lambda sums: ttft_quantile(sums, 0.5),
    "requests": lambda sums: sums.get("requests"),
}
"""What a time line may show, from the sums of one slice."""


@dataclass(frozen=True, slots=True)
class Line:
    """One mode's values; `points` are (Unix seconds at the slice's middle, value or None)."""

    name: str
    points: Sequence[tuple[float, float | None]]

    @property
    def last(self) -> float | None:
        """The newest known value."""
        return next((value for _, value in reversed(self.points) if value is not None), None)


def lines(snapshot: Snapshot, model: str, name: str, metric: str, seconds: int) -> list[Line]:
    """A class's time lines, one per mode that has a value; NONE is what reached no worker."""
    window = snapshot.window(seconds)
    by_mode: dict[str, dict[float, Sums]] = defaultdict(dict)
    for one, sums in window:
        for series, values in sums.items():
            if (series.model, series.workload_class) == (model, name):
                by_mode[series.mode][one.start + one.width / 2] = values
    times = [one.start + one.width / 2 for one, _ in window]
    measure = METRICS[metric]
    drawn = [
        Line(mode, [(t, measure(found[t]) if t in found else None) for t in times])
        for mode, found in sorted(by_mode.items())
    ]
    return [line for line in drawn if line.last is not None]


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """What the classifier made of the traffic of one class in the last day and hour."""

    workload_class: str
    requests: float
    share_day: float | None
    share_hour: float | None
    confidence: float | None  # mean probability of the chosen class
    histogram: Sequence[float]  # requests by confidence in tenths


@dataclass(frozen=True, slots=True)
class Drift:
    """How far the last hour's mix is from the rest of the day; `psi` None: too few requests."""

    psi: float | None
    requests_hour: float
    requests_before: float  # in the 23 hours before

    @property
    def level(self) -> str:
        """none, some, much; few_hour or few_before where that part of the day cannot tell."""
        if self.psi is None:
            return "few_hour" if self.requests_hour < MIN_FOR_DRIFT else "few_before"
        return "none" if self.psi < PSI_NOTICED else "some" if self.psi < PSI_MUCH else "much"


def class_figures(snapshot: Snapshot) -> list[ClassFigures]:
    """By class, all models together."""
    day, hour = _by_class(snapshot, DAY_S), _by_class(snapshot, HOUR_S)
    return [_class_figures(name, day, hour) for name in CLASSES]


def _class_figures(name: str, day: Mapping[str, Sums], hour: Mapping[str, Sums]) -> ClassFigures:
    own = day.get(name, {})
    return ClassFigures(
        name,
        own.get("classified", 0.0),
        _share(day, name),
        _share(hour, name),
        _ratio(own, "confidence", "classified"),
        [own.get(f"confidence:{tenth}", 0.0) for tenth in range(10)],
    )


def sources(snapshot: Snapshot) -> dict[str, float]:
    """Requests of the last day by who decided the class."""
    total = merged(snapshot.sums(DAY_S).values())
    head = "source:"
    return {n.removeprefix(head): v for n, v in sorted(total.items()) if n.startswith(head)}


def drift(snapshot: Snapshot) -> Drift:
    """Population stability index of the class mix: last hour against the day."""
    day, hour = _by_class(snapshot, DAY_S), _by_class(snapshot, HOUR_S)
    count = sum(sums.get("classified", 0.0) for sums in hour.values())
    whole = sum(sums.get("classified", 0.0) for sums in day.values())
    before = max(0.0, whole - count)
    if count < MIN_FOR_DRIFT or before < MIN_FOR_DRIFT:
        return Drift(None, count, before)
    psi = 0.0
    for name in CLASSES:
        recent = hour.get(name, {}).get("classified", 0.0)
        older = day.get(name, {}).get("classified", 0.0) - recent
        now, then = (recent + 0.5) / (count + 1.5), (max(older, 0.0) + 0.5) / (before + 1.5)
        psi += (now - then) * math.log(now / then)
    return Drift(psi, count, before)


def _by_class(snapshot: Snapshot, seconds: float) -> dict[str, Sums]:
    rows: dict[str, list[Sums]] = defaultdict(list)
    for series, sums in snapshot.sums(seconds).items():
        if series.workload_class in CLASSES:
            rows[series.workload_class].append(sums)
    return {name: merged(parts) for name, parts in rows.items()}


def _share(by_class: Mapping[str, Sums], name: str) -> float | None:
    total = sum(sums.get("classified", 0.0) for sums in by_class.values())
    return by_class.get(name, {}).get("classified", 0.0) / total if total else None


def versions(snapshot: Snapshot) -> list[tuple[str, float, float]]:
    """Classifier versions among the sampled decisions: name, decisions, last seen."""
    found: dict[str, tuple[int, float]] = {}
    for entry in snapshot.decisions:
        version = entry.row["request"].get("classifier")
        if version:
            count, last = found.get(version, (0, 0.0))
            found[version] = (count + 1, max(last, entry.row["at"]))
    rows = [(name, float(count), last) for name, (count, last) in found.items()]
    return sorted(rows, key=lambda row: -row[2])
