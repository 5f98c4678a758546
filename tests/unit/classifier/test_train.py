import pytest

from classifier.artifact import LinearPredictor
from classifier.classes import WorkloadClass
from classifier.dataset import LabelledRequest
from classifier.estimator import Settings, WorkloadEstimator, examples_of
from classifier.features import extract
from classifier.train import TrainConfig, train

TEXTS = {
    WorkloadClass.STRUCTURED: "write a function number {}",
    WorkloadClass.PROSE: "tell me a story number {}",
    WorkloadClass.REASONING: "solve the equation {}",
}


@pytest.fixture(scope="module")
def rows():
    return [
        LabelledRequest(
            f"{at}",
            {"messages": [{"role": "user", "content": text.format(at)}]},
            answer,
            answer,
            "",
            f"g{at % 3}",
            "en",
            False,
        )
        for at in range(12)
        for answer, text in TEXTS.items()
    ]


def test_the_artifact_answers_as_the_estimator_does(rows):
    settings = Settings(min_count=1, inner_folds=0)
    estimator = WorkloadEstimator(settings).fit(examples_of(rows))
    predictor = LinearPredictor(train(rows, TrainConfig(settings, {})))
    features = [extract(row.body) for row in rows]
    for row, wanted in zip(features, estimator.predict_proba(features), strict=True):
        got = list(predictor.predict(row).probabilities.values())
        assert got == pytest.approx(wanted.tolist(), abs=0.03)


def test_the_card_says_what_it_learned_from(rows):
    artifact = train(rows, TrainConfig(Settings(min_count=1, inner_folds=0), {"macro_f1": 0.5}))
    assert artifact.card["rows"] == len(rows)
    assert artifact.card["by_group"] == {"g0": 12, "g1": 12, "g2": 12}
    assert artifact.card["figures"] == {"macro_f1": 0.5}


def test_equal_training_gives_an_equal_version(rows):
    config = TrainConfig(Settings(min_count=1, inner_folds=0), {})
    assert train(rows, config).version == train(rows, config).version
