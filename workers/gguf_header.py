"""The header of a GGUF file: its metadata, without reading the weights.

Format of the ggml project: magic, version, counts, then key-value pairs, then tensor infos. Long
arrays (a tokenizer's) are stepped over.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9
_KEPT = 1024  # elements; a longer array is a vocabulary


class NotGGUF(ValueError):
    """The file is no GGUF, or ends too early."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """An array that was stepped over."""

    count: int


@dataclass(frozen=True, slots=True)
class Header:
    """Metadata by key; `size` is the whole file's in bytes."""

    metadata: Mapping[str, Any]
    size: int

    def of_architecture(self, key: str, default: Any = None) -> Any:
        """`ARCHITECTURE.key`, or the default."""
        return self.metadata.get(f"{self.metadata.get('general.architecture')}.{key}", default)


def read_header(path: Path) -> Header:
    """Read a file's header.

    Raises:
        OSError: it cannot be read.
        NotGGUF: it is something else.
    """
    with path.open("rb") as file:
        try:
            magic, _version, _tensors, pairs = struct.unpack("<4sIQQ", file.read(24))
            if magic != b"GGUF":
                raise NotGGUF(f"{path} is not a GGUF file")
            metadata = dict(_pair(file) for _ in range(pairs))
        except (struct.error, UnicodeDecodeError, KeyError, MemoryError, OverflowError) as error:
            raise NotGGUF(f"{path} has a broken GGUF header") from error
    return Header(metadata, path.stat().st_size)


def _pair(file: BinaryIO) -> tuple[str, Any]:
    key = _string(file)
    return key, _value(file, _scalar(file, "I"))


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind == _ARRAY:
        return _array(file)
    return _scalar(file, _SCALARS[kind])


def _array(file: BinaryIO) -> tuple[Any, ...] | Skipped:
    """The elements; only their number where they are too many to be of use here."""
    kind, count = _scalar(file, "I"), _scalar(file, "Q")
    if count <= _KEPT:
        return tuple(_value(file, kind) for _ in range(count))
    if kind == _STRING:
        for _ in range(count):
            file.seek(_scalar(file, "Q"), 1)
    else:
        file.seek(count * struct.calcsize(_SCALARS[kind]), 1)
    return Skipped(count)


def _string(file: BinaryIO) -> str:
    return file.read(_scalar(file, "Q")).decode()


def _scalar(file: BinaryIO, code: str) -> Any:
    (value,) = struct.unpack(f"<{code}", file.read(struct.calcsize(code)))
    return value
