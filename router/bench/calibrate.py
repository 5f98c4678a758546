"""From model files to a measured config: which modes the files allow, what to measure in the time
there is, and the YAML of what won."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import yaml

from router.bench.sweep import AR, Grid, Place, Setting, settings_of, sweep
from router.bench.traffic import Shape
from router.bench.workload import PROMPTS
from workers.spec import WorkerSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from router.bench.advise import Plan
    from router.bench.one_worker import Bench
    from router.bench.sweep import Swept
    from workers.gguf_header import Header
    from workers.machine import Machine

FEWEST, MOST = 2, 8
"""Prompts of each class: fewer than two have no spread, more than eight hardly narrow it."""

START_S: Final = 5.0  # of one worker with its probe, until one has been seen to start
_OF_DRAFTER: Final = {"dspark": ("dspark",), "eagle3": ("eagle3",)}
_WIDTHS: Final = {"mtp": (1, 2, 5), "dflash": (3, 5)}


@dataclass(frozen=True, slots=True)
class Wish:
    """What the operator told. `context` is tokens per request."""

    name: str
    target: Path
    draft: Path | None
    context: int
    slots: int
    threads: int | None = None
    binary: Path | None = None
    reasoning: Any = "auto"


def modes_for(target: Header, draft: Header | None) -> tuple[str, ...]:
    """The modes that these files allow, AR first, the most promising next."""
    modes = [AR]
    if draft is not None:
        architecture = str(draft.metadata.get("general.architecture", ""))
        if architecture.startswith("dflash"):
            second = any(key.endswith("selector_rank") for key in draft.metadata)
            family = "dflash2" if second else "dflash"
            modes += [f"{family}-margin", family]
        else:
            modes += _OF_DRAFTER.get(architecture, ("draft",))
    if target.of_architecture("nextn_predict_layers", 0):
        modes += ["mtp-n3", "mtp-margin"]
    return (*modes, "ngram-mod")


def candidates(wish: Wish, modes: Sequence[str], machine: Machine) -> tuple[Setting, ...]:
    """What could be measured, the most promising first: every mode, then other draft lengths."""
    specs = [_spec(wish, mode, machine) for mode in modes]
    usual = settings_of(specs, (), ())
    wider = [
        setting
        for spec in specs
        for family, widths in _WIDTHS.items()
        if spec.mode.startswith(family) and spec.mode in ("mtp-n3", "dflash", "dflash2")
        for setting in settings_of([_spec(wish, AR, machine), spec], widths, ())[1:]
    ]
    return (*usual, *wider)


def _spec(wish: Wish, mode: str, machine: Machine) -> WorkerSpec:
    drafting = mode.startswith(("dflash", "dspark", "eagle3")) or mode == "draft"
    spec = WorkerSpec(
        name=mode.replace("-", ""),
        model=wish.name,
        mode=mode,
        target=wish.target,
        draft=wish.draft if drafting else None,
        binary=wish.binary,
        context=wish.context,
        slots=wish.slots,
        threads=wish.threads,
        reasoning=wish.reasoning,
    )
    if not machine.gpus:
        return spec
    return replace(spec, gpu=replace(spec.gpu, devices=(machine.gpus[0].index,), layers="all"))


def within(settings: Sequence[Setting], seconds: float, per_request: float) -> Grid:
    """As many settings, and then prompts, as the time allows; two settings at the least."""
    cost_of_one = START_S + 3 * FEWEST * per_request
    count = max(2, min(len(settings), int(seconds / cost_of_one)))
    left = seconds - count * START_S
    per_class = int(left / (count * 3 * per_request)) if per_request else MOST
    return Grid(
        settings=tuple(settings[:count]),
        places=(Place(),),
        per_class=max(FEWEST, min(MOST, per_class)),
        rounds=1,
    )


async def calibrate(
    settings: Sequence[Setting],
    seconds: float,
    bench: Bench,
    begun: Callable[[Grid], Callable[[object], None]],
) -> Swept:
    """A first look at AR tells what a request costs; then the sweep that fits into the time.

    `begun` is told the grid and returns what is called for each finished request.
    """
    began = bench.clock.monotonic()
    look = Grid((settings[0],), (Place(),), per_class=1, rounds=1)
    first = await sweep(look, bench)
    times = [f.sample.total_s for f in first.findings if not f.sample.error]
    if not times:
        return first
    spent = bench.clock.monotonic() - began
    left = seconds - spent
    grid = replace(within(settings, left, sum(times) / len(times)), seconds=left)
    return await sweep(grid, bench, begun(grid))


def equal_traffic(report: Mapping[str, Any]) -> list[Shape]:
    """As much of each class as of the others, with the sizes that were measured."""
    rows = [row for row in report["rows"] if row["setting"] == AR]
    sizes = {row["class"]: (row["prompt_tokens"], row["tokens"]) for row in rows}
    classes = dict.fromkeys(prompt.workload_class for prompt in PROMPTS)
    return [Shape(name, *map(float, sizes[name])) for name in classes if name in sizes]


def config_text(
    wish: Wish, plan: Plan, settings: Sequence[Setting], machine: Machine, said: Sequence[str]
) -> str:
    """The YAML of a plan, with what was measured as comments."""
    chosen = [s for name in plan.settings for s in settings if s.label == name]
    document = {
        "redis": {"url": "embedded"},
        "models": [{"name": wish.name, "target": str(wish.target)}],
        "workers": [_worker(s.spec, i, machine) for i, s in enumerate(_named(chosen))],
    }
    comments = ["Written by `specroute calibrate`.", *machine.lines(), *said]
    head = "".join(f"# {line}\n" for line in comments)
    return head + yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def _named(settings: Sequence[Setting]) -> list[Setting]:
    """With a name each: one mode may have won with two draft lengths."""
    seen: Counter[str] = Counter()
    named = []
    for setting in settings:
        name = setting.spec.name
        seen[name] += 1
        other = name if seen[name] == 1 else f"{name}-{seen[name]}"
        named.append(replace(setting, spec=replace(setting.spec, name=other)))
    return named


def _worker(spec: WorkerSpec, number: int, machine: Machine) -> dict[str, Any]:
    """What differs from the defaults, and the sizes that everybody looks for."""
    row: dict[str, Any] = {"name": spec.name, "model": spec.model, "mode": spec.mode}
    if spec.draft is not None:
        row["draft"] = str(spec.draft)
    if spec.binary is not None:
        row["binary"] = str(spec.binary)
    row |= {"context": spec.context, "slots": spec.slots}
    optional = {"threads": spec.threads, "n_max": spec.n_max, "p_min": spec.p_min}
    row |= {name: value for name, value in optional.items() if value is not None}
    if spec.reasoning != "auto":
        row["reasoning"] = spec.reasoning
    if machine.gpus:
        gpu = machine.gpus[number % len(machine.gpus)]
        row["gpu"] = {"devices": [gpu.index], "layers": "all"}
    return row
