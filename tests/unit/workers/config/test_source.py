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
