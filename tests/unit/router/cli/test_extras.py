"""Commands whose libraries are not installed, in a process that cannot import them."""

from __future__ import annotations

import os
import subprocess
import sys

import orjson
import pytest

pytestmark = pytest.mark.slow

MODULES = ("simpy", "sklearn", "matplotlib")
LABELLED = {"messages": [{"role": "user", "content": "Say hi"}], "label": "prose"}
FLEET = "deploy/simulation/fleet.yaml"


@pytest.fixture
def bare(tmp_path):
    """Runs a command where the optional libraries are as good as not installed."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    for name in MODULES:
        (hidden / f"{name}.py").write_text(f"raise ModuleNotFoundError('No module named {name}')")
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(orjson.dumps(LABELLED))
    places = {"ROWS": str(rows), "OUT": str(tmp_path / "out"), "FLEET": FLEET}

    def run(line: str) -> subprocess.CompletedProcess[str]:
        words = [places.get(word, word) for word in line.split()]
        return subprocess.run(
            [sys.executable, "-m", "router", *words],
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(hidden), os.getcwd()))},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.parametrize(
    ("line", "library", "extra"),
    [
        ("simulate --fleet FLEET --plot OUT", "simpy", "simulate"),
        ("simulate --cells ROWS --plot OUT", "matplotlib", "simulate"),
        ("classifier evaluate ROWS --cv", "scikit-learn", "classifier"),
        ("classifier evaluate ROWS --plots OUT", "matplotlib", "simulate"),
        ("classifier train ROWS --out OUT", "scikit-learn", "classifier"),
        ("classifier train ROWS --out OUT --no-cv", "scikit-learn", "classifier"),
        ("classifier prove ROWS", "scikit-learn", "classifier"),
        ("sweep --quick --plot OUT", "matplotlib", "simulate"),
        ("calibrate --yes -o OUT --plot OUT", "matplotlib", "simulate"),
        ("advise ROWS --measured ROWS --plot OUT", "matplotlib", "simulate"),
    ],
)
def test_a_missing_library_is_one_sentence_that_says_what_to_install(bare, line, library, extra):
    shown = bare(line)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr == (
        f"Error: this needs {library}: pip install 'specroute[{extra}]' "
        f"(in a checkout: .venv/bin/pip install '.[{extra}]')\n"
    )


def test_what_needs_no_such_library_works_without(bare):
    assert bare("classifier evaluate ROWS").returncode == 0


def test_a_plot_without_a_folder_to_go_to_is_refused_before_measuring(bare):
    shown = bare("sweep --quick --plot nowhere/plot.png")
    assert shown.returncode == 2
    assert "there is no folder nowhere" in shown.stderr
