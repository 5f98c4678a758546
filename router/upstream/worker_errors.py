"""A worker's refusal in the gateway's own terms: one table from status to the error tree."""

from __future__ import annotations

from typing import Any

from router.core.errors import (
    AnswerUnreadable,
    BadRequest,
    GatewayError,
    Loading,
    MethodNotAllowed,
    NotFound,
    NotSupported,
    Saturated,
    TooLarge,
    UnsupportedMediaType,
    UpstreamFailed,
)

_BY_STATUS: dict[int, type[GatewayError]] = {
    400: BadRequest,
    404: NotFound,
    405: MethodNotAllowed,
    413: TooLarge,
    415: UnsupportedMediaType,
    422: BadRequest,
    429: Saturated,
    501: NotSupported,
    503: Loading,
}
_LOADING_RETRY = 1.0  # seconds; a model on a local disk loads in a few
# llama-server's words for an answer that its parser of calls and thoughts cannot follow: a 500.
_UNREADABLE = ("does not match the expected", "Failed to parse input at pos")
_KEPT = ("n_prompt_tokens", "n_ctx")  # what llama-server adds when the context is exceeded


def worker_error(status: int, payload: Any) -> GatewayError:
    """The refusal a client should see for a worker's `status` and its parsed body.

    Statuses that tell of the worker's trouble (5xx but 501 and 503), or of the gateway's own key
    (401, 403), are failures of the worker. llama-server's integer `code` becomes a string.
    """
    error = payload.get("error") if isinstance(payload, dict) else None
    fields: dict[str, Any] = error if isinstance(error, dict) else {}
    message = _message(status, error, fields)
    if fields.get("type") == "exceed_context_size_error":
        return _too_long(message, fields)
    kind = _BY_STATUS.get(status, UpstreamFailed)
    if status == 500 and any(words in message for words in _UNREADABLE):
        kind = AnswerUnreadable
    code = fields.get("code")
    param = fields.get("param")
    return kind(
        message,
        code=code if isinstance(code, str) and status < 500 else None,
        param=param if isinstance(param, str) else None,
        retry_after=_LOADING_RETRY if status in (429, 503) else None,
    )


def _message(status: int, error: Any, fields: dict[str, Any]) -> str:
    if status in (401, 403):
        return "the worker refused the gateway's key"
    said = error if isinstance(error, str) else fields.get("message")
    return said if isinstance(said, str) and said else f"the worker answered with status {status}"


def _too_long(message: str, fields: dict[str, Any]) -> BadRequest:
    kept = {name: fields[name] for name in _KEPT if isinstance(fields.get(name), int)}
    return BadRequest(
        message,
        code="context_length_exceeded",
        extra={"type": "exceed_context_size_error", **kept},
    )
