from dataclasses import replace

import pytest

from classifier.artifact import SHIPPED, read
from classifier.line import Line, from_bytes, to_bytes


@pytest.fixture(scope="module")
def shipped():
    return read(SHIPPED)


def test_a_line_comes_back_as_it_went(shipped):
    learned = replace(shipped, version="learned-1", hashed=(5,), hashed_rows=b"\x80" * 22)
    learned = replace(learned, evidence=shipped.evidence + b"\x07")
    line = Line(shipped.version, 12.5, learned, (shipped,))
    again = from_bytes(to_bytes(line), shipped.version)
    assert again is not None
    assert again.since == 12.5
    assert again.served.version == "learned-1"
    assert again.served.rows == learned.rows
    assert again.served.hashed == (5,)
    assert again.served.evidence == learned.evidence
    assert [artifact.version for artifact in again.previous] == [shipped.version]


def test_the_line_of_another_release_says_nothing(shipped):
    assert from_bytes(to_bytes(Line("other", 0.0, shipped)), shipped.version) is None


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"3", b'{"base": "x"}', b'{"base":"b","since":0}']
)
def test_what_is_no_line_is_none(raw):
    assert from_bytes(raw, "b") is None
