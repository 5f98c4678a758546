"""Exact command lines of every mode, both dialects, sizes and GPUs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import workers.engines
from workers.capabilities import Capabilities
from workers.engines import EMBEDDED, EngineMissing, LaunchContext
from workers.engines.llama_cpp import LlamaCpp
from workers.modes import MODES
from workers.spec import GPUSettings, NgramSettings, WorkerSpec

STOCK_FLAGS = frozenset(
    word
    for line in (Path(workers.engines.__file__).parent / "b11434_flags.txt")
    .read_text()
    .splitlines()
    if not line.startswith("#")
    for word in line.split()
)
SPEC_TYPES = frozenset(mode.spec_type for mode in MODES.values() if mode.spec_type)
STOCK = Capabilities(STOCK_FLAGS, SPEC_TYPES, "version: 11434 (abc)")
PATCHED = Capabilities(STOCK_FLAGS | {"--spec-draft-ctx"}, SPEC_TYPES, "version: 0 (unknown)")
START = (
    *("srv", "--host", "127.0.0.1", "--port", "9001", "--api-key-file", "w.key"),
    *("--fit", "off", "--no-ui", "--cors-origins", "localhost", "--metrics", "--slots"),
    *("-m", "t.gguf", "--alias", "m"),
)
DRAFT = ("--spec-type", "draft-dflash", "-md", "d.gguf")
CUT = ("--spec-draft-n-max", "7", "--spec-draft-n-min", "1", "--spec-draft-p-min")


def spec(mode="ar", **changes):
    draft = Path("d.gguf") if MODES[mode].needs_draft else None
    given = {"name": "w", "model": "m", "mode": mode, "target": Path("t.gguf"), "draft": draft}
    return WorkerSpec(**{**given, **changes})


def argv(worker, capabilities=STOCK):
    launch = LaunchContext(("srv",), 9001, Path("w.key"), capabilities)
    return LlamaCpp().render_argv(worker, launch)


@pytest.mark.parametrize(
    ("mode", "stock", "patched"),
    [
        ("ar", (), ()),
        ("mtp", ("--spec-type", "draft-mtp", "--spec-draft-n-max", "3"), None),
        ("mtp-n3", ("--spec-type", "draft-mtp", "--spec-draft-n-max", "3"), None),
        (
            "mtp-margin",
            ("--spec-type", "draft-mtp", *CUT, "0.65"),
            ("--spec-type", "draft-mtp", *CUT, "0.3"),
        ),
        ("dflash", (*DRAFT, "--spec-draft-n-max", "7"), None),
        ("dflash2", (*DRAFT, "--spec-draft-n-max", "7"), None),
        ("dflash-margin", (*DRAFT, *CUT, "0.74"), (*DRAFT, *CUT, "0.35")),
        ("dflash2-margin", (*DRAFT, *CUT, "0.74"), (*DRAFT, *CUT, "0.35")),
        ("dspark", ("--spec-type", "draft-dspark", "-md", "d.gguf"), None),
        ("eagle3", ("--spec-type", "draft-eagle3", "-md", "d.gguf"), None),
        ("draft", ("--spec-type", "draft-simple", "-md", "d.gguf"), None),
        ("ngram-mod", ("--spec-type", "ngram-mod"), None),
        ("ngram-map-k", ("--spec-type", "ngram-map-k"), None),
        ("ngram-map-k4v", ("--spec-type", "ngram-map-k4v"), None),
        ("ngram-simple", ("--spec-type", "ngram-simple"), None),
        ("ngram-cache", ("--spec-type", "ngram-cache"), None),
    ],
)
def test_the_flags_of_each_mode(mode, stock, patched):
    size = ("-c", "4096", "-np", "1")
    assert argv(spec(mode)) == (*START, *size, *stock)
    assert argv(spec(mode), PATCHED) == (*START, *size, *(stock if patched is None else patched))


def test_every_llama_cpp_mode_is_in_the_table_above():
    (table,) = test_the_flags_of_each_mode.pytestmark
    ours = {name for name, mode in MODES.items() if mode.engine == "llama-server"}
    assert {row[0] for row in table.args[1]} == ours


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"context": 32768, "slots": 4}, ("-c", "131072", "-np", "4")),
        (
            {"context": 32768, "slots": 4, "kv": "unified"},
            ("-c", "32768", "-np", "4", "--kv-unified"),
        ),
        ({"threads": 3}, ("-c", "4096", "-np", "1", "-t", "3")),
        ({"reasoning": "off"}, ("-c", "4096", "-np", "1", "--reasoning", "off")),
        ({"reasoning": "on"}, ("-c", "4096", "-np", "1", "--reasoning", "on")),
        (
            {"args": ("-ctk", "q8_0"), "reasoning": "on"},
            ("-c", "4096", "-np", "1", "--reasoning", "on", "-ctk", "q8_0"),
        ),
        (
            {"gpu": GPUSettings(devices=(0,), layers="all")},
            ("-c", "4096", "-np", "1", "--device", "CUDA0", "-ngl", "all"),
        ),
        (
            {"gpu": GPUSettings((0, 2), 40, (3.0, 1.5), 0, ("Vulkan1",), 0)},
            (
                *("-c", "4096", "-np", "1", "--device", "CUDA0,CUDA2", "-ngl", "40"),
                *("--tensor-split", "3,1.5", "--main-gpu", "0"),
                *("--spec-draft-device", "Vulkan1", "--spec-draft-ngl", "0"),
            ),
        ),
    ],
)
def test_size_gpu_and_the_rest(changes, expected):
    assert argv(spec(**changes)) == (*START, *expected)


@pytest.mark.parametrize(
    ("mode", "changes", "expected"),
    [
        ("mtp", {"n_max": 5}, ("--spec-type", "draft-mtp", "--spec-draft-n-max", "5")),
        (
            "mtp-n3",
            {"n_min": 2, "p_min": 0.5},
            (
                *("--spec-type", "draft-mtp", "--spec-draft-n-max", "3"),
                *("--spec-draft-n-min", "2", "--spec-draft-p-min", "0.5"),
            ),
        ),
        ("dflash2-margin", {"margin": 2.0}, (*DRAFT, *CUT, "0.88")),
        (
            "dflash2",
            {"draft_context": 4096},
            (*DRAFT, "--spec-draft-n-max", "7", "--spec-draft-ctx", "4096"),
        ),
        (
            "ngram-mod",
            {"n_max": 32, "n_min": 8, "ngram": NgramSettings(n_match=16)},
            (
                *("--spec-type", "ngram-mod", "--spec-ngram-mod-n-max", "32"),
                *("--spec-ngram-mod-n-min", "8", "--spec-ngram-mod-n-match", "16"),
            ),
        ),
        (
            "ngram-map-k4v",
            {"ngram": NgramSettings(size_n=8, size_m=24, min_hits=2)},
            (
                *("--spec-type", "ngram-map-k4v", "--spec-ngram-map-k4v-size-n", "8"),
                *("--spec-ngram-map-k4v-size-m", "24", "--spec-ngram-map-k4v-min-hits", "2"),
            ),
        ),
    ],
)
def test_a_workers_own_values_override_its_modes(mode, changes, expected):
    assert argv(spec(mode, **changes))[len(START) + 4 :] == expected


def test_the_dialect_can_be_set():
    assert argv(spec("mtp-margin", dialect="patched"), STOCK)[-1] == "0.3"
    assert argv(spec("mtp-margin", dialect="stock"), PATCHED)[-1] == "0.65"
    assert argv(spec("mtp-margin"), None)[-1] == "0.65"


def test_answers_name_the_model_and_no_alias():
    assert argv(spec(aliases=("a", "b")))[16:18] == ("--alias", "m")


@pytest.mark.parametrize("mode", [n for n, m in MODES.items() if m.engine == "llama-server"])
def test_b11434_knows_every_flag_we_render(mode):
    gpu = GPUSettings((0, 1), "all", (1.0, 1.0), 0, (0,), 10)
    worker = spec(mode, gpu=gpu, kv="unified", threads=1, reasoning="on", n_max=5, n_min=1)
    assert LlamaCpp().problems(worker, STOCK) == ()


def test_problems_name_the_flag_the_type_and_the_build():
    engine = LlamaCpp()
    assert engine.problems(spec("dflash2"), None) == ()
    (ring,) = engine.problems(spec("dflash2", draft_context=4096), STOCK)
    assert "draft_context" in ring
    (flag,) = engine.problems(spec(args=("--flux", "1", "-5")), STOCK)
    assert flag.startswith("this llama-server does not know --flux; from `args`")
    types = frozenset({"draft-simple", "draft-dflash"})
    old = Capabilities(STOCK_FLAGS, types, "version: 9000 (abc)")
    (kind,) = engine.problems(spec("mtp"), old)
    assert "draft-mtp" in kind
    assert "draft-dflash, draft-simple" in kind
    (build,) = engine.problems(spec("dflash2"), old)
    assert "b10658" in build
    assert "b9000" in build
    assert engine.problems(spec("dflash2"), PATCHED) == ()  # a build that tells no number
    (missing,) = engine.problems(spec(), Capabilities(STOCK_FLAGS - {"--fit"}, SPEC_TYPES))
    assert "--fit" in missing
    assert "newer" in missing


def test_a_users_own_binary_comes_first(tmp_path):
    engine = LlamaCpp()
    assert engine.command(spec(), "") == EMBEDDED
    assert EMBEDDED[0] == sys.executable
    on_path = tmp_path / "llama-server"
    on_path.write_text("#!/bin/sh\n")
    on_path.chmod(0o755)
    assert engine.command(spec(), str(tmp_path)) == (str(on_path),)
    own = tmp_path / "mine"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    assert engine.command(spec(binary=own), str(tmp_path)) == (str(own),)
    with pytest.raises(EngineMissing, match="not an executable"):
        engine.command(spec(binary=tmp_path / "absent"), str(tmp_path))


def test_timings_are_the_top_level_block():
    timings = LlamaCpp().parse_timings({"timings": {"predicted_n": 3}, "usage": {}})
    assert timings.predicted_n == 3
    assert LlamaCpp().parse_timings({}).predicted_n is None
