"""An account of a classification that names concepts, and no word of the prompt."""

from __future__ import annotations

import orjson
import pytest

from classifier import extract, load
from router.telemetry.grounds import TOP, grounds_of
from tests.fakes.outcomes import outcome

TEXT = "Write a Python function that parses the xylophone invoices of Mrs. Butterworth into JSON."


@pytest.fixture
def told():
    payload = {"model": "tiny", "messages": [{"role": "user", "content": TEXT}]}
    found = grounds_of(outcome(features=extract(payload)), load().explain)
    assert found is not None
    return found


def test_flags_and_the_strongest_features_are_told(told):
    assert told["features"]["n_messages"] == 1
    assert told["features"]["language"] == "en"
    assert 2 <= len(told["contributions"]) <= TOP + 1
    first = told["contributions"][0]["weights"]
    assert first["structured"] == max(first.values()) > 0
    orjson.dumps(told)


def test_no_word_of_the_text_is_in_it(told):
    said = orjson.dumps(told).decode().lower()
    for word in ("xylophone", "butterworth", "invoice", "pars"):
        assert word not in said


def test_words_are_counted_and_their_weights_summed(told):
    (words,) = [row for row in told["contributions"] if row["name"].endswith(" words")]
    assert int(words["name"].split()[0]) >= 1


def test_what_was_not_classified_has_no_grounds():
    assert grounds_of(outcome(features=None), load().explain) is None
