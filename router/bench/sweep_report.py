"""What a sweep found: speed and acceptance by place and class, the best setting of each, a plot."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from router.bench.report import geometric_mean, quotient, summarise
from router.bench.sweep import AR
from workers.gguf_header import NotGGUF, read_header
from workers.memory import estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from router.bench.load import Sample
    from router.bench.report import Row
    from router.bench.sweep import Finding, Place, Setting, Swept
    from workers.spec import WorkerSpec

MIN_TOKENS: Final = 16
"""Shorter answers have too few steps to tell a speed (lab notes: three drafted tokens)."""

_Cell = dict[str, Any]


def sweep_report(swept: Swept) -> dict[str, Any]:
    """Everything `sweep --json` prints."""
    kept = [f for f in swept.findings if _tells(f.sample)]
    by_place: dict[Place, list[Finding]] = defaultdict(list)
    for finding in kept:
        by_place[finding.place].append(finding)
    cells = [cell for place in sorted(by_place, key=_order) for cell in _cells(by_place[place])]
    return {
        "build": swept.build,
        "settings": [_described(setting) for setting in swept.settings],
        "load_s": swept.load_s,
        "rows": cells,
        "best": _best(cells),
        "overall": _overall(cells),
        "problems": _problems(swept, len(swept.findings) - len(kept), cells),
    }


def _described(setting: Setting) -> dict[str, Any]:
    spec = setting.spec
    names = ("mode", "n_max", "p_min", "margin", "gap", "slots", "context")
    own = {name: getattr(spec, name) for name in names}
    needed = memory_gb(spec)
    return {"setting": setting.label, "worker": spec.name, **own, "memory_gb": needed}


def memory_gb(spec: WorkerSpec) -> float | None:
    """The estimate of `specroute check`; None where a file cannot be read."""
    if spec.target is None:
        return None
    try:
        target = read_header(spec.target)
        draft = read_header(spec.draft) if spec.draft is not None else None
    except (OSError, NotGGUF):
        return None
    return round(estimate(spec, target, draft).gigabytes, 3)


def _tells(sample: Sample) -> bool:
    return not sample.error and (sample.timings.predicted_n or 0) >= MIN_TOKENS


def _order(place: Place) -> tuple[int, int, str]:
    return place.length, place.concurrency, str(place.thinking)


def _cells(findings: Sequence[Finding]) -> list[_Cell]:
    """One place of the grid: a cell for each setting and class."""
    place, settings = findings[0].place, {f.setting.label: f.setting for f in findings}
    samples = [f.sample for f in findings]
    # Plain decoding does not depend on the text: its speed is taken over all classes.
    plain = geometric_mean(_speeds([s for s in samples if s.job.target == AR]))
    cells = []
    for row in summarise(samples):
        mine = [
            s
            for s in samples
            if (s.job.target, s.job.prompt.workload_class) == (row.target, row.workload_class)
        ]
        spec = settings[row.target].spec
        speedup = quotient(row.decode_tps, plain) if row.decode_tps and plain else None
        cells.append(
            {
                "setting": row.target,
                "worker": spec.name,
                "mode": spec.mode,
                "n_max": spec.n_max,
                "p_min": spec.p_min,
                "class": row.workload_class,
                "length": place.length,
                "concurrency": place.concurrency,
                "thinking": place.thinking,
                **_figures(row, mine),
                "speedup": speedup.as_dict("ratio") if speedup else None,
            }
        )
    return cells


def _figures(row: Row, samples: Sequence[Sample]) -> _Cell:
    known = [s.timings for s in samples]
    prompts = [(t.prompt_n or 0) + (t.cache_n or 0) for t in known]
    return {
        "n": row.n,
        "prompt_tokens": round(sum(prompts) / len(prompts)),
        "decode_tps": row.decode_tps.as_dict() if row.decode_tps else None,
        "ttft_ms": {"p50": row.ttft_p50_ms, "p99": row.ttft_p99_ms},
        "seconds": round(sum(s.total_s for s in samples) / len(samples), 4),
        "tokens": round(sum(t.predicted_n or 0 for t in known) / len(known), 1),
        "acceptance": row.acceptance,
        "mean_len": row.mean_len,
        "thinking_seen": round(sum(s.thought for s in samples) / len(samples), 3),
        "thinking_asked": samples[0].job.prompt.thinks,
    }


def _speeds(samples: Sequence[Sample]) -> list[float]:
    return [v for v in (s.timings.decode_tokens_per_second for s in samples) if v]


def _place_of(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    return cell["class"], cell["length"], cell["concurrency"], cell["thinking"]


def _best(cells: Sequence[_Cell]) -> list[_Cell]:
    """The fastest setting of each class and place; `clear`: its interval is above AR's speed."""
    groups: dict[tuple[Any, ...], list[_Cell]] = defaultdict(list)
    for cell in cells:
        if cell["speedup"]:
            groups[_place_of(cell)].append(cell)
    found = []
    for group in groups.values():
        best = max(group, key=lambda cell: float(cell["speedup"]["ratio"]))
        names = ("class", "length", "concurrency", "thinking", "setting", "worker", "speedup")
        clear = best["setting"] != AR and best["speedup"]["lower"] > 1.0
        found.append({name: best[name] for name in names} | {"clear": clear})
    return found


def _overall(cells: Sequence[_Cell]) -> list[dict[str, Any]]:
    """Settings by their geometric mean speed-up over all cells, the best first."""
    logs: dict[str, list[float]] = defaultdict(list)
    for cell in cells:
        if cell["speedup"]:
            logs[cell["setting"]].append(math.log(cell["speedup"]["ratio"]))
    rows = [
        {"setting": name, "cells": len(v), "speedup": round(math.exp(sum(v) / len(v)), 4)}
        for name, v in logs.items()
    ]
    return sorted(rows, key=lambda row: -float(str(row["speedup"])))


def _problems(swept: Swept, untold: int, cells: Sequence[_Cell]) -> list[str]:
    told = [f"{name}: {why}" for name, why in swept.troubles.items()]
    failed = [f.sample for f in swept.findings if f.sample.error]
    if failed:
        told.append(f"{len(failed)} requests failed, the first one: {failed[0].error}")
    short = untold - len(failed)
    if short > 0:
        told.append(f"{short} answers of fewer than {MIN_TOKENS} tokens were left out")
    for cell in cells:
        asked, seen = cell["thinking_asked"], cell["thinking_seen"]
        if (asked and seen < 0.5) or (not asked and seen > 0.5):
            where = f"{cell['setting']}, {cell['class']}, {cell['length']} words"
            told.append(f"{where}: thinking {'on' if asked else 'off'} asked, {seen:.0%} seen")
    return told


def draw(report: Mapping[str, Any], path: Path) -> None:
    """Speed-up by setting with its interval, one panel for each place of the grid, as a PNG.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels: dict[tuple[Any, ...], list[_Cell]] = defaultdict(list)
    for cell in report["rows"]:
        if cell["speedup"]:
            panels[_place_of(cell)[1:]].append(cell)
    settings = list(dict.fromkeys(cell["setting"] for cell in report["rows"]))
    height = (0.34 * len(settings) + 1.3) * max(1, len(panels))
    figure = Figure(figsize=(8, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(max(1, len(panels)), 1, squeeze=False)
    for axis, (place, cells) in zip(axes[:, 0], panels.items(), strict=False):
        _panel(axis, place, cells, settings)
    figure.savefig(path, format="png", dpi=130)


_MARKS: Final = {"structured": "o", "prose": "s", "reasoning": "^"}


def _panel(axis: Any, place: tuple[Any, ...], cells: Sequence[_Cell], settings: list[str]) -> None:
    for shift, (name, mark) in enumerate(_MARKS.items()):
        mine = [cell for cell in cells if cell["class"] == name]
        ratios = [cell["speedup"]["ratio"] for cell in mine]
        spans = [
            [max(0.0, r - cell["speedup"]["lower"]) for r, cell in zip(ratios, mine, strict=True)],
            [max(0.0, cell["speedup"]["upper"] - r) for r, cell in zip(ratios, mine, strict=True)],
        ]
        heights = [settings.index(cell["setting"]) + 0.22 * (shift - 1) for cell in mine]
        axis.errorbar(ratios, heights, xerr=spans, fmt=mark, label=name, markersize=5, capsize=2)
    axis.axvline(1.0, color="grey", linewidth=0.8)
    axis.set_yticks(range(len(settings)), settings)
    axis.invert_yaxis()
    thinking = {None: "as the class is", True: "on", False: "off"}[place[2]]
    axis.set_title(f"{place[0]} words before, {place[1]} at once, thinking {thinking}", fontsize=9)
    axis.set_xlabel("decode speed over AR's, with 95 % interval")
    axis.legend(fontsize=8)
