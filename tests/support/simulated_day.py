"""A day of traffic in Redis, as gateways would have left it: any number of requests, seeded.

A few thousand distinct outcomes go through the real sinks' arithmetic and are written with a weight
each, so that a million requests take seconds to write and are a million to every reader.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import orjson

from classifier import extract, load
from router.core import Reason, Status
from router.telemetry.decision_log import row
from router.telemetry.grounds import grounds_of
from router.telemetry.happenings import Happening, Kind
from router.telemetry.history import SLICES, Slice, amounts_of, merged, series_of
from router.telemetry.history_store import Batch, HistoryStore
from router.telemetry.knowledge import text_of
from router.telemetry.levels import Arm
from router.telemetry.stats import Moments, occupancy_bucket
from router.telemetry.store import base, open_store
from tests.fakes.gateway import record
from tests.fakes.outcomes import classification, outcome
from workers.clock import SystemClock
from workers.registry import open_registry
from workers.state import WorkerState

if TYPE_CHECKING:
    from router.core import Outcome

# Tokens per second in each mode, and the share of a class's traffic that the mode gets.
MODES = {
    "ar": ("plain", {"structured": (21.0, 0.04), "prose": (21.0, 0.55), "reasoning": (21.0, 0.1)}),
    "mtp-n3": (
        "prose",
        {"structured": (31.0, 0.2), "prose": (25.0, 0.4), "reasoning": (28.0, 0.7)},
    ),
    "dflash2-margin": (
        "code",
        {"structured": (38.0, 0.76), "prose": (17.0, 0.05), "reasoning": (24.0, 0.2)},
    ),
}
MIX = {"structured": 0.45, "prose": 0.4, "reasoning": 0.15}
DISTINCT = 2000
CHUNK = 100  # slices written at once


CONFIG = """
models:
  - {name: tiny}
workers:
  - {name: plain, model: tiny, engine: external, url: "http://127.0.0.1:9"}
"""
"""The least that a config must say: a dashboard wants the rest from the environment."""


def outcomes(now: float, rng: random.Random, *, span: float = 86_400.0) -> list[Outcome]:
    """Distinct requests over the last `span` seconds, oldest first."""
    return [_one(now - span * (1 - i / DISTINCT), i, rng) for i in range(DISTINCT)]


def _one(at: float, number: int, rng: random.Random) -> Outcome:
    name = rng.choices(list(MIX), list(MIX.values()))[0]
    mode = rng.choices(list(MODES), [MODES[m][1][name][1] for m in MODES])[0]
    worker, speeds = MODES[mode]
    if rng.random() < 0.004:
        return outcome(
            name, worker, mode, at=at, status=Status.UPSTREAM_ERROR, error_code="worker_failed"
        )
    speed = speeds[name][0] * math.exp(rng.gauss(0.0, 0.2))
    language = rng.choice(["en", "en", "ru"])
    return outcome(
        name,
        worker,
        mode,
        at=at,
        tokens=max(17, int(rng.lognormvariate(math.log(200), 0.6))),
        tokens_per_second=speed,
        request_id=f"req-{number:06d}",
        ttft_s=rng.lognormvariate(math.log(0.3), 0.5),
        occupancy=rng.choice([1, 1, 2, 4]),
        reason=rng.choices([Reason.PREDICTED_FASTEST, Reason.EXPLORATION], [0.97, 0.03])[0],
        classification=classification(
            name, rng.uniform(0.5, 1.0), language=language, thinking=name == "reasoning"
        ),
    )


async def write_day(
    url: str, secret: str, now: float, *, requests: int = 1_000_000, seed: int = 1
) -> None:
    """Everything a dashboard reads: workers, slices, learned state, decisions, happenings."""
    found = outcomes(now, random.Random(seed))
    weight = requests // len(found)
    history = HistoryStore.at(url)
    places = list(_slices(found, weight, now).items())
    for number in range(0, len(places), CHUNK):
        await history.write(Batch(f"writer-{number}", 1, dict(places[number : number + CHUNK])))
    grounds = _grounds()
    newest = [orjson.dumps(row(one) | {"grounds": grounds}) for one in found[-1500:]]
    status = {"at": now, "policy": "learned", "queue": {"tiny": 2}, "inflight": {"code": 1}}
    await history.write(Batch("simulated", 1, {}, newest, _happenings(now), status))
    await history.aclose()
    await _learned(url, found, now)
    await publish_workers(url, secret, now)


def _grounds() -> dict[str, Any] | None:
    """What the classifier went by, the same for all."""
    asked = "Write a Python function that parses a date. Return only the code."
    features = extract({"model": "tiny", "messages": [{"role": "user", "content": asked}]})
    return grounds_of(outcome(features=features), load().explain)


def _slices(found: list[Outcome], weight: int, now: float):
    slices: dict = {}
    for one in found:
        amounts = [(name, amount * weight) for name, amount in amounts_of(one)]
        for width in (w for w, kept in SLICES.items() if now - one.wall_time < kept):
            place = (Slice(width, int(one.wall_time // width)), series_of(one))
            slices[place] = merged([slices.get(place, {}), dict(amounts)])
    return slices


async def _learned(url: str, found: list[Outcome], now: float) -> None:
    """The newest half hour's worth in the direct table, as a gateway publishes it."""
    batch = base.Batch("simulated", 1)
    for one in found:
        if one.status is not Status.OK or one.classification is None:
            continue
        arm = Arm(one.model, one.worker_key, one.mode)
        text = text_of(one.classification, one.context_tokens or 0, has_image=False)
        key = orjson.dumps([arm, text, occupancy_bucket(one.occupancy)], default=tuple).decode()
        place = base.Row(int(now // base.EPOCH_S), base.CellName("v", key))
        speed = one.timings.decode_tokens_per_second
        batch.rows.setdefault(place, Moments()).add(math.log(speed), 1.0)
        total = base.TotalName(*series_of(one))
        sums = batch.totals.setdefault(total, {})
        for name in ("draft_n", "draft_n_accepted"):
            sums[name] = sums.get(name, 0) + (getattr(one.timings, name) or 0)
    store = open_store(url)
    await store.publish(batch)
    await store.aclose()


def _happenings(now: float) -> list[Happening]:
    return [
        Happening(now - 2000, Kind.RESTART, "code", "tiny", reason="exit code 139", sequence="1"),
        Happening(
            now - 1500, Kind.SWITCH, "", "tiny", "prose", before="code", after="plain", sequence="2"
        ),
        Happening(now - 900, Kind.ALARM, "code", "tiny", "prose", sequence="3"),
        Happening(now - 300, Kind.POLICY, before="static", after="learned", sequence="4"),
    ]


def workers(now: float):
    """Three workers of one model, one of them broken."""
    common = {"slots": 4, "heartbeat_at": now, "started_at": now - 5000, "host": "gpu-1"}
    return [
        record("plain", **common),
        record("prose", mode="mtp-n3", effective_mode="mtp-n3", **common),
        record(
            "code",
            mode="dflash2-margin",
            effective_mode="dflash2-margin",
            restarts=1,
            argv=("llama-server", "-m", "target.gguf", "--spec-type", "draft-dflash"),
            **common,
        ),
        record(
            "spare",
            mode="mtp-n3",
            effective_mode="mtp-n3",
            **common | {"state": WorkerState.QUARANTINED, "reason": "crashed 5 times in 60 s"},
        ),
    ]


async def publish_workers(url: str, secret: str, now: float) -> None:
    """Their records; they expire like real ones, so publish again before looking."""
    registry = open_registry(url, secret, SystemClock())
    for one in workers(now):
        await registry.heartbeat(one)
    await registry.aclose()
