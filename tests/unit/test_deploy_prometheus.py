"""Alert rules and Grafana board: on names that exist, firing when they should."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from router.telemetry.metrics import Gauges, Metrics, SpeedupGauge, WorkerGauge

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "rules.yaml"
BOARD = DEPLOY / "grafana" / "dashboard.json"


@pytest.fixture(scope="module")
def exposed() -> set[str]:
    """Every sample name that a gateway exposes, and every family's name."""
    worker = WorkerGauge("code", "m", "ar", up=True, slots=4, inflight=1, state="ready")
    metrics = Metrics(
        lambda: Gauges([worker], {"m": 0}, redis_up=True),
        lambda: [SpeedupGauge("m", "prose", "mtp-n3", 1.2, 1.1, 1.3)],
    )
    families = list(text_string_to_metric_families(metrics.text().decode()))
    names = {family.name for family in families}
    names |= {f"{f.name}_total" for f in families if f.type == "counter"}
    histograms = [f.name for f in families if f.type == "histogram"]
    return names | {f"{name}_{end}" for name in histograms for end in ("bucket", "count", "sum")}


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return [p for p in orjson.loads(BOARD.read_bytes())["panels"] if p["type"] != "row"]


def named(expression: str) -> set[str]:
    return set(re.findall(r"specroute_\w+", expression))


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    binary = shutil.which("promtool")
    assert binary, "promtool is needed: Debian's package `prometheus` has it"
    command = [binary, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.slow
def test_alerts_fire_when_they_should_and_only_then() -> None:
    done = promtool("test", "rules", str(RULES.with_name("rules_test.yaml")))
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_scenario_that_fires_and_one_that_stays_quiet() -> None:
    scenarios = yaml.safe_load(RULES.with_name("rules_test.yaml").read_text())["tests"]
    cases = [case for scenario in scenarios for case in scenario["alert_rule_test"]]
    fired = {case["alertname"] for case in cases if case["exp_alerts"]}
    quiet = {case["alertname"] for case in cases if not case["exp_alerts"]}
    assert {rule["alert"] for rule in rules()} == fired == quiet


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_rules_use_names_that_exist(rule: dict[str, Any], exposed: set[str]) -> None:
    assert named(rule["expr"]) <= exposed
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"]["summary"]


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_board_uses_names_that_exist(panel: dict[str, Any], exposed: set[str]) -> None:
    for target in panel["targets"]:
        names = named(target["expr"])
        assert names
        assert names <= exposed


@pytest.mark.slow
def test_board_queries_are_valid(tmp_path: Path) -> None:
    """promtool reads each as a recording rule, Grafana's own variables filled in."""
    filled = [
        {"record": f"board:{number}", "expr": expression.replace("$__rate_interval", "1m")}
        for number, expression in enumerate(t["expr"] for p in panels() for t in p["targets"])
    ]
    path = tmp_path / "board.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": filled}]}))
    done = promtool("check", "rules", str(path))
    assert done.returncode == 0, done.stdout + done.stderr


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in orjson.loads(BOARD.read_bytes())["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(at["x"] + i, at["y"] + j) for i in range(at["w"]) for j in range(at["h"])}
        assert not cells & taken
        taken |= cells
