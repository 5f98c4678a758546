"""llama.cpp's and Anthropic's paths that generate nothing, handed to a suitable worker as they are.

They take no slot: a tokenizer is never the bottleneck, and waiting for one would be absurd.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from router.api.edge import id_header, request_id
from router.api.schema import find_model, read_json
from router.core import Forbidden, GatewayError, MethodNotAllowed, NoWorker, UpstreamFailed
from router.relay import Client, ClientGone

if TYPE_CHECKING:
    from router.api.edge import ASGIApp, Edge
    from router.core import WorkerSnapshot
    from router.relay.client import Receive, Scope, Send
    from router.relay.exchange import Exchanges, Reply

PATHS: Final = (
    "/tokenize",
    "/detokenize",
    "/apply-template",
    "/v1/chat/completions/input_tokens",
    "/v1/messages/count_tokens",
)
TRIES: Final = 2  # workers asked before giving up


class Passthrough:
    """One ASGI callable for all of them: the path says which."""

    def __init__(self, edge: Edge, exchanges: Exchanges) -> None:
        self._edge = edge
        self._exchanges = exchanges

    def endpoints(self) -> dict[str, ASGIApp]:
        """The endpoints by path."""
        return dict.fromkeys(PATHS, self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        client = Client(scope, receive, send, "")
        client.request_id = request_id(client.headers)
        try:
            if scope["method"] != "POST":
                raise MethodNotAllowed(f"{scope['path']} takes POST only", allow="POST")
            reply, worker = await self._answer(scope["path"], client)
        except GatewayError as error:
            await client.refuse(error, id_header(client))
        except ClientGone:
            return
        else:
            headers = [
                (b"content-type", reply.content_type),
                (b"x-specroute-worker", worker.encode()),
                *id_header(client),
            ]
            await client.respond(reply.status, headers, reply.body)

    async def _answer(self, path: str, client: Client) -> tuple[Reply, str]:
        edge = self._edge
        principal = edge.authenticator.authenticate(client.headers)
        edge.rates.acquire(principal.key_id)
        body = await client.read_body(edge.max_body_bytes)
        addressee = find_model(read_json(body, client.headers).get("model"), edge.fleet)
        if principal.models is not None and addressee.model not in principal.models:
            raise Forbidden(f"this key may not use the model {addressee.model!r}", param="model")
        return await self._ask(path, body, self._workers(addressee.model, addressee.worker))

    def _workers(self, model: str, pin: str | None) -> list[WorkerSnapshot]:
        """Those that could answer, the idlest first."""
        able = [
            worker
            for worker in self._edge.fleet.view(model).workers
            if worker.available and pin in (None, worker.name)
        ]
        if not able:
            raise NoWorker(f"no worker serves {model} now", retry_after=5.0)
        return sorted(able, key=lambda worker: worker.in_flight)

    async def _ask(
        self, path: str, body: bytes, workers: list[WorkerSnapshot]
    ) -> tuple[Reply, str]:
        failure: UpstreamFailed | None = None
        for worker in workers[:TRIES]:
            try:
                return await self._exchanges.call(worker.record, "POST", path, body), worker.name
            except UpstreamFailed as error:
                failure = error
        raise failure or NoWorker("no worker could be asked")
