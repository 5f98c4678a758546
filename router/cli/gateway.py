"""`specroute gateway`: the gateway alone; its workers and its Redis are somebody else's."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from workers.options import config_option, state_dir_option

if TYPE_CHECKING:
    from pathlib import Path

    from router.access import KeyEntry
    from router.settings import Settings


@click.command()
@config_option("The YAML file that agents and gateways share.")
@state_dir_option("Secrets that the config leaves out, API keys, the decision log.")
def gateway(path: Path, state_dir: Path) -> None:
    """Serve the OpenAI surface and route to the workers that are published in Redis.

    \b
    Example:
      specroute gateway -c specroute.yaml
      SPECROUTE_SERVER__PORT=9000 specroute gateway -c specroute.yaml
    """
    from workers.config import ConfigError

    try:
        settings = with_first_key(with_stored_keys(read_settings(path, state_dir)))
        settings.check()
    except ConfigError as error:
        for problem in error.problems:
            click.echo(problem, err=True)
        sys.exit(2)
    except ValueError as error:
        click.echo(error, err=True)
        sys.exit(2)

    from router.app import run_gateway

    run_gateway(settings, lambda url: click.echo(f"serving {url}"))


def read_settings(path: Path, state_dir: Path) -> Settings:
    """The settings of a gateway of its own.

    Raises:
        ConfigError: the file has problems.
        ValueError: it names no Redis, or the key file is damaged.
    """
    from router.cli.kept_secrets import kept_secret, private_folder
    from router.settings import from_config
    from workers.config import load_config

    config = load_config(path, os.environ)  # noqa: TID251 - handed to the config's own reader
    if config.redis.url == "embedded":
        raise ValueError(
            f"{path}: a gateway of its own needs `redis.url`; "
            "`specroute up` brings an embedded Redis and everything else"
        )
    folder = private_folder(state_dir)
    return from_config(
        config,
        admin_token=kept_secret(folder, "admin-token", config.auth.admin_token),
        cluster_secret=kept_secret(folder, "cluster-secret", config.auth.cluster_secret),
        state_dir=folder,
    )


def with_stored_keys(settings: Settings) -> Settings:
    """`settings`, with the keys in Redis, where it answers: the gateway then looks by itself."""
    from router.access.key_store import RedisKeys
    from router.in_redis import OUTAGE, connect

    async def read(url: str) -> tuple[KeyEntry, ...]:
        store = RedisKeys(connect(url), settings.cluster_secret)
        try:
            return await store.list()
        except OUTAGE:
            return ()
        finally:
            await store.aclose()

    if settings.redis_url is None:
        return settings
    stored = asyncio.run(read(settings.redis_url))
    return replace(settings, made_keys=replace(settings.made_keys, store=stored))


def with_first_key(settings: Settings) -> Settings:
    """`settings`, with a first API key where strangers could reach a gateway that has none."""
    from router.access import KeyEntry, hash_key
    from router.access.key_watch import Made
    from router.access.keys import write_keys
    from router.cli.kept_secrets import kept_secret
    from router.settings import is_loopback

    folder = settings.state_dir
    if settings.all_keys or is_loopback(settings.host) or folder is None:
        return settings
    entry = KeyEntry("first", hash_key(kept_secret(folder, "api-key")))
    write_keys(folder / "keys.json", [entry])
    click.echo(f"no API keys are configured: the first one is in {folder / 'api-key'}", err=True)
    return replace(settings, made_keys=Made(file=(entry,)))
