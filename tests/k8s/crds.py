"""The parts we use of four custom resources, as strict JSON schemas.

kubernetes-validate knows Kubernetes' own kinds only. Written from the documented fields of Gateway
API v1, prometheus-operator v1 and KEDA v1alpha1; anything we render beyond them fails.
"""

from __future__ import annotations

from typing import Any


def _object(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": required or [],
    }


def _list(items: dict[str, Any], least: int = 1) -> dict[str, Any]:
    return {"type": "array", "minItems": least, "items": items}


_TEXT = {"type": "string", "minLength": 1}
_WHOLE = {"type": "integer", "minimum": 0}
_STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}
_DURATION = {"type": "string", "pattern": r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"}

_HTTP_ROUTE = _object(
    ["parentRefs", "rules"],
    parentRefs=_list(_object(["name"], name=_TEXT, namespace=_TEXT, sectionName=_TEXT)),
    hostnames=_list(_TEXT),
    rules=_list(
        _object(
            matches=_list(_object(path=_object(type={"enum": ["PathPrefix"]}, value=_TEXT))),
            timeouts=_object(request=_DURATION, backendRequest=_DURATION),
            backendRefs=_list(_object(["name", "port"], name=_TEXT, port=_WHOLE)),
        )
    ),
)
_SERVICE_MONITOR = _object(
    ["selector", "endpoints"],
    selector=_object(matchLabels=_STRINGS),
    endpoints=_list(
        _object(
            port=_TEXT,
            path=_TEXT,
            interval=_DURATION,
            authorization=_object(
                type=_TEXT, credentials=_object(["name", "key"], name=_TEXT, key=_TEXT)
            ),
        )
    ),
)
_RULE = _object(
    ["expr"],
    alert=_TEXT,
    record=_TEXT,
    expr=_TEXT,
    **{"for": _DURATION, "keep_firing_for": _DURATION},
    labels=_STRINGS,
    annotations=_STRINGS,
)
_PROMETHEUS_RULE = _object(
    ["groups"],
    groups=_list(_object(["name", "rules"], name=_TEXT, interval=_DURATION, rules=_list(_RULE))),
)
_SCALED_OBJECT = _object(
    ["scaleTargetRef", "triggers"],
    scaleTargetRef=_object(["name"], apiVersion=_TEXT, kind=_TEXT, name=_TEXT),
    minReplicaCount=_WHOLE,
    maxReplicaCount=_WHOLE,
    cooldownPeriod=_WHOLE,
    triggers=_list(
        _object(
            ["type", "metadata"],
            type={"enum": ["prometheus"]},
            metadata=_object(
                ["serverAddress", "query", "threshold"],
                serverAddress=_TEXT,
                query=_TEXT,
                threshold=_TEXT,
            ),
        )
    ),
)

_SPECS: dict[tuple[str, str], dict[str, Any]] = {
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): _HTTP_ROUTE,
    ("monitoring.coreos.com/v1", "ServiceMonitor"): _SERVICE_MONITOR,
    ("monitoring.coreos.com/v1", "PrometheusRule"): _PROMETHEUS_RULE,
    ("keda.sh/v1alpha1", "ScaledObject"): _SCALED_OBJECT,
}


def schema_of(thing: dict[str, Any]) -> dict[str, Any] | None:
    """The schema of a custom resource; None for Kubernetes' own kinds."""
    spec = _SPECS.get((thing["apiVersion"], thing["kind"]))
    if spec is None:
        return None
    metadata = _object(["name"], name=_TEXT, labels=_STRINGS, annotations=_STRINGS)
    return _object(
        ["apiVersion", "kind", "metadata", "spec"],
        apiVersion=_TEXT,
        kind=_TEXT,
        metadata=metadata,
        spec=spec,
    )
