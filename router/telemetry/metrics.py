"""Prometheus figures: names and labels of the contract, one `observe` per request.

Counting is plain arithmetic on lists, a few microseconds a request; the families are only built
when somebody scrapes. Quantities that vLLM also has use its units: seconds and tokens.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.registry import Collector

from router.core.decision import Reason
from router.core.outcome import Status
from router.telemetry.class_mix import ClassMix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from prometheus_client.metrics_core import Metric

    from router.core import Outcome

NONE: Final = "none"  # label of what a refused request never got

TTFT_BOUNDS: Final = (
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
_ITL: Final = (
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
_REQUEST: Final = (
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
_OVERHEAD: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0)

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

    def buckets(self) -> list[tuple[str, float]]:
        rows, running = [], 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            running += count
            rows.append(("+Inf" if bound == float("inf") else str(bound), float(running)))
        return rows


class _Series:
    """Everything counted by (model, class, mode)."""

    __slots__ = ("acceptance", "counts", "histograms", "ln_speed")

    def __init__(self) -> None:
        self.counts = dict.fromkeys(_COUNTERS, 0)
        self.histograms = {name: _Histogram(bounds) for name, (_, bounds) in _HISTOGRAMS.items()}
        self.acceptance: list[float] = []  # smoothed drafted and accepted tokens
        self.ln_speed: float | None = None


class Metrics(Collector):
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
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def observe(self, outcome: Outcome) -> None:
        """Count one finished request."""
        what, decision = outcome.classification, outcome.decision
        name = str(what.workload_class) if what is not None else NONE
        mode = outcome.mode or NONE
        labels = (outcome.model, name, outcome.worker or NONE, mode, outcome.status.value)
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
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """The families (called by the registry)."""
        yield from self._collect_requests()
        yield from self._collect_series()
        yield from self._collect_ratios()
        yield from self._collect_gauges()
        yield from self._collect_speedups()

    def _note_switch(self, model: str, name: str, worker: str, reason: Reason) -> None:
        last = self._last.get((model, name))
        if last is not None and last != worker:
            _increase(self._switches, reason.value)
        self._last[model, name] = worker

    def _collect_requests(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "specroute_requests",
            "Requests by how they ended",
            labels=("model", "class", "worker", "mode", "outcome"),
        )
        for labels, count in self._requests.items():
            requests.add_metric(labels, count)
        yield requests
        yield CounterMetricFamily(
            "specroute_explorations", "Requests sent to try a worker", value=self._explorations
        )
        yield _by_one("specroute_switches", "Changes of a class's worker", "reason", self._switches)
        yield _by_one("specroute_class", "Requests by predicted class", "class", self._classes)
        yield _by_one("specroute_refusals", "Requests refused", "reason", self._refusals)
        studies = "Studies of the classifier by what came of them"
        yield _by_one("specroute_classifier_studies", studies, "action", self._studies)
        if self._mix.drift is not None:
            yield GaugeMetricFamily(
                "specroute_class_drift",
                "Population stability index of the last 200 requests' classes against 5,000",
                self._mix.drift,
            )

    def _collect_series(self) -> Iterator[Metric]:
        for name, text in _COUNTERS.items():
            counter = CounterMetricFamily(name, text, labels=_LABELS)
            for labels, series in self._series.items():
                counter.add_metric(labels, series.counts[name])
            yield counter
        for name, (text, _) in _HISTOGRAMS.items():
            family = HistogramMetricFamily(f"specroute_{name}_seconds", text, labels=_LABELS)
            for labels, series in self._series.items():
                histogram = series.histograms[name]
                family.add_metric(labels, histogram.buckets(), histogram.total)
            yield family

    def _collect_ratios(self) -> Iterator[Metric]:
        ratio = GaugeMetricFamily(
            "specroute_acceptance_ratio", "Accepted share of drafted tokens, recent", labels=_LABELS
        )
        speed = GaugeMetricFamily(
            "specroute_decode_tokens_per_second",
            "Geometric mean decode speed of recent answers",
            labels=_LABELS,
        )
        for labels, series in self._series.items():
            if series.acceptance and series.acceptance[0] > 0:
                ratio.add_metric(labels, series.acceptance[1] / series.acceptance[0])
            if series.ln_speed is not None:
                speed.add_metric(labels, math.exp(series.ln_speed))
        yield ratio
        yield speed

    def _collect_gauges(self) -> Iterator[Metric]:
        now = self._gauges()
        up = GaugeMetricFamily("specroute_worker_up", "1 while it serves", labels=["worker"])
        slots = GaugeMetricFamily("specroute_worker_slots", "Slots", labels=["worker"])
        busy = GaugeMetricFamily("specroute_worker_inflight", "Requests on it", labels=["worker"])
        state = GaugeMetricFamily(
            "specroute_worker_state", "1 for the state it is in", labels=["worker", "state"]
        )
        skew = GaugeMetricFamily(
            "specroute_clock_skew_seconds",
            "The worker's host's clock minus the gateway's, beyond what waiting explains",
            labels=["worker"],
        )
        for worker in now.workers:
            up.add_metric([worker.worker], float(worker.up))
            slots.add_metric([worker.worker], worker.slots)
            busy.add_metric([worker.worker], worker.inflight)
            state.add_metric([worker.worker, worker.state or NONE], 1.0)
            skew.add_metric([worker.worker], worker.clock_skew_s)
        depth = GaugeMetricFamily("specroute_queue_depth", "Requests waiting", labels=["model"])
        for model, waiting in now.queue_depth.items():
            depth.add_metric([model], waiting)
        yield from (up, slots, busy, state, skew, depth)
        yield GaugeMetricFamily("specroute_redis_up", "1 while it answers", float(now.redis_up))

    def _collect_speedups(self) -> Iterator[Metric]:
        families = [
            GaugeMetricFamily(f"specroute_speedup_ratio{end}", text, labels=_LABELS)
            for end, text in (
                ("", "Decode speed over AR's in like conditions"),
                ("_lower", "Its 95 % interval's lower end"),
                ("_upper", "Its 95 % interval's upper end"),
            )
        ]
        for row in self._speedups():
            labels = (row.model, row.workload_class, row.mode)
            for family, value in zip(families, (row.ratio, row.lower, row.upper), strict=True):
                family.add_metric(labels, value)
        yield from families


def _by_one(name: str, text: str, label: str, counts: Mapping[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in counts.items():
        family.add_metric([value], count)
    return family


def _increase(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1


def _count_times(series: _Series, outcome: Outcome) -> None:
    histograms = series.histograms
    if outcome.status is Status.SHED:
        return
    if outcome.ttft_s is not None:
        histograms["ttft"].add(outcome.ttft_s)
    itl = histograms["itl"]
    for gap in outcome.itl_s:
        itl.add(gap)
    histograms["request"].add(outcome.total_s)
    histograms["queue"].add(outcome.queue_s)
    histograms["overhead"].add(outcome.overhead_s)


def _count_tokens(series: _Series, outcome: Outcome) -> None:
    t, counts = outcome.timings, series.counts
    counts["specroute_draft_tokens"] += t.draft_n or 0
    counts["specroute_draft_accepted_tokens"] += t.draft_n_accepted or 0
    counts["specroute_prompt_tokens"] += t.prompt_n or 0
    counts["specroute_cached_prompt_tokens"] += t.cache_n or 0
    counts["specroute_generation_tokens"] += t.predicted_n or 0
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
