"""`specroute dashboard`: the ops dashboard as its own process, reading Redis only."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from router.cli.ports import require_free_port
from workers.options import config_option, state_dir_option

if TYPE_CHECKING:
    from pathlib import Path

    from router.dashboard.serving import DashboardSettings


@click.command()
@config_option("The YAML file of the gateway whose Redis is shown.")
@click.option("--host", help="Address to serve on; the config's, else 127.0.0.1.")
@click.option("--port", type=click.IntRange(1, 65535), help="The config's, else 8081.")
@state_dir_option("Where secrets that the config leaves out are kept.")
def dashboard(path: Path, host: str | None, port: int | None, state_dir: Path) -> None:
    """Show what each mode gains, where traffic goes and why; operate the workers.

    \b
    Example:
      specroute dashboard -c specroute.yaml
      specroute dashboard -c specroute.yaml --port 9081
    """
    from router.dashboard.serving import run_dashboard
    from workers.logs import configure_logs

    settings = settings_or_exit(path, state_dir, host, port)
    require_free_port(settings.host, settings.port)
    url_host = f"[{settings.host}]" if ":" in settings.host else settings.host
    click.echo(f"dashboard http://{url_host}:{settings.port}")
    sys.stdout.flush()
    writer = configure_logs(settings.log_format, settings.log_level)
    try:
        run_dashboard(settings)
    except SystemExit as error:  # uvicorn's, with a status of its own
        raise click.ClickException("the dashboard could not start; its log says why") from error
    finally:
        writer.close()


def settings_or_exit(
    path: Path, state_dir: Path, host: str | None = None, port: int | None = None
) -> DashboardSettings:
    """The settings; prints every problem and exits with 2 when there are any."""
    from workers.config import ConfigError

    try:
        return read_settings(path, state_dir, host, port)
    except ConfigError as error:
        for problem in error.problems:
            click.echo(problem, err=True)
    except ValueError as error:
        click.echo(error, err=True)
    sys.exit(2)


def read_settings(
    path: Path, state_dir: Path, host: str | None, port: int | None
) -> DashboardSettings:
    """The dashboard's part of the config and the secrets of the state folder.

    Raises:
        ConfigError: the file has problems.
        ValueError: there is no Redis to read, or the key file is damaged.
    """
    from router.cli.kept_secrets import kept_secret, private_folder
    from router.dashboard.serving import DashboardSettings
    from router.settings import from_config
    from workers.config import load_config

    config = load_config(path, os.environ)  # noqa: TID251 - handed to the config's own reader
    folder = private_folder(state_dir)
    token = kept_secret(folder, "admin-token", config.auth.admin_token)
    secret = kept_secret(folder, "cluster-secret", config.auth.cluster_secret)
    shared = from_config(config, admin_token=token, cluster_secret=secret, state_dir=folder)
    return DashboardSettings(
        redis_url=shared.redis_url or _embedded_url(folder),
        cluster_secret=secret,
        admin_token=token,
        host=host or config.dashboard.host,
        port=port or config.dashboard.port,
        keys=shared.all_keys,
        half_life_s=shared.policy_settings.half_life_s,
        log_format=shared.log_format,
        log_level=shared.log_level,
    )


def _embedded_url(state_dir: Path) -> str:
    """Where `specroute up` left the address of its embedded Redis."""
    path = state_dir / "redis-url"
    if not path.is_file():
        raise ValueError(
            f"redis.url is `embedded`, and no `specroute up` has used {state_dir}: "
            "start it, name its --state-dir, or set redis.url"
        )
    return path.read_text().strip()
