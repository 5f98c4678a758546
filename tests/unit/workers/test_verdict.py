from __future__ import annotations

import pytest

from workers.verdict import Cause, judge


@pytest.mark.parametrize(
    ("code", "said", "cause", "words"),
    [
        (
            1,
            (
                "0.00.009.143 E srv start: couldn't bind HTTP server socket, port: 19301",
                "exiting due to HTTP server error",
            ),
            Cause.PORT_TAKEN,
            "port in use: srv start: couldn't bind",
        ),
        (1, ("error: cannot listen on 127.0.0.1:1: in use",), Cause.PORT_TAKEN, "port in use"),
        (1, ("error: invalid argument: --draft-max",), Cause.UNUSABLE, "bad flag"),
        (1, ("error: unknown flag --x: remove it",), Cause.UNUSABLE, "bad flag: error: unknown"),
        (
            1,
            ("gguf_init_from_file: failed to open GGUF file 'x' (No such file)", "bye"),
            Cause.UNUSABLE,
            "model file cannot be loaded",
        ),
        (
            -6,
            ("ggml_backend_cuda_buffer: cudaMalloc failed: out of memory", "abort"),
            Cause.OUT_OF_MEMORY,
            "out of memory",
        ),
        (-9, ("all fine",), Cause.CRASHED, "ended by SIGKILL"),
        (-11, ("one", "GGML_ASSERT(x) failed", "two"), Cause.CRASHED, "its log ends: GGML_ASSERT"),
        (3, ("hello", "last words"), Cause.CRASHED, "exit code 3; its log ends: last words"),
        (0, (), Cause.CRASHED, "ended with exit code 0"),
        (-99, (), Cause.CRASHED, "signal 99"),
    ],
)
def test_endings_are_read_from_status_and_log(code, said, cause, words):
    verdict = judge(code, said, served=False)
    assert verdict.cause is cause
    assert words in verdict.reason


def test_after_service_words_about_requests_are_not_taken_for_a_failed_start():
    said = ("failed to load model for a request", "error: --x")
    assert judge(-9, said, served=True).cause is Cause.CRASHED
    assert judge(-6, ("out of memory",), served=True).cause is Cause.OUT_OF_MEMORY


def test_long_lines_are_cut():
    assert len(judge(1, ("x" * 5000,), served=False).reason) < 400
