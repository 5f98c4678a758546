from collections import Counter
from pathlib import Path

import pytest

from classifier.authored import GROUP, rows, sections
from classifier.classes import CLASS_OF_KIND
from classifier.dataset import read

DATA = Path(__file__).parents[2] / "data" / "classifier"


def user_turns(found):
    return [
        message["content"]
        for row in found
        for message in row.body["messages"]
        if message["role"] == "user"
    ]


def test_the_same_seed_writes_the_same_rows():
    assert rows(3) == rows(3)
    assert rows(3) != rows(4)


def test_every_kind_is_there_and_consistent():
    made = rows()
    assert {row.kind for row in made} == set(CLASS_OF_KIND)
    assert all(CLASS_OF_KIND[row.kind] is row.answer is row.label for row in made)
    assert {row.group for row in made} == {GROUP}


def test_no_blank_is_left_open():
    assert not [turn for turn in user_turns(rows()) if "{topic}" in turn or "{n}" in turn]


@pytest.mark.parametrize("name", ["switches.jsonl", "fresh.jsonl", "unseen.jsonl"])
def test_no_turn_of_the_test_conversations_is_trained_on(name):
    found = [row.body for row in read(DATA / name)]
    lasts = {body["messages"][-1]["content"].lower() for body in found if "messages" in body}
    assert not lasts & {turn.lower() for turn in user_turns(rows())}


def test_corpus_headers_name_kinds():
    for name in ("structured.txt", "prose.txt", "reasoning.txt"):
        assert {kind for kind, _ in sections(name)} <= set(CLASS_OF_KIND)


def test_languages_are_spread():
    counts = Counter(row.language for row in rows())
    assert min(counts["ru"], counts["zh"], counts["xx"]) > 200
