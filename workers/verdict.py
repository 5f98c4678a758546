"""Why a worker ended, told from its exit status and its last words; pure."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """What kind of ending it was; decides whether trying again makes sense."""

    CRASHED = "crashed"
    PORT_TAKEN = "port_taken"  # try another
    OUT_OF_MEMORY = "out_of_memory"  # may pass, when others use less
    UNUSABLE = "unusable"  # it will end the same way until somebody changes something


@dataclass(frozen=True, slots=True)
class Verdict:
    """The cause and one sentence for the operator."""

    cause: Cause
    reason: str


# First match wins. Wordings of llama-server b11434, of the embedded engine and of loaders.
_SIGNS: tuple[tuple[str, Cause, str], ...] = (
    (r"couldn't bind|cannot listen on|address already in use", Cause.PORT_TAKEN, "port in use"),
    (
        r"out of memory|cudaMalloc failed|failed to allocate|bad_alloc|cannot allocate memory",
        Cause.OUT_OF_MEMORY,
        "out of memory",
    ),
    (
        r"invalid argument: |unknown argument|unknown flag |error while handling argument|"
        r"error: --?\w|argument has been removed",
        Cause.UNUSABLE,
        "bad flag",
    ),
    (
        r"no such file|failed to open GGUF|gguf_init_from_file|invalid magic|"
        r"failed to load model|error loading model|failed to load draft model",
        Cause.UNUSABLE,
        "model file cannot be loaded",
    ),
    (r"No such file or directory|Permission denied|Exec format error", Cause.UNUSABLE, "no start"),
)
_NOISE = re.compile(r"^[\d.]+\s+([IWED])\s+")  # llama.cpp's time stamp and level
_WORST = re.compile(r"error|fail|fatal|abort|assert|cannot|couldn't|unknown|invalid|\bE\b", re.I)
_LONGEST = 300  # characters of a quoted line


def judge(returncode: int, said: tuple[str, ...], *, served: bool) -> Verdict:
    """What an exit means.

    Args:
        returncode: exit status; negative is the signal that ended it.
        said: the last lines of its log, oldest first.
        served: whether it had been ready; its words are then about requests, not about its start,
            and only a want of memory is read from them.
    """
    for pattern, cause, summary in _SIGNS:
        if served and cause is not Cause.OUT_OF_MEMORY:
            continue
        line = next((line for line in said if re.search(pattern, line, re.IGNORECASE)), None)
        if line is not None:
            return Verdict(cause, f"{summary}: {_quoted(line)}")
    ending = _ending(returncode)
    if returncode == -signal.SIGKILL:
        hint = "killed from outside, or by the kernel for want of memory"
        return Verdict(Cause.CRASHED, f"{ending} ({hint})")
    worst = [line for line in said if _WORST.search(line)] or list(said)
    quote = f"; its log ends: {_quoted(worst[-1])}" if worst else ""
    return Verdict(Cause.CRASHED, ending + quote)


def _ending(returncode: int) -> str:
    if returncode >= 0:
        return f"ended with exit code {returncode}"
    try:
        return f"ended by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"ended by signal {-returncode}"


def _quoted(line: str) -> str:
    text = " ".join(_NOISE.sub("", line.strip()).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
