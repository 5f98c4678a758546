from __future__ import annotations

import pytest

from router.core.errors import (
    AnswerUnreadable,
    BadRequest,
    Loading,
    NotFound,
    NotSupported,
    Saturated,
    TooLarge,
    UpstreamFailed,
)
from router.upstream.worker_errors import worker_error


def llama(status: int, kind: str, message: str = "why", **more) -> dict:
    return {"error": {"code": status, "message": message, "type": kind, **more}}


@pytest.mark.parametrize(
    ("status", "kind", "expected", "code"),
    [
        (400, "invalid_request_error", BadRequest, "invalid_value"),
        (404, "not_found_error", NotFound, "not_found"),
        (500, "server_error", UpstreamFailed, "worker_failed"),
        (501, "not_supported_error", NotSupported, None),
        (503, "unavailable_error", Loading, "loading"),
        (413, "x", TooLarge, "request_too_large"),
        (429, "x", Saturated, "queue_full"),
        (418, "x", UpstreamFailed, "worker_failed"),
    ],
)
def test_status_decides_the_refusal(status, kind, expected, code):
    error = worker_error(status, llama(status, kind))
    assert (type(error), error.message, error.code) == (expected, "why", code)


def test_an_answer_that_cannot_be_read_is_nobodys_failure():
    message = "The model produced output that does not match the expected peg-native format"
    error = worker_error(500, {"error": {"code": 500, "message": message, "type": "server_error"}})
    assert isinstance(error, AnswerUnreadable)
    assert not isinstance(error, UpstreamFailed)
    assert (error.status, error.code, error.message) == (502, "worker_failed", message)


def test_context_exceeded_keeps_what_the_worker_said():
    kind = "exceed_context_size_error"
    error = worker_error(400, llama(400, kind, n_prompt_tokens=9000, n_ctx=4096))
    assert error.status == 400
    assert error.payload()["error"] == {
        "message": "why",
        "type": "exceed_context_size_error",
        "param": None,
        "code": "context_length_exceeded",
        "n_prompt_tokens": 9000,
        "n_ctx": 4096,
    }


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_the_gateways_trouble(status):
    error = worker_error(status, llama(status, "authentication_error", "Invalid API Key"))
    assert isinstance(error, UpstreamFailed)
    assert error.message == "the worker refused the gateway's key"


def test_loading_says_when_to_come_back():
    error = worker_error(503, llama(503, "unavailable_error", "Loading model"))
    assert (b"retry-after", b"1") in error.headers()


@pytest.mark.parametrize(
    "payload",
    [None, [], "x", {}, {"error": None}, {"error": []}, {"error": {}}, {"error": {"message": 5}}],
)
def test_an_answer_of_any_shape_is_a_refusal(payload):
    error = worker_error(500, payload)
    assert (error.status, error.message) == (502, "the worker answered with status 500")


def test_other_engines_codes_and_params_are_kept():
    said = {"error": {"message": "m", "code": "bad_tool", "param": "tools", "type": "t"}}
    error = worker_error(400, said)
    assert (error.code, error.param) == ("bad_tool", "tools")
    assert worker_error(404, {"error": "no such route"}).message == "no such route"
