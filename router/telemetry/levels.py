"""What a figure of speed is made of: the effects of text, drafter, machine and load, by size.

Each cell of `router.telemetry.speeds` stands below such levels and says only how it differs from
them. How far each may be off is fitted (`router.telemetry.spreads`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from router.telemetry import priors
from router.telemetry.stats import Level, Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from router.telemetry.spreads import Spread

    Levels = tuple[Level, ...]

_SCALE_SD: Final = 1.5  # machines differ by factors

_NEIGHBOURS: Final = 0.5  # of an effect's spread, for arms that differ in draft length alone


class Text(NamedTuple):
    """What a request is, as far as speed depends on it."""

    workload_class: str
    kind: str = ""
    thinking: bool = False
    language: str = "en"
    context: int = 0  # bucket
    image: bool = False


class Arm(NamedTuple):
    """What would serve it. `key` is the hash of everything that makes the worker's speed."""

    model: str
    key: str
    mode: str

    @property
    def drafts(self) -> bool:
        """Whether its speed depends on the text at all."""
        return self.mode != "ar"


def direct_levels(s: Spread, arm: Arm, text: Text, occupancy: int) -> Levels:
    """Of ln(tokens per second), where nothing is known of drafts."""
    return (
        *_shared(s, arm, text),
        *_machine(s, arm, text, occupancy),
        *_text_of(s, arm, text),
        Level(("leaf", arm, text, occupancy), s.leaf),
    )


def length_levels(s: Spread, arm: Arm, text: Text) -> Levels:
    """Of ln(mean accepted length): text and drafter, not the machine's load."""
    return (*_shared(s, arm, text), *_drafter(s, arm, text))


def step_levels(s: Spread, arm: Arm, text: Text, occupancy: int) -> Levels:
    """Of ln(seconds per step): machine, load and context depth, not the text."""
    return (
        Level(("model", arm.model), _SCALE_SD, Role.SHARED),
        *_machine(s, arm, text, occupancy),
        Level(("leaf", arm, text.context, text.image, occupancy), s.leaf),
    )


def residual_levels(s: Spread, arm: Arm, text: Text, occupancy: int) -> Levels:
    """Of what the factors leave unexplained, around 0."""
    return (
        Level(("text", arm.key, text.workload_class, text.kind), s.leaf),
        Level(("load", arm.key, occupancy), s.leaf),
        Level(("leaf", arm, text, occupancy), s.leaf),
    )


def _shared(s: Spread, arm: Arm, text: Text) -> Levels:
    """What the text does to every arm alike, and to every drafter alike."""
    model, shared = arm.model, Role.SHARED
    name = text.workload_class
    common = (
        Level(("model", model), _SCALE_SD, shared),
        Level(("text", model, name), s.text_any, shared),
        Level(("context", model, text.context), s.text_part, shared),
    )
    if not arm.drafts:
        return common
    group = Role.GROUP
    return (
        *common,
        Level(("drafted", model, name), s.text_drafted, group),
        Level(("kind", model, name, text.kind), s.text_part, group),
        Level(("language", model, text.language), s.text_part, group),
        Level(("thinking", model, text.thinking), s.text_part, group),
    )


def _machine(s: Spread, arm: Arm, text: Text, occupancy: int) -> Levels:
    """What the worker and its load do. Load is a walk: each bucket differs from the one below."""
    key, model = arm.key, arm.model
    family = priors.family(arm.mode)
    crossed = Role.CROSSED
    buckets = range(1, occupancy + 1)
    drafted = (
        Level(("drafters_loaded", model, occupancy > 0), s.load_drafted, Role.GROUP),
        *(Level(("drafters_load", model, i), s.occupancy, Role.GROUP) for i in buckets[1:]),
    )
    return (
        *(Level(("load", model, i), s.load, Role.SHARED) for i in buckets),
        *(drafted if arm.drafts else ()),
        Level(("family", model, family), s.family),
        *_walk(("length", model, family), arm, s.length),
        Level(("worker", key), _like_its_neighbours(s.worker, arm)),
        Level(("loaded", key, occupancy > 0), _like_its_neighbours(s.loaded, arm)),
        *(Level(("occupancy", key, i), s.occupancy, crossed) for i in buckets[1:]),
        Level(("worker_context", key, text.context, text.image), s.worker_context),
    )


def _text_of(s: Spread, arm: Arm, text: Text) -> Levels:
    key, name = arm.key, text.workload_class
    if not arm.drafts:
        return (Level(("worker_class", key, name), s.plain),)
    family = priors.family(arm.mode)
    kind = (name, text.kind, text.thinking, text.language)
    return (
        Level(("family_class", family, name), s.family_class, Role.CROSSED),
        *_walk(("length_class", arm.model, family, name), arm, s.length_class),
        Level(("worker_class", key, name), _like_its_neighbours(s.worker_class, arm)),
        Level(("worker_kind", key, *kind), _like_its_neighbours(s.worker_kind, arm)),
    )


def _walk(name: tuple[str, ...], arm: Arm, sd: float) -> Iterator[Level]:
    """Drafting one token more or less does a little: a walk away from the usual draft length."""
    length, usual = priors.draft_length(arm.mode, arm.key), priors.USUAL_DRAFT_LENGTH
    if length is None:
        return
    up = range(usual + 1, length + 1)
    down = range(length, usual)
    for n in (*up, *down):
        yield Level((*name, n), sd, Role.CROSSED)


def _like_its_neighbours(sd: float, arm: Arm) -> float:
    """Arms that differ in draft length alone differ less than the walk does not say already."""
    return sd if priors.draft_length(arm.mode, arm.key) is None else _NEIGHBOURS * sd


def _drafter(s: Spread, arm: Arm, text: Text) -> Levels:
    key, group = arm.key, priors.family(arm.mode)
    kind = (text.workload_class, text.kind, text.thinking, text.language)
    return (
        Level(("drafter", key), s.worker),
        Level(("family_class", group, text.workload_class), s.family_class, Role.CROSSED),
        Level(("drafter_context", key, text.context, text.image), s.worker_context),
        Level(("drafter_class", key, text.workload_class), s.worker_class),
        Level(("drafter_kind", key, *kind), s.worker_kind),
        Level(("leaf", key, text), s.leaf),
    )
