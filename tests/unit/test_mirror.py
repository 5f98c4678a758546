"""A test file mirrors a source file, so that it is found without searching."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "tests" / "unit"


def test_every_unit_test_has_its_source_file():
    orphans = []
    for test in UNIT.rglob("test_*.py"):
        relative = test.relative_to(UNIT)
        if len(relative.parts) == 1:  # about the house as a whole
            continue
        name = relative.name.removeprefix("test_")
        source = ROOT / relative.parent / name
        package = ROOT / relative.parent / name.removesuffix(".py") / "__init__.py"
        own = ROOT / relative.parent / "__init__.py"  # test_<package>.py inside its folder
        named_after_package = name.removesuffix(".py") == relative.parent.name and own.exists()
        if not (source.exists() or package.exists() or named_after_package):
            orphans.append(str(relative))
    assert orphans == []
