"""A worker's refusal in the gateway's words: status and body to a GatewayError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from router.core import (
    BadRequest,
    GatewayError,
    Loading,
    NotFound,
    NotSupported,
    TooLarge,
    UpstreamFailed,
)

LOADING_RETRY_S: Final = 5.0
_LOADING_TYPE: Final = "unavailable_error"
_CONTEXT_TYPE: Final = "exceed_context_size_error"
_CONTEXT_FIELDS: Final = ("n_prompt_tokens", "n_ctx")


def translate(status: int, body: bytes, worker: str) -> GatewayError:
    """The error that a worker's answer with `status` (not 2xx) means for the client.

    llama-server sends {"error": {"code": integer, "message", "type"}}; others send anything.
    """
    error = _error_object(body)
    message = _message(error, status, worker)
    kind = error.get("type")
    if kind == _CONTEXT_TYPE:
        kept = {key: error[key] for key in _CONTEXT_FIELDS if key in error}
        return BadRequest(message, code="context_length_exceeded", extra={"type": kind, **kept})
    if status == 503 and (kind == _LOADING_TYPE or "loading" in message.lower()):
        return Loading(message, retry_after=LOADING_RETRY_S)
    if status in (401, 403):  # our key, not the client's, was refused
        return UpstreamFailed(f"the worker {worker} does not accept this gateway's key")
    if status == 404:
        return NotFound(message)
    if status == 413:
        return TooLarge(message)
    if 400 <= status < 500:
        return BadRequest(message)
    if status == 501:
        return NotSupported(message)
    return UpstreamFailed(message)


def _error_object(body: bytes) -> Mapping[str, Any]:
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    error = parsed.get("error") if isinstance(parsed, Mapping) else None
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, Mapping) else {}


def _message(error: Mapping[str, Any], status: int, worker: str) -> str:
    message = error.get("message")
    if isinstance(message, str) and message:
        return message
    return f"the worker {worker} answered with status {status}"
