"""The lifecycle of a worker as a table; imports nothing that does I/O.

`advance` is the only way from one state to the next, so an illegal move is a programming error that
shows at once and not a wrong state in Redis.
"""

from __future__ import annotations

from enum import StrEnum


class WorkerState(StrEnum):
    """What a worker is doing; published in its record."""

    STARTING = "starting"  # process spawned, nothing answers yet
    LOADING = "loading"  # the port answers, the model is not loaded yet
    READY = "ready"
    DEGRADED = "degraded"  # serves, but not in the mode it was asked for (effective mode: ar)
    DRAINING = "draining"  # finishes what it has, takes nothing new
    BACKOFF = "backoff"  # crashed; waits before the next start
    QUARANTINED = "quarantined"  # crashed too often, or wedged; waits for an operator
    FAILED = "failed"  # cannot start as configured (missing file, bad flag)
    STOPPED = "stopped"

    @property
    def serves(self) -> bool:
        """Whether new requests may be sent to a worker in this state."""
        return self in (WorkerState.READY, WorkerState.DEGRADED)


class WorkerEvent(StrEnum):
    """What happened to a worker."""

    SPAWN = "spawn"
    ANSWERS = "answers"
    LOADED = "loaded"
    PROBE_FAILED = "probe_failed"
    DRAIN = "drain"
    UNDRAIN = "undrain"
    EXITED = "exited"
    CRASH_LOOP = "crash_loop"
    UNUSABLE = "unusable"
    WEDGED = "wedged"
    STOP = "stop"


class IllegalTransition(RuntimeError):
    """An event that the current state does not know."""


_S, _E = WorkerState, WorkerEvent
_STARTABLE = (_S.STOPPED, _S.BACKOFF, _S.QUARANTINED, _S.FAILED)
_RUNNING = (_S.STARTING, _S.LOADING, _S.READY, _S.DEGRADED, _S.DRAINING)

TRANSITIONS: dict[tuple[WorkerState, WorkerEvent], WorkerState] = {
    **{(s, _E.SPAWN): _S.STARTING for s in _STARTABLE},
    (_S.STARTING, _E.ANSWERS): _S.LOADING,
    (_S.STARTING, _E.LOADED): _S.READY,
    (_S.LOADING, _E.LOADED): _S.READY,
    (_S.READY, _E.PROBE_FAILED): _S.DEGRADED,
    (_S.DEGRADED, _E.LOADED): _S.READY,
    (_S.READY, _E.DRAIN): _S.DRAINING,
    (_S.DEGRADED, _E.DRAIN): _S.DRAINING,
    (_S.DRAINING, _E.UNDRAIN): _S.READY,
    **{(s, _E.EXITED): _S.BACKOFF for s in _RUNNING},
    **{(s, _E.CRASH_LOOP): _S.QUARANTINED for s in (*_RUNNING, _S.BACKOFF)},
    **{(s, _E.UNUSABLE): _S.FAILED for s in (*_RUNNING, *_STARTABLE)},
    **{(s, _E.WEDGED): _S.QUARANTINED for s in _RUNNING},
    **{(s, _E.STOP): _S.STOPPED for s in WorkerState},
}


def advance(state: WorkerState, event: WorkerEvent) -> WorkerState:
    """The state after `event`.

    Raises:
        IllegalTransition: the table has no row for this state and event.
    """
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise IllegalTransition(f"a worker that is {state} cannot take the event {event}") from None
