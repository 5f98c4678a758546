"""GET /v1/models: configured models, their aliases, and every MODEL@WORKER pin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request

from router.api.deps import JSONAnswer, principal_of, services_of
from router.core import NotFound

if TYPE_CHECKING:
    from router.api.services import Services
    from router.core import Principal

routes = APIRouter(tags=["models"])


@routes.get("/v1/models")
async def list_models(request: Request) -> JSONAnswer:
    """Every name that a request's `model` may hold."""
    principal = principal_of(request)
    return JSONAnswer({"object": "list", "data": rows(services_of(request), principal)})


@routes.get("/v1/models/{name:path}")
async def get_model(request: Request, name: str) -> JSONAnswer:
    """One of them."""
    principal = principal_of(request)
    for row in rows(services_of(request), principal):
        if row["id"] == name:
            return JSONAnswer(row)
    raise NotFound(f"the model {name[:100]!r} does not exist here", code="model_not_found")


def rows(services: Services, principal: Principal) -> list[dict[str, Any]]:
    """One OpenAI model object per name; what it stands for is under `specroute`."""
    found: list[dict[str, Any]] = []
    for model, aliases in services.fleet.models().items():
        if principal.models is not None and model not in principal.models:
            continue
        workers = services.fleet.view(model).workers
        created = int(min((w.record.started_at for w in workers), default=0.0))
        found.append(_row(model, created, {"kind": "model", "aliases": list(aliases)}))
        found += [_row(a, created, {"kind": "alias", "model": model}) for a in aliases]
        found += [
            _row(
                f"{model}@{w.name}",
                int(w.record.started_at),
                {
                    "kind": "pin",
                    "model": model,
                    "worker": w.name,
                    "mode": w.record.effective_mode,
                    "state": w.record.state.value,
                    "context": w.record.context,
                },
            )
            for w in workers
        ]
    return found


def _row(name: str, created: int, what: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "specroute",
        "specroute": what,
    }
