import json
from math import exp

import pytest

from classifier.artifact import (
    LANES,
    SHIPPED,
    BadArtifact,
    LinearPredictor,
    hash_name,
    information_of,
    load,
    quantise,
    read,
    save,
)
from classifier.classes import WorkloadClass
from classifier.features import extract
from classifier.rules import RuleClassifier

NAMES = ("c:CODE", "lead:TELL", "story", "nothing")
WEIGHTS = [
    [1.5, -0.5, -1.0, 2.0] + [0.0] * (len(LANES) - 4),
    [-1.0, 1.2, -0.2] + [0.0] * (len(LANES) - 3),
    [-0.5, 0.75, 0.0] + [0.0] * (len(LANES) - 3),
    [0.0] * len(LANES),
]


@pytest.fixture
def artifact():
    biases = [0.1, 0.2, -0.3] + [0.0] * (len(LANES) - 3)
    return quantise(NAMES, WEIGHTS, biases, version="test-1", card={"rows": 4})


def features(text, **fields):
    return extract({"messages": [{"role": "user", "content": text}], **fields})


def test_survives_the_file(artifact, tmp_path):
    save(artifact, tmp_path / "a.json")
    again = read(tmp_path / "a.json")
    assert again.names == artifact.names == NAMES[:3]
    assert again.rows == artifact.rows
    assert again.card == {"rows": 4}


def test_names_that_say_nothing_leave_their_evidence(tmp_path):
    biases, information = [0.0] * len(LANES), [1.0, 2.0, 3.0, 40.0, 50.0]
    made = quantise(NAMES, WEIGHTS, biases, version="1", card={}, information=information)
    save(made, tmp_path / "a.json")
    again = read(tmp_path / "a.json")
    assert again.silent == made.silent == (hash_name("nothing"),)
    assert information_of(again.silent_evidence) == pytest.approx([40.0], rel=0.03)
    assert information_of(again.evidence) == pytest.approx([1.0, 2.0, 3.0], rel=0.05)


def test_adds_the_weights_of_the_names_present(artifact):
    found = features("tell me a story, not code")
    answer = LinearPredictor(artifact).predict(found)
    present = [row for name, row in zip(NAMES, WEIGHTS, strict=True) if name in found.names]
    assert len(present) == 3
    scores = [sum(row[at] for row in present) + artifact.biases[at] for at in range(3)]
    total = sum(exp(score) for score in scores)
    wanted = [exp(score) / total for score in scores]
    assert list(answer.probabilities.values()) == pytest.approx(wanted, abs=0.01)
    assert answer.source == "model"


def test_the_kind_comes_from_the_winning_class(artifact):
    assert LinearPredictor(artifact).predict(features("code")).kind == "code"


def test_flags_go_first(artifact):
    predictor = LinearPredictor(artifact)
    answer = predictor.predict(features("tell a story", reasoning_effort="high"))
    assert (answer.workload_class, answer.source) == (WorkloadClass.REASONING, "rules")
    assert predictor.explain(features("code", grammar="x"))[0].name == "forced:json"


def test_explains_with_the_weights_it_added(artifact):
    top = LinearPredictor(artifact).explain(features("tell me a story"))[0]
    assert top.name == "lead:TELL"
    assert top.weights == pytest.approx(
        {"structured": -1.0, "prose": 1.2, "reasoning": -0.2}, abs=0.02
    )


def test_more_names_than_the_lanes_hold_are_cut_off(artifact):
    many = features(" ".join(f"word{n} " + "story" * (n % 2) for n in range(4000)))
    assert LinearPredictor(artifact).predict(many).probabilities["prose"] > 0


@pytest.mark.parametrize(
    "change",
    [
        {"format": 99},
        {"lanes": ["a"]},
        {"rows": "AAAA"},
        {"names": "one\ntwo"},
        {"names": None},
        {"scales": [1.0]},
        {"scales": [None] * len(LANES)},
        {"biases": ["x"] * len(LANES)},
        {"biases": [float("nan")] * len(LANES)},
        {"scales": [1e300] * len(LANES)},
        {"card": 5},
        {"hashed": ["x"], "hashed_rows": ""},
        {"silent": "eNpjYGBgAAAABAAB"},
        {"silent": "eNpjZGIGAAANAAc="},
    ],
)
def test_says_what_is_wrong_with_a_file(artifact, tmp_path, change):
    path = tmp_path / "a.json"
    save(artifact, path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(BadArtifact, match=r"a\.json"):
        load(path)


@pytest.mark.parametrize("text", [b"{", b"\xff", b"[" * 100_000, b"5"])
def test_text_that_is_not_json_is_a_bad_artifact(tmp_path, text):
    (tmp_path / "a.json").write_bytes(text)
    with pytest.raises(BadArtifact):
        read(tmp_path / "a.json")


def test_the_shipped_artifact_is_served_and_small():
    assert isinstance(load(), LinearPredictor)
    assert SHIPPED.stat().st_size <= 500_000


@pytest.mark.interpreted
def test_rules_serve_where_nothing_is_shipped(monkeypatch, tmp_path):
    monkeypatch.setattr("classifier.artifact.SHIPPED", tmp_path / "none.json")
    assert isinstance(load(), RuleClassifier)
