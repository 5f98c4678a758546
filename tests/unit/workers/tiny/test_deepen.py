"""workers.tiny.deepen: the added layers are silent, the rest is untouched, the metadata agrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gguf
import numpy as np
import pytest

from workers.tiny import NO_COST, Cost
from workers.tiny.deepen import deepen, widen
from workers.tiny.trio import SHIPPED_DRAFT, SHIPPED_TARGET

if TYPE_CHECKING:
    from pathlib import Path

EXTRA = 3
WIDTH = 700


@pytest.fixture(scope="module")
def shipped() -> gguf.GGUFReader:
    return gguf.GGUFReader(SHIPPED_TARGET)


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> gguf.GGUFReader:
    out = tmp_path_factory.mktemp("deep") / "target.gguf"
    deepen(SHIPPED_TARGET, out, Cost(EXTRA, WIDTH))
    return gguf.GGUFReader(out)


def number(reader: gguf.GGUFReader, key: str) -> int:
    field = reader.get_field(key)
    assert field is not None
    return int(field.contents())


def layer(reader: gguf.GGUFReader, index: int) -> dict[str, gguf.ReaderTensor]:
    prefix = f"blk.{index}."
    return {t.name.removeprefix(prefix): t for t in reader.tensors if t.name.startswith(prefix)}


def trunk_depth(reader: gguf.GGUFReader) -> int:
    return number(reader, "qwen35.block_count") - number(reader, "qwen35.nextn_predict_layers")


def test_block_count_grows_and_mtp_stays_one_block(
    shipped: gguf.GGUFReader, deep: gguf.GGUFReader
) -> None:
    assert trunk_depth(deep) == trunk_depth(shipped) + EXTRA
    assert number(deep, "qwen35.nextn_predict_layers") == 1


def test_recurrent_list_names_every_block(shipped: gguf.GGUFReader, deep: gguf.GGUFReader) -> None:
    key = "qwen35.attention.recurrent_layers"
    before, after = shipped.get_field(key), deep.get_field(key)
    assert before is not None
    assert after is not None
    depth = trunk_depth(shipped)
    old, new = before.contents(), after.contents()
    assert len(new) == number(deep, "qwen35.block_count")
    assert new[:depth] == old[:depth]
    assert not any(new[depth:])


def test_added_layers_are_zero_but_for_their_norms(
    shipped: gguf.GGUFReader, deep: gguf.GGUFReader
) -> None:
    depth = trunk_depth(shipped)
    for index in range(depth, depth + EXTRA):
        tensors = layer(deep, index)
        assert set(tensors) == set(layer(shipped, depth - 1))
        for name, tensor in tensors.items():
            expected = 1.0 if name.endswith("norm.weight") else 0.0
            assert np.all(values(tensor) == expected), name


def values(tensor: gguf.ReaderTensor) -> np.ndarray:
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type)


def test_trained_tensors_keep_their_values(shipped: gguf.GGUFReader, deep: gguf.GGUFReader) -> None:
    depth, found = trunk_depth(shipped), {t.name: t for t in deep.tensors}
    for tensor in shipped.tensors:
        name = tensor.name.replace(f"blk.{depth}.", f"blk.{depth + EXTRA}.")
        assert found[name].tensor_type == gguf.GGMLQuantizationType.F32
        assert np.array_equal(values(found[name])[trained(tensor)], values(tensor)), name


def trained(tensor: gguf.ReaderTensor) -> tuple[slice, ...]:
    return tuple(slice(n) for n in values(tensor).shape)


def test_added_hidden_units_are_zero_in_every_layer(
    shipped: gguf.GGUFReader, deep: gguf.GGUFReader
) -> None:
    assert number(deep, "qwen35.feed_forward_length") == WIDTH
    old = number(shipped, "qwen35.feed_forward_length")
    for index in range(number(deep, "qwen35.block_count")):
        matrices = layer(deep, index)
        for name in ("ffn_gate.weight", "ffn_up.weight"):
            assert values(matrices[name]).shape == (WIDTH, 256)
            assert not values(matrices[name])[old:].any()
        assert values(matrices["ffn_down.weight"]).shape == (256, WIDTH)
        assert not values(matrices["ffn_down.weight"])[:, old:].any()


def test_a_width_below_the_trained_one_takes_nothing_away(
    shipped: gguf.GGUFReader, tmp_path: Path
) -> None:
    deepen(SHIPPED_TARGET, tmp_path / "same.gguf", Cost(0, 8))
    same = {t.name: t for t in gguf.GGUFReader(tmp_path / "same.gguf").tensors}
    for tensor in shipped.tensors:
        assert np.array_equal(values(same[tensor.name]), values(tensor)), tensor.name


def test_the_drafter_keeps_its_values(tmp_path: Path) -> None:
    widen(SHIPPED_DRAFT, tmp_path / "draft.gguf")
    before, after = gguf.GGUFReader(SHIPPED_DRAFT), gguf.GGUFReader(tmp_path / "draft.gguf")
    assert [t.name for t in after.tensors] == [t.name for t in before.tensors]
    assert set(after.fields) == set(before.fields)
    for old, new in zip(before.tensors, after.tensors, strict=True):
        assert np.array_equal(values(old), values(new)), old.name


def test_mtp_head_is_the_last_block(deep: gguf.GGUFReader) -> None:
    last = layer(deep, number(deep, "qwen35.block_count") - 1)
    assert "nextn.eh_proj.weight" in last


def test_every_other_field_is_kept(shipped: gguf.GGUFReader, deep: gguf.GGUFReader) -> None:
    changed = {
        "qwen35.block_count",
        "qwen35.feed_forward_length",
        "qwen35.attention.recurrent_layers",
        "GGUF.tensor_count",
    }
    assert set(deep.fields) == set(shipped.fields)
    for name in set(shipped.fields) - changed:
        assert deep.fields[name].contents() == shipped.fields[name].contents(), name


def test_no_extra_layer_is_the_same_model(shipped: gguf.GGUFReader, tmp_path: Path) -> None:
    out = tmp_path / "same.gguf"
    deepen(SHIPPED_TARGET, out, NO_COST)
    assert {t.name for t in gguf.GGUFReader(out).tensors} == {t.name for t in shipped.tensors}


def test_draft_reads_layers_that_stay_where_they_are(shipped: gguf.GGUFReader) -> None:
    field = gguf.GGUFReader(SHIPPED_DRAFT).get_field("dflash.target_layers")
    assert field is not None
    assert min(field.contents()) > 0
    assert max(field.contents()) < trunk_depth(shipped)


def test_a_file_of_another_architecture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no qwen35\.block_count"):
        deepen(SHIPPED_DRAFT, tmp_path / "out.gguf", Cost(1, 0))
