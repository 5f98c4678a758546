"""What `sweep --json` and `bench --json` print, read back into frozen values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_MOST: Final = 1e9  # of anything: what is larger was not measured
_PRINTED: Final = ConfigDict(allow_inf_nan=False)

Text = Annotated[str, Field(strict=True, min_length=1)]
Load = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
Tokens = Annotated[int, Field(strict=True, ge=0, le=10_000_000)]
NotNegative = Annotated[float, Field(strict=True, ge=0, le=_MOST)]
Endless = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=True)]
"""The end of an interval: of one sample it is not known, and infinity, which JSON has as null."""


class BadReport(ValueError):
    """No report of measurements; says where and why."""


@dataclass(frozen=True, slots=True, config=_PRINTED)
class Span:
    """Tokens per second and their 95 % interval, where more than one answer was measured."""

    mean: Annotated[float, Field(strict=True, ge=1e-6, le=_MOST)]
    lower: Endless | None = None
    upper: Endless | None = None

    def __post_init__(self) -> None:
        if (self.lower or 0.0) > self.mean or self.mean > (self.upper or self.mean):
            raise ValueError("the mean is not within its interval")


@dataclass(frozen=True, slots=True, config=_PRINTED)
class FirstToken:
    """Milliseconds to the first token."""

    p50: NotNegative | None = None


@dataclass(frozen=True, slots=True, config=_PRINTED, kw_only=True)
class Cell:
    """One row: a setting (`sweep`) or target (`bench`) and a class."""

    workload_class: Annotated[Text, Field(validation_alias="class")]
    decode_tps: Span | None
    setting: Text | None = None
    target: Text | None = None
    mode: Text | None = None
    concurrency: Load | None = None
    prompt_tokens: Tokens | None = None
    ttft_ms: FirstToken = Field(default_factory=FirstToken)
    n: Load = 1

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("neither a setting nor a target")

    @property
    def name(self) -> str:
        """What was measured."""
        return self.setting or self.target or ""


@dataclass(frozen=True, slots=True, config=_PRINTED)
class Part:
    """Rows of one load, where `bench` measured several."""

    rows: tuple[Cell, ...]
    concurrency: Load | None = None


@dataclass(frozen=True, slots=True, config=_PRINTED)
class Size:
    """A setting and the memory that it needs."""

    setting: Text
    memory_gb: NotNegative | None = None


@dataclass(frozen=True, slots=True, config=_PRINTED)
class Report(Part):
    """Everything that is read of one file."""

    by_concurrency: tuple[Part, ...] = ()
    settings: tuple[Size, ...] = ()


_REPORTS: Final = TypeAdapter(Report)


def parse_report(data: Mapping[str, Any]) -> Report:
    """The report in a JSON document.

    Raises:
        BadReport: it is none.
    """
    return _checked(_REPORTS.validate_python, data)


def read_report(path: Path) -> Report:
    """The report in a file.

    Raises:
        BadReport: it is none.
        OSError: the file cannot be read.
    """
    try:
        return _checked(_REPORTS.validate_json, path.read_bytes())
    except BadReport as error:
        what = "no output of `sweep --json` or `bench --json`"
        raise BadReport(f"{path} is {what}: {error}") from error


def _checked(read: Callable[[Any], Report], data: Any) -> Report:
    try:
        return read(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise BadReport(f"{where}: {first['msg']}" if where else first["msg"]) from error
