"""Every fault of the table happens to real processes: found, over, and nobody else harmed."""

from __future__ import annotations

import logging
import os

import pytest

from tests.support.faults import run_rounds

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PROOF = bool(os.environ.get("SPECROUTE_PROOF"))
log = logging.getLogger(__name__)


@pytest.mark.timeout(7200 if PROOF else 600)
async def test_every_fault_is_found_and_over_and_harms_nobody_else(tmp_path):
    rounds = 20 if PROOF else 3
    rows = await run_rounds(
        tmp_path,
        rounds,
        lanes=4 if PROOF else 3,
        slow_s=75.0 if PROOF else 15.0,
        redis_s=60.0 if PROOF else 4.0,
        report=lambda row: log.info("%s", row),
    )
    assert [row for row in rows if row.wrong] == []
    assert len({row.fault for row in rows}) == 11
    assert len(rows) == 11 * rounds
    silent = [row for row in rows if row.seen is None]
    assert {row.fault.partition(" of ")[0] for row in silent} == {"slow prefill"}
