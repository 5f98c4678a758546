"""Prometheus figures: names and labels of the contract, one `observe` per request.

Counting is plain arithmetic on lists, a few microseconds a request; text is only made when somebody
scrapes. Quantities that vLLM also has use its units: seconds and tokens.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from router.core.decision import Reason
from router.core.outcome import Status
from router.telemetry.class_mix import ClassMix
from router.telemetry.exposition import Page, label_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from router.core import Outcome

NONE: Final = "none"  # label of what a refused request never got

TTFT_BOUNDS: Final[tuple[float, ...]] = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
    7.5,
    10.0,
    20.0,
    40.0,
    80.0,
    160.0,
)
_ITL: Final[tuple[float, ...]] = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.075,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
    0.5,
    0.75,
    1.0,
    2.5,
)
_REQUEST: Final[tuple[float, ...]] = (
    0.1,
    0.3,
    0.5,
    0.8,
    1.0,
    1.5,
    2.0,
    2.5,
    5.0,
    10.0,
    15.0,
    20.0,
    30.0,
    40.0,
    50.0,
    60.0,
    120.0,
    240.0,
    480.0,
    960.0,
    1920.0,
)
_OVERHEAD: Final[tuple[float, ...]] = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.002,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.5,
    1.0,
)

_HISTOGRAMS: Final[Mapping[str, tuple[str, tuple[float, ...]]]] = {
    "ttft": ("Last request byte read to first content byte sent", TTFT_BOUNDS),
    "itl": ("Gap between content chunks as sent to the client", _ITL),
    "request": ("Whole request as the client sees it", _REQUEST),
    "queue": ("Waiting for a slot", _REQUEST),
    "overhead": ("The gateway's own time before the upstream call", _OVERHEAD),
}
_COUNTERS: Final[Mapping[str, str]] = {
    "specroute_draft_tokens": "Tokens drafted",
    "specroute_draft_accepted_tokens": "Drafted tokens accepted",
    "specroute_prompt_tokens": "Prompt tokens evaluated",
    "specroute_cached_prompt_tokens": "Prompt tokens taken from the worker's cache",
    "specroute_generation_tokens": "Tokens generated",
}
_LABELS: Final = ("model", "class", "mode")
_SMOOTHING: Final = 0.05  # weight of the newest answer in the gauges of speed and acceptance


class WorkerGauge(NamedTuple):
    """One worker as scraped."""

    worker: str
    model: str
    mode: str
    up: bool
    slots: int
    inflight: int
    state: str = ""
    clock_skew_s: float = 0.0  # its host's wall clock minus ours, as far as it is certain


_OF_A_WORKER: Final[tuple[tuple[str, str, Callable[[WorkerGauge], float]], ...]] = (
    ("worker_up", "1 while it serves", lambda worker: int(worker.up)),
    ("worker_slots", "Slots", attrgetter("slots")),
    ("worker_inflight", "Requests on it", attrgetter("inflight")),
    (
        "clock_skew_seconds",
        "The worker's host's clock minus the gateway's, beyond what waiting explains",
        attrgetter("clock_skew_s"),
    ),
)


@dataclass(frozen=True, slots=True)
class Gauges:
    """What is true at the moment of a scrape."""

    workers: Sequence[WorkerGauge] = ()
    queue_depth: Mapping[str, int] = field(default_factory=dict)
    redis_up: bool = False


class SpeedupGauge(NamedTuple):
    """One mode's speed-up over AR for a class, with its 95 % interval."""

    model: str
    workload_class: str
    mode: str
    ratio: float
    lower: float
    upper: float


class _Histogram:
    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def add_all(self, values: Iterable[float]) -> None:
        """The same for the gaps of a stream, of which there are hundreds."""
        counts, bounds, total = self.counts, self.bounds, self.total
        for value in values:
            counts[bisect_left(bounds, value)] += 1
            total += value
        self.total = total


class _Series:
    """Everything counted by (model, class, mode)."""

    __slots__ = ("acceptance", "counts", "histograms", "ln_speed")

    def __init__(self) -> None:
        self.counts = dict.fromkeys(_COUNTERS, 0)
        self.histograms = {name: _Histogram(bounds) for name, (_, bounds) in _HISTOGRAMS.items()}
        self.acceptance: list[float] = []  # smoothed drafted and accepted tokens
        self.ln_speed: float | None = None


class Metrics:
    """Counts outcomes; `text` is the body of /metrics."""

    def __init__(
        self,
        gauges: Callable[[], Gauges] = Gauges,
        speedups: Callable[[], Iterable[SpeedupGauge]] = tuple,
    ) -> None:
        self._gauges = gauges
        self._speedups = speedups
        self._requests: dict[tuple[str, ...], int] = {}
        self._series: dict[tuple[str, str, str], _Series] = {}
        self._classes: dict[str, int] = {}
        self._refusals: dict[str, int] = {}
        self._switches: dict[str, int] = {}
        self._last: dict[tuple[str, str], str] = {}
        self._explorations = 0
        self._mix = ClassMix()
        self._studies: dict[str, int] = {}

    def observe(self, outcome: Outcome) -> None:
        """Count one finished request."""
        what, decision = outcome.classification, outcome.decision
        name = str(what.workload_class) if what is not None else NONE
        mode = outcome.mode or NONE
        labels = (outcome.model, name, outcome.worker or NONE, mode, str(outcome.status))
        self._requests[labels] = self._requests.get(labels, 0) + 1
        if what is not None:
            _increase(self._classes, name)
            self._mix.add(name)
        if outcome.status is Status.SHED:
            _increase(self._refusals, outcome.error_code or NONE)
        if decision is not None:
            self._explorations += decision.reason is Reason.EXPLORATION
            self._note_switch(outcome.model, name, decision.worker, decision.reason)
        series = self._series.get((outcome.model, name, mode))
        if series is None:
            series = self._series[outcome.model, name, mode] = _Series()
        _count_times(series, outcome)
        _count_tokens(series, outcome)

    def note_study(self, action: str) -> None:
        """Count one study of the classifier by what came of it."""
        _increase(self._studies, action)

    def text(self) -> bytes:
        """The exposition of everything, gauges asked for at this moment."""
        page = Page()
        self._write_requests(page)
        self._write_series(page)
        self._write_ratios(page)
        _write_gauges(page, self._gauges())
        _write_speedups(page, tuple(self._speedups()))
        return page.body()

    def _note_switch(self, model: str, name: str, worker: str, reason: Reason) -> None:
        last = self._last.get((model, name))
        if last is not None and last != worker:
            _increase(self._switches, reason.value)
        self._last[model, name] = worker

    def _write_requests(self, page: Page) -> None:
        labels = ("model", "class", "worker", "mode", "outcome")
        page.counter(
            "specroute_requests", "Requests by how they ended", labels, self._requests.items()
        )
        page.counter(
            "specroute_explorations",
            "Requests sent to try a worker",
            (),
            [((), self._explorations)],
        )
        for name, text, label, counts in (
            ("switches", "Changes of a class's worker", "reason", self._switches),
            ("class", "Requests by predicted class", "class", self._classes),
            ("refusals", "Requests refused", "reason", self._refusals),
            (
                "classifier_studies",
                "Studies of the classifier by what came of them",
                "action",
                self._studies,
            ),
        ):
            rows = [((value,), count) for value, count in counts.items()]
            page.counter(f"specroute_{name}", text, (label,), rows)
        drift = self._mix.drift
        page.gauge(
            "specroute_class_drift",
            "Population stability index of the last 200 requests' classes against 5,000",
            (),
            [((), drift)] if drift is not None else [],
        )

    def _write_series(self, page: Page) -> None:
        for name, text in _COUNTERS.items():
            rows = [(labels, series.counts[name]) for labels, series in self._series.items()]
            page.counter(name, text, _LABELS, rows)
        for name, (text, bounds) in _HISTOGRAMS.items():
            found = [
                (label_text(_LABELS, labels), series.histograms[name])
                for labels, series in self._series.items()
            ]
            lines = [(labels, histogram.counts, histogram.total) for labels, histogram in found]
            page.histogram(f"specroute_{name}_seconds", text, bounds, lines)

    def _write_ratios(self, page: Page) -> None:
        known = self._series.items()
        page.gauge(
            "specroute_acceptance_ratio",
            "Accepted share of drafted tokens, recent",
            _LABELS,
            [
                (labels, series.acceptance[1] / series.acceptance[0])
                for labels, series in known
                if series.acceptance and series.acceptance[0] > 0
            ],
        )
        page.gauge(
            "specroute_decode_tokens_per_second",
            "Geometric mean decode speed of recent answers",
            _LABELS,
            [
                (labels, math.exp(series.ln_speed))
                for labels, series in known
                if series.ln_speed is not None
            ],
        )


def _write_gauges(page: Page, now: Gauges) -> None:
    for name, text, value in _OF_A_WORKER:
        rows = [((worker.worker,), value(worker)) for worker in now.workers]
        page.gauge(f"specroute_{name}", text, ("worker",), rows)
    page.gauge(
        "specroute_worker_state",
        "1 for the state it is in",
        ("worker", "state"),
        [((worker.worker, worker.state or NONE), 1) for worker in now.workers],
    )
    waiting = [((model,), depth) for model, depth in now.queue_depth.items()]
    page.gauge("specroute_queue_depth", "Requests waiting", ("model",), waiting)
    page.gauge("specroute_redis_up", "1 while it answers", (), [((), int(now.redis_up))])


def _write_speedups(page: Page, found: Sequence[SpeedupGauge]) -> None:
    for end, text, value in (
        ("", "Decode speed over AR's in like conditions", attrgetter("ratio")),
        ("_lower", "Its 95 % interval's lower end", attrgetter("lower")),
        ("_upper", "Its 95 % interval's upper end", attrgetter("upper")),
    ):
        rows = [((row.model, row.workload_class, row.mode), value(row)) for row in found]
        page.gauge(f"specroute_speedup_ratio{end}", text, _LABELS, rows)


def _increase(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1


def _count_times(series: _Series, outcome: Outcome) -> None:
    histograms = series.histograms
    if outcome.status is Status.SHED:
        return
    if outcome.ttft_s is not None:
        histograms["ttft"].add(outcome.ttft_s)
    histograms["itl"].add_all(outcome.itl_s)
    histograms["request"].add(outcome.total_s)
    histograms["queue"].add(outcome.queue_s)
    histograms["overhead"].add(outcome.overhead_s)


def _count_tokens(series: _Series, outcome: Outcome) -> None:
    t, counts = outcome.timings, series.counts
    counts["specroute_draft_tokens"] += t.draft_n or 0
    counts["specroute_draft_accepted_tokens"] += t.draft_n_accepted or 0
    counts["specroute_prompt_tokens"] += outcome.prompt_read or 0
    counts["specroute_cached_prompt_tokens"] += t.cache_n or 0
    counts["specroute_generation_tokens"] += outcome.generated or 0
    if t.draft_n and t.draft_n_accepted is not None:
        _smooth(series, t.draft_n, t.draft_n_accepted)
    speed = t.decode_tokens_per_second
    if speed is not None and speed > 0:
        ln_speed = math.log(speed)
        known = series.ln_speed
        series.ln_speed = ln_speed if known is None else known + _SMOOTHING * (ln_speed - known)


def _smooth(series: _Series, drafted: int, accepted: int) -> None:
    old = series.acceptance or [0.0, 0.0]
    series.acceptance = [
        (1 - _SMOOTHING) * old[0] + drafted,
        (1 - _SMOOTHING) * old[1] + accepted,
    ]
