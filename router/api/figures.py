"""Figures of the ops API: classes with the speed-ups of their modes, and plain totals."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from router.telemetry.speedups import speedups
from router.telemetry.store import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from router.telemetry import Knowledge
    from router.telemetry.store import StatsStore
    from router.telemetry.store.base import TotalName

    Totals = Mapping[TotalName, Mapping[str, float]]

_NO_CLASS = "none"


class Figures:
    """Reads what was learned and what the store has summed."""

    def __init__(self, knowledge: Knowledge, store: StatsStore) -> None:
        self._knowledge = knowledge
        self._store = store

    async def classes(self) -> list[dict[str, Any]]:
        """One row per model and class (contract, section 3); without Redis `n` is what is known."""
        totals = await self._totals()
        rows: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        answers: dict[tuple[str, str], float] = defaultdict(float)
        for name, sums in (totals or {}).items():
            if name.workload_class != _NO_CLASS:
                answers[name.model, name.workload_class] += sums.get("requests_ok", 0.0)
        for row in speedups(self._knowledge.speeds, totals):
            rows[row.model, row.workload_class].append(row.as_dict())
            if totals is None:
                answers[row.model, row.workload_class] += row.n
        return [
            {"model": model, "class": name, "n": round(n), "speedups": rows[model, name]}
            for (model, name), n in sorted(answers.items())
        ]

    async def totals(self) -> list[dict[str, Any]]:
        """Plain sums since the store began, by model, class and mode; empty without the store."""
        found = await self._totals() or {}
        return [
            {"model": name.model, "class": name.workload_class, "mode": name.mode, **sums}
            for name, sums in sorted(found.items())
        ]

    async def _totals(self) -> Totals | None:
        try:
            return await self._store.totals()
        except StoreUnavailable:
            return None
