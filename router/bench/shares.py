"""Where the routed requests went, against which mode measured fastest for their kind of text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from router.bench.load import Sample
    from router.bench.report import Row


@dataclass(frozen=True, slots=True)
class Share:
    """One class (or class/kind): the fastest mode and the share of routed requests it got."""

    label: str
    fastest: str
    went_there: float  # 0 to 1
    modes: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "class": self.label,
            "fastest_mode": self.fastest,
            "share_of_routed": round(self.went_there, 4),
            "routed_to": self.modes,
        }


def shares(rows: Sequence[Row], samples: Iterable[Sample], *, routed: str) -> list[Share]:
    """One Share per label of `rows`; rows of the routed target itself do not compete."""
    by_label: dict[str, Counter[str]] = {}
    mode_of: dict[str, str] = {}  # of a target, which may be called like its worker
    labels = {row.workload_class for row in rows}
    for sample in samples:
        if not sample.error:
            mode_of[sample.job.target] = sample.mode
        prompt = sample.job.prompt
        label = f"{prompt.workload_class}/{prompt.kind}"
        label = label if label in labels else prompt.workload_class
        if sample.job.target == routed and not sample.error:
            by_label.setdefault(label, Counter())[sample.mode] += 1
    single = [row for row in rows if row.target != routed]
    return [
        _share(label, single, counts, mode_of)
        for label, counts in by_label.items()
        if counts.total()
    ]


def _share(
    label: str, single: Sequence[Row], counts: Counter[str], mode_of: Mapping[str, str]
) -> Share:
    speeds = {
        row.target: row.decode_tps.mean
        for row in single
        if row.workload_class == label and row.decode_tps
    }
    fastest = mode_of.get(max(speeds, key=speeds.__getitem__, default=""), "")
    return Share(label, fastest, counts[fastest] / counts.total(), dict(counts))
