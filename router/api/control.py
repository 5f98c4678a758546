"""The policy in use behind one handle, so that an operator can change it while requests run."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from router.core import BadRequest
from router.policy import POLICIES, PolicySettings, build_policy

if TYPE_CHECKING:
    from router.core import Outcome, RoutingDecision
    from router.policy.base import Policy, PolicyInput
    from router.telemetry import Knowledge

_TYPES = {name: type(value) for name, value in asdict(PolicySettings()).items()}
_SHARES: Final = frozenset(
    (
        *("exploration_budget", "max_loss_share", "baseline_share", "min_class_probability"),
        *("switch_margin", "tie_margin"),
    )
)
_ABOVE_ZERO: Final = frozenset(
    ("epoch_s", "exploration_window", "baseline_answers", "priced_workers")
)
_AT_START: Final = frozenset(("half_life_s", "priors"))  # what was learned is made with them
_OBSERVED: Final = frozenset(("observe_only_policy", "observe_only_control"))


class PolicySwitch:
    """A Policy that hands over to the current one. What was learned outlives every change."""

    def __init__(self, name: str, settings: PolicySettings, knowledge: Knowledge) -> None:
        """Raises ValueError when there is no policy of that name."""
        self._knowledge = knowledge
        self._settings = settings
        self.name = name
        self._current: Policy = build_policy(name, settings, knowledge)

    def choose(self, request: PolicyInput) -> RoutingDecision:
        """See `Policy.choose`."""
        return self._current.choose(request)

    def reserved(self, decision: RoutingDecision) -> None:
        """See `Policy.reserved`."""
        self._current.reserved(decision)

    def observe(self, outcome: Outcome) -> None:
        """See `Policy.observe`."""
        self._current.observe(outcome)

    def describe(self) -> dict[str, Any]:
        """Name, settings, and what else there is."""
        return {
            "policy": self.name,
            "settings": asdict(self._settings),
            "policies": sorted(POLICIES),
        }

    def change(self, wanted: dict[str, Any]) -> None:
        """Take over `policy` and `settings`, all or nothing.

        Raises:
            BadRequest: no such policy (only the catalogue's, never an import), or setting.
        """
        unknown = wanted.keys() - {"policy", "settings", "policies"}
        if unknown:
            raise BadRequest(
                f"unknown: {', '.join(sorted(unknown))}; policy and settings are known"
            )
        name = wanted.get("policy", self.name)
        if name != self.name and name not in POLICIES:
            raise BadRequest(f"there are the policies {', '.join(POLICIES)}", param="policy")
        settings = replace(self._settings, **_checked(wanted.get("settings", {}), self._settings))
        self._current = build_policy(name, settings, self._knowledge)
        self.name, self._settings = name, settings


def _checked(values: Any, now: PolicySettings) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise BadRequest("settings must be an object", param="settings")
    return {name: _value(name, value, now) for name, value in values.items()}


def _value(name: str, value: Any, now: PolicySettings) -> Any:
    kind = _TYPES.get(name)
    if kind is None:
        raise _bad(name, f"there is no setting {name!r}")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _bad(name, f"{name} must be a {kind.__name__}")
    if name in _AT_START and value != getattr(now, name):
        raise _bad(name, f"{name} is read at the start: change it in the configuration")
    if name in _OBSERVED and (value not in POLICIES or value == "observe_only"):
        others = ", ".join(sorted(POLICIES.keys() - {"observe_only"}))
        raise _bad(name, f"{name} must be one of {others}")
    if kind in (int, float):
        _check_number(name, value)
    return value


def _check_number(name: str, value: float) -> None:
    if not math.isfinite(value) or (value < 0 and name != "seed"):
        raise _bad(name, f"{name} must be 0 or more")
    if name in _SHARES and value > 1:
        raise _bad(name, f"{name} is a share, from 0 to 1")
    if name in _ABOVE_ZERO and value == 0:
        raise _bad(name, f"{name} must be more than 0")


def _bad(name: str, message: str) -> BadRequest:
    return BadRequest(message, param=f"settings.{name}")
