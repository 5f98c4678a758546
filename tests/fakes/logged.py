"""Outcomes as a decision log gives them back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from router.simulation.logged import Logged, read_line
from router.telemetry.decision_log import row

if TYPE_CHECKING:
    from router.core import Outcome


def logged_row(outcome: Outcome) -> Logged:
    """Written and read again."""
    found = read_line(orjson.dumps(row(outcome)))
    assert found is not None
    return found
