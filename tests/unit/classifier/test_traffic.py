import pytest

from classifier.classes import WorkloadClass
from classifier.features import extract
from classifier.produced import ProducedLabel
from classifier.traffic import Example, hashes_of, pack, sample, unpack

SURE = ProducedLabel(WorkloadClass.STRUCTURED, "json", 0.99, 0.0)
UNSURE = ProducedLabel(WorkloadClass.PROSE, "qa", 0.3, 0.0)
BODY = {"messages": [{"role": "user", "content": "my secret plan is to write a poem"}]}


def test_a_sample_comes_back_as_it_went():
    features = extract(BODY)
    packed = sample(features, SURE, 1234.5)
    (example,) = unpack([packed])
    assert example == Example(hashes_of(features), "json", 1234.5)
    assert example.answer is WorkloadClass.STRUCTURED


def test_a_sample_holds_no_text():
    packed = sample(extract(BODY), SURE, 0.0)
    assert b"secret" not in packed
    assert b"poem" not in packed


@pytest.mark.parametrize(
    ("extra", "label"), [({"grammar": "root ::= x"}, SURE), ({}, UNSURE), ({"think": 1}, UNSURE)]
)
def test_settled_and_uncertain_answers_are_left_out(extra, label):
    assert sample(extract({**BODY, **extra}), label, 0.0) is None


@pytest.mark.parametrize("raw", [b"", b"\x00" * 5, b"\x00" * 8 + b"\xff", b"\x00" * 9 + b"\x01"])
def test_what_is_no_sample_is_left_out(raw):
    good = pack(Example((1, 2), "code", 3.0))
    assert unpack([raw, good]) == [Example((1, 2), "code", 3.0)]


def test_stems_have_odd_hashes_and_concepts_even_ones():
    stems = hashes_of(extract({"messages": [{"role": "user", "content": "zzzq"}]}))
    assert any(hashed & 1 for hashed in stems)
    assert any(not hashed & 1 for hashed in stems)
