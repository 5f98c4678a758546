"""Libraries that only some commands need: said before any work where one is not installed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_EXTRA_WITH: Final[Mapping[str, str]] = {
    "matplotlib": "simulate",
    "simpy": "simulate",
    "sklearn": "classifier",
}
"""Module -> the smallest extra of pyproject.toml that has it; `make up` installs none of these."""

_CALLED: Final[Mapping[str, str]] = {"sklearn": "scikit-learn"}


class MissingExtra(click.ClickException):
    """A library is not installed; the sentence says how to install it."""

    exit_code = 2


def need(module: str) -> None:
    """See that an optional library is there.

    Raises:
        MissingExtra: it is not.
    """
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        extra = _EXTRA_WITH[module]
        raise MissingExtra(
            f"this needs {_CALLED.get(module, module)}: pip install 'specroute[{extra}]' "
            f"(in a checkout: .venv/bin/pip install '.[{extra}]')"
        ) from error


def needs(module: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback for an option that cannot be had without `module`."""

    def callback(_context: click.Context, _option: click.Parameter, value: Any) -> Any:
        if value:
            need(module)
        return value

    return callback
