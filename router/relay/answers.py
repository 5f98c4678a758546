"""Carries an opened answer to the client: bytes unchanged, a tap beside, failures as events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from router.core import Endpoint, GatewayError, UpstreamFailed, UpstreamTimeout
from router.relay.choices import ChoiceMerger, missing_role
from router.relay.client import JSON, error_event, stream_headers
from router.relay.delivery import Delivery
from router.relay.flight import Account
from router.relay.wire import WireClient
from router.upstream.assemble import Assembler
from router.upstream.sse import StreamTap, TapResult, UsageFilter, plain_result
from workers.timings import Timings, token_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from router.relay.client import Client
    from router.relay.exchange import Exchange
    from router.relay.flight import Flight
    from router.upstream.exchange import HTTP11Response


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
    hide = _filter_for(flight, exchange)
    if not client.started:
        await client.start(200, stream_headers(flight.headers()))
    try:
        if role := _role_left_out(flight, exchange):
            await client.write(role)
        pushed, merges = exchange.pushed, isinstance(hide, ChoiceMerger)
        if pushed is not None and isinstance(client, WireClient) and not merges:
            rest = await _push_chunks(flight, exchange, pushed, client, tap, hide)
        else:
            rest = await _relay_chunks(flight, exchange, client, tap, hide)
    except (UpstreamFailed, UpstreamTimeout) as error:
        failed: GatewayError = error
    else:
        await _end_stream(flight, client, tap, rest)
        return
    await _break_off(flight, client, failed)


def _filter_for(flight: Flight, exchange: Exchange) -> UsageFilter | ChoiceMerger | None:
    if exchange.delivery is Delivery.CHOICES:
        return ChoiceMerger(flight.request.payload["n"])
    return UsageFilter() if exchange.delivery is Delivery.STREAM_WITHOUT_USAGE else None


def _role_left_out(flight: Flight, exchange: Exchange) -> bytes:
    is_chat = flight.request.endpoint is Endpoint.CHAT
    only = exchange.delivery is not Delivery.CHOICES  # which looks after its own
    return missing_role(exchange.first) if is_chat and only else b""


async def _push_chunks(
    flight: Flight,
    exchange: Exchange,
    pushed: HTTP11Response,
    client: WireClient,
    tap: StreamTap,
    hide: UsageFilter | ChoiceMerger | None,
) -> bytes:
    """From socket to socket within one callback: the client first, the books after.

    What came together with the end is returned, less what is hidden, for the client.
    """
    push, feed, saw_content = client.push, tap.feed, flight.saw_content

    def take(chunk: bytes) -> bool:
        kept = chunk if hide is None else hide.feed(chunk)
        has_room = push(kept)
        events = feed(chunk)
        if events and kept:
            saw_content(events)
        return has_room

    client.on_room = pushed.resume
    try:
        last = await exchange.pump(pushed, take)
    finally:
        client.on_room = None
    events = feed(last)
    if events:
        saw_content(events)
    return last if hide is None else hide.feed(last) + hide.finish()


async def _relay_chunks(
    flight: Flight,
    exchange: Exchange,
    client: Client,
    tap: StreamTap,
    hide: UsageFilter | ChoiceMerger | None,
) -> bytes:
    """The same for other clients and transports; what was held back is returned."""
    async for chunk in exchange.chunks():
        kept = chunk if hide is None else hide.feed(chunk)
        if kept:
            await client.write(kept)
        events = tap.feed(chunk)
        if events and kept:
            flight.saw_content(events)
    return b"" if hide is None else hide.finish()


async def _end_stream(flight: Flight, client: Client, tap: StreamTap, rest: bytes) -> None:
    result = tap.result()  # parsed once; the client has all but the last bytes already
    flight.reader = lambda: account_of(result, tap.sample)
    if result.error is not None:
        # The worker has told the client itself, in the stream; only the books need it.
        flight.fail(UpstreamFailed(str(result.error.get("message", "the worker failed"))))
    elif not result.saw_done and flight.request.endpoint is not Endpoint.INFILL:
        # (/infill speaks llama.cpp's own dialect, which has no closing event.)
        await _break_off(flight, client, UpstreamFailed("the worker ended its answer early"), rest)
        return
    else:
        flight.succeed()
    flight.finish()
    await client.end(rest)


async def _break_off(
    flight: Flight, client: Client, error: GatewayError, rest: bytes = b""
) -> None:
    flight.fail(error)
    flight.finish()
    await client.end(rest + error_event(error))


async def _assembled(flight: Flight, exchange: Exchange, client: Client) -> None:
    """Streamed by the worker, so that leaving ends its work; one body for the client."""
    if not exchange.content_type.startswith(b"text/event-stream"):
        await _whole(flight, exchange, client)
        return
    assembler = Assembler()
    flight.reader = lambda: account_of(assembler.result(), assembler.sample)

    def take(chunk: bytes) -> bool:
        assembler.feed(chunk)
        if flight.reservation is not None:
            flight.reservation.produced += 1
        return True

    if exchange.pushed is not None:
        take(await exchange.pump(exchange.pushed, take))
    else:
        async for chunk in exchange.chunks():
            take(chunk)
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
    """The first of the fields that is a count: OpenAI's name, then Anthropic's."""
    counts = (token_count(usage.get(name)) for name in names)
    return next((count for count in counts if count is not None), None)
