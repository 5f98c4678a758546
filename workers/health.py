"""What a worker says about itself: /health, /props, /slots, and the start probe."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import httpx

from workers.arms import N_MAX, offered
from workers.drafting import Counts
from workers.modes import MODES
from workers.watchdog import Sighting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workers.engines import Engine, Routes
    from workers.spec import WorkerSpec
    from workers.timings import Timings

PROBE_TOKENS = 64
_OBEDIENCE_TOKENS = 16
_COUNTED = (
    "tokens_predicted_total",
    "spec_decode_num_draft_tokens_total",
    "spec_decode_num_accepted_tokens_total",
)
_COUNTER = re.compile(r"^llamacpp:(\w+) ([0-9.eE+]+)$", re.MULTILINE)
_SIGHT_S = 2.0  # no answer in time is no offence: the watchdog asks for other signs of life then
# Text that any model continues on its own track, so that a drafter that fits has an easy time.
_PROBE_PROMPT = "Count from 1 to 60. Write only the numbers, separated by commas."


@dataclass(frozen=True, slots=True)
class Health:
    """One look. `loaded` means it can serve; None is not told."""

    answers: bool
    loaded: bool = False
    slots: int | None = None
    context: int | None = None  # tokens per request
    build: str = ""
    vision: bool | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether a speculative worker speculates; `reason` says why not."""

    speculates: bool
    reason: str = ""
    obeys: bool = False  # a request can choose its draft length


class ProbeFailed(RuntimeError):
    """The worker could not answer the start probe at all."""


class ProbeRefused(ProbeFailed):
    """It answered the probe, but with an error."""


def client(base_url: str, api_key: str | None, timeout: float = 5.0) -> httpx.AsyncClient:
    """A client for one worker; it makes a new connection per request.

    llama-server closes connections it advertised as kept alive, and a look now and then needs none.
    """
    headers = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.AsyncClient(
        base_url=base_url,
        headers=headers,
        timeout=timeout,
        limits=limits,
        # The machine's own trust store (or SSL_CERT_FILE), as the gateway's.
        verify=ssl.create_default_context() if base_url.startswith("https://") else True,
        trust_env=False,
    )


async def look(http: httpx.AsyncClient, routes: Routes) -> Health:
    """Whether it answers and is loaded, and what it serves; a worker in trouble is no error."""
    try:
        health = await http.get(routes.health)
    except httpx.HTTPError:
        return Health(answers=False)
    if health.status_code != 200:
        return Health(answers=True)
    props = await _json(http, routes.props)
    settings = props.get("default_generation_settings")
    modalities = props.get("modalities")
    return Health(
        answers=True,
        loaded=True,
        slots=_whole(props.get("total_slots")),
        context=_whole(settings.get("n_ctx")) if isinstance(settings, dict) else None,
        build=str(props.get("build_info") or ""),
        vision=bool(modalities.get("vision")) if isinstance(modalities, dict) else None,
    )


async def draft_counts(http: httpx.AsyncClient, routes: Routes) -> Counts | None:
    """What it has drafted since its start, by its own counters; None when it does not tell."""
    if routes.metrics is None:
        return None
    try:
        answer = await http.get(routes.metrics, timeout=_SIGHT_S)
    except httpx.HTTPError:
        return None
    values = dict(_COUNTER.findall(answer.text)) if answer.status_code == 200 else {}
    try:
        return Counts(*(int(float(values[name])) for name in _COUNTED))
    except KeyError:  # a build that does not count drafts
        return None


async def busy_slots(http: httpx.AsyncClient, routes: Routes) -> int | None:
    """How many requests it works on; None when it does not tell."""
    if routes.slots is None:
        return None
    try:
        answer = await http.get(routes.slots)
        slots = answer.json() if answer.status_code == 200 else None
    except (httpx.HTTPError, ValueError):
        return None
    if not isinstance(slots, list):
        return None
    return sum(1 for slot in slots if isinstance(slot, dict) and slot.get("is_processing"))


async def sight(http: httpx.AsyncClient, routes: Routes, now: float, cpu: float | None) -> Sighting:
    """What a serving worker gets on with; no answer is a sighting as well."""
    path = routes.slots or routes.health
    try:
        answer = await http.get(path, timeout=_SIGHT_S)
        page = answer.json() if routes.slots and answer.status_code == 200 else []
    except (httpx.HTTPError, ValueError):
        return Sighting(now, answered=False, cpu=cpu)
    slots = [slot for slot in page if isinstance(slot, dict)] if isinstance(page, list) else []
    working = [slot for slot in slots if slot.get("is_processing")]
    return Sighting(
        now,
        answered=True,
        busy=bool(working),
        progress=tuple(map(_position, working)),
        pending=max((_pending(slot) for slot in working), default=0),
        cpu=cpu,
    )


def _position(slot: dict[str, Any]) -> tuple[object, ...]:
    """Where a slot is in its work: task, prompt tokens read, tokens made."""
    made = slot.get("next_token")
    return (slot.get("id_task"), slot.get("n_prompt_tokens_processed"), repr(made))


def _pending(slot: dict[str, Any]) -> int:
    whole, cached = slot.get("n_prompt_tokens"), slot.get("n_prompt_tokens_cache")
    done = slot.get("n_prompt_tokens_processed")
    read = (_whole(done) or 0) + (_whole(cached) or 0)
    return max(0, (_whole(whole) or 0) - read)


async def start_probe(
    http: httpx.AsyncClient, engine: Engine, spec: WorkerSpec, patience: float
) -> Probe:
    """64 greedy tokens: they must be drafted, and enough of the drafts accepted (contract, 6).

    A worker that could offer arms is asked once more, to draft nothing: a stock build drafts on.

    Raises:
        ProbeFailed: no answer with status 200 within `patience` seconds.
    """
    probe = judge_probe(spec, await _ask(http, engine, spec, patience, PROBE_TOKENS))
    if not probe.speculates or not offered(spec):
        return probe
    plain = await _ask(http, engine, spec, patience, _OBEDIENCE_TOKENS, {N_MAX: 0})
    return replace(probe, obeys=not plain.draft_n)


async def _ask(
    http: httpx.AsyncClient,
    engine: Engine,
    spec: WorkerSpec,
    patience: float,
    tokens: int,
    fields: Mapping[str, Any] | None = None,
) -> Timings:
    """What so many greedy tokens took, with `fields` added to the request."""
    body = {
        "model": spec.model,
        "messages": [{"role": "user", "content": _PROBE_PROMPT}],
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "cache_prompt": False,
        **(fields or {}),
    }
    try:
        answer = await http.post("/v1/chat/completions", json=body, timeout=patience)
        payload = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise ProbeFailed(f"the probe got no answer: {type(error).__name__}") from error
    if answer.status_code != 200 or not isinstance(payload, dict):
        said = str(payload)[:200]
        raise ProbeRefused(f"the probe was answered with {answer.status_code}: {said}")
    return engine.parse_timings(payload)


def worth_probing(spec: WorkerSpec) -> bool:
    """Whether the mode can fail silently.

    A lookup mode has no weights that could misfit, and drafts only where text repeats.
    """
    mode = MODES[spec.mode]
    return mode.speculative and not mode.by_lookup


def judge_probe(spec: WorkerSpec, timings: Timings) -> Probe:
    """Whether those timings are of a worker that speculates in its mode."""
    mode = MODES[spec.mode]
    if not worth_probing(spec):
        return Probe(speculates=True)
    if not timings.draft_n:
        reason = f"{timings.predicted_n or 0} greedy tokens and nothing drafted"
        return Probe(False, f"mode {mode.name} does not speculate: {reason}")
    rate = timings.acceptance_rate or 0.0
    if rate < spec.acceptance_floor:
        accepted = f"{timings.draft_n_accepted or 0} of {timings.draft_n} drafted tokens accepted"
        floor = f"floor {spec.acceptance_floor:.0%}"
        return Probe(False, f"mode {mode.name} speculates in vain: {accepted} ({floor})")
    return Probe(speculates=True)


async def _json(http: httpx.AsyncClient, path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        answer = await http.get(path)
        payload = answer.json() if answer.status_code == 200 else None
    except (httpx.HTTPError, ValueError):
        return {}
    return payload if isinstance(payload, dict) else {}


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
