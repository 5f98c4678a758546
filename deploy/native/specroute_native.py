"""What a compiled class needs of `dataclasses`: `replace`, `asdict` and `fields` work on it."""

from __future__ import annotations

import dataclasses
from typing import Any


def described(cls: Any, names: list[str]) -> None:
    """Tell `dataclasses` and readers of `__slots__` which fields `cls` has."""
    cls.__dataclass_fields__ = {name: _field(name) for name in names}
    cls.__slots__ = tuple(names)


def _field(name: str) -> Any:
    made: Any = dataclasses.field()
    made.name, made.type = name, "Any"
    made._field_type = dataclasses._FIELD  # type: ignore[attr-defined]  # its mark of a field
    return made
