"""`specroute up`: Redis, workers and gateway in the foreground; Ctrl-C ends them all."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli.client import URL_FILE
from router.cli.embedded_redis import RedisMissing
from router.cli.folder_lock import held_folder
from router.cli.loading import LoadingDisplay
from router.cli.ports import require_free_port
from router.cli.stack import Stack, StackFailed, StackOptions, running_stack
from router.cli.tiny_config import write_tiny_config
from workers.config import ConfigError, check_servable, load_config
from workers.options import state_dir_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workers.config import Config


@click.command()
@click.option("-c", "--config", "path", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--host", help="Address to serve on; the config's, else 127.0.0.1.")
@click.option("--port", type=click.IntRange(1, 65535), help="The config's, else 8080.")
@state_dir_option("Logs, Redis data, learned state, decision log, secrets.")
@click.option("--no-dashboard", is_flag=True, help="Do not start the dashboard.")
def up(
    path: Path | None, host: str | None, port: int | None, state_dir: Path, no_dashboard: bool
) -> None:
    """Serve everything from one command: embedded Redis, managed workers, gateway.

    Without a config file, three real llama.cpp workers serve the bundled tiny model on the CPU.

    \b
    Example:
      specroute up
      specroute up -c specroute.yaml --port 9000
    """
    try:
        with held_folder(state_dir) as folder:
            config_path = path or write_tiny_config(folder)
            options = _options(config_path, host, port, folder, dashboard=not no_dashboard)
            require_free_port(options.host, options.port)
            asyncio.run(_serve(options))
    except ConfigError as error:
        for problem in error.problems:
            click.echo(problem, err=True)
        sys.exit(2)
    except (StackFailed, RedisMissing, ImportError) as error:
        raise click.ClickException(str(error)) from error


def _options(
    path: Path, host: str | None, port: int | None, state_dir: Path, *, dashboard: bool
) -> StackOptions:
    config = load_config(path, os.environ)  # noqa: TID251 - handed to the config's own reader
    if problems := check_servable(config):
        raise ConfigError(problems)
    return StackOptions(
        config=path,
        state_dir=state_dir,
        host=host or config.server.host,
        port=port or config.server.port,
        workers=tuple(spec.name for spec in config.worker_specs()),
        model=config.models[0].name if config.models else "",
        dashboard_port=_dashboard_port(config) if dashboard else None,
        redis_url=None if config.redis.url == "embedded" else config.redis.url,
        admin_token=_secret(config, "admin_token"),
        cluster_secret=_secret(config, "cluster_secret"),
    )


def _dashboard_port(config: Config) -> int | None:
    """The configured port, or a free one when something else listens there."""
    section = config.dashboard
    if not section.enabled:
        return None
    for port in (section.port, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    return None


def _secret(config: Config, name: str) -> str | None:
    value = getattr(config.auth, name)
    return str(value) if value else None


async def _serve(options: StackOptions) -> None:
    """Start, announce, and go on until a signal comes or a part ends."""
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, _cancel, asyncio.current_task())
    if not options.workers:
        click.echo("the config has no workers: waiting for those of other hosts", err=True)
    with contextlib.suppress(asyncio.CancelledError), LoadingDisplay(options.workers) as display:
        async with running_stack(options, display.show) as stack:
            display.close()
            with _address_left(stack):
                _announce(stack)
                await stack.watch()


@contextlib.contextmanager
def _address_left(stack: Stack) -> Iterator[None]:
    """The address in the state folder while it holds, for the commands that ask this gateway."""
    path = stack.options.state_dir / URL_FILE
    path.write_text(stack.url + "\n")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _cancel(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()


def _announce(stack: Stack) -> None:
    """The URL for scripts on one line of stdout, and what a person wants next."""
    url, options = stack.url, stack.options
    click.echo(f"ready {url}")
    messages = '[{"role": "user", "content": "Count from 1 to 20."}]'
    body = f'{{"model": "{options.model}", "messages": {messages}}}'
    click.echo(f"\n  curl {url}/v1/chat/completions -H 'content-type: application/json' \\")
    click.echo(f"    -d '{body}'\n")
    if stack.dashboard_url is not None:
        click.echo(f"  dashboard    {stack.dashboard_url}")
    click.echo(f"  config       {options.config}")
    click.echo(f"  logs         {options.state_dir / 'logs'}")
    click.echo(f"  admin token  {options.state_dir / 'admin-token'}")
    click.echo("  Ctrl-C stops everything")
    sys.stdout.flush()
