"""The catalogue of policies; `module:Name` names one out of tree."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from router.policy.base import Policy, PolicyInput
from router.policy.baselines import LeastLoaded, ObserveOnly, RoundRobin, Static
from router.policy.learned import LearnedPolicy
from router.policy.settings import PolicySettings
from router.telemetry.knowledge import Knowledge

if TYPE_CHECKING:
    from collections.abc import Callable

    Builder = Callable[[PolicySettings, Knowledge], Policy]

__all__ = [
    "POLICIES",
    "Knowledge",
    "LearnedPolicy",
    "Policy",
    "PolicyInput",
    "PolicySettings",
    "build_policy",
]


def _observe_only(settings: PolicySettings, knowledge: Knowledge) -> Policy:
    watched = build_policy(settings.observe_only_policy, settings, knowledge)
    return ObserveOnly(watched, build_policy(settings.observe_only_control, settings, knowledge))


POLICIES: dict[str, Builder] = {
    "learned": LearnedPolicy,
    "least_loaded": lambda _settings, _knowledge: LeastLoaded(),
    "observe_only": _observe_only,
    "round_robin": lambda _settings, _knowledge: RoundRobin(),
    "static": lambda settings, _knowledge: Static(settings.static_worker),
}


def build_policy(
    name: str, settings: PolicySettings | None = None, knowledge: Knowledge | None = None
) -> Policy:
    """A policy by its name in the catalogue, or by `module:Name` (called like a builder).

    Raises:
        ValueError: no such policy.
    """
    chosen = settings if settings is not None else PolicySettings()
    known = knowledge
    if known is None:
        known = Knowledge(half_life_s=chosen.half_life_s, stated=chosen.priors)
    return _builder(name)(chosen, known)


def _builder(name: str) -> Builder:
    if name in POLICIES:
        return POLICIES[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ValueError(f"no policy named {name!r}; there are {', '.join(POLICIES)}")
    try:
        return cast("Builder", getattr(import_module(module), attribute))
    except (ImportError, AttributeError) as error:
        raise ValueError(f"policy {name!r} cannot be imported: {error}") from error
