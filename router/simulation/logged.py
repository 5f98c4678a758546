"""Decision logs read back: each line that is a complete decision, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the fields' types
from dataclasses import dataclass as plain
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import orjson
from pydantic import ConfigDict, Discriminator, Field, Tag, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from router.core import Status
from router.telemetry.decision_log import SCHEMA
from workers.timings import MOST_TOKENS, Timings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_AS_LOGGED: Final = ConfigDict(strict=True, allow_inf_nan=False)
_LEAST_CHANCE: Final = 1e-9  # one over it still has a square

Seconds = Annotated[float, Field(ge=0, le=1e9)]
Tokens = Annotated[int, Field(ge=0, le=MOST_TOKENS)]
Size = Annotated[float, Field(gt=0, le=MOST_TOKENS)]
Share = Annotated[float, Field(ge=0, le=1.0001)]  # sums of shares may end beside 1
Few = Annotated[float, Field(ge=0, le=1e6)]


@dataclass(frozen=True, slots=True, config=_AS_LOGGED)
class Sizes:
    """A request that was not classified."""

    prompt_chars: Annotated[int, Field(ge=0, le=10**12)]
    image: bool
    prompt_tokens: Tokens | None = None
    context_tokens: Tokens | None = None


@dataclass(frozen=True, slots=True, config=_AS_LOGGED, kw_only=True)
class Classified(Sizes):
    """A request and what it was taken for."""

    workload_class: Annotated[str, Field(validation_alias="class")]
    kind: str
    probabilities: Mapping[str, Share]
    thinking: bool
    language: str
    expected_output_tokens: Size
    output_tokens_interval: tuple[Size, Size]
    source: str
    classifier: str


@dataclass(frozen=True, slots=True, config=_AS_LOGGED)
class LoggedCandidate:
    """One worker as considered; an interval where it was priced. JSON has no infinity: an end that
    was endless is null in the log."""

    worker: str
    mode: str
    excluded_because: str | None = None
    interval_s: tuple[Seconds | None, Seconds | None] | None = None


@dataclass(frozen=True, slots=True, config=_AS_LOGGED)
class LoggedDecision:
    """Who was chosen among whom; `propensity` is the chance that this one had."""

    worker: str
    mode: str
    propensity: Share
    candidates: tuple[LoggedCandidate, ...]

    def __post_init__(self) -> None:
        if 0 < self.propensity < _LEAST_CHANCE:
            raise ValueError("no policy explores as rarely as that")


@dataclass(frozen=True, slots=True, config=_AS_LOGGED)
class LoggedOutcome:
    """What became of it. Logs of older versions have no `batch`, `host` and `beside`; the figures
    of the engine are read as those of a live answer are."""

    status: Status
    worker: str
    mode: str
    occupancy: Tokens
    total_s: Seconds
    completion_tokens: Tokens | None
    finish_reason: str
    retried: bool
    queue_s: Seconds | None = None
    batch: Few = 0.0
    host: str = ""
    beside: Few = 0.0
    cache_n: Any = None
    prompt_n: Any = None
    prompt_ms: Any = None
    predicted_n: Any = None
    predicted_ms: Any = None
    draft_n: Any = None
    draft_n_accepted: Any = None

    def __post_init__(self) -> None:
        if self.status is Status.OK and not self.total_s:
            raise ValueError("an answer takes its time")

    @property
    def timings(self) -> Timings:
        """As the worker told them, without what cannot be."""
        return Timings.from_payload({name: getattr(self, name) for name in Timings.__slots__})


def _which(request: Any) -> str:
    return "classified" if isinstance(request, dict) and "class" in request else "sizes"


@dataclass(frozen=True, slots=True, config=_AS_LOGGED)
class Logged:
    """One line of a decision log."""

    v: Literal[1]
    at: Annotated[float, Field(ge=0, le=1e11)]
    id: str
    endpoint: str
    model: str
    conversation: str
    fingerprint: str
    request: Annotated[
        Annotated[Classified, Tag("classified")] | Annotated[Sizes, Tag("sizes")],
        Discriminator(_which),
    ]
    decision: LoggedDecision | None
    outcome: LoggedOutcome


_LINES: Final = TypeAdapter(Logged)


@plain(slots=True)
class Tally:
    """How many lines were read, and how many of them were no complete decision."""

    lines: int = 0
    left_out: int = 0


def read_line(line: bytes) -> Logged | None:
    """The decision of a line; None where it is no complete one, such as a line cut by a crash.

    Raises:
        ValueError: a schema of another version.
    """
    try:
        return _LINES.validate_json(line)
    except ValidationError:
        other = _version(line)
        if other != SCHEMA:
            raise ValueError(f"schema {other}, this reads {SCHEMA}") from None
        return None


def _version(line: bytes) -> Any:
    """The schema that a line says it is of; ours, where it is no line of a decision log."""
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return SCHEMA
    if not isinstance(row, dict) or not isinstance(row.get("outcome"), dict):
        return SCHEMA
    return row.get("v")


def read_log(paths: Iterable[Path], tally: Tally | None = None) -> Iterator[Logged]:
    """The decisions of logs, oldest file first; what was left out is counted in `tally`.

    Raises:
        ValueError: a schema of another version.
        OSError: a file cannot be read.
    """
    tally = tally or Tally()
    for path in paths:
        with path.open("rb") as file:
            for line in filter(bytes.strip, file):
                tally.lines += 1
                try:
                    row = read_line(line)
                except ValueError as error:
                    raise ValueError(f"{path}: {error}") from error
                if row is None:
                    tally.left_out += 1
                else:
                    yield row


def read_decisions(
    paths: Iterable[Path], worker: str = "", tally: Tally | None = None
) -> Iterator[Logged]:
    """As `read_log`, for files that somebody named: each must be a log, and know that worker.

    Raises:
        ValueError: a file has no logged decision, or no candidate was ever called `worker`.
        OSError: a file cannot be read.
    """
    seen: set[str] = set()
    for path in paths:
        count = 0
        for count, row in enumerate(read_log([path], tally), start=1):  # noqa: B007 - how many
            seen.update(c.worker for c in (row.decision.candidates if row.decision else ()))
            yield row
        if not count:
            raise ValueError(f"{path} has no logged decisions: give a gateway's decisions.jsonl")
    if worker and worker not in seen:
        there = ", ".join(sorted(seen)) or "none"
        raise ValueError(f"the log knows no worker {worker!r}; it has: {there}")
