"""Headers to a Principal: keys once there are any, else only what comes from this machine."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from router.access.keys import hash_key
from router.core import Forbidden, Principal, Unauthorized

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from router.access.keys import KeyEntry, KeyRing

_LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_ANONYMOUS: Final = Principal()
_ADMIN: Final = Principal(key_id="admin", admin=True)


class Authenticator:
    """Bearer and x-api-key to a Principal. `headers` have lower-case byte names throughout."""

    def __init__(
        self,
        keys: KeyRing,
        *,
        admin_token: str | None,
        allowed_hosts: Collection[str] = (),
        may_be_open: bool = True,
    ) -> None:
        """`allowed_hosts` are names that an open gateway answers to, beside this machine's own.

        Without `may_be_open` a gateway whose last key was revoked serves nobody: others than this
        machine reach it.
        """
        self._keys = keys
        self._may_be_open = may_be_open
        self._version = keys.version
        self._admin_digest = hash_key(admin_token) if admin_token else None
        self._hosts = _LOCAL_HOSTS | {host.lower() for host in allowed_hosts}
        self._principals: dict[str, Principal] = {}

    @property
    def is_open(self) -> bool:
        """Whether no keys exist, so that anybody on this machine may ask."""
        return self._may_be_open and len(self._keys) == 0

    def authenticate(self, headers: Mapping[bytes, bytes]) -> Principal:
        """Who asks.

        Raises:
            Unauthorized: keys exist and none, or a wrong one, came.
            Forbidden: an open gateway was asked under a foreign host name (DNS rebinding).
        """
        key = _presented(headers)
        if self.is_open:
            self._check_host(headers.get(b"host", b""))
            return _ADMIN if key and self._is_admin(key) else _ANONYMOUS
        if not key:
            raise Unauthorized("no API key: send Authorization: Bearer KEY, or x-api-key: KEY")
        entry = self._keys.find(key)
        if entry is not None:
            return self._principal(entry)
        if self._is_admin(key):
            return _ADMIN
        raise Unauthorized("this API key is not known here")

    def authorize_admin(self, headers: Mapping[bytes, bytes]) -> Principal:
        """Who asks, if an operator.

        Raises:
            Unauthorized: no or an unknown token.
            Forbidden: a valid key without the right to operate.
        """
        key = _presented(headers)
        if not key:
            raise Unauthorized("the ops API needs the admin token: Authorization: Bearer TOKEN")
        if self._is_admin(key):
            return _ADMIN
        entry = self._keys.find(key)
        if entry is None:
            raise Unauthorized("this admin token is not known here")
        if not entry.admin:
            raise Forbidden(f"the key {entry.label!r} may not operate this gateway")
        return self._principal(entry)

    def _is_admin(self, key: str) -> bool:
        digest = self._admin_digest
        return digest is not None and hmac.compare_digest(digest, hash_key(key))

    def _principal(self, entry: KeyEntry) -> Principal:
        if self._version != self._keys.version:
            self._version = self._keys.version
            self._principals.clear()
        found = self._principals.get(entry.digest)
        if found is None:
            found = self._principals[entry.digest] = Principal(
                key_id=entry.label,
                admin=entry.admin,
                models=entry.models,
                priority=entry.priority,
            )
        return found

    def _check_host(self, host: bytes) -> None:
        name = _host_name(host.decode("latin-1"))
        if name not in self._hosts:
            raise Forbidden(
                f"this gateway has no API keys and answers to local names only, not to {name!r}",
                code="host_not_allowed",
            )


def _presented(headers: Mapping[bytes, bytes]) -> str:
    """The key that came, "" if none."""
    bearer = headers.get(b"authorization", b"").decode("latin-1")
    scheme, _, token = bearer.partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get(b"x-api-key", b"").decode("latin-1").strip()


def _host_name(host: str) -> str:
    """`host` without its port, in lower case."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
