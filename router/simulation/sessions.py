"""Traffic drawn before a run, so that every policy answers the very same requests."""

from __future__ import annotations

import math
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from router.simulation.fleet_plan import Sizes, Traffic

_MAX_TURNS: Final = 40


class Turn(NamedTuple):
    """One request: class as it is and as it is read, tokens, noise of ln v, pause before it (s)."""

    workload_class: str
    read_as: str
    tokens: int
    added_tokens: int  # of prompt, beside what the conversation holds
    noise: float
    pause_s: float


class Session(NamedTuple):
    """One conversation and when it begins, in seconds."""

    name: str
    at: float
    turns: tuple[Turn, ...]


def draw_sessions(traffic: Traffic, requests: int, seed: int) -> list[Session]:
    """As many sessions as hold so many requests; the last one is cut short."""
    rng, out, left = Random(f"sessions|{seed}"), [], requests  # noqa: S311 - a simulation
    for number, at in enumerate(_arrivals(traffic, rng)):
        turns = tuple(_turns(traffic, rng))[:left]
        out.append(Session(f"s{number}", at, turns))
        left -= len(turns)
        if left <= 0:
            break
    return out


def _arrivals(traffic: Traffic, rng: Random) -> Iterator[float]:
    """A Poisson process whose rate is `burst` times higher within bursts, by thinning."""
    top = traffic.sessions_per_s * max(1.0, traffic.burst)
    at = 0.0
    while True:
        at += rng.expovariate(top)
        bursting = at % traffic.burst_every_s < traffic.burst_s
        rate = traffic.sessions_per_s * (traffic.burst if bursting else 1.0)
        if rng.random() * top < rate:
            yield at


def _turns(traffic: Traffic, rng: Random) -> Iterator[Turn]:
    names, shares = zip(*traffic.classes.items(), strict=True)
    name = rng.choices(names, shares)[0]
    count = max(1, min(_MAX_TURNS, round(_size(traffic.turns, rng))))
    for number in range(count):
        read_as = rng.choice(names) if rng.random() < traffic.misread else name
        yield Turn(
            workload_class=name,
            read_as=read_as,
            tokens=max(2, round(_size(traffic.answer[name], rng))),
            added_tokens=max(1, round(_size(traffic.prompt, rng))),
            noise=rng.gauss(0.0, traffic.noise),
            pause_s=_size(traffic.pause_s, rng) if number else 0.0,
        )


def _size(sizes: Sizes, rng: Random) -> float:
    return sizes.median * math.exp(rng.gauss(0.0, sizes.sigma))
