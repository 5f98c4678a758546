"""Which workers to run: traffic sample + measured speeds -> plans, each with what it would gain.

A plan is a set of settings that run side by side; each request goes to the one that would finish it
soonest. Queueing is not in it: the plans are compared at one load.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final

from router.bench.report import Interval
from router.bench.traffic import mix

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from router.bench.measured import Cell, Report, Span
    from router.bench.traffic import Shape

AR: Final = "ar"
WORTH: Final = 0.02
"""Another worker must make requests this much faster to be worth its memory."""

DRAWS: Final = 400
_Z95 = NormalDist().inv_cdf(0.975)
_LEAST_TPS: Final = 1e-6  # an interval that begins below says nothing,
_MOST_TPS: Final = 1e9  # nor does one that ends above
_LEAST_S: Final = 1e-6  # no answer takes less
_ONE_SAMPLE_SIGMA: Final = 0.25  # of the log speed, where one answer gave no interval


class NotMeasured(ValueError):
    """The measurements lack what the traffic needs; the sentence says what."""


@dataclass(frozen=True, slots=True)
class Speed:
    """One measured cell: log tokens per second and its standard error, seconds to first token."""

    prompt_tokens: float
    log_tps: float
    sigma: float
    ttft_s: float


@dataclass(frozen=True, slots=True)
class Measurements:
    """Cells by (setting, class); gigabytes by setting, where known."""

    cells: Mapping[tuple[str, str], tuple[Speed, ...]]
    memory_gb: Mapping[str, float]

    @property
    def settings(self) -> tuple[str, ...]:
        """Their names, AR first."""
        names = dict.fromkeys(name for name, _ in self.cells)
        return tuple(sorted(names, key=lambda name: name != AR))

    def nearest(self, setting: str, shape: Shape) -> Speed | None:
        """The cell of that class whose prompts are closest in length."""
        speeds = self.cells.get((setting, shape.workload_class), ())
        size = math.log1p(shape.prompt_tokens)
        return min(speeds, key=lambda s: abs(math.log1p(s.prompt_tokens) - size), default=None)


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings that run side by side, and what the traffic would cost on them."""

    settings: tuple[str, ...]
    seconds: float  # per request
    vs_ar: Interval
    vs_best_single: Interval
    shares: Mapping[str, float]
    routes: Mapping[str, str]  # class -> the setting that most of it goes to
    memory_gb: float | None

    def as_dict(self) -> dict[str, Any]:
        """A row of `advise --json`."""
        return {
            "settings": list(self.settings),
            "seconds_per_request": round(self.seconds, 4),
            "vs_ar": self.vs_ar.as_dict("ratio"),
            "vs_best_single": self.vs_best_single.as_dict("ratio"),
            "shares": dict(self.shares),
            "routes": dict(self.routes),
            "memory_gb": self.memory_gb,
        }


def read_measurements(reports: Iterable[Report], concurrency: int) -> Measurements:
    """The cells of `sweep --json` and `bench --json` reports at that load.

    Raises:
        NotMeasured: no cell at that concurrency, or no AR to compare with.
    """
    cells: dict[tuple[str, str], list[Speed]] = defaultdict(list)
    pinned: dict[tuple[str, str], list[tuple[int, Speed]]] = defaultdict(list)
    memory: dict[str, float] = {}
    loads = set()
    for report in reports:
        memory |= {size.setting: size.memory_gb for size in report.settings if size.memory_gb}
        for load, row in _rows(report, concurrency):
            loads.add(load)
            if row.target == "routed" or load != concurrency or row.decode_tps is None:
                continue
            speed = _speed(row, row.decode_tps)
            if row.mode and row.setting is None:
                pinned[row.mode, row.workload_class].append((row.n, speed))
            else:
                cells[row.name, row.workload_class].append(speed)
    for key, speeds in pinned.items():
        cells[key].append(_pooled(speeds))
    if not cells:
        there = ", ".join(map(str, sorted(loads))) or "nothing"
        raise NotMeasured(f"nothing was measured at {concurrency} at once; there is: {there}")
    if not any(name == AR for name, _ in cells):
        raise NotMeasured("AR was not measured, and there is nothing to compare with")
    return Measurements({key: tuple(speeds) for key, speeds in cells.items()}, memory)


def _rows(report: Report, unsaid: int) -> Iterator[tuple[int, Cell]]:
    """Each row with its load: in it (`sweep`), or in the report or part of one that holds it."""
    for part in report.by_concurrency or (report,):
        for row in part.rows:
            yield row.concurrency or part.concurrency or unsaid, row


def _speed(row: Cell, speed: Span) -> Speed:
    low, high = speed.lower or 0.0, speed.upper or math.inf
    known = low >= _LEAST_TPS and high <= _MOST_TPS
    sigma = math.log(high / low) / (2 * _Z95) if known else _ONE_SAMPLE_SIGMA
    ttft = row.ttft_ms.p50 or 0.0
    return Speed(row.prompt_tokens or 0.0, math.log(speed.mean), sigma, ttft / 1000)


def _pooled(rows: Sequence[tuple[int, Speed]]) -> Speed:
    """Workers of one mode as one setting; each counts by its answers."""
    answers = sum(count for count, _ in rows)
    parts = [(count / answers, speed) for count, speed in rows]
    return Speed(
        prompt_tokens=sum(part * speed.prompt_tokens for part, speed in parts),
        log_tps=sum(part * speed.log_tps for part, speed in parts),
        sigma=math.hypot(*(part * speed.sigma for part, speed in parts)),
        ttft_s=sum(part * speed.ttft_s for part, speed in parts),
    )


def advise(
    shapes: Sequence[Shape],
    measured: Measurements,
    *,
    most: int,
    memory_gb: float | None,
    rng: random.Random,
) -> list[Plan]:
    """Every plan of up to `most` settings that fits, the fastest first.

    Raises:
        NotMeasured: a class of the traffic was measured with no setting, or nothing fits.
    """
    times = {name: _times(shapes, measured, name) for name in measured.settings}
    usable = {name: row for name, row in times.items() if row is not None}
    if AR not in usable:
        lacking = {s.workload_class for s in shapes if measured.nearest(AR, s) is None}
        raise NotMeasured(f"not measured: {', '.join(sorted(lacking))}")
    draws = _draws(shapes, measured, usable, rng)
    single = min(usable, key=lambda name: sum(usable[name]))
    plans = [
        _plan(chosen, shapes, usable, draws, single, measured)
        for size in range(1, most + 1)
        for chosen in combinations(usable, size)
    ]
    fitting = [p for p in plans if memory_gb is None or (p.memory_gb or 0.0) <= memory_gb]
    if not fitting:
        raise NotMeasured(f"no measured setting fits into {memory_gb:g} GB")
    return sorted(fitting, key=lambda plan: (plan.seconds, len(plan.settings)))


def recommended(plans: Sequence[Plan]) -> Plan:
    """The smallest plan that is within WORTH of the fastest one.

    Of several workers one is AR, if such a plan is there: what speed-ups are measured against, and
    where a request goes whose drafting worker has failed.
    """
    with_ar = [plan for plan in plans if AR in plan.settings and len(plan.settings) > 1]
    plans = with_ar or plans
    near = [plan for plan in plans if plan.seconds <= plans[0].seconds * (1 + WORTH)]
    return min(near, key=lambda plan: (len(plan.settings), plan.seconds))


def _times(shapes: Sequence[Shape], measured: Measurements, name: str) -> list[float] | None:
    """Seconds of every request on one setting; None when a class was not measured on it."""
    speeds = [measured.nearest(name, shape) for shape in shapes]
    if any(speed is None for speed in speeds):
        return None
    return [_seconds(s, v, v.log_tps) for s, v in zip(shapes, speeds, strict=True) if v]


def _seconds(shape: Shape, speed: Speed, log_tps: float) -> float:
    """First token at the measured time, scaled to the prompt's length; the rest at decode speed."""
    scale = shape.prompt_tokens / speed.prompt_tokens if speed.prompt_tokens else 1.0
    seconds = speed.ttft_s * scale + max(0.0, shape.output_tokens - 1) / math.exp(log_tps)
    return max(_LEAST_S, seconds)


def _draws(
    shapes: Sequence[Shape],
    measured: Measurements,
    usable: Iterable[str],
    rng: random.Random,
) -> list[dict[tuple[str, str], float]]:
    """What the sums by (setting, class) might be as well, given how sure each cell is."""
    by_class: dict[str, list[Shape]] = defaultdict(list)
    for shape in shapes:
        by_class[shape.workload_class].append(shape)
    sums: list[dict[tuple[str, str], float]] = [{} for _ in range(DRAWS)]
    for name in usable:
        for workload_class, mine in by_class.items():
            pairs = [(s, v) for s in mine if (v := measured.nearest(name, s))]
            for draw in sums:
                shift = rng.gauss(0.0, 1.0)
                draw[name, workload_class] = sum(
                    _seconds(s, v, v.log_tps + shift * v.sigma) for s, v in pairs
                )
    return sums


def _plan(
    chosen: tuple[str, ...],
    shapes: Sequence[Shape],
    times: Mapping[str, Sequence[float]],
    draws: Sequence[Mapping[tuple[str, str], float]],
    single: str,
    measured: Measurements,
) -> Plan:
    picks = [min(chosen, key=lambda name: times[name][i]) for i in range(len(shapes))]
    total = sum(times[name][i] for i, name in enumerate(picks))
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for shape, name in zip(shapes, picks, strict=True):
        votes[shape.workload_class][name] += 1
    sizes = [measured.memory_gb.get(name) for name in chosen]
    shares = Counter(picks)
    return Plan(
        settings=chosen,
        seconds=total / len(shapes),
        vs_ar=_gain(AR, votes, sum(times[AR]) / total, draws),
        vs_best_single=_gain(single, votes, sum(times[single]) / total, draws),
        shares={name: round(shares[name] / len(shapes), 4) for name in chosen},
        routes={name: votes[name].most_common(1)[0][0] for name in votes},
        memory_gb=None if None in sizes else round(sum(s or 0.0 for s in sizes), 3),
    )


def _gain(
    other: str,
    votes: Mapping[str, Counter[str]],
    mean: float,
    draws: Sequence[Mapping[tuple[str, str], float]],
) -> Interval:
    """The other's time over the plan's, with the interval that the cells' intervals leave."""
    ratios = []
    for draw in draws:
        mine = sum(
            draw[name, workload_class] * count / counts.total()
            for workload_class, counts in votes.items()
            for name, count in counts.items()
        )
        ratios.append(sum(draw[other, workload_class] for workload_class in votes) / mine)
    ratios.sort()
    low, high = ratios[int(0.025 * len(ratios))], ratios[int(0.975 * len(ratios))]
    return Interval(mean, min(low, mean), max(high, mean))


def sentences(shapes: Sequence[Shape], plans: Sequence[Plan]) -> list[str]:
    """The advice in words."""
    best = recommended(plans)
    shares = ", ".join(f"{share:.0%} {name}" for name, share in mix(shapes).items())
    said = [f"{len(shapes)} requests: {shares}."]
    said.append(
        f"Run {' + '.join(best.settings)}: {best.seconds:.3g} s a request, "
        f"{_times_as_fast(best.vs_ar)} as fast as AR alone, "
        f"{_times_as_fast(best.vs_best_single)} the best single setting."
    )
    if len(best.settings) > 1 and best.vs_best_single.lower <= 1.0:
        said.append("That it gains anything is not certain yet: measure longer.")
    for workload_class, setting in best.routes.items():
        said.append(f"{workload_class} goes to {setting}.")
    for size in sorted({len(plan.settings) for plan in plans}):
        first = next(plan for plan in plans if len(plan.settings) == size)
        slower = first.seconds / best.seconds - 1
        if size > len(best.settings):
            names = " + ".join(first.settings)
            said.append(f"{size} workers ({names}) would gain {max(0.0, -slower):.1%} more.")
        elif size < len(best.settings):
            names = " + ".join(first.settings)
            said.append(f"With {size} only ({names}) requests take {slower:.1%} longer.")
    return said


def _times_as_fast(gain: Interval) -> str:
    return f"{gain.mean:.2f} x [{gain.lower:.2f}, {gain.upper:.2f}]"


def draw_plans(plans: Sequence[Plan], path: Any) -> None:
    """The gain of the twelve fastest plans over AR, as a PNG.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = plans[:12]
    figure = Figure(figsize=(8, 0.4 * len(shown) + 1.2), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    means = [plan.vs_ar.mean for plan in shown]
    spans = [
        [plan.vs_ar.mean - plan.vs_ar.lower for plan in shown],
        [plan.vs_ar.upper - plan.vs_ar.mean for plan in shown],
    ]
    axis.errorbar(means, range(len(shown)), xerr=spans, fmt="o", capsize=3)
    axis.axvline(1.0, color="grey", linewidth=0.8)
    axis.set_yticks(range(len(shown)), [" + ".join(plan.settings) for plan in shown], fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel("requests per second over AR's, with 95 % interval")
    figure.savefig(path, format="png", dpi=130)
