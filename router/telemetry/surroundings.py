"""How much busy neighbours slow a worker: other workers of its host with requests in flight.

Workers of one host share cores, memory and heat, seldom all of them. What a worker does on an idle
host is kept in `router.telemetry.speeds`; here stands how much less it does beside so many others:
nothing where each has a device of its own. Workers are counted, not their requests: one process
computes its batch at once, in threads it has anyway.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from router.telemetry.stats import EffectTable, Level, Role, Shape

if TYPE_CHECKING:
    from router.telemetry.stats import Cell

_NOISE: Final = 0.25  # neighbours come and go while an answer is made
_HOST_SD: Final = 0.35  # twice as many on as many cores halve the speed: two of these
_MODEL_SD: Final = 0.10  # and models of one host differ little in that
_RECENT: Final = 0.25  # what the last request counts in the mean of the last few
_MAX_HOSTS: Final = 1024  # pods come and go under new names


class Slowing(NamedTuple):
    """Seconds per token are `times` those of an otherwise idle host; `variance` of its ln."""

    times: float
    variance: float


UNDISTURBED: Final = Slowing(1.0, 0.0)


class Surroundings:
    """Learns ln(speed beside others / speed alone) by host, model and number of neighbours."""

    def __init__(self) -> None:
        self.table = EffectTable(Shape(noise_sd=_NOISE))
        self._usual: dict[str, float] = {}  # other requests beside each host's last few
        self._made: dict[tuple[str, str, int], Slowing] = {}
        self._version = -1

    def expected(self, host: str, model: str, beside: int, in_flight: int) -> Slowing:
        """What a request must reckon with that begins beside so many others.

        More may come: it will hardly have less company than the last few requests had. Of that
        company, what the worker has in flight itself is no neighbour.
        """
        company = self._usual.get(host, 0.0) - in_flight
        return self.slowing(host, model, max(beside, company))

    def slowing(self, host: str, model: str, beside: float) -> Slowing:
        """What so many neighbours (a mean over the request's time) do."""
        bucket = _bucket(beside)
        if not bucket or not host:
            return UNDISTURBED
        if self._version != self.table.version:
            self._made.clear()
            self._version = self.table.version
        key = (host, model, bucket)
        found = self._made.get(key)
        if found is None:
            guess = self.table.estimate(self.cell(*key))
            found = self._made[key] = Slowing(math.exp(-guess.mean), guess.variance)
        return found

    def met(self, host: str, others: float) -> None:
        """A request had so many others on its host, in its own batch or beside it."""
        if not host:
            return
        usual = self._usual.get(host, 0.0)
        if not usual and len(self._usual) >= _MAX_HOSTS:
            self._usual.clear()  # the next few requests of each tell it again
        self._usual[host] = usual + _RECENT * (others - usual)

    def observe(
        self, host: str, model: str, beside: float, *, off: float, unsure: float, weight: float
    ) -> None:
        """Learn from one answer beside others.

        Args:
            host: of the worker that answered.
            model: that answered.
            beside: how many of the host's other workers were busy, on average.
            off: ln of its speed over that expected on an idle host.
            unsure: variance of that expectation; what is not known of the worker says little here.
            weight: of the answer, at most 1.
        """
        bucket = _bucket(beside)
        if bucket and host:
            noise = _NOISE * _NOISE
            self.table.add(self.cell(host, model, bucket), off, weight * noise / (noise + unsure))

    def cell(self, host: str, model: str, bucket: int) -> Cell:
        """The leaf of a bucket: each builds on the one below."""
        key = (host, model, bucket)
        found = self.table.find(key)
        if found is not None:
            return found
        buckets = range(1, bucket + 1)
        levels = (
            *(Level(("host", host, i), _HOST_SD, Role.CROSSED) for i in buckets),
            Level(("model", *key), _MODEL_SD),
        )
        return self.table.cell(key, levels, 0.0)


def _bucket(beside: float) -> int:
    """0 for nobody, 1 for one neighbour, 2 for 2-3, 3 for 4-7 and so on."""
    return round(beside).bit_length()
