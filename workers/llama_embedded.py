"""llama-server's flags on the server inside xllamacpp: the engine when no binary is installed.

`python -m workers.llama_embedded -m model.gguf --port 9001 ...` serves until SIGTERM. It knows a
subset of the flags (`--help` lists them) and refuses the rest, so that none is silently without
effect. Exit 1 with one line on stderr: unknown flag, missing file, port in use, llama.cpp's no.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.launch import orphaned
from workers.llama_options import BY_NAME, Option, finish, usage, version

if TYPE_CHECKING:
    from collections.abc import Sequence

_TEARDOWN_S = 3  # seconds for running requests to let go before the kernel ends us
_LOOK_S = 1.0  # how often an orphan notices where the kernel does not tell


class UsageError(ValueError):
    """A command line that cannot be served; the message is for the operator."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One flag as given."""

    option: Option
    flag: str
    value: str


def parse(argv: Sequence[str]) -> list[Setting]:
    """Flags in their order; later ones win, as in llama-server.

    Raises:
        UsageError: a flag that is unknown, or lacks its value.
    """
    words = iter(argv)
    settings = []
    for flag in words:
        option = BY_NAME.get(flag)
        if option is None:
            raise UsageError(
                f"unknown flag {flag}: the embedded engine takes a subset of llama-server's flags "
                "(see --help); remove it, or set `binary` to a llama-server that knows it"
            )
        value = next(words, None) if option.takes_value else ""
        if value is None:
            raise UsageError(f"{flag} needs a value")
        settings.append(Setting(option, flag, value))
    return settings


def configure(settings: Sequence[Setting], params: Any) -> None:
    """Write the settings into llama.cpp's CommonParams.

    Raises:
        UsageError: a value that the flag cannot take.
    """
    for setting in settings:
        try:
            setting.option.apply(params, setting.flag, setting.value)
        except (ValueError, KeyError, OSError, OverflowError) as error:
            problem = error.strerror if isinstance(error, OSError) else error
            raise UsageError(f"{setting.flag} {setting.value}: {problem}") from error
    finish(params, {name for setting in settings for name in setting.option.names})
    _check_files(params)
    _check_port(params.hostnames[0], params.port)


def main(argv: Sequence[str]) -> int:
    """Serve until told to stop; the exit status."""
    if {"-h", "--help", "--usage"} & set(argv):
        return _print(usage())
    if "--version" in argv:
        return _print(version())
    try:
        serve(argv)
    except UsageError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def serve(argv: Sequence[str]) -> None:
    """Load the model, answer requests, return after SIGTERM or SIGINT.

    Raises:
        UsageError: the command line, or llama.cpp's refusal of it.
    """
    settings = parse(argv)
    parent = os.getppid()  # before loading, which takes time enough for it to die
    import xllamacpp  # 100 MB: only after a command line that makes sense

    params = xllamacpp.CommonParams()
    configure(settings, params)
    try:
        # Holds the interpreter until the model is loaded; a signal meanwhile simply ends us.
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        raise UsageError(f"llama.cpp could not start, the lines above say why ({error})") from error
    _wait_for_stop(parent)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_TEARDOWN_S)
    del server  # waits for its threads


def _wait_for_stop(parent: int) -> None:
    """Sleep until SIGTERM, SIGINT, or the parent's death.

    llama.cpp's threads may be the ones that receive the signal, so the main thread cannot rely on
    being interrupted: it waits for the byte that the C handler writes.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    while not select.select([reader], [], [], _LOOK_S)[0]:
        if orphaned(parent):
            return


def _check_files(params: Any) -> None:
    if not params.model.path:
        raise UsageError("-m is missing: which model?")
    for path in (params.model.path, params.speculative.draft.mparams.path, params.mmproj.path):
        if path and not Path(path).is_file():
            raise UsageError(f"no such file: {path}")


def _check_port(host: str, port: int) -> None:
    """Say it before the model is loaded, and in words."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from error


def _print(text: str) -> int:
    sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
