from __future__ import annotations

import click
import pytest

from router.cli.bench import bench, parallel


def _read(value: str) -> tuple[int, ...]:
    return parallel(click.Context(bench), bench.params[0], value)


def test_loads_are_read_from_a_list():
    assert _read("4") == (4,)
    assert _read("1, 2,4") == (1, 2, 4)


@pytest.mark.parametrize("value", ["", "two", "1,,2", "0", "1,-2"])
def test_what_is_no_load_is_refused(value):
    with pytest.raises(click.BadParameter, match="no list of positive numbers"):
        _read(value)
