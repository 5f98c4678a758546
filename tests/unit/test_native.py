"""What is compiled ahead of time: written-out dataclasses behave as the decorated ones did."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "deploy" / "native"
MODULES = (NATIVE / "modules.txt").read_text().split()

SAMPLE = '''"""Two dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Named(NamedTuple):
    rows: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Point:
    """A place."""

    zero: ClassVar[int] = 0
    x: int
    y: int = 2
    seen: list[int] = field(default_factory=list)
    secret: str = field(default="s", repr=False)


@dataclass(slots=True)
class Far(Point):
    z: float = 0.5
    total: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.total = self.x + self.z


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    why: str = "because"
'''


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def native():
    yield load(NATIVE / "rewrite.py", "native_rewrite")
    del sys.modules["native_rewrite"]


@pytest.fixture(scope="module")
def sample(native, tmp_path_factory):
    """The sample as it is after rewriting."""
    helper = load(NATIVE / "specroute_native.py", "specroute_native")
    path = tmp_path_factory.mktemp("native") / "sample.py"
    path.write_text(native.rewrite(SAMPLE))
    yield load(path, "native_sample")
    del sys.modules["native_sample"], sys.modules[helper.__name__]


def test_no_decorator_and_no_slots_are_left(native):
    text = native.rewrite(SAMPLE)
    assert "@dataclass" not in text
    assert "from collections.abc import Mapping\nif TYPE_CHECKING" in text


def test_arguments_defaults_equality_and_text_stay(sample):
    one, same = sample.Point(1), sample.Point(x=1, y=2)
    assert (one.x, one.y, one.seen, one.secret) == (1, 2, [], "s")
    assert one == same
    assert one != sample.Point(1, 3)
    assert one != (1, 2, [], "s")
    assert one.seen is not same.seen
    assert repr(one) == "Point(x=1, y=2, seen=[])"
    assert hash(sample.Spoken()) == hash(sample.Spoken(why="because"))
    with pytest.raises(TypeError):
        sample.Spoken("because")


def test_a_derived_class_has_both_its_own_and_the_inherited_fields(sample):
    far = sample.Far(1, z=2.5)
    assert (far.y, far.z, far.total) == (2, 2.5, 3.5)
    with pytest.raises(TypeError, match="unhashable"):
        hash(far)


def test_dataclasses_still_knows_them(sample):
    moved = dataclasses.replace(sample.Point(1), y=9)
    assert moved.y == 9
    assert dataclasses.asdict(moved) == {"x": 1, "y": 9, "seen": [], "secret": "s"}
    assert sample.Point.__slots__ == ("x", "y", "seen", "secret")


@pytest.mark.parametrize(
    "lines",
    [
        ["try:", "    pass", "except ValueError:", "    await other()"],
        ["try:", "    pass", "finally:", "    await other()"],
        ["async with other():", "    pass"],
    ],
)
def test_what_may_wait_while_an_exception_is_handled_is_refused(native, lines):
    body = "\n".join(f"    {line}" for line in lines)
    with pytest.raises(ValueError, match="waits while it handles"):
        native.rewrite(f"from __future__ import annotations\n\nasync def work(other):\n{body}\n")


def test_an_option_that_is_not_known_is_refused(native):
    text = "from __future__ import annotations\n\n@dataclass(order=True)\nclass A:\n    x: int\n"
    with pytest.raises(ValueError, match="order"):
        native.rewrite(text)


@pytest.mark.parametrize("module", MODULES)
def test_every_module_that_is_compiled_can_be(native, module):
    text = (ROOT / module).read_text(encoding="utf-8")
    compile(native.rewrite(text), module, "exec")
