"""The policy in use behind one handle, so that an operator can change it while requests run."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from router.core import BadRequest
from router.policy import POLICIES, PolicySettings, build_policy

if TYPE_CHECKING:
    from router.core import Outcome, RoutingDecision
    from router.policy.base import Policy, PolicyInput
    from router.telemetry import Knowledge

_TYPES = {name: type(value) for name, value in asdict(PolicySettings()).items()}


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
        settings = replace(self._settings, **_checked(wanted.get("settings", {})))
        self._current = build_policy(name, settings, self._knowledge)
        self.name, self._settings = name, settings


def _checked(values: Any) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise BadRequest("settings must be an object", param="settings")
    return {name: _value(name, value) for name, value in values.items()}


def _value(name: str, value: Any) -> Any:
    kind = _TYPES.get(name)
    if kind is None:
        raise BadRequest(f"there is no setting {name!r}", param=f"settings.{name}")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BadRequest(f"{name} must be a {kind.__name__}", param=f"settings.{name}")
    return value
