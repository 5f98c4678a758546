"""The learned policy: filters, cost, hysteresis, exploration, in that order."""

from __future__ import annotations

import math
from collections import deque
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from router.core import Candidate, Reason, RoutingDecision
from router.policy.arms import with_arms
from router.policy.calibration import IntervalCalibration
from router.policy.cost import CostModel
from router.policy.explore import Explorer, Option, Pick, Traffic
from router.policy.filters import eligible, wished_mode
from router.policy.hysteresis import Hysteresis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from router.core import Outcome, WorkerSnapshot
    from router.policy.base import PolicyInput
    from router.policy.cost import Prepared, Price
    from router.policy.filters import Fit
    from router.policy.settings import PolicySettings
    from router.telemetry.knowledge import Knowledge

_BEHIND = 2  # answers by which AR may be behind its floor before it is helped
_RECENT_S = 6 * 3600.0  # how long an AR answer counts towards the pooled baseline


class LearnedPolicy:
    """Smallest predicted marginal time; learns from what every finished request reports."""

    name = "learned"

    def __init__(self, settings: PolicySettings, knowledge: Knowledge) -> None:
        self._set = settings
        self.knowledge = knowledge
        self.explorer = Explorer(settings)
        self._traffic = Traffic()
        self._calibration = IntervalCalibration()
        self._cost = CostModel(knowledge, settings.min_class_probability, self._calibration)
        self._hysteresis = Hysteresis(settings.switch_margin, settings.tie_margin)
        self._plain: dict[str, deque[float]] = {}  # when each model's last AR answers ended
        self._answers: dict[str, list[int]] = {}  # answers of each model: all, and AR's

    def choose(self, request: PolicyInput) -> RoutingDecision:
        """See `Policy.choose`."""
        request = with_arms(request)
        fit = eligible(request)
        prepared = self._cost.prepare(request)
        workers: Sequence[WorkerSnapshot] = fit.workers
        if len(workers) > self._set.priced_workers:
            workers = self._shortlist(prepared, workers)
        prices = self._cost.price(prepared, workers)
        index, reason, propensity = self._select(request, prices)
        after_a_swap = self._cost.price(prepared, fit.asleep) if fit.asleep else ()
        choice = (index, reason, propensity)
        return _decision(self.name, prepared, fit, (prices, after_a_swap), choice)

    def reserved(self, decision: RoutingDecision) -> None:
        """See `Policy.reserved`: the request enters the budget of exploration."""
        best, served = math.inf, 0.0
        for row in decision.candidates:
            if row.estimate is not None and not row.excluded_because:
                total = row.estimate.total_s
                best = min(best, total)
                if row.worker == decision.worker and row.mode == decision.mode:
                    served = total
        explores = decision.reason is Reason.EXPLORATION
        self.explorer.budget.book(served - best if explores else 0.0, served)

    def observe(self, outcome: Outcome) -> None:
        """See `Policy.observe`."""
        self.knowledge.observe(outcome)
        self._calibration.observe(outcome)
        if not outcome.timings.predicted_n:
            return
        counts = self._answers.setdefault(outcome.model, [0, 0])
        counts[0] += 1
        counts[1] += outcome.mode == "ar"
        if outcome.mode == "ar":
            recent = self._plain.setdefault(outcome.model, deque(maxlen=self._set.baseline_answers))
            recent.append(outcome.wall_time)

    def _shortlist(
        self, prepared: Prepared, workers: Sequence[WorkerSnapshot]
    ) -> Sequence[WorkerSnapshot]:
        """The cheapest at first sight, and those that hold something of the conversation."""
        request = prepared.request
        kept = self._cost.shortlist(prepared, workers, self._set.priced_workers)
        names = {worker.record.name for worker in kept}
        held = {*request.cached_tokens, request.home} - names
        return [*kept, *(w for w in workers if w.record.name in held)] if held else kept

    def _select(self, request: PolicyInput, prices: Sequence[Price]) -> tuple[int, Reason, float]:
        if len(prices) == 1:
            return 0, _only(request), 1.0
        totals = [price.total for price in prices]
        if request.home is not None:
            names = [price.worker.name for price in prices]
            home = self._hysteresis.at_home(names, totals, request.home)
            if home is not None:
                best = min(range(len(totals)), key=totals.__getitem__)
                return home, Reason.AFFINITY if best != home else Reason.PREDICTED_FASTEST, 1.0
        return self._compete(request, prices, totals)

    def _compete(
        self, request: PolicyInput, prices: Sequence[Price], totals: list[float]
    ) -> tuple[int, Reason, float]:
        kind = (request.model, request.classification.workload_class, request.classification.kind)
        arms = [f"{price.worker.name} {price.worker.mode}" for price in prices]
        best = self._hysteresis.incumbent(kind, arms, totals)
        mode_reason = Reason.MODE_REQUESTED if wished_mode(request) else Reason.PREDICTED_FASTEST
        floor, plain = self._baseline(request, prices, totals, best)
        draw = self._draw(request)
        if draw < floor:
            return plain, Reason.BASELINE, floor
        pick = self._explore(request, prices, best, (draw - floor) / (1.0 - floor))
        if pick.explored:
            return pick.arm, Reason.EXPLORATION, pick.propensity * (1.0 - floor)
        self._hysteresis.remember(kind, arms[best])
        propensity = pick.propensity * (1.0 - floor)
        return best, mode_reason, propensity + (floor if plain == best else 0.0)

    def _explore(
        self, request: PolicyInput, prices: Sequence[Price], best: int, draw: float
    ) -> Pick:
        if request.home is not None:  # it just moved for a gain: do not gamble with it as well
            return Pick(best, 1.0, 0.0)
        share = self._traffic.count(request.model, request.classification.workload_class)
        tried = _one_of_each_arm(prices, best)
        apart = self.knowledge.speeds.factors(request.model)
        options = [
            Option(
                p.total,
                p.spread,
                p.estimate.decode_s,
                p.estimate.samples,
                p.group,
                p.whole if apart else math.inf,
            )
            for p in map(prices.__getitem__, tried)
        ]
        pick = self.explorer.pick(options, 0, draw, share * self._set.horizon)
        return pick._replace(arm=tried[pick.arm])

    def _baseline(
        self, request: PolicyInput, prices: Sequence[Price], totals: list[float], best: int
    ) -> tuple[float, int]:
        """Probability of serving by AR to keep the speed-ups honest, and that worker's index."""
        recent = self._plain.get(request.model)
        full = recent is not None and len(recent) == recent.maxlen
        if full and recent is not None and request.wall - recent[0] < _RECENT_S:
            return 0.0, -1
        answers, plain_answers = self._answers.get(request.model, (0, 0))
        if plain_answers + _BEHIND > self._set.baseline_share * answers:
            return 0.0, -1  # a floor, not a tax: exploring or load brought enough of them
        plain = [
            i
            for i, price in enumerate(prices)
            if price.worker.mode == "ar" and price.worker.free_slots > 0
        ]
        if not plain or request.home is not None or wished_mode(request):
            return 0.0, -1
        index = min(plain, key=totals.__getitem__)
        loss = totals[index] - totals[best]
        if index == best or loss > self._set.baseline_max_loss_s:
            return 0.0, -1
        # Half a percent of the requests, but never more than a quarter percent of the seconds.
        thrift = 0.5 * totals[best] / max(loss, 1e-9)
        return self._set.baseline_share * min(1.0, thrift), index

    def _draw(self, request: PolicyInput) -> float:
        """Uniform in [0, 1), the same on every gateway for one conversation and state epoch."""
        who = request.conversation or request.request_id
        epoch = int(request.wall // self._set.epoch_s)
        digest = blake2b(f"{self._set.seed}|{who}|{epoch}".encode(), digest_size=7).digest()
        return int.from_bytes(digest) / 2.0**56


def _one_of_each_arm(prices: Sequence[Price], best: int) -> list[int]:
    """The best one first, then the cheapest worker of every other arm.

    Equal workers share what is known of them: trying the twin of the best one teaches nothing.
    """
    cheapest: dict[tuple[str, str], int] = {}
    for index, price in enumerate(prices):
        arm = (price.worker.record.spec_hash, price.worker.mode)
        known = cheapest.get(arm)
        if index == best or known is None or (known != best and price.total < prices[known].total):
            cheapest[arm] = index
    return [best, *(index for index in cheapest.values() if index != best)]


def _only(request: PolicyInput) -> Reason:
    if request.wishes.worker is not None:
        return Reason.PINNED
    return Reason.MODE_REQUESTED if wished_mode(request) else Reason.ONLY_CANDIDATE


def _unpriced(fit: Fit, prices: Sequence[Price]) -> list[Candidate]:
    if len(prices) == len(fit.workers):
        return []
    priced = {id(price.worker) for price in prices}  # an arm is a snapshot of its own
    return [_passed_over(w.name, w.mode) for w in fit.workers if id(w) not in priced]


@lru_cache(maxsize=1024)
def _passed_over(worker: str, mode: str) -> Candidate:
    return Candidate(worker, mode, excluded_because="not among the cheapest at first sight")


def _decision(
    policy: str,
    prepared: Prepared,
    fit: Fit,
    priced: tuple[Sequence[Price], Sequence[Price]],
    choice: tuple[int, Reason, float],
) -> RoutingDecision:
    index, reason, propensity = choice
    prices, after_a_swap = priced
    worker = prices[index].worker
    both = (*prices, *after_a_swap)
    rows = [Candidate(p.worker.name, p.worker.mode, p.estimate) for p in both]
    return RoutingDecision(
        worker=worker.name,
        mode=worker.mode,
        reason=reason,
        candidates=(*rows, *_unpriced(fit, prices), *fit.excluded),
        policy=policy,
        propensity=propensity,
        explored=reason in (Reason.EXPLORATION, Reason.BASELINE),
        expected_tokens=prepared.tokens,
        overrides=worker.arm.overrides if worker.arm is not None else {},
    )
