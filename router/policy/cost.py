"""Predicted marginal seconds of one request on one worker, by part.

T = queue + prefill + decode (+ what others lose: those in the batch, or those of the host's other
workers). Leaving the worker that holds the conversation is priced by its prefill: nothing of the
prompt is cached elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from router.core import CostEstimate
from router.policy.calibration import AS_MODELLED, IntervalCalibration, Reach
from router.telemetry.knowledge import length_key, text_of
from router.telemetry.surroundings import UNDISTURBED
from workers.state import WorkerState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from router.core import WorkerSnapshot
    from router.policy.base import PolicyInput
    from router.telemetry.knowledge import Knowledge
    from router.telemetry.lengths import Length
    from router.telemetry.levels import Text
    from router.telemetry.speeds import Forecasts
    from router.telemetry.surroundings import Slowing
    from workers.record import WorkerRecord

_Z90 = 1.6449  # half of a 90 % interval in standard deviations
_NOISE = 0.2  # spread of ln v between like requests


class Part(NamedTuple):
    """One class the request may belong to: its text, that text's number, and its expected tokens
    weighted by its probability."""

    text: Text
    number: int
    probability: float
    tokens: float


@dataclass(slots=True)
class Prepared:
    """What is the same for every worker."""

    request: PolicyInput
    parts: tuple[Part, ...]
    length: Length
    tokens: float  # expected output tokens over all parts
    median: float  # output tokens that half of such answers exceed
    certain: float  # variance of ln(seconds) that no knowledge of speeds can remove
    reach: Reach = AS_MODELLED  # of the forecast interval, as answers have shown it to be needed
    left: dict[str, float] = field(default_factory=dict)  # of each host, see CostModel._left


class Price(NamedTuple):
    """A worker's estimate; `spread` is the sd of total seconds against the other workers, `group`
    the sd of what all drafters share (it counts between a drafter and AR), `whole` the sd of all
    that is not known of this worker's speed."""

    worker: WorkerSnapshot
    estimate: CostEstimate
    total: float
    spread: float
    group: float
    whole: float


class CostModel:
    """Prices workers by what is known of them."""

    def __init__(
        self,
        knowledge: Knowledge,
        min_probability: float = 0.15,
        calibration: IntervalCalibration | None = None,
    ) -> None:
        self._known = knowledge
        self._min_probability = min_probability
        self._calibration = calibration or IntervalCalibration()

    def prepare(self, request: PolicyInput) -> Prepared:
        """Class mixture and expected tokens of a request."""
        what = request.classification
        top = text_of(what, request.prompt_tokens, request.features.has_images)
        key = length_key(request.model, what, request.fingerprint)
        length = self._known.lengths.predict(
            key, what.expected_output_tokens, what.output_tokens_interval
        )
        tokens = max(1.0, length.expected(request.max_tokens))
        median = math.exp(length.mu)
        certain = _NOISE * _NOISE + length.sigma * length.sigma
        parts = self._mixture(what.probabilities, top, tokens)
        reach = self._calibration.reach(request.model)
        return Prepared(request, parts, length, tokens, median, certain, reach)

    def _mixture(self, shares: Mapping[str, float], top: Text, tokens: float) -> tuple[Part, ...]:
        """The classes worth considering: an unsure classifier widens the mixture."""
        speeds = self._known.speeds
        number = speeds.number(top)
        name, least = top.workload_class, self._min_probability
        likely = [row for row in shares.items() if row[1] >= least or row[0] == name]
        if len(likely) <= 1:
            return (Part(top, number, 1.0, tokens),)
        total = sum([share for _, share in likely]) or 1.0
        parts = []
        for other, share in likely:
            text, known = (top, number) if other == name else speeds.sibling(top, number, other)
            parts.append(Part(text, known, share / total, share / total * tokens))
        return tuple(parts)

    def shortlist(
        self, prepared: Prepared, workers: Sequence[WorkerSnapshot], keep: int
    ) -> list[WorkerSnapshot]:
        """The `keep` cheapest by the likeliest class alone: a big fleet is not priced in full."""
        known: dict[tuple[str, str, int, int], float] = {}  # equal workers at equal load cost alike
        ranked = []
        for index, worker in enumerate(workers):
            load, slots = worker.in_flight, worker.slots
            like = (worker.speed_key, worker.mode, load, slots)
            seconds = known.get(like)
            if seconds is None:
                arm = (prepared.request.model, like[0], like[1])
                rounds = 1 + max(0, load + 1 - slots)
                seconds = known[like] = rounds * self._rough(prepared, arm, load)
            ranked.append((seconds, index))
        ranked.sort()
        return [workers[index] for _, index in ranked[:keep]]

    def _rough(self, prepared: Prepared, arm: tuple[str, str, str], load: int) -> float:
        part = prepared.parts[0]
        forecasts = self._known.speeds.forecasts(arm, self._known.speeds.version)
        return prepared.tokens * forecasts.rough(part.text, part.number, load.bit_length())[0]

    def price(self, prepared: Prepared, workers: Sequence[WorkerSnapshot]) -> list[Price]:
        """The estimate of each worker, in the same order."""
        version = self._known.speeds.version
        return [self._price(prepared, worker, version) for worker in workers]

    def _price(self, prepared: Prepared, worker: WorkerSnapshot, version: int) -> Price:
        request, record = prepared.request, worker.record
        arm = (request.model, worker.speed_key, worker.mode)
        forecasts = self._known.speeds.forecasts(arm, version)
        load = max(worker.in_flight, worker.total_in_flight)
        bucket = min(load, record.slots - 1).bit_length() if record.slots > 0 else 0
        decode = contrast = group = variance = weight = 0.0
        for part in prepared.parts:
            pace, differs, common, unsure, samples = forecasts.get(part.text, part.number, bucket)
            seconds = part.tokens * pace
            decode += seconds
            contrast += seconds * differs
            group += seconds * common
            variance += seconds * unsure
            weight += part.probability * samples
        beside = request.view.beside(worker)
        slowing = self._slowing(request, record.host, beside, load)
        if slowing is not UNDISTURBED:
            times = slowing.times
            decode, contrast, group, variance = (
                times * part for part in (decode, contrast, group, variance)
            )
            variance += decode * slowing.variance
        if prepared.request.classification.accepted != 1.0 and arm[2] != "ar":
            usual = 1.0 / prepared.request.classification.accepted
            decode, contrast, group, variance = (
                usual * part for part in (decode, contrast, group, variance)
            )
        fixed = others = 0.0
        speed = prepared.tokens / decode
        prefill = slowing.times * self._prefill(request, record)
        if worker.in_flight >= worker.slots:
            fixed = _queue(worker, speed, prepared.tokens)
        elif worker.remaining_tokens:
            others = slowing.times * _externality(forecasts, prepared.parts[0], worker, load)
        elif beside and not load:
            others = self._burden(prepared, record.host, beside, version)
        queue = fixed
        fixed += prefill
        swap = _swap(worker) if record.exclusive_group is not None else 0.0
        fixed += swap
        interval = _interval(prepared, fixed, decode / prepared.tokens, variance / decode)
        estimate = CostEstimate(queue, 0.0, prefill, decode, swap, others, interval, speed, weight)
        total = fixed + decode + others
        spreads = (math.sqrt(part * decode) for part in (contrast, group, variance))  # decode x sd
        return Price(worker, estimate, total, *spreads)

    def _prefill(self, request: PolicyInput, record: WorkerRecord) -> float:
        fresh = request.prompt_tokens - request.cached_tokens.get(record.name, 0.0)
        return self._known.prompts.seconds(record.spec_hash, fresh) if fresh > 0.0 else 0.0

    def _slowing(self, request: PolicyInput, host: str, beside: int, load: int) -> Slowing:
        around = self._known.surroundings
        return around.expected(host, request.model, beside, load) if host else UNDISTURBED

    def _burden(self, prepared: Prepared, host: str, beside: int, version: int) -> float:
        """Seconds that the busy workers of a host lose together when one more becomes busy."""
        model, around = prepared.request.model, self._known.surroundings
        before, after = (around.slowing(host, model, n).times for n in (beside - 1, beside))
        if after <= before:
            return 0.0
        left = prepared.left.get(host)
        if left is None:
            left = prepared.left[host] = self._left(prepared, host, version)
        return left * (after - before)

    def _left(self, prepared: Prepared, host: str, version: int) -> float:
        """Seconds of decoding that a host's workers of this model have in flight, each alone."""
        request, part = prepared.request, prepared.parts[0]
        seconds = 0.0
        for worker in request.view.workers:
            if not worker.remaining_tokens or worker.record.host != host or worker.arm is not None:
                continue
            arm = (request.model, worker.speed_key, worker.mode)
            forecasts = self._known.speeds.forecasts(arm, version)
            bucket = (worker.occupancy - 1).bit_length()
            pace = forecasts.get(part.text, part.number, bucket)[0]
            seconds += pace * sum(worker.remaining_tokens)
        return seconds


def _swap(worker: WorkerSnapshot) -> float:
    """Seconds until a worker of an exclusive group is resident; what it drives out not counted."""
    record = worker.record
    if record.state.serves:
        return 0.0
    # What a worker that drains has loaded will be gone.
    left = 1.0 if record.state is WorkerState.DRAINING else 1.0 - record.progress
    return record.load_s * left


def _externality(forecasts: Forecasts, part: Part, worker: WorkerSnapshot, load: int) -> float:
    """Seconds that the requests in flight lose together when one more joins their batch."""
    after = load.bit_length()
    before = max(0, load - 1).bit_length()
    steps = 1
    if before == after:  # a bucket spans several loads: charge one request's share of the step
        before, steps = after - 1, 1 << (after - 1)
    text, number = part.text, part.number
    now, then = forecasts.get(text, number, before)[0], forecasts.get(text, number, after)[0]
    return max(0.0, then - now) / steps * sum(worker.remaining_tokens)


def _queue(worker: WorkerSnapshot, speed: float, tokens: float) -> float:
    """Seconds until a slot frees: the queue's place among the remaining work in flight."""
    ahead = worker.in_flight - worker.slots
    left = sorted(worker.remaining_tokens)
    if ahead < len(left):
        return left[ahead] / speed
    rounds = (ahead + 1) / max(1, worker.slots)
    return rounds * tokens / speed


def _interval(
    prepared: Prepared, fixed: float, pace: float, variance: float
) -> tuple[float, float]:
    """90 % interval of the request's own seconds: unsure speed, unsure length up to the cap."""
    below, above = prepared.reach
    sigma = _Z90 * math.sqrt(variance + prepared.certain)
    median = pace * prepared.median
    low, high = median * math.exp(-below * sigma), median * math.exp(above * sigma)
    cap = prepared.request.max_tokens
    if cap:
        sure = _Z90 * math.sqrt(variance + _NOISE * _NOISE)
        high = min(high, cap * pace * math.exp(above * sure))
        low = min(low, cap * pace * math.exp(-below * sure))
    return fixed + low, fixed + high
