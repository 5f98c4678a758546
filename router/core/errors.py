"""One tree of refusals and one table to OpenAI error bodies.

GatewayError
  BadRequest            400 invalid_request_error
    MissingFeature      the same: no worker of the model can do what the request needs
  Unauthorized          401 authentication_error
  Forbidden             403 permission_error
  NotFound              404 invalid_request_error
  MethodNotAllowed      405
  TooLarge              413
  UnsupportedMediaType  415
  RateLimited           429 rate_limit_error, code rate_limit_exceeded
  Saturated             429 rate_limit_error, code queue_full
  NotSupported          501 not_supported_error
  UpstreamFailed        502 server_error, code worker_failed
  AnswerUnreadable      502 server_error, code worker_failed
  NoWorker              503 server_error, code no_worker
  Loading               503 server_error, code loading
  UpstreamTimeout       504 server_error, code timeout
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import orjson


class GatewayError(Exception):
    """A refusal with an HTTP status; `retry_after` is in seconds."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    default_code: ClassVar[str] = ""  # none

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code or None
        self.param = param
        self.retry_after = retry_after
        self.extra = extra or {}

    def payload(self) -> dict[str, Any]:
        """The OpenAI error object."""
        return {
            "error": {
                "message": self.message,
                "type": self.extra.get("type", self.type),
                "param": self.param,
                "code": self.code,
                **{k: v for k, v in self.extra.items() if k not in ("type", "sent")},
            }
        }

    def body(self) -> bytes:
        """The JSON body of the refusal."""
        return orjson.dumps(self.payload())

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Headers that tell a client whether and when to try again."""
        rows: list[tuple[bytes, bytes]] = []
        if self.retry_after is not None:
            rows.append((b"retry-after", str(max(1, math.ceil(self.retry_after))).encode()))
        if self.status in (400, 501):
            # The openai SDKs retry 409 and every 5xx; a refusal of the request itself must not be.
            rows.append((b"x-should-retry", b"false"))
        return rows


class BadRequest(GatewayError):
    status, type, default_code = 400, "invalid_request_error", "invalid_value"


class MissingFeature(BadRequest):
    """No worker of the model can do what the request needs; another model may."""


class Unauthorized(GatewayError):
    status, type, default_code = 401, "authentication_error", "invalid_api_key"


class Forbidden(GatewayError):
    status, type = 403, "permission_error"


class NotFound(GatewayError):
    status, type, default_code = 404, "invalid_request_error", "not_found"


class MethodNotAllowed(GatewayError):
    """`allow` names the methods that the path does take."""

    status, type, default_code = 405, "invalid_request_error", "method_not_allowed"

    def __init__(self, message: str, *, allow: str = "", **more: Any) -> None:
        super().__init__(message, **more)
        self.allow = allow

    def headers(self) -> list[tuple[bytes, bytes]]:
        """HTTP wants such a refusal to name them."""
        return [*super().headers(), (b"allow", self.allow.encode("latin-1"))]


class TooLarge(GatewayError):
    status, type, default_code = 413, "invalid_request_error", "request_too_large"


class UnsupportedMediaType(GatewayError):
    status, type, default_code = 415, "invalid_request_error", "unsupported_media_type"


class RateLimited(GatewayError):
    status, type, default_code = 429, "rate_limit_error", "rate_limit_exceeded"


class Saturated(GatewayError):
    status, type, default_code = 429, "rate_limit_error", "queue_full"


class NotSupported(GatewayError):
    status, type = 501, "not_supported_error"


class UpstreamFailed(GatewayError):
    """The worker failed before the first byte; another worker may be tried once."""

    status, default_code = 502, "worker_failed"


class AnswerUnreadable(GatewayError):
    """The model's answer is not in the form that the worker wanted to read it in.

    The worker is not to blame and no other would do better, so the request does not move on.
    """

    status, default_code = 502, "worker_failed"


class NoWorker(GatewayError):
    status, default_code = 503, "no_worker"


class Loading(GatewayError):
    status, default_code = 503, "loading"


class UpstreamTimeout(GatewayError):
    status, default_code = 504, "timeout"
