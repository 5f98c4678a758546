"""Every check against `up` on the tiny trio, and against one of its llama-servers by itself."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance.__main__ import local_workers
from tests.conformance.catalogue import CHECKS
from tests.conformance.checks_node import install
from tests.conformance.differences import OTHERWISE, RAW_FAILS
from tests.conformance.suite import Measured, Result, run_check
from tests.conformance.target import Target, Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.running import RunningStack

# Other people's packages warn of their own dependencies.
pytestmark = [
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
]
SHARED = sorted(name for name, one in CHECKS.items() if not one.gateway_only)
BOOKS_S = 2.5  # what a gateway has counted goes to Redis each second


@pytest.fixture(scope="module")
def gateway(stack: RunningStack) -> Iterator[Target]:
    """The session's `up`."""
    workers, admin = local_workers(stack.url, stack.state_dir)
    target = Target(stack.url, model="tiny", workers=workers, admin=admin)
    yield target
    target.close()
    time.sleep(BOOKS_S)  # other tests compare the totals before and after what they do


@pytest.fixture(scope="module")
def server(gateway: Target) -> Iterator[Target]:
    """The plain worker of that `up`, asked directly."""
    plain = gateway.exact_worker
    key = plain.headers["authorization"].removeprefix("Bearer ")
    alone = {"": Worker("", plain.url, key)}
    target = Target(plain.url, api_key=key, is_gateway=False, model="tiny", workers=alone)
    yield target
    target.close()


@pytest.fixture(scope="module")
def results() -> dict[tuple[bool, str], Result]:
    """What was run already, by target and check."""
    return {}


def _result(results: dict[tuple[bool, str], Result], target: Target, name: str) -> Result:
    key = (target.is_gateway, name)
    if key not in results:
        results[key] = run_check(CHECKS[name], target)
    return results[key]


def test_there_are_enough_checks():
    assert len(CHECKS) >= 120


def test_node_is_there():
    """Without Node.js its checks would say so one by one; here is the reason once."""
    assert install() == ""


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_on_the_gateway(name, gateway, results):
    result = _result(results, gateway, name)
    assert result.outcome == "pass", result.detail


@pytest.mark.parametrize("name", SHARED)
def test_on_the_raw_server(name, gateway, server, results):
    """The same outcome and the same answer, or the difference is listed, with its reason."""
    raw = _result(results, server, name)
    if name in RAW_FAILS:
        assert raw.outcome == "fail", "the raw server does this now: take it off the list"
        return
    assert raw.outcome == "pass", raw.detail
    ours = _result(results, gateway, name).observed
    if not isinstance(raw.observed, Measured):
        assert (ours == raw.observed) == (name not in OTHERWISE), (ours, raw.observed)


def test_the_documentation_lists_every_difference():
    text = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text()
    for name, why in RAW_FAILS.items():
        row = next((row for row in text.splitlines() if f"`{name}`" in row), "")
        assert why in row, name
    assert f"holds {len(CHECKS)} named checks" in text


def test_the_list_of_differences_names_checks():
    assert set(RAW_FAILS) <= set(SHARED)
    assert set(OTHERWISE) <= set(SHARED) - set(RAW_FAILS)
