"""Whether a port can be served on, asked before anything else is started."""

from __future__ import annotations

import socket

import click


def require_free_port(host: str, port: int) -> None:
    """Say at once what a server would only find out when all else has been done.

    Raises:
        click.ClickException: the port is taken, or the address is none of this machine's.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        # IPv4 first: a name may have an IPv6 address that this machine cannot use.
        family, kind, _, _, address = min(found, key=lambda info: info[0])
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise click.ClickException(
            f"port {port} on {host} cannot be used ({error.strerror}); "
            "stop what listens there or choose another with --port"
        ) from error
