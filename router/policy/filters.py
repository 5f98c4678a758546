"""Who may serve a request at all, and for each who may not, why."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from router.core import BadRequest, Candidate, Loading, MissingFeature, NoWorker
from workers.state import WorkerState

if TYPE_CHECKING:
    from router.core import GatewayError, WorkerSnapshot
    from router.policy.base import PolicyInput

AUTO: Final = "auto"

_SERVING: Final = tuple(state for state in WorkerState if state.serves)
_LOADING: Final = (WorkerState.STARTING, WorkerState.LOADING)
_ASLEEP: Final = (WorkerState.STOPPED, *_LOADING)
_LEAVING: Final = (WorkerState.DRAINING,)
_RETRY_S: Final = 5.0
_SURELY_TOO_LONG: Final = 4.0
"""A prompt may have so many times fewer tokens than its characters suggest (a word repeated,
against the mean of what this model has read); beyond, no worker is asked. A worker refuses at
little cost, and in the same words: refusing here what would have fitted is the worse mistake."""


class Fit(NamedTuple):
    """The workers that may serve, and the others with their reasons."""

    workers: tuple[WorkerSnapshot, ...]
    excluded: tuple[Candidate, ...]
    asleep: tuple[WorkerSnapshot, ...] = ()  # could serve after a swap of their exclusive group


def wished_mode(request: PolicyInput) -> str | None:
    """The mode that the caller requires, or None."""
    mode = request.wishes.mode
    return None if mode is None or mode == AUTO else mode


def eligible(request: PolicyInput) -> Fit:
    """Split the view by the safety rules, which come before any cost.

    Raises:
        BadRequest: an unknown pin, a mode nobody offers, a prompt that fits nowhere, or a feature
            that no worker of the model has.
        Loading: those that could are still loading.
        NoWorker: nobody can serve this now.
    """
    _check_wishes(request)
    fits: list[WorkerSnapshot] = []
    short: list[WorkerSnapshot] = []
    excluded: list[Candidate] = []
    asleep: list[WorkerSnapshot] = []
    need = request.prompt_tokens + (request.max_tokens or 0)
    plain = _asks_nothing_special(request)
    for worker in request.view.workers:
        up = plain and worker.available and worker.record.state in _SERVING
        why = None if up else _unable(request, worker)
        if why is not None and _wakes(request, worker, need):
            asleep.append(worker)
        elif why is not None:
            excluded.append(_excluded(worker, why))
        elif need > worker.record.context:
            short.append(worker)
        else:
            fits.append(worker)
    if not fits and short:
        fits, short = _largest(request, short)
    if not fits and not asleep:  # one that makes room for another may come back after it
        asleep = [w for w in request.view.workers if _wakes(request, w, need, _LEAVING)]
        excluded = [e for e in excluded if e.worker not in {w.name for w in asleep}]
    if not fits and asleep:  # wait for the swap
        return Fit(tuple(asleep), tuple(excluded))
    if not fits:
        raise _refusal(request, excluded)
    excluded += [_excluded(worker, _length_reason(request, worker)) for worker in short]
    leased = [worker for worker in fits if worker.slots > 0]
    if leased:  # else the request waits: leases come back within a second or two
        excluded += [_excluded(w, "no slots leased to this gateway") for w in fits if w.slots <= 0]
        fits = leased
    return Fit(tuple(fits), tuple(excluded), tuple(asleep))


def _wakes(
    request: PolicyInput,
    worker: WorkerSnapshot,
    need: float,
    states: tuple[WorkerState, ...] = _ASLEEP,
) -> bool:
    """Whether it could serve the request, were it resident: nothing else is in its way."""
    record, wishes = worker.record, request.wishes
    loadable = record.exclusive_group is not None and not record.held
    if not loadable or record.state not in states or need > record.context:
        return False
    wanted = wishes.worker in (None, record.name) and wished_mode(request) in (None, worker.mode)
    return wanted and not _missing_feature(request, worker)


def _asks_nothing_special(request: PolicyInput) -> bool:
    """Whether any worker that is up will do: nearly every request, and a big fleet is long."""
    wishes, wants = request.wishes, request.features
    free = wishes.worker is None and wished_mode(request) is None and not request.excluded
    return free and not (wants.has_images or wants.has_tools or wants.has_grammar)


def _check_wishes(request: PolicyInput) -> None:
    pin, mode = request.wishes.worker, wished_mode(request)
    if pin is not None and request.view.find(pin) is None:
        names = ", ".join(w.name for w in request.view.workers) or "none"
        message = f"no worker named {pin!r} serves {request.model}; its workers: {names}"
        raise BadRequest(message, code="worker_not_found", param="x-specroute-worker")
    if mode is None:
        return
    asked = [w for w in request.view.workers if pin is None or w.name == pin]
    offered = {m for w in asked for m in (w.record.mode, w.mode)}
    if asked and mode not in offered:
        who = f"no worker of {request.model} offers" if pin is None else f"{pin} does not offer"
        message = f"{who} the mode {mode!r}; offered: {', '.join(sorted(offered))}"
        raise BadRequest(message, code="mode_unavailable", param="x-specroute-mode")


def _unable(request: PolicyInput, worker: WorkerSnapshot) -> str | None:
    """Why this worker cannot serve this request whatever its size, or None."""
    record, wishes = worker.record, request.wishes
    if wishes.worker is not None and record.name != wishes.worker:
        return f"the request is pinned to {wishes.worker}"
    mode = wishes.mode
    if mode is not None and mode != AUTO and worker.mode != mode:
        return f"runs {worker.mode}, the request requires {mode}"
    if record.state not in _SERVING:
        return f"{record.state.value}: {record.reason}" if record.reason else record.state.value
    if not worker.available:
        return worker.unavailable_reason or "unavailable"
    if record.name in request.excluded:
        return "tried already and failed"
    wants = request.features
    if wants.has_images or wants.has_tools or wants.has_grammar:
        return _missing_feature(request, worker)
    return None


def _missing_feature(request: PolicyInput, worker: WorkerSnapshot) -> str | None:
    wants, record = request.features, worker.record
    if wants.has_images and not record.vision:
        return "does not take images"
    if wants.has_tools and "tools" not in record.features:
        return "does not support tools"
    if wants.has_grammar and not {"grammar", "json_schema"} & set(record.features):
        return "does not support grammars or schemas"
    return None


def _length_reason(request: PolicyInput, worker: WorkerSnapshot) -> str:
    wanted = f"about {request.prompt_tokens:.0f} prompt tokens"
    if request.max_tokens:
        wanted += f" and max_tokens {request.max_tokens}"
    return f"{wanted} do not fit its context of {worker.record.context}"


def _largest(
    request: PolicyInput, short: list[WorkerSnapshot]
) -> tuple[list[WorkerSnapshot], list[WorkerSnapshot]]:
    """Where nobody surely fits, the largest context decides: the estimate may be too high."""
    context = max(worker.record.context for worker in short)
    if request.prompt_tokens > _SURELY_TOO_LONG * context:
        message = f"about {request.prompt_tokens:.0f} prompt tokens exceed the context of {context}"
        extra = {
            "type": "exceed_context_size_error",
            "n_prompt_tokens": round(request.prompt_tokens),
            "n_ctx": context,
        }
        raise BadRequest(message, code="context_length_exceeded", param="messages", extra=extra)
    keep = [worker for worker in short if worker.record.context == context]
    return keep, [worker for worker in short if worker.record.context != context]


def _refusal(request: PolicyInput, excluded: list[Candidate]) -> GatewayError:
    reasons = "; ".join(f"{c.worker}: {c.excluded_because}" for c in excluded)
    serving = [w for w in request.view.workers if w.record.state.serves]
    if serving and all(_missing_feature(request, w) for w in request.view.workers):
        return MissingFeature(f"no worker of {request.model} can take this request: {reasons}")
    if any(w.record.state in _LOADING for w in request.view.workers) and not _hopeful(request):
        return Loading(f"{request.model} is loading: {reasons}", retry_after=_RETRY_S)
    message = f"no worker can serve {request.model} now: {reasons or 'none is known'}"
    return NoWorker(message, retry_after=_RETRY_S)


def _hopeful(request: PolicyInput) -> bool:
    """Whether a worker that is up would do, were it not for a passing trouble."""
    pin = request.wishes.worker
    ups = (w for w in request.view.workers if w.record.state.serves)
    return any(pin is None or w.name == pin for w in ups)


def _excluded(worker: WorkerSnapshot, why: str) -> Candidate:
    return _out(worker.name, worker.mode, why)


@lru_cache(maxsize=1024)
def _out(worker: str, mode: str, why: str) -> Candidate:
    return Candidate(worker, mode, excluded_because=why)
