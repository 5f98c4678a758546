"""What came of each fault, and the table of all."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median


@dataclass
class Row:
    """One fault, once. `seen` and `back` in seconds; None where there is nothing to wait for."""

    fault: str
    seen: float | None = None
    back: float | None = None
    client: str = ""  # what the request under way got
    reason: str = ""  # the worker's, as published
    wrong: list[str] = field(default_factory=list)


def table(rows: list[Row]) -> str:
    """Median and slowest times of each fault, as Markdown."""
    lines = [
        "| fault | runs | seen, s (median, slowest) | served again, s | the client got | wrong |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for fault in dict.fromkeys(row.fault for row in rows):
        mine = [row for row in rows if row.fault == fault]
        seen, back = (_span([getattr(row, name) for row in mine]) for name in ("seen", "back"))
        clients = ", ".join(sorted({row.client for row in mine if row.client}))
        wrong = sum(bool(row.wrong) for row in mine)
        lines.append(f"| {fault} | {len(mine)} | {seen} | {back} | {clients} | {wrong} |")
    return "\n".join(lines)


def _span(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{median(known):.1f}, {max(known):.1f}" if known else "-"
