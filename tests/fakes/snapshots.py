"""Snapshots of a dashboard made of stated figures, without Redis."""

from __future__ import annotations

import math

import orjson

from router.dashboard.figures import MeasuredCell, Snapshot
from router.telemetry.decision_log import row
from router.telemetry.history import SLICES, Slice, amounts_of, merged, series_of
from router.telemetry.history_store import Entry
from router.telemetry.levels import Arm, Text
from router.telemetry.speedups import Speedup
from router.telemetry.stats import Moments
from tests.fakes.gateway import record
from tests.fakes.outcomes import outcome

NOW = 1_700_000_400.0  # the end of a ten-minute slice


def speedup(name: str, mode: str, value: float | None, **changes) -> Speedup:
    """One figure with an interval of 5 % on either side."""
    ends = (None, None) if value is None else (0.95 * value, 1.05 * value)
    values = {
        "model": "tiny",
        "workload_class": name,
        "mode": mode,
        "n": 120.0 if value is not None else 7.0,
        "n_plain": 150.0,
        "decode_tps": 40.0,
        "speedup": value,
        "ci_low": ends[0],
        "ci_high": ends[1],
        "acceptance": 0.66,
    }
    return Speedup(**(values | changes))


def slices_of(*outcomes):
    """The slices that gateways would have written."""
    found: dict = {}
    for one in outcomes:
        for width in SLICES:
            by_series = found.setdefault(Slice(width, int(one.wall_time // width)), {})
            series = series_of(one)
            by_series[series] = merged([by_series.get(series, {}), dict(amounts_of(one))])
    return found


def cell(name: str, mode: str, tps: float, *, n: int = 60, occupancy: int = 0) -> MeasuredCell:
    """A learned cell with `n` answers around a speed."""
    moments = Moments()
    for i in range(n):
        moments.add(math.log(tps) + (0.1 if i % 2 else -0.1), 1.0)
    return MeasuredCell(Arm("tiny", f"hash-{mode}", mode), Text(name), occupancy, moments)


def entry(number: int, one) -> Entry:
    """One entry of the stream of decisions."""
    return Entry(f"{number}-0", orjson.loads(orjson.dumps(row(one))))


def full(**changes) -> Snapshot:
    """Three workers, an hour of traffic in three modes, figures, decisions, happenings."""
    done = [
        outcome(name, worker, mode, at=NOW - 60 * i, tokens_per_second=speed)
        for i in range(40)
        for name, worker, mode, speed in (
            ("structured", "code", "dflash2-margin", 80.0),
            ("prose", "prose", "mtp-n3", 50.0),
            ("prose", "plain", "ar", 40.0),
        )
    ]
    happening = {"at": NOW - 600, "kind": "switch", "workload_class": "prose", "model": "tiny"}
    values = {
        "at": NOW,
        "records": (
            record("plain"),
            record("prose", mode="mtp-n3", effective_mode="mtp-n3"),
            record("code", mode="dflash2-margin", effective_mode="dflash2-margin"),
        ),
        "gateways": {"g": {"queue": {"tiny": 3}, "inflight": {"code": 2}}},
        "speedups": (
            speedup("prose", "ar", 1.0),
            speedup("prose", "mtp-n3", 1.25),
            speedup("structured", "dflash2-margin", 2.0),
            speedup("structured", "mtp-n3", 1.5),
        ),
        "cells": (
            cell("prose", "ar", 40.0),
            cell("prose", "ar", 40.0, occupancy=2),
            cell("prose", "mtp-n3", 50.0),
            cell("prose", "mtp-n3", 32.0, occupancy=2),
        ),
        "slices": slices_of(*done),
        "decisions": tuple(entry(1000 - i, one) for i, one in enumerate(done)),
        "happenings": (Entry("1-0", happening | {"before": "code", "after": "plain"}),),
    }
    return Snapshot(**(values | changes))
