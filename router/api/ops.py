"""The ops API: figures for the dashboard, orders for the agents. Admin token only."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any, Final

import orjson
from fastapi import APIRouter, Depends, Request
from starlette.responses import StreamingResponse

from router.api.deps import JSONAnswer, operator_of, services_of
from router.api.raw import redis_state
from router.core import BadRequest, NotFound, NoWorker
from workers.logs import LEVELS, change_level, current_level
from workers.registry.base import Command, RegistryUnavailable, Verb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from router.api.services import Services
    from router.core import WorkerSnapshot

routes = APIRouter(prefix="/ops", tags=["ops"], dependencies=[Depends(operator_of)])

VERBS: Final = tuple(verb.value for verb in Verb if verb.for_operators)
LOOK_S: Final = 1.0  # how soon a viewer notices that the gateway closes
KEEP_ALIVE_LOOKS: Final = 15


@routes.get("/summary")
async def summary(request: Request) -> JSONAnswer:
    """Workers, classes, queue and totals at this moment."""
    services = services_of(request)
    body = {
        "version": services.version,
        "at": services.clock.wall(),
        "redis": redis_state(services),
        "policy": services.policy.describe(),
        "workers": _workers(services),
        "classes": await services.figures.classes(),
        "queue": {model: services.admission.depth(model) for model in services.fleet.models()},
        "totals": await services.figures.totals(),
    }
    return JSONAnswer(body)


@routes.get("/workers")
async def list_workers(request: Request) -> JSONAnswer:
    """Every worker with its state."""
    return JSONAnswer({"workers": _workers(services_of(request))})


@routes.get("/classes")
async def list_classes(request: Request) -> JSONAnswer:
    """Speed-ups by class and mode."""
    return JSONAnswer({"classes": await services_of(request).figures.classes()})


@routes.get("/decisions")
async def decisions(request: Request) -> StreamingResponse:
    """Finished requests as they finish, one server-sent event each."""
    stream = _decisions(services_of(request))
    return StreamingResponse(stream, media_type="text/event-stream")


@routes.post("/workers/{name}/{verb}")
async def order(request: Request, name: str, verb: str) -> JSONAnswer:
    """Send an order to whoever runs the worker."""
    services = services_of(request)
    if verb not in VERBS:
        raise NotFound(f"no verb {verb[:50]!r}; there are {', '.join(VERBS)}")
    if all(worker.name != name for worker in services.fleet.everything()):
        raise NotFound(f"no worker named {name[:100]!r}", code="worker_not_found")
    command = Command(Verb(verb), name, services.clock.wall(), secrets.token_hex(16))
    try:
        heard = await services.registry.send(command)
    except RegistryUnavailable as error:
        raise NoWorker(f"the order could not be sent: {error}", retry_after=2.0) from error
    if not heard:
        raise NoWorker("no agent is listening for orders", retry_after=2.0)
    return JSONAnswer({"worker": name, "verb": verb, "heard_by": heard})


@routes.get("/policy")
async def get_policy(request: Request) -> JSONAnswer:
    """The policy in use and its settings."""
    return JSONAnswer(services_of(request).policy.describe())


@routes.put("/policy")
async def put_policy(request: Request) -> JSONAnswer:
    """Change policy or settings, until the next start."""
    services, wanted = services_of(request), await _object(request)
    _check_static_worker(services, wanted.get("settings"))
    services.policy.change(wanted)
    return JSONAnswer(services.policy.describe())


def _check_static_worker(services: Services, settings: Any) -> None:
    name = settings.get("static_worker") if isinstance(settings, dict) else None
    if not name:
        return
    names = [worker.name for worker in services.fleet.everything()]
    if name not in names:
        there = ", ".join(sorted(names)) or "none"
        message = f"no worker is named {name!r}; there are: {there}"
        raise BadRequest(message, param="settings.static_worker")


@routes.get("/logs")
async def get_log_level() -> JSONAnswer:
    """The level of the gateway's own log lines."""
    return JSONAnswer({"level": current_level(), "levels": LEVELS})


@routes.put("/logs")
async def put_log_level(request: Request) -> JSONAnswer:
    """Change it, until the next start."""
    wanted = await _object(request)
    if wanted.get("level") not in LEVELS:
        raise BadRequest(f"level must be one of {', '.join(LEVELS)}", param="level")
    change_level(wanted["level"])
    return JSONAnswer({"level": current_level(), "levels": LEVELS})


async def _object(request: Request) -> dict[str, Any]:
    try:
        wanted = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}", code="invalid_json") from error
    if not isinstance(wanted, dict):
        raise BadRequest("the body must be a JSON object", code="invalid_json")
    return wanted


def _workers(services: Services) -> list[dict[str, Any]]:
    return [worker_row(worker) for worker in services.fleet.everything()]


def worker_row(worker: WorkerSnapshot) -> dict[str, Any]:
    """One worker as the ops API shows it; never its command line's environment or key."""
    record = worker.record
    return {
        "name": record.name,
        "model": record.model,
        "mode": record.mode,
        "effective_mode": record.effective_mode,
        "state": record.state.value,
        "reason": record.reason or worker.unavailable_reason,
        "available": worker.available,
        "slots": record.slots,
        "leased_slots": worker.slots,
        "inflight": worker.occupancy,
        "context": record.context,
        "url": record.url,
        "host": record.host,
        "pid": record.pid,
        "engine": record.engine,
        "arms": [arm.mode for arm in record.arms],
        "exclusive_group": record.exclusive_group,
        "held": record.held,
        "load_s": record.load_s,
        "build": record.build,
        "argv": list(record.argv),
        "log_path": record.log_path,
        "progress": record.progress,
        "restarts": record.restarts,
        "crash": record.crash,
        "crashed_at": record.crashed_at,
        "started_at": record.started_at,
        "heartbeat_at": record.heartbeat_at,
        "spec_hash": record.spec_hash,
    }


async def _decisions(services: Services) -> AsyncIterator[bytes]:
    """Ends when the gateway closes, so that a viewer never holds up its shutdown."""
    with services.watch_decisions() as viewer:
        yield b": watching\n\n"
        quiet = 0
        while not services.closing.is_set():
            try:
                row = await asyncio.wait_for(viewer.next(), LOOK_S)
            except TimeoutError:
                quiet += 1
                if quiet % KEEP_ALIVE_LOOKS == 0:
                    yield b": nothing new\n\n"
            else:
                yield b"data: " + orjson.dumps(row) + b"\n\n"
