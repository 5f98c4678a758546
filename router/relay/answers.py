"""Carries an opened answer to the client: bytes unchanged, a tap beside, failures as events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from router.core import Endpoint, GatewayError, UpstreamFailed, UpstreamTimeout
from router.relay.client import JSON, error_event, stream_headers
from router.relay.delivery import Delivery
from router.relay.flight import Account
from router.upstream.assemble import Assembler
from router.upstream.sse import StreamTap, TapResult, UsageFilter, plain_result
from workers.timings import Timings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from router.relay.client import Client
    from router.relay.exchange import Exchange
    from router.relay.flight import Flight


async def relay(flight: Flight, exchange: Exchange, client: Client) -> None:
    """Send the whole answer. The slot is given back as soon as the worker is done with it.

    Raises:
        GatewayError: the worker failed before anything had reached the client.
    """
    if exchange.delivery is Delivery.ASSEMBLED:
        await _assembled(flight, exchange, client)
    elif exchange.delivery is Delivery.WHOLE:
        await _whole(flight, exchange, client)
    else:
        await _stream(flight, exchange, client)


async def _stream(flight: Flight, exchange: Exchange, client: Client) -> None:
    tap = StreamTap()
    flight.reader = lambda: account_of(tap.result(), tap.sample)
    if not client.started:
        await client.start(200, stream_headers(flight.headers()))
    try:
        if exchange.delivery is Delivery.STREAM:
            await _relay_chunks(flight, exchange.chunks(), client, tap)
        else:
            await _relay_filtered(flight, exchange.chunks(), client, tap)
    except (UpstreamFailed, UpstreamTimeout) as error:
        await _break_off(flight, client, error)
        return
    await _end_stream(flight, client, tap)


async def _relay_chunks(
    flight: Flight, chunks: AsyncIterator[bytes], client: Client, tap: StreamTap
) -> None:
    """The inner loop: the client first, the books after."""
    write, feed, saw_content = client.write, tap.feed, flight.saw_content
    async for chunk in chunks:
        await write(chunk)
        if feed(chunk) or tap.first_content:
            saw_content(chunk.count(b"data: {"))


async def _relay_filtered(
    flight: Flight, chunks: AsyncIterator[bytes], client: Client, tap: StreamTap
) -> None:
    """The same without the usage event, which the tap sees all the same."""
    hide = UsageFilter()
    async for chunk in chunks:
        kept = hide.feed(chunk)
        if kept:
            await client.write(kept)
        if (tap.feed(chunk) or tap.first_content) and kept:
            flight.saw_content(kept.count(b"data: {"))
    if rest := hide.finish():
        await client.write(rest)


async def _end_stream(flight: Flight, client: Client, tap: StreamTap) -> None:
    result = tap.result()  # parsed once; the client has the bytes already
    flight.reader = lambda: account_of(result, tap.sample)
    if result.error is not None:
        # The worker has told the client itself, in the stream; only the books need it.
        flight.fail(UpstreamFailed(str(result.error.get("message", "the worker failed"))))
    elif not result.saw_done and flight.request.endpoint is not Endpoint.INFILL:
        # (/infill speaks llama.cpp's own dialect, which has no closing event.)
        await _break_off(flight, client, UpstreamFailed("the worker ended its answer early"))
        return
    else:
        flight.succeed()
    flight.finish()
    await client.end()


async def _break_off(flight: Flight, client: Client, error: GatewayError) -> None:
    flight.fail(error)
    flight.finish()
    await client.end(error_event(error))


async def _assembled(flight: Flight, exchange: Exchange, client: Client) -> None:
    """Streamed by the worker, so that leaving ends its work; one body for the client."""
    if not exchange.content_type.startswith(b"text/event-stream"):
        await _whole(flight, exchange, client)
        return
    tap, assembler = StreamTap(), Assembler()
    flight.reader = lambda: account_of(tap.result(), tap.sample)
    async for chunk in exchange.chunks():
        tap.feed(chunk)
        assembler.feed(chunk)
        if flight.reservation is not None:
            flight.reservation.produced += 1
    await _respond(flight, client, assembler.body(), JSON[1])


async def _whole(flight: Flight, exchange: Exchange, client: Client) -> None:
    body = b"".join([chunk async for chunk in exchange.chunks()])
    flight.reader = lambda: account_of(plain_result(body), body[:16_384])
    await _respond(flight, client, body, exchange.content_type)


async def _respond(flight: Flight, client: Client, body: bytes, content_type: bytes) -> None:
    flight.saw_content(1)
    flight.succeed()
    flight.finish()
    await client.respond(200, [(b"content-type", content_type), *flight.headers()], body)


def account_of(result: TapResult, sample: bytes) -> Account:
    """An answer's own figures; a stream that was cut is counted by its content events."""
    timings = Timings.from_payload(result.timings)
    usage = result.usage or {}
    tokens = timings.predicted_n
    if tokens is None:
        tokens = _count(usage, "completion_tokens", "output_tokens") or result.content_events
    prompt = timings.prompt_tokens
    if prompt is None:
        prompt = _count(usage, "prompt_tokens", "input_tokens")
    return Account(
        timings=timings,
        prompt_tokens=prompt,
        completion_tokens=tokens or None,
        finish_reason=result.finish_reason or "",
        sample=sample,
    )


def _count(usage: Mapping[str, Any], *names: str) -> int | None:
    """The first of the fields that is a number: OpenAI's name, then Anthropic's."""
    values = (usage.get(name) for name in names)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool)), None)
