"""Which worker of an exclusive group should be resident, and what a swap would bring; pure.

Two reasons to swap. Requests that the resident cannot serve at all wait, and are served as a batch:
when the resident is idle, when their work outweighs the swap, or when one has waited long enough.
And requests that every member could serve may be served faster by another. For those a plan is
followed: always this member, always that one, or the member that lately does better. What each
plan would have taken, swaps included, is summed; the leader is followed once it leads by more than
a swap and a half, and each change of plan makes the next one harder. So a mix that alternates
quickly finds its best static choice and stays there, and one that changes slowly is followed.
A swap that was not made for the plan (an operator's, another gateway's, or for those that wait)
stands until the mix has spoken against it anew: else two planners would undo each other's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HALF_LIFE_S: Final = 6 * 3600.0
"""After which the seconds of a request count half: a mix is forecast from the last hours."""

BATCH: Final = 4.0
"""Waiting work, in swaps there and back, that is worth interrupting the resident for."""

PATIENCE_S: Final = 20.0
"""What a request waits for the resident at least, unless that is idle."""

_PATIENCE_SWAPS: Final = 4.0  # and in swaps: else a slow load would be all that is done
_LEAD: Final = 1.5  # in swaps: what a plan must be ahead before it is followed
_HARDER: Final = 1.5  # by what each change of plan multiplies that,
_HARDEST: Final = 12.0  # and where it ends
_FOLLOW: Final = ""  # the plan to keep what lately does better; the others are members' names


@dataclass(frozen=True, slots=True)
class Member:
    """One worker of the group at one instant. Seconds; `wanting` requests wait for it alone."""

    name: str
    load_s: float
    resident: bool = False
    moving: bool = False  # on its way in or out
    in_flight: int = 0  # what came just now by somebody else's order counts as busy
    wanting: int = 0
    wanting_work_s: float = 0.0
    waited_s: float = 0.0  # of the one that waits longest


@dataclass(frozen=True, slots=True)
class Swap:
    """What to load, why, and what it is predicted to cost."""

    name: str
    because: str
    price_s: float


@dataclass(slots=True)
class Residency:
    """One group. `note` what finished requests would have cost, `decide` now and then."""

    _sums: dict[str, float] = field(default_factory=dict)  # seconds under each plan
    _recent: dict[str, float] = field(default_factory=dict)  # lead of each over the follower's
    _follower: str = ""  # what would be resident if what lately does better always were
    _plan: str | None = None
    _lead: float = _LEAD
    _at: float = 0.0
    spent_s: float = 0.0  # on swaps
    lost_s: float = 0.0  # by serving with what was resident rather than with the best

    @property
    def second_gpu_saves_s(self) -> float:
        """Seconds lost to sharing: swaps, and requests that another member would have served."""
        return self.spent_s + self.lost_s

    def note(self, costs: Mapping[str, float], served: str, prices: Mapping[str, float]) -> None:
        """One request that `served` answered.

        Args:
            costs: predicted seconds on each member that could have served it. Where only some
                could, that says nothing about which should be resident.
            served: who did.
            prices: seconds that it takes to make each member resident.
        """
        if served not in costs or costs.keys() != prices.keys() or len(costs) < 2:
            return
        self.lost_s += max(0.0, costs[served] - min(costs.values()))
        if self._plan is None:
            self._plan = self._follower = served
        newly = min(self._sums.values(), default=0.0)  # whoever joins begins beside the leader
        for name in dict.fromkeys((*costs, _FOLLOW, *self._sums)):
            # One that is out of order just now neither gains nor loses by it.
            seconds = costs.get(name, costs[served]) if name else self._followed(costs, prices)
            self._sums[name] = self._sums.get(name, newly) + seconds

    def accept(self, name: str) -> None:
        """Somebody else has made `name` resident; the next change of plan is harder for it."""
        if self._plan not in (None, name):
            self._lead = min(_HARDEST, self._lead * _HARDER)
        self._stand_by(name)

    def decide(self, members: Sequence[Member], cache_s: float, now: float) -> Swap | None:
        """The swap to make now, if any.

        Args:
            members: the group.
            cache_s: seconds of prefill that the resident's caches save their conversations.
            now: monotonic seconds.
        """
        self._fade(now)
        if any(member.moving for member in members):
            return None
        resident = next((member for member in members if member.resident), None)
        others = [member for member in members if member is not resident]
        waiting = max(others, key=lambda m: (m.waited_s, m.wanting), default=None)
        if waiting is not None and waiting.wanting:
            because = _must(resident, waiting, cache_s)
            if because:
                self._stand_by(waiting.name)
                return Swap(waiting.name, because, waiting.load_s + cache_s)
        if resident is None or resident.wanting or any(m.wanting for m in others):
            return None
        return self._by_plan(resident, others, cache_s)

    def _by_plan(self, resident: Member, others: Sequence[Member], cache_s: float) -> Swap | None:
        if self._plan is None:
            return None
        best = min(self._sums, key=self._sums.__getitem__)
        ahead = self._sums[self._plan] - self._sums[best]
        dearest = max((member.load_s for member in others), default=0.0) + cache_s
        if ahead > self._lead * dearest:
            self._plan, self._lead = best, min(_HARDEST, self._lead * _HARDER)
        wanted = self._follower if self._plan == _FOLLOW else self._plan
        chosen = next((member for member in others if member.name == wanted), None)
        if chosen is None:
            return None
        why = "does better of late" if self._plan == _FOLLOW else "does better with this mix"
        saved = self._sums.get(resident.name, 0.0) - self._sums[self._plan]
        said = f"{wanted} {why}: {saved:.1f} s over the last hours, a swap costs {dearest:.1f}"
        return Swap(wanted, said, chosen.load_s + cache_s)

    def _stand_by(self, name: str) -> None:
        """Keep it until another has gained on it from here on."""
        if self._plan is None:
            return
        floor = self._sums.setdefault(name, min(self._sums.values()))  # it may be new
        self._sums = {plan: max(floor, seconds) for plan, seconds in self._sums.items()}
        self._plan = self._follower = name
        self._recent = {}

    def _followed(self, costs: Mapping[str, float], prices: Mapping[str, float]) -> float:
        """Seconds that the request would have taken if what lately does better were resident."""
        if self._follower not in costs:
            self._follower = min(costs, key=costs.__getitem__)
        seconds = costs[self._follower]
        for name, other in costs.items():
            self._recent[name] = max(0.0, self._recent.get(name, 0.0) + seconds - other)
        best = max(self._recent, key=lambda name: self._recent[name] - prices.get(name, math.inf))
        if best in prices and self._recent[best] > prices[best]:
            self._follower, self._recent = best, {}
            seconds += prices[best]
        return seconds

    def _fade(self, now: float) -> None:
        if self._at and now > self._at:
            share = math.exp2(-(now - self._at) / HALF_LIFE_S)
            self._sums = {name: share * seconds for name, seconds in self._sums.items()}
        self._at = now


def _must(resident: Member | None, waiting: Member, cache_s: float) -> str:
    """Why those that wait should be served now; empty when they should wait on."""
    count = f"{waiting.wanting} request{'s' if waiting.wanting > 1 else ''} wait"
    if resident is None:
        return f"{count}, and nothing is resident"
    if not resident.in_flight and not resident.wanting:
        return f"{count}, and {resident.name} is idle"
    both = waiting.load_s + resident.load_s + cache_s
    if waiting.wanting_work_s >= BATCH * both:
        return f"{count}, work enough for {BATCH:.0f} swaps there and back"
    if waiting.waited_s >= max(PATIENCE_S, _PATIENCE_SWAPS * waiting.load_s):
        return f"{count}, the first for {waiting.waited_s:.0f} s"
    return ""
