"""API keys as their hashes: what a key may do, never the key itself; and the file of them."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

KEY_PREFIX = "sk-specroute-"


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """One key. `digest` is the SHA-256 of the key in hex; None is no limit.

    A fast hash will do: keys are 256 random bits, so there is nothing to guess.
    """

    label: str
    digest: str
    admin: bool = False
    models: frozenset[str] | None = None
    priority: int = 0  # higher goes first
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


def hash_key(key: str) -> str:
    """The stored form of a key: SHA-256, 64 hex digits."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def new_key() -> str:
    """A fresh random key."""
    return KEY_PREFIX + secrets.token_urlsafe(32)


class KeyRing:
    """The keys that are known, by hash; `version` changes with them."""

    def __init__(self, entries: Iterable[KeyEntry] = ()) -> None:
        self._by_digest = {entry.digest: entry for entry in entries}
        self._seen: dict[str, KeyEntry] = {}  # keys that were right: hashing costs more than this
        self.version = 0

    def replace(self, entries: Iterable[KeyEntry]) -> None:
        """Know these from now on, and no others."""
        self._by_digest = {entry.digest: entry for entry in entries}
        self._seen = {}
        self.version += 1

    def __len__(self) -> int:
        return len(self._by_digest)

    def find(self, key: str) -> KeyEntry | None:
        """The entry of `key`, or None. Takes the same time wherever a wrong key differs."""
        known = self._seen.get(key)  # compares nothing unless a keyed hash is equal
        if known is not None:
            return known
        digest = hash_key(key)
        entry = self._by_digest.get(digest)
        # The lookup is by a hash the caller cannot steer; the comparison keeps it so.
        if entry is None or not hmac.compare_digest(entry.digest, digest):
            return None
        self._seen[key] = entry
        return entry


def read_keys(path: Path) -> tuple[KeyEntry, ...]:
    """The entries of a key file (a JSON list, as `write_keys` leaves it); none if it is absent.

    Raises:
        ValueError: the file is not a list of keys.
    """
    if not path.exists():
        return ()
    rows = orjson.loads(path.read_bytes())
    if not isinstance(rows, list):
        raise ValueError(f"{path.name} must hold a JSON list of keys")
    return tuple(entry_of(row, path.name) for row in rows)


def write_keys(path: Path, entries: Iterable[KeyEntry]) -> None:
    """Replace the key file, readable by its owner only."""
    rows = [row_of(entry) for entry in entries]
    scratch = path.with_suffix(".new")
    scratch.touch(mode=0o600)
    scratch.write_bytes(orjson.dumps(rows, option=orjson.OPT_INDENT_2))
    scratch.replace(path)


def row_of(entry: KeyEntry) -> dict[str, Any]:
    """The entry as JSON values."""
    models = None if entry.models is None else sorted(entry.models)
    return asdict(entry) | {"models": models}


def entry_of(row: Mapping[str, Any], where: str) -> KeyEntry:
    """`row_of` back to the entry; fields of newer versions are ignored.

    Raises:
        ValueError: not an entry; the message says `where`.
    """
    try:
        known = {k: v for k, v in row.items() if k in KeyEntry.__slots__}
        models = known.get("models")
        known["models"] = frozenset(models) if models is not None else None
        return KeyEntry(**known)
    except (AttributeError, TypeError) as error:
        raise ValueError(f"{where}: not a key entry: {error}") from error
