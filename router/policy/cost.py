"""Predicted marginal seconds of one request on one worker, by part.

T = queue + prefill + decode (+ what the neighbours in the batch lose). Leaving the worker that
holds the conversation is priced by its prefill: nothing of the prompt is cached elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from router.core import CostEstimate
from router.telemetry.knowledge import length_key, text_of
from router.telemetry.speeds import Arm
from router.telemetry.stats import occupancy_bucket

if TYPE_CHECKING:
    from router.core import WorkerSnapshot
    from router.policy.base import PolicyInput
    from router.telemetry.knowledge import Knowledge
    from router.telemetry.lengths import Length
    from router.telemetry.speeds import Text

_Z90 = 1.6449  # half of a 90 % interval in standard deviations
_NOISE = 0.2  # spread of ln v between like requests


class Part(NamedTuple):
    """One class the request may belong to, with its probability and expected output tokens."""

    text: Text
    probability: float
    tokens: float


@dataclass(slots=True)
class Prepared:
    """What is the same for every worker."""

    request: PolicyInput
    parts: tuple[Part, ...]
    length: Length
    tokens: float  # expected output tokens over all parts


class Price(NamedTuple):
    """A worker's estimate; `spread` is the sd of total seconds against the other workers."""

    worker: WorkerSnapshot
    estimate: CostEstimate
    total: float
    spread: float


class CostModel:
    """Prices workers by what is known of them."""

    def __init__(self, knowledge: Knowledge, min_probability: float = 0.15) -> None:
        self._known = knowledge
        self._min_probability = min_probability

    def prepare(self, request: PolicyInput) -> Prepared:
        """Class mixture and expected tokens of a request."""
        what = request.classification
        top = text_of(what, request.prompt_tokens, request.features.has_images)
        key = length_key(request.model, what, request.fingerprint)
        length = self._known.lengths.predict(
            key, what.expected_output_tokens, what.output_tokens_interval
        )
        tokens = max(1.0, length.expected(request.max_tokens))
        return Prepared(request, self._mixture(request, top, tokens), length, tokens)

    def _mixture(self, request: PolicyInput, top: Text, tokens: float) -> tuple[Part, ...]:
        """The classes worth considering: an unsure classifier widens the mixture."""
        shares = request.classification.probabilities
        likely = [
            (name, share)
            for name, share in shares.items()
            if share >= self._min_probability or name == top.workload_class
        ]
        if len(likely) <= 1:
            return (Part(top, 1.0, tokens),)
        total = sum(share for _, share in likely) or 1.0
        return tuple(
            Part(
                top if name == top.workload_class else top._replace(workload_class=name, kind=""),
                share / total,
                tokens,
            )
            for name, share in likely
        )

    def price(self, prepared: Prepared, worker: WorkerSnapshot) -> Price:
        """The estimate of one worker."""
        request, record = prepared.request, worker.record
        arm = Arm(request.model, record.spec_hash, record.effective_mode)
        load = worker.occupancy
        busy = min(load + 1, max(1, record.slots))
        decode, relative, variance, weight = self._decode(arm, prepared, occupancy_bucket(busy))
        fresh = request.prompt_tokens - request.cached_tokens.get(record.name, 0.0)
        prefill = self._known.prompts.seconds(record.spec_hash, fresh)
        speed = prepared.tokens / decode
        queue = _queue(worker, speed, prepared.tokens) if worker.in_flight >= worker.slots else 0.0
        others = 0.0
        if worker.remaining_tokens and queue <= 0.0:
            others = self._externality(arm, prepared, worker, load)
        low, high = _interval(prepared, decode, variance)
        fixed = queue + prefill
        estimate = CostEstimate(
            queue, 0.0, prefill, decode, 0.0, others, (fixed + low, fixed + high), speed, weight
        )
        return Price(worker, estimate, fixed + decode + others, decode * relative)

    def _decode(
        self, arm: Arm, prepared: Prepared, bucket: int
    ) -> tuple[float, float, float, float]:
        """Seconds of decoding, its relative sd against other workers, variance, observations."""
        seconds = contrast = variance = weight = 0.0
        for part in prepared.parts:
            speed = self._known.speeds.predict(arm, part.text, bucket)
            share = part.probability * part.tokens * math.exp(-speed.ln_v)
            seconds += share
            contrast += share * speed.contrast
            variance += share * speed.variance
            weight += part.probability * speed.weight
        return seconds, math.sqrt(contrast / seconds), variance / seconds, weight

    def _externality(
        self, arm: Arm, prepared: Prepared, worker: WorkerSnapshot, load: int
    ) -> float:
        """Seconds that the requests in flight lose together when one more joins their batch."""
        before, after = occupancy_bucket(load), occupancy_bucket(load + 1)
        if before == after:
            before = occupancy_bucket(max(1, load // 2))
        text = prepared.parts[0].text
        now = math.exp(-self._known.speeds.predict(arm, text, before).ln_v)
        then = math.exp(-self._known.speeds.predict(arm, text, after).ln_v)
        # A bucket spans several loads: charge one request's share of the step between two buckets.
        steps = max(1, load + 1 - max(1, load // 2)) if load > 1 else 1
        return max(0.0, then - now) / steps * sum(worker.remaining_tokens)


def _queue(worker: WorkerSnapshot, speed: float, tokens: float) -> float:
    """Seconds until a slot frees: the queue's place among the remaining work in flight."""
    ahead = worker.in_flight - worker.slots
    left = sorted(worker.remaining_tokens)
    if ahead < len(left):
        return left[ahead] / speed
    rounds = (ahead + 1) / max(1, worker.slots)
    return rounds * tokens / speed


def _interval(prepared: Prepared, decode: float, variance: float) -> tuple[float, float]:
    """90 % interval of the decode seconds: unsure speed, and an unsure length up to the cap."""
    spread = _Z90 * math.sqrt(variance + _NOISE * _NOISE + prepared.length.sigma**2)
    per_token = decode / prepared.tokens
    median = per_token * math.exp(prepared.length.mu)
    low, high = median * math.exp(-spread), median * math.exp(spread)
    cap = prepared.request.max_tokens
    if cap:
        reach = math.exp(_Z90 * math.sqrt(variance + _NOISE * _NOISE))
        high = min(high, cap * per_token * reach)
        low = min(low, cap * per_token / reach)
    return low, high
