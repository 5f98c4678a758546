from __future__ import annotations

from pathlib import Path

import pytest
import xllamacpp

import workers.engines
from workers.llama_embedded import UsageError, configure, parse
from workers.llama_options import BY_NAME, OPTIONS


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF")
    return path


def configured(*argv):
    params = xllamacpp.CommonParams()
    configure(parse(argv), params)
    return params


def test_every_flag_is_one_of_llama_servers():
    known = (Path(workers.engines.__file__).parent / "b11434_flags.txt").read_text().split()
    assert set(BY_NAME) <= set(known)


def test_every_option_is_an_attribute_of_common_params():
    for option in OPTIONS:
        target = xllamacpp.CommonParams()
        for part in option.path.split("."):
            target = getattr(target, part)


def test_flags_reach_llama_cpp(model, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("# comment\none\n\ntwo\n")
    params = configured(
        *("-m", str(model), "--alias", "a,b", "--host", "127.0.0.1", "--port", "0"),
        *("--api-key-file", str(keys), "--api-key", "three"),
        *("--fit", "off", "--no-ui", "--cors-origins", "localhost", "--metrics", "--slots"),
        *("-c", "8192", "-np", "2", "-t", "1", "-ctk", "q8_0", "-fa", "on", "-ngl", "all"),
        *("--spec-type", "draft-dflash", "-md", str(model), "--spec-draft-n-max", "7"),
        *("--spec-draft-n-min", "1", "--spec-draft-p-min", "0.74", "--temp", "0.25"),
        *("--reasoning", "off", "--tensor-split", "3,1", "--no-slots", "-nkvo"),
        *("--chat-template-kwargs", '{"a": true}', "--spec-ngram-map-k4v-size-n", "9"),
    )
    assert params.model_alias == {"a", "b"}
    assert params.api_keys == ["one", "two", "three"]
    assert (params.fit_params, params.ui, params.endpoint_metrics) == (False, False, True)
    assert (params.cors_origins, params.cors_origins_explicit) == ("localhost", True)
    assert (params.n_ctx, params.n_parallel, params.cpuparams.n_threads) == (8192, 2, 1)
    assert params.cpuparams_batch.n_threads == 1
    assert params.speculative.draft.cpuparams.n_threads == 1
    assert params.cache_type_k == xllamacpp.ggml_type.GGML_TYPE_Q8_0
    assert params.n_gpu_layers == -2
    kinds = xllamacpp.common_speculative_type
    assert params.speculative.types == [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_DFLASH]
    draft = params.speculative.draft
    assert (draft.mparams.path, draft.n_max, draft.n_min) == (str(model), 7, 1)
    assert draft.p_min == pytest.approx(0.74)
    assert params.sampling.temp == pytest.approx(0.25)
    temp_bit = xllamacpp.common_params_sampling_config.COMMON_PARAMS_SAMPLING_CONFIG_TEMP
    assert params.sampling.user_sampling_config & int(temp_bit)
    assert params.enable_reasoning == 0
    assert params.tensor_split[:3] == [3.0, 1.0, 0.0]
    assert (params.endpoint_slots, params.no_kv_offload) == (False, True)
    assert params.default_template_kwargs == {"a": "true"}
    assert params.speculative.ngram_map_k4v.size_n == 9
    assert params.load_mtp is False


def test_mtp_loads_the_heads_tensors(model):
    assert configured("-m", str(model), "--port", "0", "--spec-type", "draft-mtp").load_mtp is True


def test_without_slots_there_are_four_that_share_one_cache(model):
    auto = configured("-m", str(model), "--port", "0")
    assert (auto.n_parallel, auto.kv_unified) == (4, True)
    set_ = configured("-m", str(model), "--port", "0", "-np", "4")
    assert (set_.n_parallel, set_.kv_unified) == (4, False)


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (["--nonsense"], "unknown flag --nonsense"),
        (["-m"], "-m needs a value"),
        (["--port", "1"], "-m is missing"),
        (["-m", "/absent/m.gguf"], "no such file: /absent/m.gguf"),
        (["-c", "many"], "-c many"),
        (["--fit", "perhaps"], "must be one of on, 1, off, 0"),
        (["--spec-type", "draft-magic"], "must be one of none, draft_simple"),
        (["--chat-template-file", "/absent"], "No such file"),
        (["--chat-template-kwargs", "[]"], "JSON object"),
        (["--api-key-file", "/absent"], "No such file"),
    ],
)
def test_bad_command_lines_are_told_in_a_sentence(argv, problem):
    with pytest.raises(UsageError, match=problem):
        configured(*argv)
