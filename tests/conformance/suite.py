"""What a check is, the catalogue of all of them, and how one is run."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tests.conformance.target import Target

Refused = TypeVar("Refused", bound=Exception)
CATALOGUE: dict[str, Check] = {}


@dataclass(frozen=True, slots=True)
class Check:
    """One named statement about a server. `run` raises when it does not hold.

    What `run` returns, if anything, is an observation: the same on the gateway and on the raw
    server, unless `tests.conformance.differences` says why not.
    """

    name: str
    client: str
    says: str
    run: Callable[[Target], Any]
    gateway_only: bool = False
    needs_workers: bool = False  # reads the workers' /slots


@dataclass(frozen=True, slots=True)
class Result:
    """How one check went: "pass", "fail" or "not run", why, and how long it took in seconds."""

    check: Check
    outcome: str
    detail: str = ""
    seconds: float = 0.0
    observed: Any = None

    def as_row(self) -> dict[str, Any]:
        """The row of `--json`."""
        return {
            "name": self.check.name,
            "client": self.check.client,
            "says": self.check.says,
            "outcome": self.outcome,
            "detail": self.detail,
            "seconds": round(self.seconds, 3),
        }


def check(
    client: str, *, gateway_only: bool = False, needs_workers: bool = False
) -> Callable[[Callable[[Target], Any]], Callable[[Target], Any]]:
    """Put a function into the catalogue; its docstring is what the check says."""

    def register(run: Callable[[Target], Any]) -> Callable[[Target], Any]:
        says = (run.__doc__ or "").strip()
        assert says, f"{run.__name__} does not say what it checks"
        add(Check(run.__name__, client, says, run, gateway_only, needs_workers))
        return run

    return register


def add(one: Check) -> None:
    """Put a check into the catalogue under a name of its own."""
    assert one.name not in CATALOGUE, f"there are two checks named {one.name}"
    CATALOGUE[one.name] = one


def run_check(one: Check, target: Target) -> Result:
    """Run one check and tell how it went; nothing is raised."""
    why = target.cannot_run(one)
    if why:
        return Result(one, "not run", why)
    began = time.monotonic()
    try:
        observed = one.run(target)
    except Exception as error:  # noqa: BLE001 - whatever a client raises is the finding
        return Result(one, "fail", explain(error), time.monotonic() - began)
    return Result(one, "pass", _note(observed), time.monotonic() - began, observed)


def explain(error: Exception) -> str:
    """One line: where and what."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "conformance" in f.filename]
    where = f"{_short(frames[-1].filename)}:{frames[-1].lineno}: " if frames else ""
    return f"{where}{type(error).__name__}: {error}"[:600].replace("\n", " ")


def _short(filename: str | Path) -> str:
    return str(filename).rpartition("/")[2]


def _note(observed: Any) -> str:
    """Measurements are shown; answers that only serve the comparison are not."""
    return observed.text if isinstance(observed, Measured) else ""


@dataclass(frozen=True, slots=True)
class Measured:
    """An observation that is a measurement: reported, not compared."""

    text: str


def raised(kind: type[Refused], ask: Callable[[], Any]) -> Refused:
    """The exception of that kind that asking raises."""
    try:
        ask()
    except kind as error:
        return error
    raise AssertionError(f"it was answered where {kind.__name__} was due")


def selected(pattern: str, checks: Iterable[Check]) -> list[Check]:
    """Those whose name or client holds the pattern."""
    return [one for one in checks if pattern in one.name or pattern in one.client]
