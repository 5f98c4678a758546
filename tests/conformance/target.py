"""The server that is checked: its address, and every client that talks to it, made when needed."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import anthropic
    import openai

    from tests.conformance.suite import Check

PATIENCE = 120.0  # seconds for one answer, on the slowest machine
COUNTING = "Count from 1 to 5."


class Worker:
    """A llama-server behind the target, whose /slots can be read."""

    def __init__(self, name: str, url: str, key: str) -> None:
        self.name = name
        self.url = url
        self.headers = {"authorization": f"Bearer {key}"} if key else {}

    def slots(self) -> list[dict[str, Any]]:
        """What each slot does now."""
        answer = httpx.get(f"{self.url}/slots", headers=self.headers, timeout=PATIENCE)
        answer.raise_for_status()
        return answer.json()

    def busy(self) -> int:
        """Slots at work now."""
        return sum(slot["is_processing"] for slot in self.slots())

    def total(self) -> int:
        """Slots there are."""
        return len(self.slots())

    def until_busy(
        self, slots: int, every: float = 0.03, unless: Callable[[], bool] = lambda: False
    ) -> float:
        """Wait until exactly so many slots work, looking `every` so often; the seconds it took."""
        began = time.monotonic()
        while self.busy() != slots:
            assert time.monotonic() - began < PATIENCE, f"{self.name} has {self.busy()} busy slots"
            assert not unless(), "the request was refused"
            time.sleep(every)
        return time.monotonic() - began


class Target:
    """A gateway, or one llama-server by itself (`is_gateway` False).

    `model` is any name the server takes; `exact` one whose answers are the same each time: on a
    gateway a name that pins a plain worker.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str = "unused",
        is_gateway: bool = True,
        model: str | None = None,
        exact: str | None = None,
        workers: Mapping[str, Worker] | None = None,
        admin: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.api_key = api_key
        self.is_gateway = is_gateway
        self.workers = dict(workers or {})
        self.admin = dict(admin or {})
        self.folder = folder
        self._closing = ExitStack()
        self._model, self._exact = model, exact
        self.memo: dict[str, Any] = {}

    @property
    def v1(self) -> str:
        """The base URL as OpenAI's clients want it."""
        return f"{self.base_url}/v1"

    @cached_property
    def _models(self) -> list[dict[str, Any]]:
        return self.http.get("/v1/models").json()["data"]

    @property
    def model(self) -> str:
        """A model's name."""
        return self._model or self._models[0]["id"]

    @cached_property
    def pins(self) -> dict[str, str]:
        """The worker's name behind each MODEL@WORKER, and its mode."""
        rows = [row["specroute"] for row in self._models if "specroute" in row]
        return {row["worker"]: row["mode"] for row in rows if row["kind"] == "pin"}

    @property
    def exact(self) -> str:
        """The name of what always answers the same."""
        plain = [worker for worker, mode in self.pins.items() if mode == "ar"]
        pinned = f"{self.model}@{plain[0]}" if self.is_gateway and plain else self.model
        return self._exact or pinned

    @property
    def exact_worker(self) -> Worker:
        """The worker behind `exact`."""
        return self.workers[self.exact.rpartition("@")[2]] if self.is_gateway else self.workers[""]

    def cannot_run(self, check: Check) -> str:
        """Why the check cannot be run here; empty if it can."""
        if check.gateway_only and not self.is_gateway:
            return "is about the gateway"
        if check.needs_workers and not self.workers:
            return "needs the workers' /slots: give --state-dir"
        return ""

    # -- clients --------------------------------------------------------------------------------

    @cached_property
    def http(self) -> httpx.Client:
        """Plain HTTP with the key."""
        headers = {"authorization": f"Bearer {self.api_key}"}
        made = httpx.Client(
            base_url=self.base_url, headers=headers, timeout=PATIENCE, limits=self.limits
        )
        return self._closing.enter_context(made)

    def plain_client(self) -> httpx.Client:
        """A client for an SDK that brings its own address and key."""
        if "plain" not in self.memo:
            made = httpx.Client(timeout=PATIENCE, limits=self.limits)
            self.memo["plain"] = self._closing.enter_context(made)
        return self.memo["plain"]

    @property
    def limits(self) -> httpx.Limits:
        """One request per connection to a llama-server, which closes after a stream unannounced."""
        return httpx.Limits(max_keepalive_connections=20 if self.is_gateway else 0)

    @cached_property
    def openai(self) -> openai.OpenAI:
        """OpenAI's SDK."""
        import openai

        return self._closing.enter_context(
            openai.OpenAI(
                base_url=self.v1,
                api_key=self.api_key,
                max_retries=0,
                timeout=PATIENCE,
                http_client=openai.DefaultHttpxClient(limits=self.limits),
            )
        )

    @cached_property
    def anthropic(self) -> anthropic.Anthropic:
        """Anthropic's SDK."""
        import anthropic

        return self._closing.enter_context(
            anthropic.Anthropic(
                base_url=self.base_url,
                api_key=self.api_key,
                max_retries=0,
                timeout=PATIENCE,
                http_client=anthropic.DefaultHttpxClient(limits=self.limits),
            )
        )

    def on_close(self, callback: Callable[[], Any]) -> None:
        """Call back when the target is no longer needed."""
        self._closing.callback(callback)

    def close(self) -> None:
        """Close every client."""
        self._closing.close()

    # -- requests -------------------------------------------------------------------------------

    def body(self, text: str = COUNTING, **fields: Any) -> dict[str, Any]:
        """A short greedy chat request whose answer does not depend on what was cached."""
        fixed = {"max_tokens": 8, "temperature": 0, "cache_prompt": False}
        messages = [{"role": "user", "content": text}]
        return {"model": self.exact, "messages": messages, **fixed, **fields}

    def sdk_body(self, text: str = COUNTING, **fields: Any) -> dict[str, Any]:
        """The same for OpenAI's SDK, which wants fields that it does not know apart."""
        extra = {"cache_prompt": False, **fields.pop("extra_body", {})}
        body = self.body(text, **fields)
        del body["cache_prompt"]
        return {**body, "extra_body": extra}

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        """One POST with a JSON body."""
        return self.http.post(path, json=body, headers=headers)

    def chat(self, text: str = COUNTING, **fields: Any) -> dict[str, Any]:
        """The answer to one chat request, which must succeed."""
        answer = self.post("/v1/chat/completions", self.body(text, **fields))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def events(self, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The events of one stream, which must succeed and end with [DONE]."""
        answer = self.post(path, {**body, "stream": True})
        assert answer.status_code == 200, answer.text
        rows = [row.removeprefix("data: ") for row in answer.text.split("\n\n") if row.strip()]
        assert rows[-1] == "[DONE]", answer.text[-300:]
        return [json.loads(row) for row in rows[:-1]]

    def chat_events(self, text: str = COUNTING, **fields: Any) -> list[dict[str, Any]]:
        """The events of one streamed chat answer."""
        return self.events("/v1/chat/completions", self.body(text, **fields))


def text_of(events: list[dict[str, Any]], field: str = "content") -> str:
    """The text of a streamed chat answer."""
    choices = [choice for event in events for choice in event["choices"]]
    return "".join(choice["delta"].get(field) or "" for choice in choices)


def refusal(answer: httpx.Response, status: int) -> dict[str, Any]:
    """The error of a refusal in OpenAI's form with that status."""
    assert answer.status_code == status, f"{answer.status_code} {answer.text[:200]}"
    error = answer.json()["error"]
    assert {"message", "type", "param", "code"} <= error.keys(), error
    assert error["code"] is None or isinstance(error["code"], str), error
    assert error["message"], error
    return error
