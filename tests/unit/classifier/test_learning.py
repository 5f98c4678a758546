import json
import random

import pytest

from classifier.artifact import LinearPredictor, read, save
from classifier.authored import rows as authored_rows
from classifier.classes import CLASSES, WorkloadClass
from classifier.estimator import Settings
from classifier.features import extract
from classifier.learning import (
    KEPT_VERSIONS,
    Example,
    Learner,
    TrafficLog,
    drift,
    fit,
    hashes_of,
    judge,
    scores,
)
from classifier.produced import ProducedLabel
from classifier.train import TrainConfig, train

pytestmark = pytest.mark.slow

LEFT_OUT = "translation"
MEASURED_ERROR = 0.03


def is_left_out(row):
    return row.language == "ru" or row.kind == LEFT_OUT


@pytest.fixture(scope="module")
def own():
    return [row for row in authored_rows() if not is_left_out(row)]


@pytest.fixture(scope="module")
def served(own):
    return train(own, TrainConfig(Settings(inner_folds=0), {}))


@pytest.fixture(scope="module")
def traffic():
    rng = random.Random(5)
    found = [row for row in authored_rows(seed=11) if is_left_out(row)]
    rng.shuffle(found)
    return [
        Example(
            hashes_of(extract(row.body)),
            rng.choice(CLASSES) if rng.random() < MEASURED_ERROR else row.answer,
        )
        for row in found[:800]
    ]


def accuracy(artifact, examples):
    guesses = scores(artifact, examples).argmax(axis=1)
    hits = [CLASSES[g] is example.answer for g, example in zip(guesses, examples, strict=True)]
    return sum(hits) / len(hits)


def test_learns_what_it_was_not_trained_on(served, own, traffic):
    learner = Learner(served, own)
    before = accuracy(served, traffic[500:])
    verdict = learner.learn(traffic[:500])
    assert verdict.promoted, verdict.reason
    assert accuracy(learner.served, traffic[500:]) > before + 0.03
    assert verdict.rehearsed_change >= -0.01


@pytest.mark.parametrize("seed", range(4))
def test_a_poisoned_stream_is_never_promoted(served, own, traffic, seed):
    answers = [example.answer for example in traffic[:500]]
    random.Random(seed).shuffle(answers)
    poisoned = [
        Example(example.hashes, answer) for example, answer in zip(traffic, answers, strict=False)
    ]
    learner = Learner(served, own)
    assert not learner.learn(poisoned).promoted
    assert learner.served is served


def test_a_learned_model_survives_the_file_and_serves_by_hash(served, own, traffic, tmp_path):
    examples = [Example(hashes_of(extract(row.body)), row.answer) for row in own[:200]]
    learned = fit(served, traffic[:400], examples)
    assert learned.hashed
    save(learned, tmp_path / "l.json")
    again = read(tmp_path / "l.json")
    row = next(
        row for row in authored_rows(seed=11) if is_left_out(row) and not row.body.get("tools")
    )
    features = extract(row.body)
    (logits,) = scores(again, [Example(hashes_of(features), row.answer)])
    got = LinearPredictor(again).predict(features)
    assert got.workload_class is CLASSES[int(logits.argmax())]
    assert got.model_version.startswith("learned-")


def test_equal_models_are_not_promoted(served, traffic):
    assert not judge(served, served, traffic[:300], traffic[300:500]).promoted


def test_too_little_traffic_is_left_alone(served, own, traffic):
    verdict = Learner(served, own).learn(traffic[:50])
    assert not verdict.promoted
    assert "needed" in verdict.reason


def test_rolls_back_and_keeps_only_the_last(served, own):
    learner = Learner(served, own[:40])
    assert not learner.roll_back()
    learner.previous = [served] * KEPT_VERSIONS
    assert learner.roll_back()
    assert len(learner.previous) == KEPT_VERSIONS - 1
    assert learner.predictor().version == served.version


def test_the_log_is_bounded_and_keeps_no_text():
    log = TrafficLog(cap=3)
    label = ProducedLabel(WorkloadClass.PROSE, "chat", 0.9, 0.0)
    for at in range(5):
        body = {"messages": [{"role": "user", "content": f"my secret number {at}"}]}
        assert log.add(extract(body), label)
    assert len(log) == 3
    assert "secret" not in json.dumps(log.dump())
    copy = TrafficLog()
    copy.restore(json.loads(json.dumps(log.dump())))
    assert copy.examples() == log.examples()


def test_settled_and_uncertain_answers_are_not_learned_from():
    log = TrafficLog()
    sure = ProducedLabel(WorkloadClass.STRUCTURED, "json", 0.99, 0.0)
    unsure = ProducedLabel(WorkloadClass.PROSE, "qa", 0.3, 0.0)
    body = {"messages": [{"role": "user", "content": "hi"}]}
    assert not log.add(extract({**body, "grammar": "x"}), sure)
    assert not log.add(extract(body), unsure)
    assert len(log) == 0


def test_drift_is_zero_without_change_and_grows_with_it():
    even = {"structured": 0.4, "prose": 0.4, "reasoning": 0.2}
    assert drift(even, even) == 0
    assert drift(even, {"prose": 1.0}) > 0.2
