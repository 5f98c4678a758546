"""Log lines that never make the event loop wait, for agents and gateways: JSON or console.

Lines go through a bounded queue to a thread of their own, because a terminal or a pipe that nobody
reads blocks whoever writes to it. When the queue is full lines are dropped and counted.
"""

from __future__ import annotations

import logging
import sys
from typing import Any, Final, TextIO

import orjson
import structlog

from workers.line_thread import CAPACITY, LineThread

LEVELS: Final = ("debug", "info", "warning", "error")


class LineWriter:
    """Writes lines to one stream from a thread; see `LineThread`."""

    def __init__(self, stream: TextIO, *, capacity: int = CAPACITY) -> None:
        self._stream = stream
        self._lost = 0
        self._runner: LineThread[str] = LineThread(
            "log-writer", self._write_batch, capacity=capacity
        )
        self.write = self._runner.write

    @property
    def dropped(self) -> int:
        """Lines that nobody could read."""
        return self._runner.dropped + self._lost

    def close(self, patience_s: float = 2.0) -> None:
        """Write what waits, as far as that is possible in time."""
        self._runner.close(patience_s)

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
