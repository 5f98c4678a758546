"""docs/telemetry.md names every metric and field of the decision log, and none that is gone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from router.telemetry.decision_log import SCHEMA, row
from router.telemetry.metrics import Gauges, Metrics, WorkerGauge
from tests.fakes.outcomes import outcome

DOC = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text()


def exposed() -> set[str]:
    worker = WorkerGauge("code", "m", "ar", up=True, slots=1, inflight=0)
    families = text_string_to_metric_families(Metrics(lambda: Gauges([worker])).text().decode())
    return {f"{f.name}_total" if f.type == "counter" else f.name for f in families}


def names_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        below = [names_in(item) for name, item in value.items() if name != "probabilities"]
        return set(value).union(*below)
    return set().union(*map(names_in, value)) if isinstance(value, list) else set()


def test_every_metric_is_documented_and_no_other() -> None:
    named = set(re.findall(r"`(specroute_[a-z_]+)", DOC))
    short = {f"specroute_speedup_ratio_{end}" for end in ("lower", "upper")}
    assert named == exposed() - short


def test_every_field_of_the_decision_log_is_documented() -> None:
    fields = names_in(row(outcome()))
    words = set(re.findall(r"`([a-z_0-9]+)`", DOC))
    assert fields - words == set()
    assert f"`v` = {SCHEMA}" in DOC
