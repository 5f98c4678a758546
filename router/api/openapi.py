"""The OpenAPI document: the framework's own routes, and the hot paths it knows nothing of.

Only fields that the gateway itself checks are described (`router.api.schema`); workers take more,
and what is not described goes through unread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastapi.openapi.utils import get_openapi

from router.api.passthrough import PATHS
from router.api.schema import MAX_CHOICES
from router.core import Endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI

    Schema = Mapping[str, Any]

_STRING: Final[Schema] = {"type": "string"}
_TOKENS: Final[Schema] = {"type": "integer", "minimum": -1, "maximum": 10_000_000}
_NUMBER: Final[Schema] = {"type": "number", "minimum": -1000, "maximum": 1000}
_OBJECT: Final[Schema] = {"type": "object"}
_ERROR_REF: Final[Schema] = {"$ref": "#/components/schemas/Error"}

ERROR: Final[Schema] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": _STRING,
                "type": _STRING,
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}
REFUSALS: Final[Mapping[str, str]] = {
    "400": "The body or a header is not acceptable, or the prompt too long",
    "401": "No or a wrong API key",
    "403": "The key may not do this, or an unknown Host on a gateway without keys",
    "404": "No such model, worker or path",
    "405": "The path takes another method",
    "413": "The body is too large",
    "415": "The content type is not application/json",
    "429": "The key's limit is used up, or the queue is full; see Retry-After",
    "501": "No worker of the model offers this",
    "502": "The worker failed, and no other could take over",
    "503": "No worker can serve now, or the model is loading; see Retry-After",
    "504": "The worker took too long",
}
_MESSAGE: Final[Schema] = {
    "type": "object",
    "required": ["role"],
    "properties": {
        "role": _STRING,
        "content": {"anyOf": [_STRING, {"type": "array", "items": _OBJECT}, {"type": "null"}]},
    },
}
_SHARED: Final[Schema] = {
    "model": {**_STRING, "description": "A model, an alias, or MODEL@WORKER"},
    "stream": {"type": "boolean"},
    "stream_options": _OBJECT,
    "n": {"type": "integer", "minimum": 1, "maximum": MAX_CHOICES},
    "max_tokens": _TOKENS,
    "temperature": _NUMBER,
    "top_p": _NUMBER,
    "stop": {"anyOf": [_STRING, {"type": "array", "items": _STRING}]},
    "grammar": _STRING,
}
_CHAT: Final[Schema] = {
    **_SHARED,
    "messages": {"type": "array", "minItems": 1, "items": _MESSAGE},
    "max_completion_tokens": _TOKENS,
    "tools": {"type": "array", "items": _OBJECT},
    "response_format": _OBJECT,
    "chat_template_kwargs": _OBJECT,
}
_PROMPT: Final[Schema] = {
    "anyOf": [_STRING, {"type": "array", "minItems": 1, "items": {"anyOf": [_STRING, _TOKENS]}}]
}
_GENERATING: Final[Mapping[Endpoint, tuple[str, tuple[str, ...], Schema]]] = {
    Endpoint.CHAT: ("OpenAI chat completions", ("model", "messages"), _CHAT),
    Endpoint.COMPLETIONS: (
        "OpenAI text completions",
        ("model", "prompt"),
        {**_SHARED, "prompt": _PROMPT},
    ),
    Endpoint.RESPONSES: (
        "OpenAI responses",
        ("model", "input"),
        {
            "model": _STRING,
            "input": {"anyOf": [_STRING, {"type": "array"}]},
            "stream": {"type": "boolean"},
        },
    ),
    Endpoint.MESSAGES: (
        "Anthropic messages",
        ("model", "messages", "max_tokens"),
        {**_SHARED, "messages": _CHAT["messages"]},
    ),
    Endpoint.EMBEDDINGS: (
        "Embeddings",
        ("model", "input"),
        {"model": _STRING, "input": {"anyOf": [_STRING, {"type": "array", "items": _STRING}]}},
    ),
    Endpoint.RERANK: (
        "Reranking",
        ("model", "query", "documents"),
        {"model": _STRING, "query": _STRING, "documents": {"type": "array", "items": _STRING}},
    ),
    Endpoint.INFILL: (
        "llama.cpp's infill",
        (),
        {"model": _STRING, "input_prefix": _STRING, "input_suffix": _STRING},
    ),
}
_HEADERS: Final = {
    "x-specroute-worker": {**_STRING, "description": "Pin a worker"},
    "x-specroute-mode": {**_STRING, "description": "Ask for a mode; auto is the default"},
    "x-specroute-class": {"type": "string", "enum": ["structured", "prose", "reasoning"]},
    "x-session-id": {**_STRING, "description": "Keeps a conversation together"},
}


def document(app: FastAPI) -> dict[str, Any]:
    """The whole document, made once."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            separate_input_output_schemas=False,
        )
        made["paths"] = {**_hot_paths(), **made["paths"]}
        components = made.setdefault("components", {})
        components.setdefault("schemas", {})["Error"] = ERROR
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        for item in made["paths"].values():
            for operation in item.values():
                _finish(operation)
        app.openapi_schema = made
    return app.openapi_schema


def _finish(operation: dict[str, Any]) -> None:
    """Every operation may be refused in the contract's form, and may need a key."""
    responses = operation["responses"]
    responses.pop("422", None)  # the framework's own way to refuse, which is not used
    refusal = {"application/json": {"schema": _ERROR_REF}}
    for status, description in REFUSALS.items():
        responses.setdefault(status, {"description": description, "content": refusal})
    operation.setdefault("security", [{"key": []}, {}])


def _hot_paths() -> dict[str, Any]:
    paths = {e.value: {"post": _generating(e)} for e in _GENERATING}
    paths["/route"] = {"post": _post("The decision, nothing generated", ("messages",), _CHAT)}
    for path in PATHS:
        paths[path] = {"post": _post("Answered by a suitable worker", (), {"model": _STRING})}
    for path, summary in (("/health", "Alive"), ("/ready", "Can serve"), ("/metrics", "Metrics")):
        kind = "text/plain" if path == "/metrics" else "application/json"
        answer = {"200": {"description": summary, "content": {kind: {}}}}
        paths[path] = {"get": {"summary": summary, "responses": answer}}
    return paths


def _generating(endpoint: Endpoint) -> dict[str, Any]:
    summary, required, properties = _GENERATING[endpoint]
    operation = _post(summary, required, properties)
    if endpoint.generates:
        operation["responses"]["200"]["content"]["text/event-stream"] = {}
    operation["parameters"] = [
        {"name": name, "in": "header", "required": False, "schema": schema}
        for name, schema in _HEADERS.items()
    ]
    return operation


def _post(summary: str, required: tuple[str, ...], properties: Schema) -> dict[str, Any]:
    schema = {"type": "object", "required": list(required), "properties": properties}
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {"200": {"description": "The answer", "content": {"application/json": {}}}},
    }
