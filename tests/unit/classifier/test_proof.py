import pytest

from classifier.authored import rows as authored_rows
from classifier.features import extract
from classifier.learning import Verdict
from classifier.proof import (
    ANSWERS,
    FOLDS,
    LEAST_ROWS,
    Experiment,
    Proof,
    disguised,
    divide,
    examples,
    kinds_of,
)


@pytest.fixture(scope="module")
def rows():
    return authored_rows()


def test_the_disguise_hides_words_from_the_lists_and_keeps_them_apart():
    body = {"messages": [{"role": "user", "content": "Переведи текст: hello"}]}
    hidden = disguised(body)
    assert "lead:TRANSLATE" in extract(body).names
    assert "lead:TRANSLATE" not in extract(hidden).names
    assert "hello" in hidden["messages"][0]["content"]
    words = ["стол", "стул", "СТОЛ"]
    one, other, loud = disguised(words)
    assert one != other
    assert loud.lower() == one


def test_no_row_is_used_twice_and_nothing_left_out_is_trained_on(rows):
    experiment = Experiment(kind="list")
    parts = divide(rows, [], experiment)
    used = [row.identity for part in (parts.training, parts.met, parts.there) for row in part]
    used += [row.identity for row in parts.elsewhere]
    assert len(used) == len(set(used))
    for row in [*parts.training, *parts.elsewhere]:
        assert row.language != "ru"
        assert row.kind != "list"
    assert len(parts.met) <= ANSWERS


def test_every_row_of_the_rest_is_kept_out_once_and_the_rest_is_met_anew(rows):
    experiment = Experiment(kind="list")
    folds = [divide(rows, [], experiment, fold) for fold in range(FOLDS)]
    kept_out = [row.identity for parts in folds for row in parts.elsewhere]
    assert len(kept_out) == len(set(kept_out))
    trained_on = {row.identity for row in folds[0].training}
    assert set(kept_out) == trained_on | {row.identity for row in folds[0].elsewhere}
    met = {frozenset(row.identity for row in parts.met) for parts in folds}
    assert len(met) == FOLDS


def test_a_row_without_a_kind_still_has_its_class(rows):
    for row, example in zip(rows[:50], examples(rows[:50], blind=True), strict=True):
        assert example.answer is row.answer


def outcome(there, elsewhere, *actions):
    before = {"there": 0.5, "elsewhere": 0.9}
    verdicts = [Verdict(action, "", 500) for action in actions or ("promoted", "promoted")]
    return Proof(before, {"there": there, "elsewhere": elsewhere}, verdicts)


def test_what_learning_is_held_to():
    assert outcome(0.7, 0.895).meets("blind")
    assert not outcome(0.6, 0.9).meets("blind")
    assert outcome(0.6, 0.9).meets("known-words")
    assert not outcome(0.7, 0.88).meets("blind")
    assert not outcome(0.7, 0.9, "promoted", "kept").meets("blind")
    assert outcome(0.5, 0.9, "kept", "kept").meets("poisoned")
    assert not outcome(0.5, 0.9, "kept", "promoted").meets("poisoned")


def test_kinds_with_enough_rows_are_left_out_in_turn(rows):
    few = [row for row in rows if row.kind == "story"][: LEAST_ROWS - 1]
    many = [row for row in rows if row.kind == "code"][:LEAST_ROWS]
    assert kinds_of([*few, *many]) == ["code"]
