"""One answered request as learning keeps it: hashes of feature names, what came out, and when.

No text is kept, nor anything a text could be restored from. Light enough for the gateway, which
packs samples; `classifier.learning`, in a process of its own, reads them.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, Final

from classifier.artifact import hash_name
from classifier.classes import CLASS_OF_KIND, WorkloadClass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from classifier.features import RequestFeatures
    from classifier.produced import ProducedLabel

MAX_EXAMPLES: Final = 20_000
"""Samples that are kept for learning: about 4 MB."""

LEAST_CONFIDENCE: Final = 0.6
"""Answers whose produced label is less certain are not learned from."""

MAX_HASHES: Final = 256
_KINDS: Final = tuple(CLASS_OF_KIND)
_HEAD: Final = Struct("<dB")


@dataclass(frozen=True, slots=True)
class Example:
    """`hashes` of the request's feature names; `kind` that came out; `at` in Unix seconds."""

    hashes: tuple[int, ...]
    kind: str
    at: float = 0.0

    @property
    def answer(self) -> WorkloadClass:
        """The class that came out."""
        return CLASS_OF_KIND[self.kind]


def hashes_of(features: RequestFeatures) -> tuple[int, ...]:
    """The feature names as sorted 32-bit hashes."""
    return tuple(sorted(map(hash_name, features.names)))


def sample(features: RequestFeatures, label: ProducedLabel, now: float) -> bytes | None:
    """The packed example, or None if the fields settled the answer or the label is uncertain."""
    if features.thinking or features.forced or label.confidence < LEAST_CONFIDENCE:
        return None
    return pack(Example(hashes_of(features)[:MAX_HASHES], label.kind, now))


def pack(example: Example) -> bytes:
    """About 190 bytes: time, kind, hashes (little endian)."""
    head = _HEAD.pack(example.at, _KINDS.index(example.kind))
    return head + _little(array("I", example.hashes)).tobytes()


def unpack(packed: Iterable[bytes]) -> list[Example]:
    """The examples; what does not read as one (another version's) is left out."""
    found = []
    for raw in packed:
        try:
            at, kind = _HEAD.unpack_from(raw)
            hashes = array("I")
            hashes.frombytes(raw[_HEAD.size :])
            found.append(Example(tuple(_little(hashes)), _KINDS[kind], at))
        except (StructError, ValueError, IndexError):
            continue
    return found


def _little(values: array[int]) -> array[int]:
    """In the byte order of the sample, whatever the machine's is."""
    if array("H", [1]).tobytes() != b"\x01\x00":
        values.byteswap()
    return values
