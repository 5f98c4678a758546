"""Sums per slice: what is counted, and percentiles read off the buckets."""

from __future__ import annotations

import pytest

from router.core import Status
from router.telemetry import history
from router.telemetry.history import Book, Series, Slice, merged, ttft_quantile
from tests.fakes.outcomes import outcome
from workers.timings import Timings


def only(book: Book, width: int = 60) -> dict[str, float]:
    (sums,) = [sums for (one, _), sums in book.slices.items() if one.width == width]
    return sums


def test_an_answer_counts_once_in_each_width() -> None:
    book = Book()
    book.add(outcome(at=1200.0))
    assert set(book.slices) == {
        (Slice(60, 20), Series("tiny", "prose", "mtp-n3")),
        (Slice(600, 2), Series("tiny", "prose", "mtp-n3")),
    }
    sums = only(book)
    assert sums["requests"] == sums["requests_ok"] == 1
    assert sums["decoded_n"] == 100
    assert sums["decode_ms"] == pytest.approx(2000.0)
    assert sums["steps"] == 100 - sums["draft_n_accepted"]


def test_a_refusal_has_no_times_and_no_tokens() -> None:
    book = Book()
    book.add(outcome(status=Status.SHED, timings=Timings(), worker="", mode="", ttft_s=None))
    sums = only(book)
    assert sums["requests_shed"] == 1
    assert not {"total_s", "predicted_n", "decode_ms"} & sums.keys()


def test_an_answer_without_timings_has_its_tokens_and_no_speed() -> None:
    book = Book()
    book.add(outcome(timings=Timings(), completion_tokens=30))
    sums = only(book)
    assert sums["predicted_n"] == sums["good_n"] == 30
    assert not {"decoded_n", "decode_ms", "answers"} & sums.keys()


def test_unknown_draft_counts_are_not_zero() -> None:
    book = Book()
    book.add(outcome(timings=Timings(predicted_n=50, predicted_ms=1000.0)))
    assert "draft_n" not in only(book)


@pytest.mark.interpreted
def test_what_does_not_fit_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_PENDING", 1)
    book = Book()
    book.add(outcome(at=0.0))
    book.add(outcome(at=6000.0))
    assert (len(book.slices), book.shed) == (2, 1)


def test_minutes_of_one_span_are_one_sum_of_it() -> None:
    book = Book()
    for at in (1200.0, 1260.0, 1799.0, 1800.0):
        book.add(outcome(at=at))
    spans = {one: sums["requests"] for (one, _), sums in book.slices.items() if one.width == 600}
    assert spans == {Slice(600, 2): 3, Slice(600, 3): 1}


def test_percentiles_interpolate_within_a_bucket() -> None:
    book = Book()
    for _ in range(10):
        book.add(outcome(ttft_s=0.2))  # the bucket from 0.1 to 0.25
    sums = merged(sums for (one, _), sums in book.slices.items() if one.width == 60)
    assert ttft_quantile(sums, 0.5) == pytest.approx(0.175)
    assert ttft_quantile({}, 0.5) is None
    assert ttft_quantile({"ttft:20": 5.0}, 0.9) == 160.0
