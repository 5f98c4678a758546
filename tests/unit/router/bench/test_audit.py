"""Equal, tied or different: what counts against a drafting worker."""

from __future__ import annotations

from router.bench.audit import CONTROL, Difference, Said, Verdict, difference, passes


def verdict(worker, *nats, drafted=10):
    found = tuple(Difference("p", 3, n, "a", "b") for n in nats)
    return Verdict(worker, "mtp-n3", 10, drafted, found)


def test_a_difference_is_where_the_texts_part_and_how_sure_plain_decoding_was():
    plain = Said("one two three", gaps=((4, 2.0), (8, 0.01), (13, 3.0)))
    found = difference("p", plain, "one six")
    assert (found.at, found.nats, found.tie) == (4, 0.01, True)
    assert (found.plain, found.other) == ("one two three", "one six")
    sure = difference("p", plain, "one two four")
    assert (sure.at, sure.nats, sure.tie) == (8, 3.0, False)


def test_an_answer_that_goes_on_differs_at_the_end():
    found = difference("p", Said("one", gaps=((3, 1.0),)), "one two")
    assert (found.at, found.nats, found.tie) == (3, None, False)


def test_real_differences_fail_and_ties_do_not():
    control = verdict(CONTROL)
    assert passes([control, verdict("a", 0.01, 0.02)], 0.0) == []
    (why,) = passes([control, verdict("a", 0.01, 2.0)], 0.0)
    assert why == "a (mtp-n3): 1 of 10 answers differ from plain decoding, 0 are allowed"
    assert passes([control, verdict("a", 2.0)], 0.1) == []


def test_the_machines_own_noise_is_allowed():
    assert passes([verdict(CONTROL, 1.0, 1.0), verdict("a", 1.0, 2.0)], 0.0) == []


def test_a_worker_that_drafts_nothing_proves_nothing():
    (why,) = passes([verdict(CONTROL), verdict("a", drafted=0)], 0.0)
    assert "nothing was drafted" in why
    assert verdict("a", 0.01, 2.0).as_dict() | {"differences": []} == {
        "worker": "a",
        "mode": "mtp-n3",
        "n": 10,
        "equal": 8,
        "ties": 1,
        "different": 1,
        "drafted": 10,
        "trouble": "",
        "differences": [],
    }
