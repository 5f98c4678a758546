"""The live fleet: what the registry says, and what this gateway has in flight on each worker.

One writer, one event loop, no await: `view`, a policy's choice and `reserve` happen in one tick, so
two requests can never both take the last slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from router.core import FleetView, WorkerSnapshot
from router.fleet.breaker import Breaker
from router.fleet.load import Load
from router.fleet.pins import Pin, SlotPins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from workers.clock import Clock
    from workers.record import WorkerRecord

_SHOWN: Final = (
    *("model", "aliases", "state", "slots", "url"),
    *("effective_mode", "default_thinking", "exclusive_group"),
)
"""Fields of a record whose change matters to somebody at once."""


class Meanwhile(NamedTuple):
    """What else ran while a request did, on average over its time."""

    batch: float  # requests in flight on its worker, itself included
    beside: float  # busy ones among its host's other workers


class Reservation:
    """One slot of one worker, held by one request until `release`."""

    __slots__ = (
        "_fleet",
        "began",
        "context_tokens",
        "expected_tokens",
        "occupancy",
        "on_trial",
        "pin",
        "pins",
        "produced",
        "record",
        "released",
    )

    def __init__(
        self, fleet: Fleet, record: WorkerRecord, expected_tokens: float, context_tokens: float
    ) -> None:
        self._fleet = fleet
        self.record = record
        self.expected_tokens = expected_tokens
        self.context_tokens = context_tokens
        self.produced = 0  # content events so far; the relay counts them
        self.occupancy = 0  # requests on the worker when this one began, itself included
        self.began = (0.0, 0.0, 0.0)  # when; busy seconds of its neighbours, request-seconds here
        self.on_trial = False  # whether it tells if a failed worker has recovered
        self.pin: Pin | None = None  # its slot, where tenants are kept apart
        self.pins: SlotPins | None = None  # who gave it
        self.released = False

    @property
    def worker(self) -> str:
        """The worker's name."""
        return self.record.name

    @property
    def remaining_tokens(self) -> float:
        """Expected output tokens still to come; at least one while it runs."""
        return max(1.0, self.expected_tokens - self.produced)

    def in_flight_on_worker(self) -> int:
        """Slots that this gateway holds on the worker, this one included."""
        return self._fleet.in_flight(self.worker)

    def meanwhile(self) -> Meanwhile:
        """Who shared its worker and its host with it, on average since it began."""
        return self._fleet.meanwhile(self)

    def release(self) -> None:
        """Give the slot back; a second call does nothing."""
        if not self.released:
            self.released = True
            self._fleet.on_release(self)


@dataclass(frozen=True, slots=True)
class Tenant:
    """Who asks, and whether the request can name its slot (chat, completions, responses; n = 1)."""

    name: str
    names_slot: bool


class _Worker:
    """Mutable state of one worker; only the Fleet touches it."""

    __slots__ = (
        "_at_rest",
        "batch",
        "breaker",
        "elsewhere",
        "gone",
        "held",
        "lease",
        "load",
        "pins",
        "record",
        "shared",
    )

    def __init__(self, record: WorkerRecord) -> None:
        self.record = record
        self.breaker = Breaker()
        self.pins = SlotPins()
        self.held: set[Reservation] = set()
        self.load = Load()  # its own share of its host's: 1 while it has anything in flight
        self.batch = Load()  # all it has in flight
        self.gone = False  # left the registry while requests were still running
        self.lease: int | None = None  # None: never leased
        self.shared = False  # whether slots must be leased before they are used
        self.elsewhere = 0  # in flight through other gateways, as last heard
        self._at_rest: WorkerSnapshot | None = None  # with nothing in flight, until `changed`

    @property
    def slots(self) -> int:
        slots = self.record.slots
        if self.lease is None:
            return 0 if self.shared else slots
        return min(slots, self.lease)

    @property
    def busy(self) -> bool:
        return bool(self.held) or self.elsewhere > 0

    @property
    def ours_alone(self) -> bool:
        """Whether no other gateway can have used a slot meanwhile, as far as leases tell."""
        return not self.elsewhere and self.slots >= self.record.slots

    def has_room(self, context_tokens: float) -> bool:
        if len(self.held) >= self.slots or not self.record.state.serves:
            return False  # one that does not serve may be waited for, never taken
        if not self.record.unified_kv or not self.held:
            return True
        # One KV cache for all slots: what counts is the sum of the contexts in it.
        used = sum(r.context_tokens for r in self.held)
        return used + context_tokens <= self.record.context

    def changed(self) -> None:
        """Something that snapshots tell is different now, beside what is in flight from here."""
        self._at_rest = None

    def snapshot(self, now: float) -> WorkerSnapshot:
        rest, held = self._at_rest, self.held
        if rest is None or not self.breaker.closed:
            rest = self._snapshot_at_rest(now)
        if not held:
            return rest
        count = len(held)
        # Reservation.remaining_tokens written out: there may be hundreds, at every request.
        left = [max(1.0, r.expected_tokens - r.produced) for r in held]
        return WorkerSnapshot(
            record=self.record,
            slots=rest.slots,
            in_flight=count,
            total_in_flight=count + self.elsewhere,
            remaining_tokens=tuple(left),
            available=rest.available,
            unavailable_reason=rest.unavailable_reason,
        )

    def _snapshot_at_rest(self, now: float) -> WorkerSnapshot:
        """Most of a fleet is at rest, and looks as it did a moment ago."""
        reason = self.unavailable(now)
        made = WorkerSnapshot(self.record, self.slots, 0, self.elsewhere, (), not reason, reason)
        self._at_rest = made if self.breaker.closed else None  # an open one closes with time
        return made

    def unavailable(self, now: float) -> str:
        if self.gone:
            return "has left the registry"
        if not self.record.state.serves:
            return self.record.reason or f"is {self.record.state.value}"
        if not self.breaker.allows(now):
            return "failed a moment ago; the next try comes soon"
        return ""


class Fleet:
    """All workers of all models, with reservations against them."""

    def __init__(self, clock: Clock, models: Mapping[str, Iterable[str]] | None = None) -> None:
        """`models` are the configured names with their aliases; workers may bring more."""
        self._clock = clock
        self._configured = {name: tuple(aliases) for name, aliases in (models or {}).items()}
        self._workers: dict[str, _Worker] = {}
        self._shared = False
        self._model_of: dict[str, str] = {}
        self._by_model: dict[str, tuple[_Worker, ...]] = {}
        self._thinking: set[str] = set()
        self._hosts: dict[str, Load] = {}  # busy workers of each host
        self._busy: dict[str, int] = {}  # the same, for views: replaced when it changes
        self.has_groups = False  # whether some workers cannot be resident together
        self._listeners: list[Callable[[WorkerRecord | None, bool], None]] = []
        self._reindex()

    def subscribe(self, listener: Callable[[WorkerRecord | None, bool], None]) -> None:
        """Call `listener` with a worker that gains room (None: much changed).

        The flag says whether that is because a request has left it.
        """
        self._listeners.append(listener)

    def resolve(self, name: str) -> str | None:
        """The model behind a name or alias; None when nobody has heard of it."""
        return self._model_of.get(name)

    def models(self) -> dict[str, tuple[str, ...]]:
        """Every known model with its aliases, in a stable order."""
        names: dict[str, list[str]] = {model: [] for model in sorted(self._by_model)}
        for alias, model in self._model_of.items():
            if alias != model:
                names[model].append(alias)
        return {model: tuple(sorted(aliases)) for model, aliases in names.items()}

    def serves(self, model: str, worker: str) -> bool:
        """Whether `worker` is one of `model`'s, whatever its state."""
        live = self._workers.get(worker)
        return live is not None and live.record.model == model

    def thinks(self, model: str) -> bool:
        """Whether a worker of `model` thinks unless told otherwise."""
        return model in self._thinking

    def view(self, model: str) -> FleetView:
        """The workers of `model` at this instant."""
        now = self._clock.monotonic()
        workers = self._by_model.get(model, ())
        snapshots = tuple([w.snapshot(now) for w in workers])
        return FleetView(
            model=model,
            workers=snapshots,
            busy=self._busy,
        )

    def everything(self) -> tuple[WorkerSnapshot, ...]:
        """Every worker at this instant, by name."""
        now = self._clock.monotonic()
        return tuple(self._workers[name].snapshot(now) for name in sorted(self._workers))

    def reserve(
        self,
        worker: str,
        *,
        expected_tokens: float = 0.0,
        context_tokens: float = 0.0,
        tenant: Tenant | None = None,
    ) -> Reservation | None:
        """Take one slot of `worker`, or None when it has no room. Tokens size the request.

        `tenant`: who asks, where nobody may be served from another's cache.
        """
        live = self._workers.get(worker)
        if live is None or not live.has_room(context_tokens):
            return None
        reservation = Reservation(self, live.record, expected_tokens, context_tokens)
        live.held.add(reservation)
        reservation.on_trial = live.breaker.started()
        if tenant is not None:
            reservation.pins = live.pins
            certain = tenant.names_slot and live.ours_alone
            reservation.pin = live.pins.take(tenant.name, live.record.slots, certain=certain)
        reservation.occupancy = len(live.held) + live.elsewhere
        self._weigh(live, busy=True)
        now = self._clock.monotonic()
        reservation.began = (now, self._area_beside(live, now), live.batch.area(now))
        return reservation

    def meanwhile(self, reservation: Reservation) -> Meanwhile:
        """Who shared worker and host with a request, on average since it began."""
        live = self._workers.get(reservation.worker)
        (began, beside, batch), now = reservation.began, self._clock.monotonic()
        if live is None or now <= began:
            return Meanwhile(float(reservation.occupancy), 0.0)
        seconds = now - began
        return Meanwhile(
            max(1.0, (live.batch.area(now) - batch) / seconds),
            max(0.0, (self._area_beside(live, now) - beside) / seconds),
        )

    def _area_beside(self, live: _Worker, now: float) -> float:
        """Busy seconds of the other workers of that one's host."""
        host = self._hosts.get(live.record.host)
        return host.area(now) - live.load.area(now) if host is not None else 0.0

    def _weigh(self, live: _Worker, *, busy: bool) -> None:
        """Note what that worker has in flight, and whether it is a busy one of its host."""
        now, host = self._clock.monotonic(), live.record.host
        live.batch.set(len(live.held) + live.elsewhere, now)
        by = busy - live.load.count
        if not by:
            return
        live.load.set(live.load.count + by, now)
        if not host:
            return
        load = self._hosts.setdefault(host, Load())
        load.set(load.count + by, now)
        self._busy = {**self._busy, host: load.count}
        if not load.count:
            del self._hosts[host], self._busy[host]  # nobody counts from it any more

    def in_flight(self, worker: str) -> int:
        """Slots that this gateway holds on `worker`."""
        live = self._workers.get(worker)
        return len(live.held) if live is not None else 0

    def on_release(self, reservation: Reservation) -> None:
        """Reservation.release calls this, once."""
        if reservation.pins is not None and reservation.pin is not None:
            reservation.pins.give_back(reservation.pin, answered=reservation.produced > 0)
        live = self._workers.get(reservation.worker)
        if live is None:
            return
        live.held.discard(reservation)
        self._weigh(live, busy=live.busy)
        if reservation.on_trial:
            live.breaker.abandoned()  # nothing happens if success or failure was told before
        if live.gone and not live.held:
            self._weigh(live, busy=False)
            del self._workers[reservation.worker]
            self._reindex()
        self._notify(live.record, released=True)

    def succeeded(self, worker: str) -> None:
        """The worker answered a request."""
        if worker in self._workers:
            self._workers[worker].breaker.succeeded()

    def failed(self, worker: str, *, certain: bool) -> None:
        """The worker failed a request; see Breaker.failed."""
        if worker in self._workers:
            self._workers[worker].breaker.failed(self._clock.monotonic(), certain=certain)

    def doubted(self) -> list[str]:
        """Workers that say they serve, and fail what they are sent."""
        return [
            name
            for name, live in self._workers.items()
            if live.record.state.serves and not live.gone and not live.breaker.closed
        ]

    def update(self, records: Iterable[WorkerRecord], *, keep_missing: bool = False) -> None:
        """Take over what the registry says; missing workers leave unless `keep_missing`."""
        fresh = {record.name: record for record in records}
        changed = False
        for name, record in fresh.items():
            changed |= self._take(name, record)
        if not keep_missing:
            for name in [n for n in self._workers if n not in fresh]:
                changed |= self._lose(name)
        if changed:
            self._reindex()
            self._notify(None)

    def set_leases(self, leases: Mapping[str, int], elsewhere: Mapping[str, int]) -> None:
        """This gateway's share of each worker's slots, and the others' requests in flight.

        From the first call on a worker without a lease has no slots for us.
        """
        self._shared = True
        for name, live in self._workers.items():
            before = live.slots
            live.shared = True
            live.lease = leases.get(name)
            live.changed()
            others = elsewhere.get(name, 0)
            if others != live.elsewhere:
                live.elsewhere = others
                self._weigh(live, busy=live.busy)
            if live.slots > before:
                self._notify(live.record)

    def _take(self, name: str, record: WorkerRecord) -> bool:
        """Store one record; whether anything but its heartbeat changed."""
        live = self._workers.get(name)
        if live is None:
            live = self._workers[name] = _Worker(record)
            live.shared = self._shared
            return True
        live.changed()
        returned, live.gone = live.gone, False
        before = live.record
        if before.host != record.host:
            self._weigh(live, busy=False)
        live.record = record
        self._weigh(live, busy=live.busy)
        if (before.started_at, before.pid, before.url) != (
            record.started_at,
            record.pid,
            record.url,
        ):
            live.breaker = Breaker()  # another process: its past is not its own
            live.pins = SlotPins()
        return returned or any(getattr(before, key) != getattr(record, key) for key in _SHOWN)

    def _lose(self, name: str) -> bool:
        """Forget a worker, at once or after its last request; whether anything changed."""
        live = self._workers[name]
        if not live.held:
            self._weigh(live, busy=False)
            del self._workers[name]
            return True
        live.changed()
        was_there, live.gone = not live.gone, True
        return was_there

    def _reindex(self) -> None:
        self._model_of = {}
        by_model: dict[str, list[_Worker]] = {name: [] for name in self._configured}
        for name in sorted(self._workers):
            live = self._workers[name]
            by_model.setdefault(live.record.model, []).append(live)
            for alias in live.record.aliases:
                self._model_of.setdefault(alias, live.record.model)
        for model, aliases in self._configured.items():
            self._model_of.update(dict.fromkeys(aliases, model))
        self._model_of.update({model: model for model in by_model})  # a model's own name wins
        self._thinking = {
            live.record.model for live in self._workers.values() if live.record.default_thinking
        }
        self.has_groups = any(
            live.record.exclusive_group is not None for live in self._workers.values()
        )
        self._by_model = {model: tuple(workers) for model, workers in by_model.items()}

    def _notify(self, worker: WorkerRecord | None, *, released: bool = False) -> None:
        for listener in self._listeners:
            listener(worker, released)
