"""What a llama-server binary can do, read from its own --help and --version.

`parse` is pure; `read` runs the two short-lived commands (process.py runs what stays).
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from workers.modes import BuildDialect
    from workers.spec import WorkerSpec

_FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w.-]*")
_NAMES_END = re.compile(r"(?<![,\s])\s{2,}")  # names are padded after commas, then the explanation
_REMOVED = "has been removed"
_SPEC_TYPES = re.compile(r"--spec-type\s+\[?([\w|,-]+)")
# In the order of trust: new builds print a version of their own before the build's number.
_BUILDS = (r"\bbuild[:\s]+(\d+)", r"version:\s*(\d+)\s*\(", r"\bb(\d{3,})\b")
_PATCH_MARK = "--spec-draft-ctx"
_TIMEOUT_S = 60.0  # a CUDA build may look for devices before it prints its help
# DFlash2 came with b10658; only a known lower number is refused outright (contract, section 2).
DFLASH2_BUILD = 10658


class CapabilityError(RuntimeError):
    """The binary could not be asked what it can do."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Flags and speculation types of one build. An empty set of types means it does not say."""

    flags: frozenset[str]
    spec_types: frozenset[str]
    version: str = ""

    @property
    def build(self) -> int | None:
        """The build number; None when the binary does not tell (many print 0)."""
        found = (re.search(pattern, self.version) for pattern in _BUILDS)
        numbers = (int(match.group(1)) for match in found if match)
        return next(numbers, 0) or None

    @property
    def dialect(self) -> BuildDialect:
        """How this build reads p_min."""
        return "patched" if _PATCH_MARK in self.flags else "stock"

    @property
    def label(self) -> str:
        """`b11549` where the build tells its number, else what --version says."""
        return self.version if self.build is None else f"b{self.build}"

    def unknown(self, flags: Iterable[str]) -> tuple[str, ...]:
        """Those flags that this build does not list."""
        return tuple(flag for flag in flags if flag not in self.flags)


def dialect_of(spec: WorkerSpec, capabilities: Capabilities | None) -> tuple[BuildDialect, str]:
    """The dialect to render for a worker, and why."""
    if spec.dialect != "auto":
        return spec.dialect, "set in the configuration"
    if capabilities is None:
        return "stock", "the binary was not asked"
    has = "lists" if capabilities.dialect == "patched" else "does not list"
    return capabilities.dialect, f"the binary's --help {has} {_PATCH_MARK}"


def parse(help_text: str, version_text: str = "") -> Capabilities:
    """Capabilities from what --help and --version printed."""
    blocks = [block for block in _blocks(help_text) if _REMOVED not in block]
    flags = {name for block in blocks for name in _names(block)}
    types = _SPEC_TYPES.search(help_text)
    names = re.split(r"[|,]", types.group(1)) if types else []
    version = " ".join(version_text.split())
    return Capabilities(frozenset(flags), frozenset(filter(None, names)), version)


def _blocks(help_text: str) -> list[str]:
    """One text per option: the line that names it, and its indented explanation."""
    blocks: list[str] = []
    for line in help_text.splitlines():
        if line.startswith("-"):
            blocks.append(line)
        elif blocks:
            blocks[-1] += "\n" + line
    return blocks


def _names(block: str) -> list[str]:
    first = block.partition("\n")[0]
    return _FLAG.findall(_NAMES_END.split(first, maxsplit=1)[0])


def read(command: tuple[str, ...], timeout_s: float = _TIMEOUT_S) -> Capabilities:
    """Ask a binary.

    Args:
        command: the program and what must precede its flags.
        timeout_s: seconds that each of the two commands may take.

    Raises:
        CapabilityError: it cannot be run, or prints no flags.
    """
    found = parse(_output(command, "--help", timeout_s), _output(command, "--version", timeout_s))
    if not found.flags:
        raise CapabilityError(f"{command[0]} --help lists no flags: is it a llama-server?")
    return found


def _output(command: tuple[str, ...], flag: str, timeout_s: float) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the operator's own binary
            [*command, flag],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CapabilityError(f"{command[0]} {flag} does not run: {error}") from error
    return done.stdout.decode(errors="replace")
