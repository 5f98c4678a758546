"""Prometheus' text format 0.0.4, written straight: a scrape must not hold up requests beside it.

Label texts are made once for each set of values, and a histogram's bucket names once for each
series; both are bounded as the labels are.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_REMEMBERED: Final = 4096  # texts; beyond, they are made anew
_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Page:
    """One body of /metrics under construction."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: list[str] = []

    def counter(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        rows: Iterable[tuple[Sequence[str], float]],
    ) -> None:
        """A family that only grows; its samples are called `name`_total."""
        self._family(f"{name}_total", "counter", text, labels, rows)

    def gauge(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        rows: Iterable[tuple[Sequence[str], float]],
    ) -> None:
        """A family of what is true now."""
        self._family(name, "gauge", text, labels, rows)

    def histogram(
        self,
        name: str,
        text: str,
        bounds: tuple[float, ...],
        rows: Iterable[tuple[str, Sequence[int], float]],
    ) -> None:
        """`rows` are (label text, count of each bucket and of what lies beyond, sum)."""
        lines = self._lines
        lines.append(f"# HELP {name} {text}\n# TYPE {name} histogram\n")
        for labels, counts, total in rows:
            for begin, running in zip(
                _buckets(name, labels, bounds), accumulate(counts), strict=True
            ):
                lines.append(f"{begin}{running}\n")
            lines.append(f"{name}_count{{{labels}}} {running}\n{name}_sum{{{labels}}} {total}\n")

    def body(self) -> bytes:
        """Everything, encoded."""
        return "".join(self._lines).encode()

    def _family(
        self,
        name: str,
        kind: str,
        text: str,
        labels: Sequence[str],
        rows: Iterable[tuple[Sequence[str], float]],
    ) -> None:
        lines, names = self._lines, tuple(labels)
        lines.append(f"# HELP {name} {text}\n# TYPE {name} {kind}\n")
        for values, value in rows:
            if names:
                lines.append(f"{name}{{{label_text(names, tuple(values))}}} {value}\n")
            else:
                lines.append(f"{name} {value}\n")


@lru_cache(_REMEMBERED)
def label_text(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    """What stands between the braces."""
    pairs = zip(names, values, strict=True)
    return ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in pairs)


@lru_cache(_REMEMBERED)
def _buckets(name: str, labels: str, bounds: tuple[float, ...]) -> tuple[str, ...]:
    """The beginning of each bucket's line, +Inf last."""
    ends = (*(str(bound) for bound in bounds), "+Inf")
    return tuple(f'{name}_bucket{{{labels},le="{end}"}} ' for end in ends)
