from __future__ import annotations

from dataclasses import replace

import pytest

from workers.gguf_header import Header, Skipped
from workers.memory import draft_kv_bytes, estimate, savings
from workers.spec import WorkerSpec

MIB = 2**20
# The drafter of the P40 lab: 5 layers, 8 KV heads of 128.
LAB_DRAFT = Header(
    {
        "general.architecture": "dflash",
        "dflash.block_count": 5,
        "dflash.attention.head_count": 32,
        "dflash.attention.head_count_kv": 8,
        "dflash.attention.key_length": 128,
        "dflash.attention.value_length": 128,
    },
    int(1e9),
)
# The tiny target with its cost layers: 17 trunk layers, of which 15 attend, and an MTP head.
TINY = Header(
    {
        "general.architecture": "qwen35",
        "qwen35.block_count": 18,
        "qwen35.nextn_predict_layers": 1,
        "qwen35.embedding_length": 256,
        "qwen35.feed_forward_length": 512,
        "qwen35.attention.head_count": 4,
        "qwen35.attention.head_count_kv": 2,
        "qwen35.attention.key_length": 64,
        "qwen35.attention.value_length": 64,
        "qwen35.attention.recurrent_layers": (True, False, True, *(False,) * 15),
        "qwen35.ssm.conv_kernel": 4,
        "qwen35.ssm.state_size": 64,
        "qwen35.ssm.group_count": 4,
        "qwen35.ssm.inner_size": 256,
        "tokenizer.ggml.tokens": Skipped(2048),
    },
    14_000_000,
)
TINY_DRAFT = Header(
    {
        "general.architecture": "dflash",
        "dflash.block_count": 2,
        "dflash.embedding_length": 256,
        "dflash.attention.head_count": 4,
        "dflash.attention.head_count_kv": 2,
        "dflash.attention.key_length": 64,
        "dflash.attention.value_length": 64,
    },
    2_000_000,
)
DRAFT_Q8 = ("-ctkd", "q8_0", "-ctvd", "q8_0")


def spec(mode="ar", **changes):
    return WorkerSpec("w", "m", mode, **({"context": 4096, "slots": 2} | changes))


def test_the_labs_figures_of_a_drafters_cache():
    whole = spec("dflash2", context=101_000, slots=1, args=DRAFT_Q8)
    assert draft_kv_bytes(whole, LAB_DRAFT) / 101_000 == 10_880
    assert draft_kv_bytes(whole, LAB_DRAFT) / MIB == pytest.approx(1049, rel=0.01)
    ring = replace(whole, draft_context=4096)
    assert draft_kv_bytes(ring, LAB_DRAFT) / MIB == pytest.approx(48, rel=0.01)


def test_what_llama_cpp_allocated_for_the_tiny_trio():
    """Buffer sizes that b11549 printed at 8192 tokens, two slots."""
    plain = estimate(spec(), TINY, None)
    assert (plain.kv / MIB, plain.compute / MIB) == (60.0, 10.0)
    assert plain.state / MIB == pytest.approx(0.285, abs=0.01)
    assert plain.draft_compute == plain.draft_kv == plain.draft_weights == 0
    mtp = estimate(spec("mtp-n3"), TINY, None)
    assert (mtp.kv / MIB, mtp.draft_compute / MIB) == (64.0, 7.0 + 28.0)
    assert mtp.state / MIB == pytest.approx(1.14, abs=0.01)
    dflash = estimate(spec("dflash2"), TINY, TINY_DRAFT)
    assert (dflash.kv / MIB, dflash.draft_kv / MIB) == (60.0, 8.0)
    assert dflash.state / MIB == pytest.approx(2.28, abs=0.01)
    assert dflash.draft_weights == 2_000_000


def test_cache_types_and_layouts_change_the_cache():
    f16 = estimate(spec(), TINY, None).kv
    q8 = estimate(spec(args=("-ctk", "q8_0", "--cache-type-v", "q8_0")), TINY, None).kv
    assert q8 / f16 == pytest.approx(34 / 64)
    assert estimate(spec(kv="unified"), TINY, None).kv == f16 / 2
    assert estimate(spec("ngram-mod"), TINY, None).draft_compute == 0


def test_heads_by_layer_and_models_without_recurrence():
    by_layer = {
        "general.architecture": "x",
        "x.block_count": 4,
        "x.embedding_length": 64,
        "x.attention.head_count": 4,
        "x.attention.head_count_kv": (2, 0, 2, 0),
    }
    mixed = estimate(spec(context=1024, slots=1), Header(by_layer, 1), None)
    assert mixed.kv == 1024 * 2 * 2 * (16 + 16) * 2
    dense = Header(by_layer | {"x.attention.head_count_kv": 2}, 1)
    assert estimate(spec(context=1024, slots=1), dense, None).kv == mixed.kv * 2


def test_what_would_help_needs_less():
    worker = spec("dflash2", context=100_000)
    needed = estimate(worker, TINY, LAB_DRAFT).total
    found = savings(worker, TINY, LAB_DRAFT)
    assert set(found) == {
        "`draft_context: 4096`",
        "q8_0 KV (`args: [-ctk, q8_0, -ctv, q8_0]`)",
        "`slots: 1`",
    }
    assert all(less < needed for less in found.values())
    assert savings(spec(slots=1, args=("-ctk", "q4_0")), TINY, None) == {}
