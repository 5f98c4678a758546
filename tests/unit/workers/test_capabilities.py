from __future__ import annotations

import sys

import pytest

from workers.capabilities import Capabilities, CapabilityError, dialect_of, parse, read
from workers.llama_options import BY_NAME, SPEC_TYPES, usage, version
from workers.spec import WorkerSpec

HELP = """\
----- common params -----

-h,    --help, --usage                  print usage and exit
-t,    --threads N                      number of threads (default: -1), see --no-such
--spec-draft-p-min, --draft-p-min P     smallest probability (default: 0.00)
--spec-type none,draft-mtp,ngram-mod
                                        types, comma separated; with --another-one too
--draft, --draft-max N                  the argument has been removed. use --spec-draft-n-max
--draft-min N
                                        the argument has been removed
--fim-qwen-1.5b-default                 a preset
"""


def test_flags_are_those_that_open_a_line_and_are_not_removed():
    found = parse(HELP, "version: 11434 (abc)\nbuilt with gcc")
    assert found.flags == {
        *("-h", "--help", "--usage", "-t", "--threads"),
        *("--spec-draft-p-min", "--draft-p-min", "--spec-type", "--fim-qwen-1.5b-default"),
    }
    assert found.spec_types == {"none", "draft-mtp", "ngram-mod"}
    assert found.build == 11434
    assert found.label == "b11434"
    assert found.unknown(["-t", "--nope"]) == ("--nope",)


@pytest.mark.parametrize(
    ("text", "build"),
    [
        ("version: 0 (unknown)", None),
        ("version: 1.2.0 (build 0, commit unknown)", None),
        ("version: 1.2.0 (build 11434, commit abc123)", 11434),
        ("version: 4567 (abc123) built with gcc 13", 4567),
        ("version: 1.2", None),
        ("", None),
        ("build: 4321 (x)", 4321),
        ("b10658", 10658),
    ],
)
def test_many_builds_do_not_tell_their_number(text, build):
    found = parse(HELP, text)
    assert found.build == build
    assert found.label == (text if build is None else f"b{build}")


def test_the_dialect_and_why():
    stock, patched = parse(HELP), parse(HELP + "--spec-draft-ctx N   ring\n")
    auto = WorkerSpec("w", "m", "ar")
    assert dialect_of(auto, stock) == (
        "stock",
        "the binary's --help does not list --spec-draft-ctx",
    )
    assert dialect_of(auto, patched)[0] == "patched"
    assert dialect_of(auto, None) == ("stock", "the binary was not asked")
    chosen = WorkerSpec("w", "m", "ar", dialect="patched")
    assert dialect_of(chosen, stock) == ("patched", "set in the configuration")


def test_a_real_program_is_asked(tmp_path):
    program = tmp_path / "llama-server"
    program.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "version: 77 (x)" >&2 && exit 0\n'
        'echo "--fit [on|off]   adjust"\n'
    )
    program.chmod(0o755)
    assert read((str(program),)) == Capabilities(
        frozenset({"--fit"}), frozenset(), "version: 77 (x)"
    )


def test_what_is_no_llama_server_says_so(tmp_path):
    with pytest.raises(CapabilityError, match="does not run"):
        read((str(tmp_path / "absent"),))
    with pytest.raises(CapabilityError, match="lists no flags"):
        read(("/bin/true",))
    with pytest.raises(CapabilityError, match="does not run"):
        read((sys.executable, "-c", "import time; time.sleep(60)"), timeout_s=0.2)


def test_the_embedded_engine_is_read_like_any_other():
    found = parse(usage(), version())
    assert set(BY_NAME) < found.flags
    assert found.spec_types == set(SPEC_TYPES)
    assert found.build is not None
    assert found.build >= 11549
    assert found.dialect == "stock"
