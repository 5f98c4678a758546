from __future__ import annotations

import pytest

from router.cli.output import readable


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, ""),
        (0.26641858503441873, "0.2664"),
        (123456.789, "123456.8"),
        (12, "12"),
        ("0.50", "0.50"),
        ({1: 1.0, 2: 0.98765}, "1: 1, 2: 0.9877"),
    ],
)
def test_a_cell_is_written_for_people(cell, text):
    assert readable(cell) == text
