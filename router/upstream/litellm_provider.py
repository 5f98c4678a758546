"""The upstream seam on litellm: remote models of any provider, as OpenAI's bytes.

litellm takes seconds and 200 MB to import, so it is imported here alone, in a thread, when the
first request needs a fallback. Its price list is the one it ships: nothing is fetched.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import orjson

from router.core.errors import (
    BadRequest,
    GatewayError,
    NotSupported,
    Saturated,
    UpstreamFailed,
    UpstreamTimeout,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from router.upstream.base import UpstreamRequest

CALLS: Final[Mapping[str, str]] = {
    "/v1/chat/completions": "acompletion",
    "/v1/completions": "atext_completion",
    "/v1/embeddings": "aembedding",
}
"""The paths that litellm can serve, and by which of its functions."""

EXTRA_HEADER: Final = (b"x-specroute-extra-fields", b"send")
"""In a request's headers: fields that OpenAI does not know go along, in the body."""
_TEXT_FIELDS: Final = frozenset({"prompt", "best_of", "echo", "suffix", "input"})
_STREAM: Final = ((b"content-type", b"text/event-stream; charset=utf-8"),)
_WHOLE: Final = ((b"content-type", b"application/json"),)
_SENT: Final = {"sent": True}


class LiteLLMUpstream:
    """Remote models behind litellm. `UpstreamRequest.base_url` may be empty: the provider's own."""

    def __init__(self) -> None:
        self._library: Any = None
        self._loading = asyncio.Lock()

    async def open(self, request: UpstreamRequest) -> LiteLLMResponse:
        """Send `request`; its body's `model` is litellm's name, PROVIDER/MODEL.

        Raises:
            UpstreamFailed, UpstreamTimeout: as `Upstream.open`.
            GatewayError: the remote refused the request itself.
        """
        if request.path not in CALLS:
            raise NotSupported(f"no fallback serves {request.path}")
        library = await self._loaded()
        fields: dict[str, Any] = orjson.loads(request.body)
        arguments = _arguments(fields, request, library)
        with _translated():
            async with asyncio.timeout(request.first_byte_timeout):
                answer = await getattr(library, CALLS[request.path])(**arguments)
        return LiteLLMResponse(answer, bool(fields.get("stream")), request.idle_timeout)

    async def aclose(self) -> None:
        """Close every pooled connection."""
        if self._library is not None:
            await self._library.close_litellm_async_clients()
            self._library.in_memory_llm_clients_cache.flush_cache()  # it would hand them out again
            await asyncio.sleep(0.01)  # the event loop closes their sockets in its next turns

    async def _loaded(self) -> Any:
        async with self._loading:
            if self._library is None:
                self._library = await asyncio.to_thread(_load)
            return self._library


class LiteLLMResponse:
    """litellm's answer as the bytes that an OpenAI server would have sent."""

    status = 200

    def __init__(self, answer: Any, stream: bool, idle_timeout: float) -> None:
        self.headers = _STREAM if stream else _WHOLE
        self._answer = answer
        self._stream = stream
        self._idle_timeout = idle_timeout

    async def chunks(self) -> AsyncIterator[bytes]:
        """One event per chunk of a stream, or the whole body; see `UpstreamResponse.chunks`."""
        if not self._stream:
            yield _json(self._answer)
            return
        while True:
            with _translated():
                async with asyncio.timeout(self._idle_timeout):
                    chunk = await anext(self._answer, None)
            if chunk is None:
                break
            yield b"data: %b\n\n" % _json(chunk)
        yield b"data: [DONE]\n\n"

    async def aclose(self) -> None:
        """Break a stream that was not read to its end, so that the remote stops generating."""
        # The wrapper of text completions has no aclose of its own.
        stream = getattr(self._answer, "completion_stream", None) if self._stream else None
        close = getattr(self._answer, "aclose", None) or getattr(stream, "aclose", None)
        if self._stream and close is not None:
            await close()


def _load() -> Any:
    """litellm, made quiet and offline."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # noqa: TID251 - read at its import
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.disable_aiohttp_transport = True  # httpx, which this gateway has anyway
    litellm.drop_params = True  # what a provider cannot do is left out, as its users expect
    return litellm


def _arguments(fields: dict[str, Any], request: UpstreamRequest, library: Any) -> dict[str, Any]:
    """What litellm is called with; fields that OpenAI does not know only where they are wanted."""
    known = _TEXT_FIELDS.union(
        library.constants.DEFAULT_CHAT_COMPLETION_PARAM_VALUES,
        library.constants.OPENAI_EMBEDDING_PARAMS,
    ) - {"custom_llm_provider", "api_version", "extra_headers", "max_retries"}
    arguments = {name: value for name, value in fields.items() if name in known}
    headers = dict(request.headers)
    more = {name: value for name, value in fields.items() if name not in known}
    if more and EXTRA_HEADER in request.headers:
        arguments["extra_body"] = more
    authorization = headers.get(b"authorization", b"").removeprefix(b"Bearer ")
    arguments["api_key"] = authorization.decode("latin-1") or None
    arguments["api_base"] = request.base_url or None
    arguments["timeout"] = request.first_byte_timeout + request.idle_timeout
    arguments["max_retries"] = arguments["num_retries"] = 0
    return arguments


def _json(answer: Any) -> bytes:
    text: str = answer.model_dump_json(exclude_none=True)
    return text.encode()


@contextmanager
def _translated() -> Iterator[None]:
    """Whatever litellm or a provider's client raises, as the seam's errors."""
    try:
        yield
    except TimeoutError as error:
        raise UpstreamTimeout("the fallback sent nothing in time", extra=_SENT) from error
    except Exception as error:
        raise _as_ours(error) from error


def _as_ours(error: Exception) -> GatewayError:
    status = getattr(error, "status_code", 500)
    if status in (401, 403):
        return UpstreamFailed("the fallback refused the configured key", extra=_SENT)
    message = f"the fallback: {str(error)[:500]}"
    if status in (400, 413, 422):
        return BadRequest(message)
    if status == 429:
        return Saturated(message, retry_after=1.0)
    if status in (408, 504):
        return UpstreamTimeout(message, extra=_SENT)
    return UpstreamFailed(message, extra=_SENT)
