"""Who may look and who may operate: sign-in by token, a sealed cookie afterwards.

The admin token and keys with the right to operate make an operator; any other API key, or the wish
to, makes a viewer. Nothing about a session is kept here, so a restart signs nobody out.
"""

from __future__ import annotations

import base64
import binascii
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from router.access import Authenticator, KeyRing
from router.core import GatewayError
from workers.keys import SealBroken, seal, unseal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from router.access import KeyEntry
    from workers.clock import Clock

COOKIE: Final = "specroute_session"
SESSION_S: Final = 12 * 3600
FAILURES: Final = 20
"""Wrong tokens per minute after which nobody may try: tokens are 256 random bits."""

_PURPOSE: Final = "dashboard-session"


class Role(StrEnum):
    """What a session may do."""

    OPERATOR = "operator"
    VIEWER = "viewer"


class TooManyTries(RuntimeError):
    """Too many wrong tokens within a minute."""


@dataclass(slots=True)
class Doorkeeper:
    """Checks tokens, seals and reads session cookies."""

    admin_token: str
    cluster_secret: str
    clock: Clock
    keys: Iterable[KeyEntry] = ()
    _failures: deque[float] = field(default_factory=lambda: deque(maxlen=FAILURES))

    def sign_in(self, token: str, *, view_only: bool) -> str | None:
        """The cookie of a new session; None for a token that is not known.

        Raises:
            TooManyTries: wait a minute.
        """
        now = self.clock.monotonic()
        if len(self._failures) == FAILURES and now - self._failures[0] < 60.0:
            raise TooManyTries
        role = self._role(token)
        if role is None:
            self._failures.append(now)
            return None
        return self._cookie(Role.VIEWER if view_only else role)

    def role(self, cookie: str | None) -> Role | None:
        """The role of a session; None for a forged or an expired one."""
        if not cookie:
            return None
        try:
            sealed = base64.urlsafe_b64decode(cookie.encode())
            role, until = unseal(self._secret, _PURPOSE, sealed).decode().split("|")
            return Role(role) if float(until) > self.clock.wall() else None
        except (SealBroken, ValueError, binascii.Error):
            return None

    def _cookie(self, role: Role) -> str:
        payload = f"{role.value}|{self.clock.wall() + SESSION_S:.0f}".encode()
        return base64.urlsafe_b64encode(seal(self._secret, _PURPOSE, payload)).decode()

    @property
    def _secret(self) -> str:
        """A changed admin token ends every session."""
        return f"{self.cluster_secret}|{self.admin_token}"

    def _role(self, token: str) -> Role | None:
        ring = KeyRing(self.keys)
        authenticator = Authenticator(ring, admin_token=self.admin_token)
        headers = {b"authorization": b"Bearer " + token.strip().encode()}
        try:
            authenticator.authorize_admin(headers)
        except GatewayError:
            return Role.VIEWER if ring.find(token.strip()) is not None else None
        return Role.OPERATOR
