"""Rewrite the shipped GGUF files for use: float32, and layers of zeros after the trunk."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import gguf
import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

# The writer sets these itself.
OWN_FIELDS = frozenset(
    ("general.architecture", "GGUF.version", "GGUF.tensor_count", "GGUF.kv_count")
)
BLOCK = re.compile(r"blk\.(\d+)\.(.+)")


def deepen(source: Path, out: Path, extra: int) -> None:
    """Write `out` like `source` with `extra` more layers whose output is zero, all in float32.

    A new layer is shaped like the source's last trunk layer (full attention); its matrices are
    zero and its norms one, because a zero norm would divide nothing into NaN on some backends.
    Raises ValueError if that layer is a recurrent one.
    """
    reader = gguf.GGUFReader(source)
    depth = _uint(reader, "qwen35.block_count") - _uint(reader, "qwen35.nextn_predict_layers")
    writer = gguf.GGUFWriter(out, "qwen35")
    _copy_fields(writer, reader, depth, extra)
    for tensor in reader.tensors:
        writer.add_tensor(_shifted(tensor.name, depth, extra), _wide(tensor))
    for tensor in _attention_layer(reader, depth - 1):
        for i in range(extra):
            rest = tensor.name.split(".", 2)[2]
            writer.add_tensor(f"blk.{depth + i}.{rest}", _silent(tensor))
    _finish(writer)


def widen(source: Path, out: Path) -> None:
    """Write the drafter `out` like `source` in float32."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(out, "dflash")
    _copy_fields(writer, reader, 0, 0)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, _wide(tensor))
    _finish(writer)


def _uint(reader: gguf.GGUFReader, key: str) -> int:
    field = reader.get_field(key)
    if field is None:
        raise ValueError(f"the model file has no {key}")
    return int(field.contents())


def _copy_fields(writer: gguf.GGUFWriter, reader: gguf.GGUFReader, depth: int, extra: int) -> None:
    for name, field in reader.fields.items():
        if name not in OWN_FIELDS:
            _copy_field(writer, name, field, depth, extra)


def _copy_field(
    writer: gguf.GGUFWriter, name: str, field: gguf.ReaderField, depth: int, extra: int
) -> None:
    """Copy one metadata entry, corrected where it counts or lists layers."""
    value = field.contents()
    if name == "qwen35.block_count":
        value += extra
    elif name == "qwen35.attention.recurrent_layers":
        value = [*value[:depth], *([False] * extra), *value[depth:]]
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


def _silent(tensor: gguf.ReaderTensor) -> Floats:
    """Ones for a norm, zeros for the rest."""
    values = _wide(tensor)
    return np.ones_like(values) if tensor.name.endswith("norm.weight") else np.zeros_like(values)


def _finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
