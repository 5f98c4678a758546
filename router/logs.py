"""One canonical line per request, JSON or console; workers/logs.py writes the lines."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from router.core import Outcome
    from workers.logs import LineWriter


class RequestLog:
    """The recorder's sink for the canonical line. Prompts and answers are never in it."""

    def __init__(self, writer: LineWriter, log_format: str) -> None:
        self._writer = writer
        self._render = _request_json if log_format == "json" else _request_console

    def observe(self, outcome: Outcome) -> None:
        """Write one request's line."""
        self._writer.write(self._render(_request(outcome)))


def _request(outcome: Outcome) -> dict[str, Any]:
    timings, decision = outcome.timings, outcome.decision
    found = outcome.classification
    return {
        "event": "request",
        "timestamp": datetime.fromtimestamp(outcome.wall_time, UTC).isoformat(),
        "request_id": outcome.request_id,
        "endpoint": outcome.endpoint,
        "status": str(outcome.status),
        "http_status": outcome.http_status,
        "error": outcome.error_code or None,
        "key": outcome.key_id,
        "model": outcome.model,
        "class": str(found.workload_class) if found is not None else None,
        "worker": outcome.worker or None,
        "mode": outcome.mode or None,
        "reason": str(decision.reason) if decision is not None else None,
        "retried": outcome.retried,
        "stream": outcome.stream,
        "queue_ms": _ms(outcome.queue_s),
        "overhead_ms": _ms(outcome.overhead_s),
        "ttft_ms": _ms(outcome.ttft_s),
        "total_ms": _ms(outcome.total_s),
        "prompt_tokens": outcome.prompt_tokens,
        "completion_tokens": outcome.completion_tokens,
        "draft_n": timings.draft_n,
        "draft_n_accepted": timings.draft_n_accepted,
    }


def _ms(seconds: float | None) -> float | None:
    # Not `round(..., 3)`, which makes a decimal text of the number and reads it again.
    return None if seconds is None else round(1e6 * seconds) / 1000.0


def _request_json(row: dict[str, Any]) -> str:
    return orjson.dumps(row).decode()


def _request_console(row: dict[str, Any]) -> str:
    """One line for human eyes: what is unknown is left out."""
    head = f"{row['timestamp'][11:23]} {row['status']:<14} {row['endpoint']}"
    shown = ("class", "worker", "mode", "reason", "completion_tokens", "ttft_ms", "total_ms")
    rest = [f"{name}={row[name]}" for name in (*shown, "error") if row[name] is not None]
    return " ".join([head, *rest])
