"""JSON lines of decisions and their outcomes, for replay and training; never any content.

One object a line, `v` is the version of the schema. Times in seconds, unknown is null. The file is
rotated by size: `decisions.jsonl` is the newest, `.1` the one before, up to `keep`.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import orjson
import structlog

from workers.line_thread import LineThread

if TYPE_CHECKING:
    from io import BufferedWriter
    from pathlib import Path

    from classifier import Classification
    from router.core import Candidate, Outcome, RoutingDecision

log = structlog.get_logger(__name__)

SCHEMA: Final = 1
MAX_BYTES: Final = 64 * 1024 * 1024
KEEP: Final = 5


class DecisionLog:
    """A sink that appends, from a thread; gives up with one warning when the disk does."""

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES, keep: int = KEEP) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._file: BufferedWriter | None = None
        self._size = 0
        self.lost = 0  # lines that could not be written
        self._runner: LineThread[bytes] = LineThread("decision-log", self._write_batch)

    def record(self, outcome: Outcome) -> None:
        """Queue one line."""
        self._runner.write(orjson.dumps(row(outcome), option=orjson.OPT_APPEND_NEWLINE))

    def close(self) -> None:
        """Write what waits and close."""
        self._runner.close()
        self._close_file()

    def _write_batch(self, batch: list[bytes]) -> None:
        written = 0
        try:
            while written < len(batch):
                count = self._fitting(batch, written)
                # One write for all: each gives up the interpreter's lock and must win it back.
                self._append(b"".join(batch[written : written + count]))
                written += count
        except OSError as error:
            if not self.lost:
                log.warning("decision_log_failed", path=str(self.path), reason=str(error))
            self.lost += len(batch) - written

    def _fitting(self, batch: list[bytes], begin: int) -> int:
        """How many lines from `begin` on go into the current file, or else into a new one."""
        if self._file is None:
            self._open()
        count, size = 0, self._size
        for line in batch[begin:]:
            size += len(line)
            if size > self._max_bytes:
                break
            count += 1
        if count:
            return count
        self._rotate()
        self._open()
        return 1

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("ab")
        self._size = self.path.stat().st_size

    def _append(self, lines: bytes) -> None:
        if self._file is not None:
            self._file.write(lines)
            self._file.flush()  # what stays in our memory is lost with the process
            self._size += len(lines)

    def _rotate(self) -> None:
        self._close_file()
        for number in range(self._keep - 1, 0, -1):
            older = self._numbered(number)
            if older.exists():
                older.replace(self._numbered(number + 1))
        self.path.replace(self._numbered(1))

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


def row(outcome: Outcome) -> dict[str, Any]:
    """The line of one outcome as plain values; see the module's docstring."""
    what, decision = outcome.classification, outcome.decision
    return {
        "v": SCHEMA,
        "at": outcome.wall_time,
        "id": outcome.request_id,
        "endpoint": outcome.endpoint,
        "model": outcome.model,
        "conversation": _blurred(outcome.conversation),
        "fingerprint": outcome.fingerprint,
        "request": _request(outcome, what),
        "decision": None if decision is None else _decision(decision),
        "outcome": _outcome(outcome),
    }


def _request(outcome: Outcome, what: Classification | None) -> dict[str, Any]:
    sizes: dict[str, Any] = {
        "prompt_chars": outcome.prompt_chars,
        "prompt_tokens": outcome.prompt_tokens,
        "context_tokens": outcome.context_tokens,
        "image": outcome.has_image,
        "grammar": outcome.has_grammar,
        "stream": outcome.stream,
    }
    if what is not None:
        sizes["class"] = str(what.workload_class)
        sizes["kind"] = what.kind
        shares = what.probabilities.items()
        # Not `round(p, 5)`, which makes a decimal text of the number and reads it again.
        sizes["probabilities"] = {name: round(1e5 * p) / 1e5 for name, p in shares}
        sizes["thinking"] = what.thinking
        sizes["language"] = what.language
        sizes["expected_output_tokens"] = what.expected_output_tokens
        sizes["output_tokens_interval"] = list(what.output_tokens_interval)
        sizes["source"] = what.source
        sizes["classifier"] = what.model_version
    return sizes


def _decision(decision: RoutingDecision) -> dict[str, Any]:
    return {
        "policy": decision.policy,
        "worker": decision.worker,
        "mode": decision.mode,
        "reason": str(decision.reason),
        "propensity": decision.propensity,
        "explored": decision.explored,
        "expected_tokens": decision.expected_tokens,
        "candidates": [_candidate(candidate) for candidate in decision.candidates],
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    e = candidate.estimate
    if e is None:
        return {
            "worker": candidate.worker,
            "mode": candidate.mode,
            "excluded_because": candidate.excluded_because,
        }
    return {
        "worker": candidate.worker,
        "mode": candidate.mode,
        "queue_s": e.queue_s,
        "prefill_s": e.prefill_s,
        "decode_s": e.decode_s,
        "switch_s": e.switch_s,
        "swap_s": e.swap_s,
        "externality_s": e.externality_s,
        "interval_s": list(e.interval_s),
        "decode_tps": e.decode_tokens_per_second,
        "samples": e.samples,
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    t = outcome.timings
    return {
        "status": str(outcome.status),
        "http_status": outcome.http_status,
        "worker": outcome.worker,
        "worker_key": outcome.worker_key,
        "mode": outcome.mode,
        "occupancy": outcome.occupancy,
        "batch": outcome.batch,
        "host": outcome.host,
        "beside": outcome.beside,
        "queue_s": outcome.queue_s,
        "overhead_s": outcome.overhead_s,
        "ttft_s": outcome.ttft_s,
        "total_s": outcome.total_s,
        "tpot_s": outcome.tpot_s,
        "completion_tokens": outcome.completion_tokens,
        "finish_reason": outcome.finish_reason,
        "retried": outcome.retried,
        "error_code": outcome.error_code,
        "cache_n": t.cache_n,
        "prompt_n": t.prompt_n,
        "prompt_ms": t.prompt_ms,
        "predicted_n": t.predicted_n,
        "predicted_ms": t.predicted_ms,
        "draft_n": t.draft_n,
        "draft_n_accepted": t.draft_n_accepted,
    }


def _blurred(conversation: str) -> str:
    """Session ids may be a client's own words: only their digest is kept."""
    return blake2b(conversation.encode(), digest_size=8).hexdigest() if conversation else ""
