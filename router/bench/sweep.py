"""A grid of draft settings x prompts x length x concurrency x thinking, measured on real workers.

One worker runs at a time, so a single GPU will do. Every setting gets the same prompts in the same
places of the grid, through the same API; rounds repeat the whole grid with the settings in another
order, so that a machine that gets warm or busy hits all alike.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

from router.bench.load import Job, run_jobs
from router.bench.one_worker import Bench, WorkerFailed, running_worker
from router.bench.workload import workload
from workers.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from router.bench.load import Sample
    from router.bench.workload import Prompt
    from workers.spec import WorkerSpec

AR = "ar"


@dataclass(frozen=True, slots=True)
class Setting:
    """One worker of the grid; `label` names it in tables."""

    label: str
    spec: WorkerSpec


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where in the grid. `length` is words of filler; `thinking` None is each class's own way."""

    length: int = 0
    concurrency: int = 1
    thinking: bool | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """What to measure."""

    settings: tuple[Setting, ...]
    places: tuple[Place, ...]
    per_class: int = 4
    rounds: int = 2
    max_tokens: int = 160
    seconds: float | None = None  # no setting is begun after that

    @property
    def total(self) -> int:
        """Requests of the whole run, warm-up left out."""
        return self.rounds * len(self.settings) * len(self.places) * 3 * self.per_class


@dataclass(frozen=True, slots=True)
class Finding:
    """One request's sample and where in the grid it was taken."""

    setting: Setting
    place: Place
    sample: Sample


@dataclass(frozen=True, slots=True)
class Swept:
    """Everything measured, and what is to be said about the workers themselves."""

    settings: tuple[Setting, ...]
    findings: tuple[Finding, ...]
    build: str
    load_s: dict[str, float]
    troubles: dict[str, str]  # by setting


def settings_of(
    specs: Sequence[WorkerSpec], n_max: Sequence[int], p_min: Sequence[float]
) -> tuple[Setting, ...]:
    """AR first, then each drafting worker with every combination of the given values.

    An empty list leaves a worker's own value; of several alike only the first is kept.
    """
    plain = next((s for s in specs if s.mode == AR), None) or plain_of(specs[0])
    found = {AR: Setting(AR, plain)}
    modes = Counter(spec.mode for spec in specs)
    for spec in specs:
        if not MODES[spec.mode].speculative:
            continue
        head = spec.mode if modes[spec.mode] == 1 else f"{spec.mode}@{spec.name}"
        for n, p in product(n_max or (None,), p_min or (None,)):
            setting = _variant(head, spec, n, p)
            found.setdefault(setting.label, setting)
    return tuple(found.values())


def _variant(head: str, spec: WorkerSpec, n_max: int | None, p_min: float | None) -> Setting:
    given = [f"{k}={v:g}" for k, v in (("n_max", n_max), ("p_min", p_min)) if v is not None]
    changed = spec if p_min is None else replace(spec, p_min=p_min)
    if n_max is not None:
        n_min = None if spec.n_min is None else min(spec.n_min, n_max)
        changed = replace(changed, n_max=n_max, n_min=n_min)
    return Setting(" ".join([head, *given]), changed)


def plain_of(spec: WorkerSpec) -> WorkerSpec:
    """The same worker without drafting."""
    bare = replace(spec, n_max=None, n_min=None, p_min=None, margin=None, gap=None)
    return replace(bare, name=f"{spec.name}-ar", mode=AR, draft=None, draft_context=None)


def places_of(
    lengths: Sequence[int], concurrency: Sequence[int], thinking: Sequence[bool | None]
) -> tuple[Place, ...]:
    """The grid's places, each once."""
    every = (Place(a, b, c) for a in lengths for b in concurrency for c in thinking)
    return tuple(dict.fromkeys(every))


async def sweep(
    grid: Grid, bench: Bench, on_sample: Callable[[Sample], None] | None = None
) -> Swept:
    """Run the grid. A setting whose worker does not start is told in `troubles` and left out."""
    run = _Run(grid, bench, on_sample)
    began = bench.clock.monotonic()
    for number in range(grid.rounds):
        prompts = workload(bench.rng, grid.per_class)
        order = [s for s in grid.settings if s.label not in run.troubles]
        bench.rng.shuffle(order)
        for setting in order:
            if grid.seconds is not None and bench.clock.monotonic() - began > grid.seconds:
                run.troubles.setdefault(setting.label, "not measured: the time was up")
                continue
            try:
                await run.measure(setting, prompts, number)
            except WorkerFailed as error:
                run.troubles[setting.label] = str(error)
    return Swept(grid.settings, tuple(run.findings), run.build, run.load_s, run.troubles)


@dataclass(slots=True)
class _Run:
    """One sweep under way."""

    grid: Grid
    bench: Bench
    on_sample: Callable[[Sample], None] | None
    findings: list[Finding] = field(default_factory=list)
    load_s: dict[str, float] = field(default_factory=dict)
    troubles: dict[str, str] = field(default_factory=dict)
    build: str = ""

    async def measure(self, setting: Setting, prompts: Sequence[Prompt], number: int) -> None:
        """All places of the grid on one worker, from its start to its end."""
        async with running_worker(_roomy(setting.spec, self.grid), self.bench) as worker:
            self.build = worker.record.build or self.build
            self.load_s.setdefault(setting.label, round(worker.load_s, 2))
            if worker.trouble:
                self.troubles[setting.label] = worker.trouble
            for place, jobs in _blocks(self.grid, setting, prompts, number):
                samples = await run_jobs(
                    worker.record.url,
                    jobs,
                    clock=self.bench.clock,
                    concurrency=place.concurrency,
                    headers=dict(worker.headers),
                    on_sample=self.on_sample if jobs[0].round else None,
                )
                self.findings += [Finding(setting, place, s) for s in samples if s.job.round]


def _roomy(spec: WorkerSpec, grid: Grid) -> WorkerSpec:
    """With a slot for each request at once: waiting in the server is not decoding."""
    return replace(spec, slots=max(spec.slots, *(place.concurrency for place in grid.places)))


def _blocks(
    grid: Grid, setting: Setting, prompts: Sequence[Prompt], number: int
) -> Iterator[tuple[Place, list[Job]]]:
    """One uncounted request that warms the worker up, then each place of the grid."""
    yield Place(), [_job(grid, setting, prompts[0], 0, 0)]
    for place in grid.places:
        asked = [p.like(words=place.length, thinking=place.thinking) for p in prompts]
        yield place, [_job(grid, setting, p, number + 1, i) for i, p in enumerate(asked)]


def _job(grid: Grid, setting: Setting, prompt: Prompt, number: int, seed: int) -> Job:
    return Job(setting.label, prompt, setting.spec.model, number, grid.max_tokens, seed)
