"""workers.tiny.trio: written once, whole or not at all, named by content."""

from __future__ import annotations

import hashlib
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import pytest

from workers.tiny import Cost, TinyTrio, prepare, trio
from workers.tiny.trio import SHIPPED_DRAFT, SHIPPED_TARGET

MEGABYTE = 1024 * 1024
ONE, TWO = Cost(1, 0), Cost(2, 0)


def sums(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}


def test_shipped_files_fit_in_a_wheel() -> None:
    assert SHIPPED_TARGET.stat().st_size <= 8 * MEGABYTE
    assert SHIPPED_DRAFT.stat().st_size <= 8 * MEGABYTE


def test_the_shipped_template_is_the_one_kept_as_text() -> None:
    field = gguf.GGUFReader(SHIPPED_TARGET).get_field(gguf.Keys.Tokenizer.CHAT_TEMPLATE)
    kept = Path(__file__).parents[4] / "deploy" / "tiny_models" / "chat_template.jinja"
    assert field is not None
    assert field.contents() == kept.read_text(encoding="utf-8")


def test_writes_both_files_and_nothing_else(tmp_path: Path) -> None:
    found = prepare(tmp_path / "new" / "cache", ONE)
    assert {found.target, found.draft} == set((tmp_path / "new" / "cache").iterdir())
    assert found.target.read_bytes()[:4] == b"GGUF"
    assert found.draft.read_bytes()[:4] == b"GGUF"


def test_second_call_writes_nothing(tmp_path: Path) -> None:
    first = prepare(tmp_path, ONE)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    assert prepare(tmp_path, ONE) == first
    assert {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()} == before


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    prepare(tmp_path / "a", TWO)
    prepare(tmp_path / "b", TWO)
    assert sums(tmp_path / "a") == sums(tmp_path / "b")


def test_cost_and_content_change_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepare(tmp_path, ONE)
    assert prepare(tmp_path, TWO).target != first.target
    assert prepare(tmp_path, Cost(1, 600)).target != first.target
    other = tmp_path / "another.gguf"
    shutil.copyfile(SHIPPED_DRAFT, other)
    with other.open("ab") as file:
        file.write(b"\0")
    monkeypatch.setattr(trio, "SHIPPED_DRAFT", other)
    assert prepare(tmp_path, ONE).draft != first.draft


def test_callers_may_race(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: prepare(tmp_path, ONE), range(4)))
    assert set(found) == {TinyTrio(target=found[0].target, draft=found[0].draft)}
    assert set(tmp_path.iterdir()) == {found[0].target, found[0].draft}


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF but no more")
    monkeypatch.setattr(trio, "SHIPPED_TARGET", broken)
    cache = tmp_path / "cache"
    with pytest.raises(Exception, match=r".+"):
        prepare(cache, ONE)
    assert list(cache.iterdir()) == []


def test_negative_count_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        Cost(-1, 0)
