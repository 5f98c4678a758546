"""Stands in for KEDA: follows one rendered ScaledObject by the figures of the gateways' /metrics.

Understands the two forms of query that the chart writes: a sum over series, and a sum of each
worker's maximum (every gateway reports every worker).
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.support.cluster import SECRETS

if TYPE_CHECKING:
    from tests.support.cluster import Cluster

POLL_S = 1.0  # KEDA's own default is 30
_SUM = re.compile(r'sum\((\w+)\{(\w+)=~"(.+)"\}\)')
_SUM_OF_MAXIMA = re.compile(r'sum\(max by \((\w+)\) \((\w+)\{(\w+)=~"(.+)"\}\)\)')


@dataclass
class Autoscaler:
    """Scales one pool of `cluster` until told to stop; `sizes` is what it wanted, in order."""

    cluster: Cluster
    pool: str
    hurry: float = 1.0  # how many times faster than real idle times pass
    sizes: list[int] = field(default_factory=lambda: [0])
    _active_at: float = field(default_factory=time.monotonic)

    @property
    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.cluster.workload("ScaledObject", self.pool)["spec"]
        return spec

    async def run(self, stop: asyncio.Event) -> None:
        """One look a second."""
        while not stop.is_set():
            await self._scale(await self._wanted())
            await asyncio.sleep(POLL_S)

    async def _wanted(self) -> int:
        series = await self._series()
        values = [
            (value_of(t["metadata"]["query"], series), float(t["metadata"]["threshold"]))
            for t in self.spec["triggers"]
        ]
        wanted = max(math.ceil(value / threshold) for value, threshold in values)
        if wanted:
            self._active_at = time.monotonic()
            return min(wanted, self.spec["maxReplicaCount"])
        idle = self.hurry * (time.monotonic() - self._active_at)
        least: int = self.spec["minReplicaCount"]
        return (
            least if self.hurry * idle > self.spec["cooldownPeriod"] else max(least, self.sizes[-1])
        )

    async def _scale(self, wanted: int) -> None:
        """New pods at once, beside each other; the last leave first."""
        present = sum(name.startswith(f"{self.pool}-") for name in self.cluster.pods)
        if wanted != self.sizes[-1]:
            self.sizes.append(wanted)
        for index in range(present, wanted):
            await self.cluster.add_worker(self.pool, index)
        for index in reversed(range(wanted, present)):
            await self.cluster.remove(self.cluster.pods[f"{self.pool}-{index}"])

    async def _series(self) -> list[tuple[str, dict[str, str], float]]:
        headers = {"authorization": f"Bearer {SECRETS['api-key']}"}
        found = []
        async with httpx.AsyncClient(trust_env=False, headers=headers, timeout=30.0) as client:
            for pod in self.cluster.gateways():
                answer = await client.get(f"http://{pod.ip}:8080/metrics")
                answer.raise_for_status()
                for family in text_string_to_metric_families(answer.text):
                    found += [(s.name, s.labels, s.value) for s in family.samples]
        return found


def value_of(query: str, series: list[tuple[str, dict[str, str], float]]) -> float:
    """What Prometheus would answer."""
    if match := _SUM.fullmatch(query):
        name, label, pattern = match.groups()
        return sum(value for _, value in _selected(series, name, label, pattern))
    match = _SUM_OF_MAXIMA.fullmatch(query)
    assert match, query
    by, name, label, pattern = match.groups()
    maxima: dict[str, float] = {}
    for labels, value in _selected(series, name, label, pattern):
        maxima[labels[by]] = max(value, maxima.get(labels[by], 0.0))
    return sum(maxima.values())


def _selected(
    series: list[tuple[str, dict[str, str], float]], name: str, label: str, pattern: str
) -> list[tuple[dict[str, str], float]]:
    return [
        (labels, value)
        for found, labels, value in series
        if found == name and re.fullmatch(pattern, labels.get(label, ""))
    ]
