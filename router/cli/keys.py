"""`specroute keys`: make, list and revoke API keys; running gateways notice within a second or two.

With a config that names a Redis the keys are kept there, sealed, for every gateway of the cluster;
else in the state folder's `keys.json`, for `specroute up`. Either way as hashes only.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from router.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from router.access import KeyEntry
    from router.access.key_store import RedisKeys

    T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the keys are kept: in Redis if `redis_url` is set, else in `file`."""

    file: Path
    redis_url: str | None = None
    cluster_secret: str = ""

    def list(self) -> tuple[KeyEntry, ...]:
        """Every key, by label."""
        from router.access.keys import read_keys

        if self.redis_url is not None:
            return self._in_redis(lambda store: store.list())
        return tuple(sorted(read_keys(self.file), key=lambda entry: entry.label))

    def add(self, entry: KeyEntry) -> bool:
        """Whether it was stored: labels are unique."""
        from router.access.keys import write_keys

        if self.redis_url is not None:
            return self._in_redis(lambda store: store.add(entry))
        known = self.list()
        if any(one.label == entry.label for one in known):
            return False
        write_keys(self.file, (*known, entry))
        return True

    def remove(self, label: str) -> bool:
        """Whether there was one of that label."""
        from router.access.keys import write_keys

        if self.redis_url is not None:
            return self._in_redis(lambda store: store.remove(label))
        known = self.list()
        kept = tuple(entry for entry in known if entry.label != label)
        if len(kept) < len(known):
            write_keys(self.file, kept)
        return len(kept) < len(known)

    def _in_redis(self, ask: Callable[[RedisKeys], Awaitable[T]]) -> T:
        from router.access.key_store import RedisKeys
        from router.in_redis import OUTAGE, connect

        async def run(url: str) -> T:
            store = RedisKeys(connect(url), self.cluster_secret)
            try:
                return await ask(store)
            finally:
                await store.aclose()

        try:
            return asyncio.run(run(self.redis_url or ""))
        except OUTAGE as error:
            raise click.ClickException(f"Redis does not answer: {error}") from error


def _place_options(command: Any) -> Any:
    for option in (
        click.option(
            "-c",
            "--config",
            "path",
            type=click.Path(path_type=Path, dir_okay=False),
            help="A config whose `redis.url` keeps the keys for every gateway.",
        ),
        click.option(
            "--state-dir",
            type=click.Path(path_type=Path, file_okay=False),
            default=Path(".specroute"),
            show_default=True,
            help="Where `up` keeps its state, and keys without a Redis.",
        ),
    ):
        command = option(command)
    return command


def _place(path: Path | None, state_dir: Path) -> Place:
    from router.cli.kept_secrets import kept_secret, private_folder
    from workers.config import ConfigError, load_config

    file = state_dir / "keys.json"
    if path is None:
        return Place(private_folder(state_dir) / file.name)
    try:
        config = load_config(path, os.environ)  # noqa: TID251 - handed to the config's own reader
    except ConfigError as error:
        for problem in error.problems:
            click.echo(problem, err=True)
        sys.exit(2)
    if config.redis.url == "embedded":
        return Place(private_folder(state_dir) / file.name)
    # A pod's file system may be read-only: the folder is only needed for a secret that it keeps.
    secret = config.auth.cluster_secret or kept_secret(private_folder(state_dir), "cluster-secret")
    return Place(file, config.redis.url, secret)


@click.group()
def keys() -> None:
    """Make, list and revoke API keys. Only their hashes are kept.

    \b
    Example:
      specroute keys create alice --requests-per-minute 60
      specroute keys create batch --priority -1 --model qwen3.8-27b
      specroute keys list
      specroute keys revoke alice
    """


@keys.command()
@click.argument("label")
@click.option("--model", "models", multiple=True, help="May use this model only; repeatable.")
@click.option("--priority", default=0, show_default=True, help="Higher goes first in the queue.")
@click.option("--requests-per-minute", type=click.FloatRange(min=0, min_open=True))
@click.option("--tokens-per-minute", type=click.FloatRange(min=0, min_open=True))
@click.option("--admin", is_flag=True, help="May use the ops API as well.")
@_place_options
@json_option
def create(
    label: str,
    models: tuple[str, ...],
    path: Path | None,
    state_dir: Path,
    as_json: bool,
    **rights: Any,
) -> None:
    """Make a key for LABEL and print it, this once.

    \b
    Example:
      specroute keys create alice --requests-per-minute 60 --tokens-per-minute 100000
    """
    from router.access import KeyEntry, hash_key
    from router.access.keys import new_key

    if not label.strip() or len(label) > 64 or not label.isprintable():
        raise click.UsageError("a label is 1 to 64 printable characters")
    key = new_key()
    entry = KeyEntry(label, hash_key(key), models=frozenset(models) if models else None, **rights)
    if not _place(path, state_dir).add(entry):
        raise click.ClickException(f"there is a key {label!r} already; revoke it first")
    if as_json:
        print_json({"label": label, "key": key})
    else:
        click.echo(key)
        click.echo(f"the key of {label!r}: it is not kept, only its hash is", err=True)


@keys.command("list")
@_place_options
@json_option
def list_keys(path: Path | None, state_dir: Path, as_json: bool) -> None:
    """List the keys that were made here; those of the config file are in the config file.

    \b
    Example:
      specroute keys list --json
    """
    from router.access.keys import row_of

    rows = [row_of(entry) for entry in _place(path, state_dir).list()]
    if as_json:
        print_json(rows)
        return
    columns = ["label", "admin", "models", "priority", "requests/min", "tokens/min"]
    print_table("keys", columns, [_cells(row) for row in rows])


def _cells(row: dict[str, Any]) -> list[Any]:
    """A key for people; an empty limit is none."""
    limits = [row["requests_per_minute"], row["tokens_per_minute"]]
    return [
        row["label"],
        row["admin"],
        "all" if row["models"] is None else row["models"],
        row["priority"],
        *(None if limit is None else f"{limit:.10g}" for limit in limits),
    ]


@keys.command()
@click.argument("label")
@_place_options
def revoke(label: str, path: Path | None, state_dir: Path) -> None:
    """Take the key of LABEL out of service.

    \b
    Example:
      specroute keys revoke alice
    """
    place = _place(path, state_dir)
    if not place.remove(label):
        raise click.ClickException(f"there is no key {label!r} here")
    click.echo(f"revoked {label}")
    if not place.list():
        click.echo(
            "no keys are left here: unless the config has some, a gateway on 127.0.0.1 is open to "
            "this machine, and any other serves nobody",
            err=True,
        )
