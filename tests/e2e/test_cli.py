"""The commands that talk to a running gateway, as a user types them."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from router.cli.route import route
from router.cli.up import up
from router.cli.workers import workers
from tests.support.running import free_port

pytestmark = [pytest.mark.engine, pytest.mark.slow]

BODY = json.dumps({"model": "tiny", "messages": [{"role": "user", "content": "Count to 20"}]})


def run(command, stack, *arguments: str, stdin: str | None = None):
    place = ["--url", stack.url, "--state-dir", str(stack.state_dir)]
    return CliRunner().invoke(command, [*arguments, *place], input=stdin)


def test_route_says_where_a_request_would_go_and_why(stack):
    told = run(route, stack, "-", "--json", stdin=BODY)
    assert told.exit_code == 0, told.output
    decision = json.loads(told.stdout)
    assert set(decision) >= {
        *("class", "kind", "probabilities", "features", "candidates", "chosen", "reason"),
        "propensity",
    }
    assert sum(decision["probabilities"].values()) == pytest.approx(1.0, abs=1e-3)
    assert {c["worker"] for c in decision["candidates"]} == {"dflash", "mtp", "plain"}
    for candidate in decision["candidates"]:
        assert candidate["excluded_because"] or candidate["predicted_ms"] > 0
    table = run(route, stack, "-", stdin=BODY)
    assert decision["class"] in table.stdout
    assert "dflash" in table.stdout


def test_route_refuses_what_is_not_json(stack):
    told = run(route, stack, "-", stdin="{")
    assert told.exit_code == 2
    assert "not JSON" in told.output


def test_workers_are_listed_and_drained(stack):
    rows = json.loads(run(workers, stack, "list", "--json").stdout)
    assert {row["name"] for row in rows} == {"dflash", "mtp", "plain"}
    assert run(workers, stack, "drain", "plain").exit_code == 0
    stack.wait_until(lambda: stack.workers()["plain"]["state"] != "ready", 20, "plain drained")
    assert run(workers, stack, "undrain", "plain").exit_code == 0
    stack.wait_until(lambda: stack.workers()["plain"]["state"] == "ready", 60, "plain back")


def test_the_gateway_is_found_by_its_state_folder_on_whatever_port(stack, monkeypatch):
    monkeypatch.delenv("SPECROUTE_URL", raising=False)
    place = ["--state-dir", str(stack.state_dir)]
    told = CliRunner().invoke(workers, ["list", "plain", "--json", *place])
    assert told.exit_code == 0, told.output
    assert [row["name"] for row in json.loads(told.stdout)] == ["plain"]


def test_a_second_up_in_the_folder_is_refused_and_harms_nothing(stack):
    before = (stack.state_dir / "tiny.yaml").stat().st_mtime_ns
    place = ["--state-dir", str(stack.state_dir), "--port", str(free_port())]
    told = CliRunner().invoke(up, place)
    assert told.exit_code == 1
    assert f"in use by pid {stack.process.pid};" in told.stderr
    assert (stack.state_dir / "tiny.yaml").stat().st_mtime_ns == before
    assert stack.get("/ready").json()["redis"] == "up"


def test_an_unknown_worker_is_a_clear_refusal(stack):
    told = run(workers, stack, "drain", "nobody")
    assert told.exit_code == 1
    assert "nobody" in told.output


def test_no_gateway_says_what_to_do(tmp_path):
    told = CliRunner().invoke(
        workers, ["list", "--url", "http://127.0.0.1:9", "--state-dir", str(tmp_path)]
    )
    assert told.exit_code == 1
    assert "specroute up" in told.output


def test_the_console_names_what_a_newcomer_needs(stack):
    said = "\n".join(stack.lines)
    assert f"ready {stack.url}" in stack.lines
    for words in ("curl", '"model": "tiny"', "dashboard", "admin token", "logs"):
        assert words in said
