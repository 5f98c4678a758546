"""Talking to a running gateway: where it is, with which token, and errors that say what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import httpx

from workers.options import state_dir_option

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_URL = "http://127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class GatewayClient:
    """One gateway's ops surface."""

    url: str
    token: str | None = None

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The parsed answer of one call.

        Raises:
            click.ClickException: no gateway there, or it refused; the sentence says which.
        """
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            answer = httpx.request(
                method, self.url + path, json=body, headers=headers, timeout=60.0
            )
        except httpx.HTTPError as error:
            raise click.ClickException(
                f"no gateway answers at {self.url} ({error}); start one with `specroute up`, "
                "or say where it is with --url"
            ) from error
        if answer.status_code >= 400:
            raise click.ClickException(
                f"the gateway refused ({answer.status_code}): {_message(answer)}"
            )
        return answer.json()


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return answer.text[:300]


def gateway_options(command: Any) -> Any:
    """`--url`, `--token` and `--state-dir`, shared by the commands that ask a gateway."""
    for option in (
        click.option("--url", default=DEFAULT_URL, show_default=True, envvar="SPECROUTE_URL"),
        click.option("--token", envvar="SPECROUTE_ADMIN_TOKEN", help="Admin token."),
        state_dir_option("Where `up` keeps its state; the admin token is read from there."),
    ):
        command = option(command)
    return command


def find_gateway(url: str, token: str | None, state_dir: Path) -> GatewayClient:
    """The gateway at `url`, with the token given or the one that `up` left in its state folder."""
    if token is None:
        path = state_dir / "admin-token"
        token = path.read_text().strip() if path.is_file() else None
    return GatewayClient(url.rstrip("/"), token)
