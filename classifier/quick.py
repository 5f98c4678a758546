"""Frozen dataclasses that are made quickly: mypy keeps them frozen, the interpreter does not.

What a request meets is a few dozen small values, and a frozen dataclass calls
`object.__setattr__` for each field: half a microsecond a value that buys nothing where every
module is checked by mypy anyway.
"""

from __future__ import annotations

from copy import copy
from dataclasses import fields, make_dataclass
from typing import Any, TypeVar, cast

T = TypeVar("T")


def quick(cls: type[T]) -> type[T]:
    """`cls`, a frozen and slotted dataclass, with an initialiser that assigns directly.

    Equality, hash, order of the arguments and defaults stay as they are.
    """
    made = cast("Any", cls)
    rows = [(field.name, Any, copy(field)) for field in fields(made)]
    twin: Any = make_dataclass(f"{cls.__name__}Init", rows, eq=False, repr=False)
    made.__init__ = twin.__init__
    del made.__setattr__, made.__delattr__
    return cls
