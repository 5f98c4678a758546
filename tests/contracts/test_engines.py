"""What every engine must do, run over the whole catalogue."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workers.engines import ENGINES, LaunchContext, engine_of, get_engine
from workers.modes import MODES
from workers.spec import WorkerSpec
from workers.timings import Timings

SPAWNING = [name for name in ENGINES if name != "external"]


def spec(engine, **changes):
    mode = next(m.name for m in MODES.values() if m.engine == engine or engine != "luce")
    given = {"name": "w", "model": "m", "mode": mode, "engine": engine, "target": Path("t.gguf")}
    draft = Path("d.gguf") if MODES[mode].needs_draft else None
    return WorkerSpec(**{**given, "draft": draft, **changes})


@pytest.fixture(params=list(ENGINES))
def engine(request):
    return ENGINES[request.param]


def test_it_goes_by_its_name(engine):
    assert ENGINES[engine.name] is engine
    assert get_engine(engine.name) is engine


def test_timings_of_anything_are_a_value_and_never_an_error(engine):
    for final in ({}, {"timings": None}, {"timings": [1]}, {"usage": "x"}, {"usage": {}}):
        assert isinstance(engine.parse_timings(final), Timings)


def test_it_names_its_pages_and_what_may_be_asked_of_it(engine):
    assert engine.routes.health.startswith("/")
    assert set(engine.features) <= {"tools", "grammar", "json_schema", "logprobs", "n"}


@pytest.mark.parametrize("name", SPAWNING)
def test_command_lines_are_words_without_secrets_and_end_in_the_workers_own_args(name):
    key = Path("/private/w.key")
    worker = spec(name, args=("--last", "word"))
    argv = ENGINES[name].render_argv(worker, LaunchContext(("program",), 4321, key))
    assert argv[0] == "program"
    assert argv[-2:] == ("--last", "word")
    assert all(isinstance(word, str) for word in argv)
    assert "4321" in argv
    assert json.loads(json.dumps(argv)) == list(argv)
    assert argv == ENGINES[name].render_argv(worker, LaunchContext(("program",), 4321, key))


@pytest.mark.parametrize("name", SPAWNING)
def test_a_worker_with_a_url_is_attached_whatever_its_engine(name):
    assert engine_of(spec(name, url="http://h:1")) is ENGINES["external"]
    assert engine_of(spec(name)) is ENGINES[name]


def test_engines_out_of_tree_are_named_by_module():
    assert get_engine("workers.engines.luce:Luce").name == "luce"
    with pytest.raises(KeyError, match="no engine is called 'magic'"):
        get_engine("magic")


def test_every_mode_has_an_engine():
    assert {mode.engine for mode in MODES.values()} <= set(ENGINES)
