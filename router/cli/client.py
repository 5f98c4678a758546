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
URL_FILE = "gateway-url"
"""In the state folder: where the gateway of a running `up` serves."""


@dataclass(frozen=True, slots=True)
class GatewayClient:
    """One gateway's ops surface."""

    url: str
    token: str | None = None

    def call(self, method: str, path: str, body: Any = None, *, holds: str) -> dict[str, Any]:
        """The parsed answer of one call, an object that has `holds`.

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
        value = _parsed(answer)
        refusal = _refusal(value)
        if answer.status_code >= 400 and refusal is not None:
            raise click.ClickException(f"the gateway refused ({answer.status_code}): {refusal}")
        if answer.status_code >= 400 or not isinstance(value, dict) or holds not in value:
            raise click.ClickException(
                f"what answers at {self.url} is no Specroute gateway ({_described(answer)}); "
                "say where the gateway is with --url"
            )
        return value


def _parsed(answer: httpx.Response) -> Any:
    """None where it is no JSON."""
    try:
        return answer.json()
    except ValueError:  # bytes that are no UTF-8 too
        return None


def _refusal(value: Any) -> str | None:
    """The sentence of an error body; None where it is none."""
    error = value.get("error") if isinstance(value, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    return None if message is None else str(message)


def _described(answer: httpx.Response) -> str:
    kind = answer.headers.get("content-type", "").partition(";")[0] or "no content type"
    return f"status {answer.status_code}, {kind}"


class GatewayURL(click.ParamType):  # type: ignore[type-arg]
    """The base address of a gateway, without a slash at its end."""

    name = "url"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """The address as a text."""
        try:
            url = httpx.URL(str(value))
        except httpx.InvalidURL:
            url = httpx.URL("")
        if url.scheme not in ("http", "https") or not url.host:
            self.fail(f"{value!r} is no address; write it like {DEFAULT_URL}", param, ctx)
        return str(value).rstrip("/")


def gateway_options(command: Any) -> Any:
    """`--url`, `--token` and `--state-dir`, shared by the commands that ask a gateway."""
    for option in (
        click.option(
            "--url",
            type=GatewayURL(),
            envvar="SPECROUTE_URL",
            show_envvar=True,
            help="Where the gateway is; if left out, where the `up` of the state folder serves, "
            f"else {DEFAULT_URL}.",
        ),
        click.option(
            "--token",
            envvar="SPECROUTE_ADMIN_TOKEN",
            show_envvar=True,
            help="Admin token; if left out, the state folder's.",
        ),
        state_dir_option("Where `up` keeps its state: its address and admin token are read there."),
    ):
        command = option(command)
    return command


def find_gateway(url: str | None, token: str | None, state_dir: Path) -> GatewayClient:
    """The gateway at `url` with `token`; what is None is what `up` left in its state folder."""
    return GatewayClient(
        url or _left_in(state_dir, URL_FILE) or DEFAULT_URL,
        token or _left_in(state_dir, "admin-token"),
    )


def _left_in(state_dir: Path, name: str) -> str | None:
    path = state_dir / name
    return path.read_text().strip() if path.is_file() else None
