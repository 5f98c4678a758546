"""The rows of the policy's bar that measured profiles cannot show: load, chats, factors.

Each scenario has a known truth and the serving policy inside. Counterpart: `simulation.cells`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from router.policy import LearnedPolicy, PolicySettings, build_policy
from router.policy.baselines import ObserveOnly, RoundRobin
from router.simulation.report import at_least, at_most
from router.simulation.world import MODEL, Request, World
from router.telemetry.knowledge import Knowledge
from router.telemetry.levels import Arm, Text
from router.telemetry.stats import occupancy_bucket

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from router.policy.base import Policy
    from router.simulation.report import Check

MODES: Final = {"plain": "ar", "prose": "mtp-n3", "code": "dflash2-margin"}

AGGREGATE: Final[Mapping[str, Mapping[int, float]]] = {
    "plain": {1: 11.0, 2: 20.0, 4: 34.0, 8: 50.0},
    "prose": {1: 22.0, 2: 17.0, 4: 26.0, 8: 31.0},
    "code": {1: 21.0, 2: 16.0, 4: 25.0, 8: 30.0},
}
"""Tokens per second of all requests together, by parallel requests: the design's measured machine
at 1, 2 and 4; 8 continues the curves."""

_NOISE_SD: Final = 0.2
_LOADS: Final = (1, 2, 4, 8)


def _learned(seed: int) -> Policy:
    return build_policy("learned", PolicySettings(seed=seed))


class Crossover(NamedTuple):
    """Per load the best static choice's seconds over ours; changes of arm per 20 requests."""

    by_load: Mapping[int, float]
    changes: float


def crossover(seed: int, requests: int = 1200, held: int = 200) -> Crossover:
    """The load wanders between 1 and 8; then it stays where drafting and AR cross."""
    rng, world = Random(seed), World(MODES, _learned(seed))  # noqa: S311 - a simulation
    ours: dict[int, float] = defaultdict(float)
    best: dict[int, float] = defaultdict(float)
    step = 0
    for number in range(requests):
        if number % 10 == 9:
            step = min(3, max(0, step + rng.choice((-1, 1))))
        load = _LOADS[step]
        seconds, fastest, _ = _one(world, rng, load)
        if number >= requests // 4:
            ours[load] += seconds
            best[load] += fastest
    chosen = [_one(world, rng, 2)[2] for _ in range(held)]
    switches = sum(a != b for a, b in pairwise(chosen))
    ratios = {load: best[load] / ours[load] for load in sorted(ours)}
    return Crossover(ratios, 20.0 * switches / held)


def _one(world: World, rng: Random, load: int) -> tuple[float, float, str]:
    speeds = {arm: curve[load] / load for arm, curve in AGGREGATE.items()}
    request = Request("prose", _tokens(rng), rng.gauss(0.0, _NOISE_SD), load)
    arm = world.serve(request, speeds)
    scale = request.tokens / math.exp(request.noise)
    return scale / speeds[arm], scale / max(speeds.values()), arm


class Chats(NamedTuple):
    """Total seconds of the same traces under three rules."""

    ours: float
    sticky: float
    roaming: float

    @property
    def ratio(self) -> float:
        """Ours over the better of the two simple rules."""
        return self.ours / min(self.sticky, self.roaming)


_PROMPT_SPEED: Final = 800.0
_CHAT_SPEEDS: Final[Mapping[str, Mapping[str, float]]] = {
    "structured": {"plain": 20.0, "prose": 30.0, "code": 44.0},
    "prose": {"plain": 20.0, "prose": 28.0, "code": 22.0},
}


class _Chat(NamedTuple):
    turns: tuple[tuple[str, int, float, float], ...]  # class, answer tokens, noise, prompt tokens


def chats(seed: int, traces: int = 60) -> Chats:
    """Chats of 2 to 20 turns and 0.5K to 30K tokens, whose turns change between code and prose."""
    rng = Random(seed)  # noqa: S311 - a simulation
    world = World(MODES, _learned(seed), prompt_speed=_PROMPT_SPEED)
    _warm_up(world, rng)
    made = [_chat(rng) for _ in range(traces)]
    ours = sum(_play(world, chat, f"chat-{number}") for number, chat in enumerate(made))
    return Chats(ours, sum(map(_sticky, made)), sum(map(_roaming, made)))


def _warm_up(world: World, rng: Random) -> None:
    for _ in range(300):
        name = rng.choice(tuple(_CHAT_SPEEDS))
        request = Request(name, _tokens(rng), rng.gauss(0.0, _NOISE_SD), 1, prompt_tokens=600.0)
        world.serve(request, _CHAT_SPEEDS[name])


def _chat(rng: Random) -> _Chat:
    first = rng.choice(tuple(_CHAT_SPEEDS))
    count, size = rng.randint(2, 20), math.exp(rng.uniform(math.log(500), math.log(30_000)))
    turns = []
    for turn in range(count):
        name = first if rng.random() < 0.8 else rng.choice(tuple(_CHAT_SPEEDS))
        prompt = size * (0.5 + 0.5 * (turn + 1) / count)
        turns.append((name, _tokens(rng), rng.gauss(0.0, _NOISE_SD), prompt))
    return _Chat(tuple(turns))


def _play(world: World, chat: _Chat, name: str) -> float:
    seconds, held, home = 0.0, dict.fromkeys(MODES, 0.0), None
    for kind, tokens, noise, prompt in chat.turns:
        request = Request(kind, tokens, noise, 1, prompt, name, home, dict(held))
        home = world.serve(request, _CHAT_SPEEDS[kind])
        seconds += _turn(kind, tokens, noise, prompt - held[home], home)
        held[home] = prompt
    return seconds


def _turn(kind: str, tokens: int, noise: float, fresh: float, arm: str) -> float:
    decode = tokens / (_CHAT_SPEEDS[kind][arm] * math.exp(noise))
    return max(0.0, fresh) / _PROMPT_SPEED + decode


def _sticky(chat: _Chat) -> float:
    """Every turn where the first one was fastest."""
    kind = chat.turns[0][0]
    arm = max(MODES, key=lambda name: _CHAT_SPEEDS[kind][name])
    return _follow(chat, lambda _kind: arm)


def _roaming(chat: _Chat) -> float:
    """Every turn where it decodes fastest, whoever holds the conversation."""
    return _follow(chat, lambda kind: max(MODES, key=lambda name: _CHAT_SPEEDS[kind][name]))


def _follow(chat: _Chat, rule: Callable[[str], str]) -> float:
    seconds, held = 0.0, dict.fromkeys(MODES, 0.0)
    for kind, tokens, noise, prompt in chat.turns:
        arm = rule(kind)
        seconds += _turn(kind, tokens, noise, prompt - held[arm], arm)
        held[arm] = prompt
    return seconds


class Factors(NamedTuple):
    """Requests until what was learned picks 0.95 of the oracle, with and without draft counts."""

    factored: int
    direct: int


_CLASSES: Final = 12
_REACHED: Final = 0.95
_EVERY: Final = 5  # requests between two examinations


def factors(seed: int, requests: int = 3000) -> Factors:
    """3 workers x 12 classes x 4 occupancies with true accepted lengths and step costs."""
    rng = Random(seed)  # noqa: S311 - a simulation
    texts = {f"class-{c}": rng.gauss(0.75, 0.3) for c in range(_CLASSES)}
    lengths = {
        (arm, name): 1.0 if arm == "plain" else math.exp(max(0.02, text + rng.gauss(0.0, 0.12)))
        for arm in MODES
        for name, text in texts.items()
    }
    costs = {
        (arm, load): math.exp(rng.gauss(0.45 if arm != "plain" else 0.0, 0.2)) * load**0.5 / 25.0
        for arm in MODES
        for load in _LOADS
    }
    found = [_requests_to_reach(seed, lengths, costs, requests, told=t) for t in (True, False)]
    return Factors(*found)


def _requests_to_reach(
    seed: int,
    lengths: Mapping[tuple[str, str], float],
    costs: Mapping[tuple[str, int], float],
    requests: int,
    *,
    told: bool,
) -> int:
    rng = Random(f"{seed}|traffic")  # noqa: S311 - a simulation
    known = Knowledge()
    # Both learn from the same answers, so that only the learning is compared.
    watched = LearnedPolicy(PolicySettings(seed=seed), known)
    world = World(MODES, ObserveOnly(watched, RoundRobin()))
    for number in range(requests):
        name, load = f"class-{rng.randrange(_CLASSES)}", rng.choice(_LOADS)
        speeds = {arm: lengths[arm, name] / costs[arm, load] for arm in MODES}
        drafts = {arm: lengths[arm, name] for arm in MODES} if told else None
        world.serve(Request(name, _tokens(rng), rng.gauss(0.0, _NOISE_SD), load), speeds, drafts)
        if number % _EVERY == 0 and _examined(known, lengths, costs) >= _REACHED:
            return number + 1
    return requests


def _examined(
    known: Knowledge,
    lengths: Mapping[tuple[str, str], float],
    costs: Mapping[tuple[str, int], float],
) -> float:
    """Share of the oracle's speed that the predictions would choose, over all conditions."""
    shares = []
    for number in range(_CLASSES):
        name = f"class-{number}"
        for load in _LOADS:
            true = {arm: lengths[arm, name] / costs[arm, load] for arm in MODES}
            text, bucket = Text(name), occupancy_bucket(load)
            guessed = {
                arm: known.speeds.predict(Arm(MODEL, arm, mode), text, bucket).ln_v
                for arm, mode in MODES.items()
            }
            shares.append(true[max(guessed, key=guessed.__getitem__)] / max(true.values()))
    return fmean(shares)


def _tokens(rng: Random) -> int:
    return max(2, round(300.0 * math.exp(rng.gauss(0.0, 0.8))))


def summary(seeds: Sequence[int]) -> dict[str, object]:
    """Every scenario over several seeds: means, and the worst where the bar is on each."""
    crossings = [crossover(seed) for seed in seeds]
    talks, learned = [chats(seed) for seed in seeds], [factors(seed) for seed in seeds]
    factored, direct = (fmean(getattr(f, name) for f in learned) for name in Factors._fields)
    return {
        "crossover": {load: fmean(c.by_load[load] for c in crossings) for load in _LOADS},
        "changes_per_20_requests": fmean(c.changes for c in crossings),
        "chats_over_best_rule": fmean(t.ratio for t in talks),
        "factored_requests": factored,
        "direct_requests": direct,
        "factored_over_direct": factored / direct,
    }


def checks(found: Mapping[str, object]) -> tuple[Check, ...]:
    """The rows of the bar that a `summary` shows."""
    by_load = cast("Mapping[int, float]", found["crossover"])
    load, low = min(by_load.items(), key=lambda row: row[1])
    changes, chats_over = found["changes_per_20_requests"], found["chats_over_best_rule"]
    return (
        at_least("best static choice over ours, worst load", low, 0.97, f"{load} parallel"),
        at_most("changes of arm per 20 requests at the boundary", cast("float", changes), 1.0),
        at_most("chats over the better simple rule", cast("float", chats_over), 1.02),
        at_most("factored over direct", cast("float", found["factored_over_direct"]), 0.5),
    )
