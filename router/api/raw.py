"""Small raw ASGI endpoints: alive, ready, metrics, and the decision without the generation.

They need nothing of the web framework, so that /health answers before it has been imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from router.api.edge import id_header, request_id
from router.core import Endpoint, GatewayError, MethodNotAllowed, NoWorker
from router.relay import Client, ClientGone
from router.relay.client import JSON

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from router.api.edge import ASGIApp
    from router.api.services import Services
    from router.relay.client import Receive, Scope, Send

    Handler = Callable[[Services, Client], Awaitable[tuple[bytes, bytes]]]

METRICS_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
NO_REDIS = "redis unreachable, serving on local state"


def raw_endpoints(services: Services) -> dict[str, ASGIApp]:
    """The endpoints by path."""
    return {
        "/health": endpoint(services, "GET", health),
        "/ready": endpoint(services, "GET", ready),
        "/metrics": endpoint(services, "GET", metrics),
        "/route": endpoint(services, "POST", route),
    }


def endpoint(services: Services, method: str, handler: Handler) -> ASGIApp:
    """`handler` as ASGI: it returns content type and body, or raises the refusal."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        client = Client(scope, receive, send, "")
        client.request_id = request_id(client.headers)
        try:
            if scope["method"] not in (method, "HEAD" if method == "GET" else method):
                raise MethodNotAllowed(f"{scope['path']} takes {method} only", allow=method)
            content_type, body = await handler(services, client)
        except GatewayError as error:
            await client.refuse(error, id_header(client))
        except ClientGone:
            return
        else:
            headers = [(b"content-type", content_type), *id_header(client)]
            await client.respond(200, headers, body)

    return app


async def health(services: Services, client: Client) -> tuple[bytes, bytes]:
    """Alive: the event loop turns."""
    return JSON[1], b'{"status":"ok"}'


async def ready(services: Services, client: Client) -> tuple[bytes, bytes]:
    """Whether a request could be served now, and what is amiss although it could."""
    workers = services.fleet.everything()
    serving = [w for w in workers if w.record.state.serves and w.available]
    redis = redis_state(services)
    if not serving:
        states = ", ".join(f"{w.name} {w.record.state.value}" for w in workers) or "none is known"
        note = f"; {NO_REDIS}" if redis == "down" else ""
        raise NoWorker(f"no worker serves: {states}{note}", retry_after=2.0)
    body = {
        "status": "ready",
        "reason": NO_REDIS if redis == "down" else None,
        "redis": redis,
        "workers": {"serving": len(serving), "known": len(workers)},
        "models": sorted({w.record.model for w in serving}),
    }
    return JSON[1], orjson.dumps(body)


def redis_state(services: Services) -> str:
    """Whether Redis is "up", "down", or not used ("none")."""
    if not services.uses_redis:
        return "none"
    return "up" if services.connectivity.reachable else "down"


async def metrics(services: Services, client: Client) -> tuple[bytes, bytes]:
    """The Prometheus exposition; needs a key once there are keys."""
    services.edge.authenticator.authenticate(client.headers)
    return METRICS_TYPE, services.metrics_text()


async def route(services: Services, client: Client) -> tuple[bytes, bytes]:
    """The decision for a chat body, nothing generated (contract, section 3)."""
    request = await services.edge.read(Endpoint.CHAT, client)
    reading, decision = services.edge.dispatcher.preview(request)
    found, features = reading.classification, reading.features
    body: dict[str, Any] = {
        "class": found.workload_class.value,
        "kind": found.kind,
        "probabilities": dict(found.probabilities),
        "features": {
            name: getattr(features, name) for name in features.__slots__ if name != "names"
        }
        | {"names": sorted(features.names), "prompt_tokens": round(reading.prompt_tokens, 1)},
        "candidates": [candidate.as_dict() for candidate in decision.candidates],
        "chosen": decision.worker,
        "mode": decision.mode,
        "reason": decision.reason.value,
        "propensity": decision.propensity,
        "policy": decision.policy,
        "classified_by": found.source,
        "thinking": found.thinking,
        "language": found.language,
        "expected_output_tokens": found.expected_output_tokens,
    }
    return JSON[1], orjson.dumps(body)
