"""A port is asked for before anything is started."""

from __future__ import annotations

import socket

import click
import pytest

from router.cli.ports import require_free_port


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_free_port_is_fine_and_a_taken_one_is_told(host):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(click.ClickException, match=f"port {port} on {host} cannot be used"):
            require_free_port(host, port)
    require_free_port(host, port)


def test_an_address_of_another_machine_is_told():
    with pytest.raises(click.ClickException, match=r"192\.0\.2\.1 cannot be used"):
        require_free_port("192.0.2.1", 8080)
