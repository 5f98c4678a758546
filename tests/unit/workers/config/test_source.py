from __future__ import annotations

from workers.config.problems import Finding
from workers.config.source import read_source, without


def test_every_value_knows_its_line(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("a:\n  - x: 1\n    y: [2,\n        3]\nb: null\n")
    source = read_source(path, {})
    assert source.data == {"a": [{"x": 1, "y": [2, 3]}], "b": None}
    assert source.lines["a", 0, "y"] == 3
    assert source.lines["a", 0, "y", 1] == 4
    assert source.lines["b",] == 5
    assert source.place(Finding(("a", 0, "absent"), "m", "f")).line == 2


def test_values_can_be_taken_out():
    data = {"a": [{"x": 1, "y": 2}], "b": 3}
    without(data, {("a", 0, "x"), ("b",), ("a", 0, "absent")})
    assert data == {"a": [{"y": 2}]}


def test_an_override_of_what_is_no_section_is_told(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("workers: [5]\nserver: {allowed_hosts: [a, b]}\n")
    environ = {
        "SPECROUTE_WORKERS__0__SLOTS": "1",
        "SPECROUTE_SERVER__ALLOWED_HOSTS__\u00b2": "c",
        "SPECROUTE_SERVER__ALLOWED_HOSTS__1": "c",
        "SPECROUTE_SERVER__PORT": "[2026-02-30]",
    }
    source = read_source(path, environ)
    assert [finding.message for finding in source.findings] == [
        "overrides nothing: no '\u00b2'",
        "overrides nothing: no 'slots'",
    ]
    assert source.data["server"] == {"allowed_hosts": ["a", "c"], "port": "[2026-02-30]"}
