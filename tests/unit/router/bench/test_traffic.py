"""Requests of a sample: logged ones as they were, chat bodies as they would be classified."""

from __future__ import annotations

import gzip
import json

import pytest

from router.bench.traffic import BadTraffic, Shape, mix, read_traffic


def logged(**changes):
    request = {"class": "prose", "prompt_tokens": 50, "expected_output_tokens": 80}
    outcome = {"status": "ok", "completion_tokens": 70}
    return {"v": 1, "request": request, "outcome": outcome | changes}


def test_logged_requests_count_with_their_own_sizes(tmp_path):
    path = tmp_path / "decisions.jsonl"
    rows = [logged(), logged(completion_tokens=None), logged(status="client_gone")]
    path.write_text("\n".join(map(json.dumps, rows)) + '\n{"cut')
    assert read_traffic([path]) == [Shape("prose", 50, 70), Shape("prose", 50, 80)]


def test_chat_bodies_are_classified(tmp_path):
    path = tmp_path / "bodies.jsonl.gz"
    ask = {"messages": [{"role": "user", "content": "Return JSON with name and age"}]}
    bodies = [ask | {"response_format": {"type": "json_object"}}, ask | {"max_tokens": 3}]
    with gzip.open(path, "wt") as file:
        file.write("\n".join(map(json.dumps, bodies)))
    first, second = read_traffic([path])
    assert first.workload_class == "structured"
    assert first.prompt_tokens == pytest.approx(29 / 4)
    assert second.output_tokens == 3
    assert mix([first, second]) == {"structured": 1.0}


def test_a_file_without_requests_is_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("{}\n")
    with pytest.raises(BadTraffic, match="neither logged decisions nor chat bodies"):
        read_traffic([path])


@pytest.mark.parametrize("whole", [True, False])
def test_a_packed_file_that_cannot_be_unpacked_is_refused(tmp_path, whole):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(b"hello" if whole else gzip.compress(json.dumps(logged()).encode())[:-9])
    with pytest.raises(BadTraffic, match=r"x\.jsonl\.gz cannot be read"):
        read_traffic([path])


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("request", "class", ["prose"]),
        ("request", "prompt_tokens", -5),
        ("request", "prompt_tokens", "many"),
        ("request", "expected_output_tokens", {}),
        ("outcome", "completion_tokens", -5),
        ("outcome", "completion_tokens", 1e308),
    ],
)
def test_logged_requests_with_sizes_that_cannot_be_do_not_count(tmp_path, part, name, value):
    odd = logged()
    odd[part][name] = value
    path = tmp_path / "decisions.jsonl"
    path.write_text("\n".join(map(json.dumps, [logged(), odd])))
    assert len(read_traffic([path])) == 1
