"""A llama-server stand-in for tests: same pages and answers, scripted speed, drafts and faults.

A pure ASGI application, served on real sockets. What an answer reports (`timings`) is computed from
the script and not measured, so that tests can tell the numbers beforehand; what a client waits is
the script's time, really slept.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from workers.modes import MODES
from workers.scripted import Answer, Fault, Script, Shape, plan_answer

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_STATUS_OF = {
    "invalid_request_error": 400,
    "exceed_context_size_error": 400,
    "authentication_error": 401,
    "not_found_error": 404,
    "server_error": 500,
    "unavailable_error": 503,
}

_CHAT_OF = {"/v1/chat/completions": True, "/v1/completions": False}


class BrokenOff(ConnectionError):
    """Raised to make the server drop the connection in the middle of an answer."""


@dataclass(slots=True)
class Counters:
    """What /metrics tells; added when an answer has ended."""

    prompt: int = 0
    predicted: int = 0
    drafts: int = 0
    drafted: int = 0
    accepted: int = 0

    def add(self, timings: Mapping[str, Any]) -> None:
        """Count one answer."""
        self.prompt += timings["prompt_n"]
        self.predicted += timings["predicted_n"]
        self.drafted += timings.get("draft_n", 0)
        self.accepted += timings.get("draft_n_accepted", 0)
        if timings.get("draft_n"):
            self.drafts += timings["predicted_n"] - 1 - timings["draft_n_accepted"]


@dataclass(slots=True)
class Simulator:
    """The application. `served` counts generations that were begun, `cancelled` those cut off."""

    script: Script = field(default_factory=Script)
    counters: Counters = field(default_factory=Counters)
    busy: int = 0
    served: int = 0
    cancelled: int = 0
    sent: int = 0  # tokens of streams
    bodies: list[Mapping[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    _born: float | None = None
    _free: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        headers = {k.decode().lower(): v.decode() for k, v in scope["headers"]}
        body = await _read(receive)
        path, method = scope["path"], scope["method"]
        if path == "/script" and method == "PUT":
            self.script = replace(self.script, **json.loads(body))
            await _send_json(send, 200, asdict(self.script))
        elif not self._loaded():
            await _send_error(send, "unavailable_error", "Loading model")
        elif path == "/health":
            await _send_json(send, 200, {"status": "ok"})
        elif not self._admits(headers):
            await _send_error(send, "authentication_error", "Invalid API Key")
        elif path in _CHAT_OF and method == "POST":
            self.headers.append(headers)
            await self._generate(path, body, receive, send)
        else:
            await self._page(path, send)

    def _loaded(self) -> bool:
        now = asyncio.get_running_loop().time()
        self._born = now if self._born is None else self._born
        return now - self._born >= self.script.load_s

    def _admits(self, headers: Mapping[str, str]) -> bool:
        key = self.script.api_key
        return key is None or headers.get("authorization") == f"Bearer {key}"

    async def _page(self, path: str, send: Send) -> None:
        script = self.script
        if path == "/props":
            settings = {"n_ctx": script.context}
            page: Any = {
                "total_slots": script.slots,
                "default_generation_settings": settings,
                "build_info": "simulated",
                "modalities": {"vision": False},
            }
        elif path == "/slots":
            page = [
                {
                    "id": i,
                    "n_ctx": script.context,
                    "is_processing": i < self.busy,
                    "next_token": [{"n_decoded": self.sent}],
                }
                for i in range(script.slots)
            ]
        elif path == "/v1/models":
            page = {"object": "list", "data": [{"id": "simulated", "object": "model"}]}
        elif path == "/metrics":
            await _send_whole(send, 200, b"text/plain; version=0.0.4", self._metrics())
            return
        else:
            await _send_error(send, "not_found_error", "File Not Found")
            return
        await _send_json(send, 200, page)

    def _metrics(self) -> bytes:
        counters = self.counters
        values = {
            "prompt_tokens_total": counters.prompt,
            "tokens_predicted_total": counters.predicted,
            "spec_decode_num_drafts_total": counters.drafts,
            "spec_decode_num_draft_tokens_total": counters.drafted,
            "spec_decode_num_accepted_tokens_total": counters.accepted,
        }
        lines = (f"# TYPE llamacpp:{n} counter\nllamacpp:{n} {v}\n" for n, v in values.items())
        return "".join(lines).encode()

    async def _generate(self, path: str, body: bytes, receive: Receive, send: Send) -> None:
        try:
            request = json.loads(body)
            answer = plan_answer(self.script, request)
        except (ValueError, AttributeError, TypeError) as error:
            await _send_error(send, "invalid_request_error", f"parse error: {error}")
            return
        self.bodies.append(request)
        if answer.prompt_n > self.script.context:
            extra = {"n_prompt_tokens": answer.prompt_n, "n_ctx": self.script.context}
            message = "the request exceeds the available context size"
            await _send_error(send, "exceed_context_size_error", message, extra)
            return
        async with asyncio.TaskGroup() as tasks:
            work = tasks.create_task(self._in_a_slot(path, request, answer, send))
            gone = tasks.create_task(_until_gone(receive))
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
            self.cancelled += not work.done()
            work.cancel()
            gone.cancel()

    async def _in_a_slot(
        self, path: str, request: Mapping[str, Any], answer: Answer, send: Send
    ) -> None:
        """Wait for a free slot without a word, as llama-server does, then answer."""
        async with self._free:
            await self._free.wait_for(lambda: self.busy < self.script.slots)
            self.busy += 1
            self.served += 1
        try:
            await self._answer(path, request, answer, send)
        finally:
            self.busy -= 1
            async with self._free:
                self._free.notify_all()

    async def _answer(
        self, path: str, request: Mapping[str, Any], answer: Answer, send: Send
    ) -> None:
        script = self.script
        faulty = script.fault != "none" and self.served % script.fault_every == 0
        fault: Fault = script.fault if faulty else "none"
        await _prefill(script.prefill_ms * answer.prompt_n / 1000, busy=script.busy_prefill)
        if fault == "error":
            await _send_error(send, "server_error", "Compute error.")
            return
        shape = Shape(request, answer, _CHAT_OF[path], timed=fault != "no_timings")
        if request.get("stream"):
            await self._stream(shape, answer, send, fault)
        else:
            await self._whole(shape, answer, send, fault)
        self.counters.add(answer.timings)

    async def _whole(self, shape: Shape, answer: Answer, send: Send, fault: Fault) -> None:
        await asyncio.sleep(self.script.step_ms * len(answer.words) / 1000)
        if fault == "stall":
            await asyncio.Event().wait()
        if fault == "close":
            raise BrokenOff
        if fault == "garbage":
            await _send_whole(send, 200, b"application/json", b'{"choices": [{"mess\xff')
            return
        await _send_json(send, 200, shape.whole())

    async def _stream(self, shape: Shape, answer: Answer, send: Send, fault: Fault) -> None:
        await send(_start(200, b"text/event-stream"))
        sent = 0
        for step in answer.words:
            await asyncio.sleep(self.script.step_ms / 1000)
            for word in step:
                if sent == self.script.fault_after:
                    await _misbehave(send, fault)
                await _send_event(send, shape.piece(word, first=sent == 0))
                sent += 1
                self.sent += 1
        for event in shape.ending():
            await _send_event(send, event)
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


async def _prefill(seconds: float, *, busy: bool) -> None:
    """Reading a prompt; `busy` as a real server does: at work, and deaf until it is done."""
    if not busy:
        await asyncio.sleep(seconds)
        return
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while loop.time() < end:
        pass


async def _misbehave(send: Send, fault: Fault) -> None:
    if fault == "stall":
        await asyncio.Event().wait()
    if fault == "close":
        raise BrokenOff
    if fault == "garbage":
        await send(_more(b'data: {"choices": [{"del\xff\n\nnonsense without a colon\n\n'))


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


def _start(status: int, content_type: bytes) -> dict[str, Any]:
    headers = [(b"content-type", content_type), (b"server", b"llama.cpp")]
    return {"type": "http.response.start", "status": status, "headers": headers}


def _more(body: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": True}


async def _send_event(send: Send, event: Mapping[str, Any]) -> None:
    await send(_more(b"data: " + json.dumps(event).encode() + b"\n\n"))


async def _send_whole(send: Send, status: int, content_type: bytes, body: bytes) -> None:
    await send(_start(status, content_type))
    await send({"type": "http.response.body", "body": body})


async def _send_json(send: Send, status: int, value: Any) -> None:
    await _send_whole(send, status, b"application/json; charset=utf-8", json.dumps(value).encode())


async def _send_error(
    send: Send, kind: str, message: str, extra: Mapping[str, Any] | None = None
) -> None:
    status = _STATUS_OF[kind]
    error = {"code": status, "message": message, "type": kind, **(extra or {})}
    await _send_json(send, status, {"error": error})


def main(argv: list[str]) -> None:
    """Serve one stand-in: `--host H --port P [--script JSON]` and what the engine renders."""
    import uvicorn

    parser = argparse.ArgumentParser(prog="python -m workers.simulator", allow_abbrev=False)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--api-key-file", type=Path)
    parser.add_argument("-np", dest="slots", type=int, default=2)
    parser.add_argument("-c", dest="context", type=int, default=4096)
    parser.add_argument("--mode", default="ar", choices=sorted(MODES))
    known = ", ".join(f.name for f in fields(Script))
    parser.add_argument("--script", type=json.loads, default={}, help=f"JSON with any of: {known}")
    args = parser.parse_args(argv)
    key = args.api_key_file.read_text().strip() if args.api_key_file else None
    given = {"slots": args.slots, "context": args.context, "mode": args.mode, "api_key": key}
    script = Script(**{**given, **args.script})
    uvicorn.run(Simulator(script), host=args.host, port=args.port, log_level="warning")


if __name__ == "__main__":
    main(sys.argv[1:])
