"""Quick values: made alike, equal alike, replaced alike."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from classifier.quick import quick


@dataclass(frozen=True, slots=True)
class Plain:
    """What `quick` is given."""

    name: str
    size: int = 3
    parts: tuple[int, ...] = ()
    seen: dict[str, int] = field(default_factory=dict, compare=False)


@quick
@dataclass(frozen=True, slots=True)
class Quick:
    """The same."""

    name: str
    size: int = 3
    parts: tuple[int, ...] = ()
    seen: dict[str, int] = field(default_factory=dict, compare=False)


@pytest.mark.parametrize("kind", [Plain, Quick])
def test_a_quick_class_is_used_like_any_other(kind: type[Plain] | type[Quick]) -> None:
    one = kind("a", parts=(1,))
    assert (one.name, one.size, one.parts, one.seen) == ("a", 3, (1,), {})
    assert one == kind("a", 3, (1,), {"x": 1})
    assert hash(one) == hash(kind("a", 3, (1,)))
    assert replace(one, size=4) == kind("a", 4, (1,))
    assert repr(one).endswith("(name='a', size=3, parts=(1,), seen={})")


def test_defaults_that_are_made_are_made_anew() -> None:
    one, other = Quick("a"), Quick("b")
    one.seen["x"] = 1
    assert other.seen == {}


def test_what_is_missing_or_unknown_is_refused() -> None:
    with pytest.raises(TypeError):
        Quick()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Quick("a", colour="red")  # type: ignore[call-arg]


def test_a_quick_class_has_no_room_for_more() -> None:
    with pytest.raises(AttributeError):
        Quick("a").colour = "red"  # type: ignore[attr-defined]
