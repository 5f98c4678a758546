"""The path of one request: admission, choice, reservation, the worker, and back.

Everything before the worker's first byte may fail over to another worker once, unseen by the
client; everything after it is `router.relay`'s. Choosing and reserving happen in one tick, at once
or when `Admission.wait` says that there is room, with no await between them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from classifier import CLASS_OF_KIND, WorkloadClass, extract, fingerprint
from classifier.classes import DEFAULT_KIND
from router.core import (
    Endpoint,
    FleetView,
    GatewayError,
    Loading,
    NotSupported,
    NoWorker,
    Reason,
    UpstreamFailed,
    UpstreamTimeout,
)
from router.fleet import Tenant, read_chain
from router.policy.base import PolicyInput
from router.relay import ClientGone, Flight, KeepAlive, Reading, relay
from router.relay.deadline import Deadline, Deadlines
from router.relay.fallback import told

if TYPE_CHECKING:
    from classifier import Classification, Predictor
    from router.access import Admission
    from router.core import InferenceRequest, RoutingDecision
    from router.fleet import Fleet, PrefixIndex, Reservation
    from router.policy.base import Policy
    from router.relay import Books, Client, Exchange, Exchanges
    from router.relay.attended import Tasks
    from router.relay.fallback import Fallback
    from workers.clock import Clock

MOVABLE: Final = (UpstreamFailed, UpstreamTimeout, Loading)
"""Failures before the first byte that another worker may make good, once."""


OPTIONAL: Final = {Endpoint.EMBEDDINGS: "embeddings", Endpoint.RERANK: "rerank"}
"""Endpoints that a worker must declare among its features."""


class PromptTokens(Protocol):
    """Estimated prompt tokens of a model for so many characters in a language."""

    def __call__(self, model: str, language: str, chars: int) -> float: ...


class Recall(Protocol):
    """A classification corrected by what the application and conversation produced before."""

    def __call__(
        self, found: Classification, fingerprint: str, conversation: str
    ) -> Classification: ...


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Everything a request meets on its way; one per gateway."""

    clock: Clock
    admission: Admission[Reservation]
    fleet: Fleet
    prefixes: PrefixIndex
    policy: Policy
    predictor: Predictor
    prompt_tokens: PromptTokens
    recall: Recall
    exchanges: Exchanges
    books: Books
    fallback: Fallback
    deadlines: Deadlines = field(default_factory=Deadlines)
    tenant_safe: bool = False  # nobody is served from what another left in a slot
    wait_for_worker_s: float = 0.0  # how long a request may wait while its model has no worker

    async def dispatch(self, request: InferenceRequest, client: Client) -> None:
        """Serve one request to its end, whatever that is. Raises nothing that is the client's."""
        flight = Flight(request, self.read(request), self.clock, self.books.close)
        try:
            await client.attend(partial(self._serve, flight, client))
        except ClientGone:
            pass  # nobody is left to tell; the flight has been recorded
        finally:
            flight.finish()

    def preview(self, request: InferenceRequest) -> tuple[Reading, RoutingDecision]:
        """What would be decided now; nothing is reserved.

        Raises:
            GatewayError: nobody could serve it, as in `Policy.choose`.
        """
        flight = Flight(request, self.read(request), self.clock, self.books.close)
        return flight.reading, self.policy.choose(self._question(flight))

    # Nothing is awaited in an `except` or a `finally` here: see `deploy/native/rewrite.py`.

    async def _serve(self, flight: Flight, client: Client, tasks: Tasks) -> None:
        keep_alive = KeepAlive(tasks, client, flight)
        keep_alive.arm()
        refusal: GatewayError | None = None
        try:
            with Deadline(flight, self.deadlines):
                refusal = await self._serve_in_time(flight, client, keep_alive)
        except UpstreamTimeout as error:  # the deadline's own: every other has been answered
            refusal = error
        finally:
            keep_alive.stop()
        if refusal is not None:
            flight.fail(refusal)
            flight.finish()
            await client.refuse(refusal, flight.headers())

    async def _serve_in_time(
        self, flight: Flight, client: Client, keep_alive: KeepAlive
    ) -> GatewayError | None:
        """None when the client has its answer, else what it is to be told instead.

        A remote model answers where one is configured for such a case.
        """
        try:
            await self._ask_twice(flight, client, keep_alive)
            return None
        except GatewayError as error:
            refusal = error
        remote = self.fallback.remote_for(flight.request, refusal)
        if remote is None:
            return refusal
        try:
            exchange = await self.fallback.open(flight, remote, refusal)
            await self._carry(flight, exchange, client, keep_alive)
            return None
        except GatewayError as failure:
            return told(refusal, failure)

    async def _ask_twice(self, flight: Flight, client: Client, keep_alive: KeepAlive) -> None:
        """One worker, and a second one if the first fails before the client has seen anything."""
        failure: GatewayError | None = None
        while True:
            reservation = await self._place_if_possible(flight, failure)
            try:
                exchange = await self.exchanges.open(flight, reservation.record)
                await self._carry(flight, exchange, client, keep_alive)
                return
            except MOVABLE as error:
                self._blame(reservation, error)
                if failure is not None or flight.request.wishes.worker is not None:
                    raise
                failure = error
                flight.leave_worker()

    async def _carry(
        self, flight: Flight, exchange: Exchange, client: Client, keep_alive: KeepAlive
    ) -> None:
        keep_alive.stop()
        failed: BaseException | None = None
        try:
            await relay(flight, exchange, client)
        except asyncio.CancelledError as error:
            flight.finish()  # before anything is awaited: nothing may come between
            failed = error
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed = error
        await exchange.aclose()
        try:
            if failed is not None:
                raise failed
        finally:
            failed = None  # its traceback has this frame: no cycle of the two

    def read(self, request: InferenceRequest) -> Reading:
        """What the request is and will probably produce."""
        payload = request.payload
        features = extract(payload, default_thinking=self.fleet.thinks(request.model))
        chain = read_chain(payload)
        conversation = request.conversation or chain.conversation
        application = fingerprint(payload, request.model)
        found = self.predictor.predict(features)
        hint = request.wishes.workload_class
        if hint is None:
            found = self.recall(found, application, conversation)
        else:
            found = hinted(found, hint)
        chars = features.prompt_chars
        tokens = self.prompt_tokens(request.model, found.language, chars)
        return Reading(features, found, application, chain, conversation, tokens)

    def _question(self, flight: Flight) -> PolicyInput:
        """What the policy is asked about this request, given the fleet at this instant."""
        request, reading = flight.request, flight.reading
        view = able(self.fleet.view(request.model), request.endpoint)
        records = [worker.record for worker in view.workers]
        tokens = reading.prompt_tokens
        # A first turn has no home, even if somebody asked the same before.
        settled = bool(request.conversation) or reading.chain.answers > 0
        return PolicyInput(
            request_id=request.id,
            model=request.model,
            view=view,
            classification=reading.classification,
            features=reading.features,
            prompt_tokens=tokens,
            now=self.clock.monotonic(),
            wall=self.clock.wall(),
            wishes=request.wishes,
            conversation=reading.conversation,
            fingerprint=reading.fingerprint,
            cached_tokens=self.prefixes.cached_tokens(records, reading.chain, tokens),
            home=self.prefixes.home(reading.conversation) if settled else None,
            excluded=flight.excluded,
            max_tokens=reading.features.max_tokens,
            fixed_draft=flight.draft_is_fixed,
        )

    async def _place_if_possible(self, flight: Flight, failure: GatewayError | None) -> Reservation:
        """A slot of any worker; of one that is still to come, where nobody has failed yet.

        Raises:
            GatewayError: nobody can serve this; `failure` where that is what the first one did.
        """
        try:
            return await self._place(flight)
        except (NoWorker, Loading) as none:
            if failure is not None:
                raise failure from None
            refusal = none
        return await self._place_when_one_comes(flight, refusal)

    async def _place_when_one_comes(self, flight: Flight, refusal: GatewayError) -> Reservation:
        """A slot of a worker that is still to come: its pool is scaled up from zero, or rolled.

        Raises:
            NoWorker, Loading: as `refusal`; none came in time, or none is waited for, because a
                remote model may answer instead.
        """
        elsewhere = self.fallback.remote_for(flight.request, refusal)
        if self.wait_for_worker_s <= 0 or elsewhere is not None:
            raise refusal
        try:
            async with asyncio.timeout(self.wait_for_worker_s) as limit:
                return await self._place(flight, limit)
        except TimeoutError:
            raise refusal from None

    async def _place(self, flight: Flight, patience: asyncio.Timeout | None = None) -> Reservation:
        """A slot, waited for if need be; with `patience` also while nobody could serve at all."""
        reservation = self._choose_and_reserve(flight, patience)
        if reservation is None:
            # Deciding is our own time, waiting is the queue's.
            since, request = self.clock.monotonic(), flight.request
            try:
                reservation = await self.admission.wait(
                    partial(self._choose_and_reserve, flight, patience),
                    request.principal,
                    model=request.model,
                    worker=request.wishes.worker,
                    decided=lambda: flight.decision,
                )
            finally:
                flight.queue_s += self.clock.monotonic() - since
        flight.reservation = reservation
        return reservation

    def _choose_and_reserve(
        self, flight: Flight, patience: asyncio.Timeout | None
    ) -> Reservation | None:
        """The one tick: no await may come between the choice and the reservation."""
        try:
            chosen = decision = self.policy.choose(self._question(flight))
        except (NoWorker, Loading):
            if patience is None:
                raise
            return None
        if patience is not None:  # one is there: from now on it is a slot that is waited for
            patience.reschedule(None)
        if flight.retried:
            decision = replace(decision, reason=Reason.RETRY)
        flight.decision = decision
        reservation = self.fleet.reserve(
            decision.worker,
            expected_tokens=decision.expected_tokens,
            context_tokens=flight.reading.prompt_tokens + decision.expected_tokens,
            tenant=tenant_of(flight.request) if self.tenant_safe else None,
        )
        if reservation is not None:
            self.policy.reserved(chosen)
        return reservation

    def _blame(self, reservation: Reservation, error: GatewayError) -> None:
        """Tell the breaker; a worker that loads has not failed."""
        if not isinstance(error, Loading):
            certain = error.extra.get("sent") is False
            self.fleet.failed(reservation.worker, certain=certain)


# llama-server's conversion of Anthropic bodies drops the field (b11549).
_NAMES_SLOT: Final = (Endpoint.CHAT, Endpoint.COMPLETIONS, Endpoint.RESPONSES)


def tenant_of(request: InferenceRequest) -> Tenant:
    """Whose words the slot will hold; several answers at once take slots that nobody names."""
    single = request.payload.get("n") in (None, 1)
    return Tenant(request.principal.key_id, request.endpoint in _NAMES_SLOT and single)


def able(view: FleetView, endpoint: Endpoint) -> FleetView:
    """The workers that offer the endpoint; every worker generates.

    Raises:
        NotSupported: none of the model's workers does.
    """
    feature = OPTIONAL.get(endpoint)
    if feature is None:
        return view
    workers = tuple(w for w in view.workers if feature in w.record.features)
    if not workers:
        raise NotSupported(f"no worker of {view.model} offers {endpoint.value}")
    return FleetView(view.model, workers)


def hinted(found: Classification, hint: str) -> Classification:
    """The caller knows better: its class, with the classifier's sense of length."""
    workload_class = WorkloadClass(hint)
    same = CLASS_OF_KIND[found.kind] is workload_class
    return replace(
        found,
        workload_class=workload_class,
        kind=found.kind if same else DEFAULT_KIND[workload_class],
        probabilities={c.value: float(c is workload_class) for c in WorkloadClass},
        source="hint",
    )
