"""Spans of real requests, read by a receiver that speaks the official OTLP over HTTP."""

from __future__ import annotations

import asyncio
import gzip
import subprocess
import sys
import threading
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import uvicorn
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.support.gateway import gateway, worker_at
from tests.support.waiting import until
from workers.simulator import Simulator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@dataclass
class Receiver:
    """What an OTLP/HTTP receiver has been sent."""

    url: str
    exports: list[ExportTraceServiceRequest] = field(default_factory=list)

    @property
    def spans(self) -> dict[str, Span]:
        """Spans by name; of equal names the last."""
        return {
            span.name: span
            for export in self.exports
            for resource in export.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }


@contextmanager
def receiver() -> Iterator[Receiver]:
    exports: list[ExportTraceServiceRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            assert self.headers["content-type"] == "application/x-protobuf"
            exports.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Receiver(f"http://127.0.0.1:{server.server_port}", exports)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@asynccontextmanager
async def simulator() -> AsyncIterator[tuple[Simulator, str]]:
    app = Simulator()
    config = uvicorn.Config(app, port=0, lifespan="off", log_config=None, ws="none")
    server = uvicorn.Server(config)
    async with asyncio.TaskGroup() as group:
        group.create_task(server._serve())
        await until(lambda: server.started)
        yield app, f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        server.should_exit = True


def attributes(span: Span) -> dict[str, object]:
    values = {}
    for item in span.attributes:
        kind = item.value.WhichOneof("value")
        value = getattr(item.value, kind)
        values[item.key] = (
            [v.string_value for v in value.values] if kind == "array_value" else value
        )
    return values


async def test_one_request_is_one_tree_of_spans_from_caller_to_worker() -> None:
    with receiver() as otlp:
        async with (
            simulator() as (worker, url),
            gateway(
                worker_at(url, mode="mtp-n3", effective_mode="mtp-n3"), otlp_endpoint=otlp.url
            ) as running,
        ):
            answer = await running.chat(
                "tell me a tale", stream=True, headers={"traceparent": CALLER, "tracestate": "a=b"}
            )
            assert answer.status_code == 200
        spans = otlp.spans  # closing the gateway exports what waits
    assert set(spans) - {"queue"} == {"POST /v1/chat/completions", "route", "chat tiny", "stream"}
    server, client = spans["POST /v1/chat/completions"], spans["chat tiny"]
    assert {span.trace_id.hex() for span in spans.values()} == {CALLER[3:35]}
    assert server.parent_span_id.hex() == CALLER[36:52]
    assert (server.kind, client.kind) == (Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CLIENT)
    assert client.parent_span_id == spans["route"].parent_span_id == server.span_id
    assert spans["stream"].parent_span_id == client.span_id
    told = worker.headers[-1]
    assert told["traceparent"] == f"00-{CALLER[3:35]}-{client.span_id.hex()}-01"
    assert told["tracestate"] == "a=b"
    for span in spans.values():
        assert server.start_time_unix_nano <= span.start_time_unix_nano
        assert span.start_time_unix_nano <= span.end_time_unix_nano <= server.end_time_unix_nano
    said = attributes(client)
    assert said["gen_ai.operation.name"] == "chat"
    assert said["gen_ai.request.model"] == "tiny"
    assert said["gen_ai.usage.output_tokens"] == running.outcomes[0].completion_tokens
    assert said["gen_ai.response.finish_reasons"] == [running.outcomes[0].finish_reason]
    assert attributes(spans["route"])["specroute.reason"] == "only_candidate"
    resource = otlp.exports[0].resource_spans[0].resource
    assert "specroute" in {item.value.string_value for item in resource.attributes}


async def test_spans_hold_no_prompt_no_answer_and_no_key() -> None:
    with receiver() as otlp:
        async with (
            simulator() as (_, url),
            gateway(worker_at(url), otlp_endpoint=otlp.url) as running,
        ):
            answer = await running.chat("the secret word is xylophone")
            said = answer.json()["choices"][0]["message"]["content"]
        exported = b"".join(export.SerializeToString() for export in otlp.exports)
    assert exported
    for private in (b"xylophone", said.encode(), b"admin-token-of-the-tests"):
        assert private not in exported


async def test_a_refusal_is_a_failed_span_and_begins_a_trace_of_its_own() -> None:
    with receiver() as otlp:
        async with gateway(worker_at("http://127.0.0.1:9"), otlp_endpoint=otlp.url) as running:
            answer = await running.chat(headers={"traceparent": "garbled"})
            assert answer.status_code >= 500
        span = otlp.spans["POST /v1/chat/completions"]
    assert span.status.code == Status.STATUS_CODE_ERROR
    assert span.parent_span_id == b""
    assert any(span.trace_id)
    assert attributes(span)["http.response.status_code"] == answer.status_code


async def test_an_unsampled_caller_is_followed_but_not_recorded() -> None:
    with receiver() as otlp:
        async with (
            simulator() as (worker, url),
            gateway(worker_at(url), otlp_endpoint=otlp.url) as running,
        ):
            await running.chat(headers={"traceparent": CALLER[:-1] + "0"})
            assert worker.headers[-1]["traceparent"].startswith(CALLER[:35])
            assert worker.headers[-1]["traceparent"].endswith("-00")
        assert not otlp.exports


async def test_without_an_endpoint_the_callers_context_passes_unchanged() -> None:
    async with simulator() as (worker, url), gateway(worker_at(url)) as running:
        await running.chat(headers={"traceparent": CALLER})
        assert worker.headers[-1]["traceparent"] == CALLER
        await running.chat()
        assert "traceparent" not in worker.headers[-1]


async def test_a_dead_receiver_costs_no_request() -> None:
    async with (
        simulator() as (_, url),
        gateway(worker_at(url), otlp_endpoint="http://127.0.0.1:9") as running,
    ):
        answers = [await running.chat() for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200] * 5


def test_the_exporter_is_not_imported_until_an_endpoint_is_configured() -> None:
    probe = (
        "import sys; import router.app; "
        "sys.exit(any(name.startswith('opentelemetry.exporter') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0
