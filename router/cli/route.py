"""`specroute route`: where a request would go and why, nothing generated."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import click
import orjson

from router.cli.client import find_gateway, gateway_options
from router.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("file", type=click.File("rb"), default="-")
@gateway_options
@json_option
def route(
    file: IO[bytes], url: str | None, token: str | None, state_dir: Path, as_json: bool
) -> None:
    """Print the routing decision for a chat body in FILE, or - for standard input.

    \b
    Example:
      echo '{"messages": [{"role": "user", "content": "Count to 20"}]}' | specroute route
    """
    try:
        body = orjson.loads(file.read())
    except orjson.JSONDecodeError as error:
        name = getattr(file, "name", "the input")
        raise click.UsageError(f"{name} is not JSON: {error}") from error
    gateway = find_gateway(url, token, state_dir)
    decision = gateway.call("POST", "/route", body, holds="candidates")
    if as_json:
        print_json(decision)
    else:
        _print_decision(decision)


def _print_decision(decision: dict[str, Any]) -> None:
    odds = ", ".join(f"{name} {p:.2f}" for name, p in decision["probabilities"].items())
    click.echo(f"class   {decision['class']} / {decision['kind']}   ({odds})")
    click.echo(f"chosen  {decision['chosen']}   ({decision['reason']})")
    rows = [_row(candidate) for candidate in decision["candidates"]]
    columns = ["worker", "mode", "predicted ms", "90 % interval", "queue", "prefill", "decode"]
    print_table("candidates", [*columns, "excluded because"], rows)


def _row(candidate: dict[str, Any]) -> list[Any]:
    parts = candidate["parts"] or {}
    low, high = candidate["interval_ms"] or (None, None)
    times = [parts.get(name) for name in ("queue", "prefill", "decode")]
    return [
        candidate["worker"],
        candidate["mode"],
        _ms(candidate["predicted_ms"]),
        "" if low is None else f"{_ms(low)} to {_ms(high)}",
        *[_ms(t) for t in times],
        candidate["excluded_because"] or "",
    ]


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"
