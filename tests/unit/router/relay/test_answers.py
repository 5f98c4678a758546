"""What an answer's own figures come to."""

from __future__ import annotations

from router.relay.answers import account_of
from router.upstream.sse import StreamTap, TapResult, plain_result
from tests.support.gateway import ANSWER, DONE


def _tapped(*chunks: bytes) -> TapResult:
    tap = StreamTap()
    for chunk in chunks:
        tap.feed(chunk)
    return tap.result()


def test_timings_come_first():
    account = account_of(_tapped(*ANSWER, DONE), b"sample")
    assert account.completion_tokens == 3
    assert account.prompt_tokens == 20
    assert account.finish_reason == "stop"
    assert account.sample == b"sample"


def test_a_stream_that_was_cut_is_counted_by_its_events():
    account = account_of(_tapped(*ANSWER[:2]), b"")
    assert account.completion_tokens == 2
    assert account.prompt_tokens is None


def test_usage_will_do_in_either_dialect():
    for body in (
        b'{"usage":{"prompt_tokens":5,"completion_tokens":7}}',
        b'{"usage":{"input_tokens":5,"output_tokens":7}}',
    ):
        account = account_of(plain_result(body), b"")
        assert (account.prompt_tokens, account.completion_tokens) == (5, 7)


def test_a_count_that_cannot_be_is_not_believed():
    body = b'{"usage":{"completion_tokens":9000000000000000000}}'
    assert account_of(plain_result(body), b"").completion_tokens is None


def test_nothing_said_is_nothing_known():
    for body in (b"{}", b"not json", b'{"usage":{"prompt_tokens":true}}'):
        account = account_of(plain_result(body), b"")
        assert (account.prompt_tokens, account.completion_tokens) == (None, None)
