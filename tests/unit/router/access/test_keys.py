"""Keys at rest: hashes only, in a file of their own."""

from __future__ import annotations

import stat

import pytest

from router.access.keys import KeyEntry, KeyRing, hash_key, new_key, read_keys, write_keys


def test_a_ring_finds_by_key_and_never_by_hash():
    key = new_key()
    ring = KeyRing([KeyEntry("a", hash_key(key))])
    assert ring.find(key).label == "a"
    assert ring.find(hash_key(key)) is None
    assert ring.find("") is None
    assert len(ring) == 1


def test_a_key_that_was_found_before_is_forgotten_with_its_entry():
    key = new_key()
    ring = KeyRing([KeyEntry("a", hash_key(key))])
    assert ring.find(key) is ring.find(key)
    ring.replace([KeyEntry("b", hash_key(key))])
    assert ring.find(key).label == "b"
    ring.replace([])
    assert ring.find(key) is None


def test_new_keys_differ_and_look_like_keys():
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(key.startswith("sk-specroute-") and len(key) > 40 for key in keys)


def test_the_file_keeps_everything_but_the_key(tmp_path):
    path, key = tmp_path / "keys.json", new_key()
    entries = (
        KeyEntry("a", hash_key(key), models=frozenset({"x", "y"}), requests_per_minute=3.0),
        KeyEntry("b", hash_key("other"), admin=True, priority=-1),
    )
    write_keys(path, entries)
    assert read_keys(path) == entries
    assert key not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_no_file_is_no_keys(tmp_path):
    assert read_keys(tmp_path / "none.json") == ()


@pytest.mark.parametrize("text", ["{}", "[3]", '[{"label": "x"}]', "not json"])
def test_a_damaged_file_is_an_error(tmp_path, text):
    path = tmp_path / "keys.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"keys\.json|json|JSON|unexpected|expect"):
        read_keys(path)
