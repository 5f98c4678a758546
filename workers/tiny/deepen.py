"""Rewrite the shipped GGUF files for use: float32, and zeros that make a target's step dearer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import gguf
import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from workers.tiny.cost import Cost

    Floats = NDArray[np.float32]

# The writer sets these itself.
OWN_FIELDS = frozenset(
    ("general.architecture", "GGUF.version", "GGUF.tensor_count", "GGUF.kv_count")
)
BLOCK = re.compile(r"blk\.(\d+)\.(.+)")
FEED_FORWARD = "qwen35.feed_forward_length"
RECURRENT = "qwen35.attention.recurrent_layers"
# The axis of (out, in) on which a matrix of the feed-forward network counts its hidden units.
HIDDEN_AXIS = {"ffn_gate.weight": 0, "ffn_up.weight": 0, "ffn_down.weight": 1}


def deepen(source: Path, out: Path, cost: Cost) -> None:
    """Write `out` like `source` with the zeros of `cost`, all in float32.

    A new layer is shaped like the source's last trunk layer (full attention); its matrices are
    zero and its norms one, because a zero norm would divide nothing into NaN on some backends.
    Raises ValueError if that layer is a recurrent one.
    """
    reader = gguf.GGUFReader(source)
    depth = _uint(reader, "qwen35.block_count") - _uint(reader, "qwen35.nextn_predict_layers")
    width = max(_uint(reader, FEED_FORWARD), cost.feed_forward)
    writer = gguf.GGUFWriter(out, "qwen35")
    _copy_fields(writer, reader, _corrections(reader, depth, cost.layers, width))
    for tensor in reader.tensors:
        values = _padded(tensor.name, _wide(tensor), width)
        writer.add_tensor(_shifted(tensor.name, depth, cost.layers), values)
    for tensor in _attention_layer(reader, depth - 1):
        silent = _padded(tensor.name, _silent(tensor), width)
        for i in range(cost.layers):
            rest = tensor.name.split(".", 2)[2]
            writer.add_tensor(f"blk.{depth + i}.{rest}", silent)
    _finish(writer)


def widen(source: Path, out: Path) -> None:
    """Write the drafter `out` like `source` in float32."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(out, "dflash")
    _copy_fields(writer, reader, {})
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, _wide(tensor))
    _finish(writer)


def _uint(reader: gguf.GGUFReader, key: str) -> int:
    field = reader.get_field(key)
    if field is None:
        raise ValueError(f"the model file has no {key}")
    return int(field.contents())


def _corrections(
    reader: gguf.GGUFReader, depth: int, extra: int, width: int
) -> dict[str, int | list[bool]]:
    """The metadata that counts or lists layers, or tells their width, as it is afterwards."""
    blocks = reader.get_field(RECURRENT)
    recurrent = blocks.contents() if blocks else []
    return {
        "qwen35.block_count": _uint(reader, "qwen35.block_count") + extra,
        FEED_FORWARD: width,
        RECURRENT: [*recurrent[:depth], *([False] * extra), *recurrent[depth:]],
    }


def _copy_fields(
    writer: gguf.GGUFWriter, reader: gguf.GGUFReader, corrections: dict[str, int | list[bool]]
) -> None:
    for name, field in reader.fields.items():
        if name not in OWN_FIELDS:
            value = corrections.get(name, field.contents())
            inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, value, field.types[0], sub_type=inner)


def _shifted(name: str, depth: int, extra: int) -> str:
    """The tensor's name once the blocks after the trunk have moved up."""
    match = BLOCK.fullmatch(name)
    if match is None or int(match[1]) < depth:
        return name
    return f"blk.{int(match[1]) + extra}.{match[2]}"


def _attention_layer(reader: gguf.GGUFReader, index: int) -> list[gguf.ReaderTensor]:
    """The tensors of one layer, which must be a full-attention layer."""
    found = [t for t in reader.tensors if t.name.startswith(f"blk.{index}.")]
    if not any(t.name.endswith(".attn_q.weight") for t in found):
        raise ValueError(f"layer {index} is no full-attention layer")
    return found


def _wide(tensor: gguf.ReaderTensor) -> Floats:
    """The tensor's values as float32.

    Not for precision: in q8_0 llama.cpp rounds the activations too, and where one token and a
    batch of drafts differ in the last bit that rounding can tip a greedy choice. In float32 the
    three modes agree.
    """
    values: Floats = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    return np.ascontiguousarray(values, dtype=np.float32)


def _padded(name: str, values: Floats, width: int) -> Floats:
    """A matrix of the feed-forward network with hidden units of zeros added; others as they are.

    Such a unit's gate is silu(0) * 0 = 0, and nothing reads it.
    """
    axis = HIDDEN_AXIS.get(name.split(".", 2)[-1])
    if axis is None:
        return values
    missing = [(0, 0), (0, 0)]
    missing[axis] = (0, width - values.shape[axis])
    return np.pad(values, missing)


def _silent(tensor: gguf.ReaderTensor) -> Floats:
    """Ones for a norm, zeros for the rest."""
    values = _wide(tensor)
    return np.ones_like(values) if tensor.name.endswith("norm.weight") else np.zeros_like(values)


def _finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
