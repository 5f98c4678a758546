"""Log lines that never make the event loop wait: one canonical line per request, JSON or console.

Lines go through a bounded queue to a thread of their own, because a terminal or a pipe that nobody
reads blocks whoever writes to it. When the queue is full lines are dropped and counted.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TextIO

import orjson
import structlog

from router.telemetry.line_thread import CAPACITY, LineThread

if TYPE_CHECKING:
    from router.core import Outcome

LEVELS: Final = ("debug", "info", "warning", "error")


class LineWriter:
    """Writes lines to one stream from a thread; see `LineThread`."""

    def __init__(self, stream: TextIO, *, capacity: int = CAPACITY) -> None:
        self._stream = stream
        self._lost = 0
        self._thread: LineThread[str] = LineThread(
            "log-writer", self._write_batch, capacity=capacity
        )
        self.write = self._thread.write

    @property
    def dropped(self) -> int:
        """Lines that nobody could read."""
        return self._thread.dropped + self._lost

    def close(self, patience_s: float = 2.0) -> None:
        """Write what waits, as far as that is possible in time."""
        self._thread.close(patience_s)

    def _write_batch(self, batch: list[str]) -> None:
        try:
            self._stream.write("\n".join(batch) + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # closed under us: there is nowhere to complain
            self._lost += len(batch)


class _Logger:
    """What structlog calls at the end of its chain."""

    def __init__(self, writer: LineWriter) -> None:
        self._writer = writer

    def msg(self, line: str) -> None:
        self._writer.write(line)

    log = debug = info = warning = warn = error = critical = exception = fatal = msg


def configure_logs(log_format: str, level: str, stream: TextIO | None = None) -> LineWriter:
    """Send structlog's and the standard library's lines through one writer; close it at the end.

    `log_format` is json or console, `level` a name of the standard library's.
    """
    writer = LineWriter(stream or sys.stderr)
    number = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _json if log_format == "json" else structlog.dev.ConsoleRenderer(colors=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=lambda *_: _Logger(writer),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(level=max(number, logging.WARNING), handlers=[_Handler(writer)], force=True)
    return writer


def change_level(level: str) -> None:
    """Log from `level` (one of LEVELS) on, at once and until the next start."""
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(number))
    logging.getLogger().setLevel(max(number, logging.WARNING))


def current_level() -> str:
    """The level in force."""
    number: int = structlog.get_logger().get_effective_level()
    return logging.getLevelName(number).lower()


def _json(_logger: Any, _name: str, event: Any) -> str:
    return orjson.dumps(event, default=str).decode()


class _Handler(logging.Handler):
    """The standard library's records as lines."""

    def __init__(self, writer: LineWriter) -> None:
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        """Queue one record."""
        self._writer.write(self.format(record))


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
        "status": outcome.status.value,
        "http_status": outcome.http_status,
        "error": outcome.error_code or None,
        "key": outcome.key_id,
        "model": outcome.model,
        "class": found.workload_class.value if found is not None else None,
        "worker": outcome.worker or None,
        "mode": outcome.mode or None,
        "reason": decision.reason.value if decision is not None else None,
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
    return None if seconds is None else round(1000.0 * seconds, 3)


def _request_json(row: dict[str, Any]) -> str:
    return orjson.dumps(row).decode()


def _request_console(row: dict[str, Any]) -> str:
    """One line for human eyes: what is unknown is left out."""
    head = f"{row['timestamp'][11:23]} {row['status']:<14} {row['endpoint']}"
    shown = ("class", "worker", "mode", "reason", "completion_tokens", "ttft_ms", "total_ms")
    rest = [f"{name}={row[name]}" for name in (*shown, "error") if row[name] is not None]
    return " ".join([head, *rest])
