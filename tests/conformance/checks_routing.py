"""What only the gateway has: pins, modes, classes, decisions, operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.conformance.suite import check
from tests.conformance.target import COUNTING, refusal

if TYPE_CHECKING:
    import httpx

    from tests.conformance.target import Target

HTTP, SDK = "http", "openai-python"
CHAT = "/v1/chat/completions"


def _ask(t: Target, headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
    body = t.body(**{"model": t.model, "max_tokens": 1, **fields})
    return t.post(CHAT, body, **(headers or {}))


def _served(t: Target, headers: dict[str, str] | None = None, **fields: Any) -> Any:
    answer = _ask(t, headers, **fields)
    assert answer.status_code == 200, answer.text
    return answer.headers


@check(HTTP, gateway_only=True)
def pin_by_the_models_name(t: Target) -> None:
    """MODEL@WORKER is served by that worker, for every worker there is."""
    for worker, mode in t.pins.items():
        headers = _served(t, model=f"{t.model}@{worker}")
        assert headers["x-specroute-worker"] == worker
        assert headers["x-specroute-mode"] == mode


@check(HTTP, gateway_only=True)
def pin_by_header(t: Target) -> None:
    """x-specroute-worker does the same, and the reason says so."""
    for worker in t.pins:
        headers = _served(t, {"x-specroute-worker": worker})
        assert headers["x-specroute-worker"] == worker
        assert headers["x-specroute-reason"] == "pinned"


@check(SDK, gateway_only=True)
def pin_through_the_sdk(t: Target) -> None:
    """A pin needs nothing but the model's name."""
    for worker in t.pins:
        raw = t.openai.chat.completions.with_raw_response.create(
            **t.sdk_body(model=f"{t.model}@{worker}", max_tokens=1)
        )
        assert raw.headers["x-specroute-worker"] == worker


@check(HTTP, gateway_only=True)
def pins_that_disagree_are_refused(t: Target) -> None:
    """A name and a header that pin different workers are a 400."""
    first, second = list(t.pins)[:2]
    answer = _ask(t, {"x-specroute-worker": first}, model=f"{t.model}@{second}")
    assert refusal(answer, 400)["param"] == "x-specroute-worker"


@check(HTTP, gateway_only=True)
def pins_that_agree_are_served(t: Target) -> None:
    """The same pin twice is one pin."""
    first = next(iter(t.pins))
    _served(t, {"x-specroute-worker": first}, model=f"{t.model}@{first}")


@check(HTTP, gateway_only=True)
def pin_to_nobody_by_name(t: Target) -> None:
    """An unknown worker in the model's name is 404 worker_not_found."""
    assert refusal(_ask(t, model=f"{t.model}@nobody"), 404)["code"] == "worker_not_found"


@check(HTTP, gateway_only=True)
def pin_to_nobody_by_header(t: Target) -> None:
    """An unknown worker in the header is 400 worker_not_found."""
    answer = _ask(t, {"x-specroute-worker": "nobody"})
    assert refusal(answer, 400)["code"] == "worker_not_found"


@check(HTTP, gateway_only=True)
def mode_asked_for(t: Target) -> None:
    """x-specroute-mode is honoured for every mode there is, and the reason says so."""
    for mode in t.pins.values():
        headers = _served(t, {"x-specroute-mode": mode})
        assert headers["x-specroute-mode"] == mode
        assert headers["x-specroute-reason"] == "mode_requested"


@check(HTTP, gateway_only=True)
def mode_auto_is_no_wish(t: Target) -> None:
    """`auto` leaves the choice to the gateway, which names mode and reason all the same."""
    headers = _served(t, {"x-specroute-mode": "auto"})
    assert headers["x-specroute-mode"] in t.pins.values()
    assert headers["x-specroute-reason"] != "mode_requested"


@check(HTTP, gateway_only=True)
def mode_that_nobody_offers(t: Target) -> None:
    """A mode that no worker has is 400 mode_unavailable, and not to be tried again."""
    answer = _ask(t, {"x-specroute-mode": "eagle3"})
    assert refusal(answer, 400)["code"] == "mode_unavailable"
    assert answer.headers["x-should-retry"] == "false"


@check(HTTP, gateway_only=True)
def class_by_hint(t: Target) -> None:
    """x-specroute-class overrides the classifier."""
    for name in ("structured", "prose", "reasoning"):
        assert _served(t, {"x-specroute-class": name})["x-specroute-class"] == name


@check(HTTP, gateway_only=True)
def class_that_is_none(t: Target) -> None:
    """Another class is a 400 that names the header."""
    answer = _ask(t, {"x-specroute-class": "poetry"})
    assert refusal(answer, 400)["param"] == "x-specroute-class"


@check(HTTP, gateway_only=True)
def answers_say_who_and_why(t: Target) -> None:
    """Class, worker, mode, reason, id and overhead are in every answer's headers."""
    for stream in (False, True):
        headers = _served(t, stream=stream)
        assert headers["x-specroute-class"] in ("structured", "prose", "reasoning")
        assert t.pins[headers["x-specroute-worker"]] == headers["x-specroute-mode"]
        assert headers["x-specroute-reason"]
        assert headers["x-request-id"]
        assert float(headers["x-specroute-overhead-ms"]) >= 0


@check(HTTP, gateway_only=True)
def refusals_say_who_and_why(t: Target) -> None:
    """A worker's refusal has the same headers."""
    answer = _ask(t, messages=[{"role": "user", "content": "word " * 9000}])
    assert answer.status_code == 400
    assert answer.headers["x-specroute-class"]
    assert answer.headers["x-request-id"]


@check(HTTP, gateway_only=True)
def request_id_comes_back(t: Target) -> None:
    """x-request-id is the caller's where it has one."""
    assert _served(t, {"x-request-id": "mine-42"})["x-request-id"] == "mine-42"
    made = {_served(t)["x-request-id"] for _ in range(2)}
    assert len(made) == 2


@check(HTTP, gateway_only=True)
def session_is_taken(t: Target) -> None:
    """x-session-id names a conversation; its turns are served like others."""
    for _ in range(2):
        _served(t, {"x-session-id": "conformance"})


@check(HTTP, gateway_only=True)
def alias_is_the_model(t: Target) -> None:
    """An alias serves, is listed, and is found by its name."""
    rows = t.http.get("/v1/models").json()["data"]
    aliases = [row["id"] for row in rows if row["specroute"]["kind"] == "alias"]
    assert aliases, "the model has no alias"
    for alias in aliases:
        _served(t, model=alias)
        assert t.http.get(f"/v1/models/{alias}").json()["id"] == alias


@check(HTTP, gateway_only=True)
def alias_can_be_pinned(t: Target) -> None:
    """ALIAS@WORKER is a pin too."""
    rows = t.http.get("/v1/models").json()["data"]
    alias = next(row["id"] for row in rows if row["specroute"]["kind"] == "alias")
    worker = next(iter(t.pins))
    assert _served(t, model=f"{alias}@{worker}")["x-specroute-worker"] == worker


@check(HTTP, gateway_only=True)
def answer_names_the_model(t: Target) -> None:
    """The answer's `model` is the model that answered."""
    assert _ask(t).json()["model"] == t.model


@check(HTTP, gateway_only=True)
def pins_are_listed(t: Target) -> None:
    """The list of models has every MODEL@WORKER."""
    ids = {row["id"] for row in t.http.get("/v1/models").json()["data"]}
    assert {f"{t.model}@{worker}" for worker in t.pins} <= ids


@check(HTTP, gateway_only=True)
def decision_without_an_answer(t: Target) -> None:
    """POST /route tells class, candidates and choice, and generates nothing."""
    answer = t.post(
        "/route", {"model": t.model, "messages": [{"role": "user", "content": COUNTING}]}
    )
    decision = answer.json()
    assert answer.status_code == 200
    assert {"class", "kind", "probabilities", "features", "propensity"} <= decision.keys()
    assert decision["chosen"] in t.pins
    assert decision["reason"]
    parts = decision["candidates"][0]["parts"]
    assert {"queue", "prefill", "decode", "switch", "swap"} <= parts.keys()


@check(HTTP, gateway_only=True)
def without_a_model_the_only_one(t: Target) -> None:
    """Where there is one model, a request need not name it."""
    body = t.body(max_tokens=1)
    del body["model"]
    assert t.post(CHAT, body).status_code == 200


@check(HTTP, gateway_only=True)
def modes_answer_alike(t: Target) -> None:
    """Greedy answers do not depend on the mode."""
    said = {
        _ask(t, model=f"{t.model}@{worker}", max_tokens=24).json()["choices"][0]["message"][
            "content"
        ]
        for worker in t.pins
    }
    assert len(said) == 1, said


@check(HTTP, gateway_only=True)
def alive_and_ready(t: Target) -> None:
    """/health and /ready say so."""
    assert t.http.get("/health").json()["status"] == "ok"
    ready = t.http.get("/ready")
    assert ready.status_code == 200
    assert t.model in ready.json()["models"]


@check(HTTP, gateway_only=True)
def metrics_are_there(t: Target) -> None:
    """/metrics counts the requests by class, worker and mode."""
    _served(t)
    page = t.http.get("/metrics")
    assert page.status_code == 200
    assert "specroute_requests_total{" in page.text


@check(HTTP, gateway_only=True)
def operations_need_the_operator(t: Target) -> None:
    """/ops answers nobody without the admin token."""
    for path in ("/ops/summary", "/ops/workers", "/ops/classes", "/ops/policy"):
        assert t.http.get(path).status_code in (401, 403), path
    assert t.post("/ops/workers/nobody/drain", {}).status_code in (401, 403)


@check(HTTP, gateway_only=True, needs_workers=True)
def operations_for_the_operator(t: Target) -> None:
    """With it the workers are shown as they are."""
    rows = t.http.get("/ops/workers", headers=t.admin).json()["workers"]
    assert {row["name"] for row in rows} == set(t.pins)
