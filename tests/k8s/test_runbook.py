"""The runbook knows every alert, every value set, and names only what is there."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from k8s.render import CHART, value_sets

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/runbook.md").read_text()


def test_every_alert_has_a_row_with_something_to_do() -> None:
    rules = yaml.safe_load((ROOT / "deploy/prometheus/rules.yaml").read_text())
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    rows = {
        row.split("|")[1].strip(" `"): row.split("|")[3]
        for row in TEXT.splitlines()
        if "| `S" in row
    }
    assert rows.keys() == alerts
    assert all(len(what) > 30 for what in rows.values())


def test_every_value_set_is_in_the_table() -> None:
    assert all(f"| `{name}` |" in TEXT for name in value_sets())


def test_files_it_names_exist() -> None:
    named = re.findall(r"(?<![\w/])((?:tests|deploy|k8s)/[\w./-]*\w)", TEXT)
    assert len(named) > 5
    assert all((ROOT / name).exists() for name in named)
    linked = re.findall(r"\]\(([\w./-]+\.md)\)", TEXT)
    assert all((ROOT / "docs" / name).is_file() for name in linked)


def test_values_it_names_are_in_the_chart() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for path in re.findall(r"`((?:gateway|redis|modelStore|prometheusRule)\.[\w.]+)`", TEXT):
        place = values
        for part in path.split("."):
            assert part in place, path
            place = place[part]


def test_headings_it_links_to_exist() -> None:
    headings = {
        h.lower().replace(",", "").replace(" ", "-") for h in re.findall(r"^## (.*)$", TEXT, re.M)
    }
    assert set(re.findall(r"\]\(#([\w-]+)\)", TEXT)) <= headings
