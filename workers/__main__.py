"""The agent's command: `python -m workers` on GPU hosts, `specroute agent` elsewhere.

Lean on purpose: no fastapi, no scikit-learn, no litellm.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

import click
import structlog

from workers.agent import Agent, AgentOptions
from workers.clock import SystemClock
from workers.config import Config, ConfigError, load_config
from workers.logs import configure_logs
from workers.options import config_option, state_dir_option
from workers.registry import open_registry
from workers.registry.beacon import Beacon

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from workers.spec import WorkerSpec


log = structlog.get_logger(__name__)

_LOOK_S = 2.0  # how soon a changed file is noticed


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@config_option("The YAML file with models and workers.")
@click.option("--worker", "names", multiple=True, metavar="NAME", help="Only these; repeatable.")
@state_dir_option("Workers' logs and key files.")
@click.option(
    "--drain-timeout",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds that running requests get when the agent is told to stop.",
)
def agent(path: Path, names: tuple[str, ...], state_dir: Path, drain_timeout: float) -> None:
    """Run and supervise this host's llama-server processes; publish them in Redis.

    \b
    Example:
      specroute agent -c specroute.yaml
      specroute agent -c specroute.yaml --worker code --worker prose

    A changed file is read again (at once on SIGHUP): workers that changed are drained and replaced
    one by one, the others are not touched. A file with problems, or without `workers`, is refused.
    """
    environ = dict(os.environ)  # noqa: TID251 - handed to the config's reader and to the workers
    try:
        config = load_config(path, environ)
        specs = _chosen(config, names)
        options = AgentOptions(
            state_dir=state_dir.resolve(),
            cluster_secret=_cluster_secret(config, state_dir),
            environ=environ,
            drain_timeout=drain_timeout,
        )
        url = _redis_url(config)
    except ConfigError as error:
        for problem in error.problems:
            click.echo(problem, err=True)
        sys.exit(2)
    writer = configure_logs(config.telemetry.log_format, config.telemetry.log_level)
    try:
        asyncio.run(_run(specs, url, options, Reloader(path, environ, names)))
    finally:
        writer.close()


class Reloader:
    """Reads the file again when it changes (a ConfigMap's does so by itself) or on SIGHUP."""

    def __init__(self, path: Path, environ: Mapping[str, str], names: tuple[str, ...]) -> None:
        self._path = path
        self._environ = environ
        self._names = names
        self._content = b""
        self._content = self._read()
        self.told = asyncio.Event()

    def _read(self) -> bytes:
        try:
            return self._path.read_bytes()
        except OSError:  # a moment between two versions
            return self._content

    async def run(self, agent: Agent) -> None:
        """For ever; a file with problems is reported, and the workers stay as they are."""
        async with asyncio.TaskGroup() as reloads:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await self.told.wait()
                content = self._read()
                if content == self._content and not self.told.is_set():
                    continue
                self._content = content
                self.told.clear()
                specs = self._specs()
                if specs is not None:
                    log.info("config_reloaded", workers=[spec.name for spec in specs])
                    # Not awaited: it may take hours, and a correction is for the agent to order.
                    reloads.create_task(agent.reload(specs))

    def _specs(self) -> tuple[WorkerSpec, ...] | None:
        """What the file asks for now; None if it cannot be used, which is logged."""
        try:
            config = load_config(self._path, self._environ)
            if "workers" not in config.model_fields_set:
                # An empty file is what an editor or a full disk leaves for a moment.
                raise click.UsageError(
                    f"{self._path}: has no `workers`; write `workers: []` to remove the last one"
                )
            return _chosen(config, self._names)
        except (ConfigError, click.UsageError) as error:
            log.error("config_refused", reason=str(error))
        except Exception as error:
            # A fault of ours in reading a file must not end workers that serve.
            log.exception("config_refused", reason=f"reading it failed: {error!r}")
        return None


async def _run(
    specs: tuple[WorkerSpec, ...], url: str, options: AgentOptions, reloader: Reloader
) -> None:
    """Until SIGTERM or Ctrl-C; a second one does not wait for running requests."""
    clock = SystemClock()
    registry = Beacon(open_registry(url, options.cluster_secret, clock), options.state_dir)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    serving = Agent(specs, registry, options, clock)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(serving.run(stop))
        reloading = tasks.create_task(reloader.run(serving))
        running.add_done_callback(lambda _: reloading.cancel())

        def told_to_stop() -> None:
            if stop.is_set():
                running.cancel()
            stop.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, told_to_stop)
        loop.add_signal_handler(signal.SIGHUP, reloader.told.set)
    await registry.aclose()


def _chosen(config: Config, names: tuple[str, ...]) -> tuple[WorkerSpec, ...]:
    specs = config.worker_specs()
    unknown = set(names) - {spec.name for spec in specs}
    if unknown:
        there = ", ".join(spec.name for spec in specs) or "none"
        raise click.UsageError(f"no worker {', '.join(sorted(unknown))} in the file; has: {there}")
    return tuple(spec for spec in specs if not names or spec.name in names)


def _cluster_secret(config: Config, state_dir: Path) -> str:
    if config.auth.cluster_secret:
        return config.auth.cluster_secret
    kept = state_dir / "cluster-secret"
    if kept.is_file():
        return kept.read_text().strip()
    raise click.UsageError(
        "auth.cluster_secret is missing: give agents and gateways the same one, for example "
        "with SPECROUTE_AUTH__CLUSTER_SECRET"
    )


def _redis_url(config: Config) -> str:
    if config.redis.url == "embedded":
        raise click.UsageError(
            "redis.url is `embedded`, which only `specroute up` starts: give the URL of a Redis "
            "that the gateway reaches as well"
        )
    return config.redis.url


if __name__ == "__main__":
    agent()
