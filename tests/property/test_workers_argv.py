"""Command lines of any worker: complete, in words the binary knows, the worker's own args last."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from workers.capabilities import parse
from workers.engines import ENGINES, LaunchContext
from workers.llama_options import BY_NAME, usage, version
from workers.modes import MODES, p_min
from workers.spec import NgramSettings, WorkerSpec

LLAMA = ENGINES["llama-server"]
EMBEDDED = parse(usage(), version())
OPTIONAL_COUNT = st.none() | st.integers(1, 64)

SPECS = st.builds(
    WorkerSpec,
    name=st.just("w"),
    model=st.sampled_from(["m", "a/b", "имя"]),
    mode=st.sampled_from([name for name, mode in MODES.items() if mode.engine == "llama-server"]),
    target=st.just(Path("/models/with space/t.gguf")),
    draft=st.just(Path("d.gguf")),
    context=st.integers(256, 300_000),
    slots=st.integers(1, 64),
    kv=st.sampled_from(["split", "unified"]),
    threads=OPTIONAL_COUNT,
    dialect=st.sampled_from(["auto", "stock", "patched"]),
    reasoning=st.sampled_from(["on", "off", "auto"]),
    n_max=OPTIONAL_COUNT,
    n_min=OPTIONAL_COUNT,
    p_min=st.none() | st.floats(0, 1),
    margin=st.none() | st.floats(0.01, 20),
    gap=st.none() | st.floats(0, 1),
    ngram=st.builds(NgramSettings, OPTIONAL_COUNT, OPTIONAL_COUNT, OPTIONAL_COUNT, OPTIONAL_COUNT),
    args=st.lists(st.sampled_from(["-ctk", "q8_0", "--swa-full"]), max_size=3).map(tuple),
)


@given(SPECS, st.integers(1, 65535))
def test_any_worker_without_a_gpu_runs_on_the_embedded_engine(spec, port):
    argv = LLAMA.render_argv(spec, LaunchContext(("srv",), port, Path("k"), EMBEDDED))
    assert LLAMA.problems(spec, EMBEDDED) == ()
    words = iter(argv[1 : len(argv) - len(spec.args)])
    for flag in words:
        option = BY_NAME[flag]
        if option.takes_value:
            assert not next(words).startswith("--")
    assert argv[len(argv) - len(spec.args) :] == spec.args
    assert argv.count("-c") == argv.count("-np") == argv.count("--fit") == 1
    total = spec.context if spec.kv == "unified" else spec.context * spec.slots
    assert argv[argv.index("-c") + 1] == str(total)


@given(SPECS)
def test_a_cut_is_a_probability_in_the_dialect_of_stock_builds(spec):
    value = p_min(spec, "stock")
    has_cut = MODES[spec.mode].cut is not None or spec.p_min is not None
    assert (value is not None) == has_cut
    assert value is None or 0.0 <= value <= 1.0


@given(SPECS, SPECS)
def test_digests_tell_workers_apart_exactly_where_they_differ(one, other):
    same = one.digest() == other.digest()
    assert same == (one == other)
