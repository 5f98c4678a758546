from __future__ import annotations

import struct
from pathlib import Path

import pytest

import workers.tiny
from workers.gguf_header import NotGGUF, Skipped, read_header


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def array(kind, count, elements):
    return struct.pack("<IQ", kind, count) + elements


def written(path, *pairs, magic=b"GGUF"):
    path.write_bytes(struct.pack("<4sIQQ", magic, 3, 0, len(pairs)) + b"".join(pairs))
    return path


def test_values_of_every_kind(tmp_path):
    path = written(
        tmp_path / "m.gguf",
        pair("general.architecture", 8, text("llama")),
        pair("llama.block_count", 4, struct.pack("<I", 32)),
        pair("llama.eps", 6, struct.pack("<f", 0.5)),
        pair("flag", 7, b"\x01"),
        pair("big", 10, struct.pack("<Q", 2**40)),
        pair("kinds", 9, array(4, 3, struct.pack("<III", 1, 2, 3))),
        pair("words", 9, array(8, 2, text("a") + text("b"))),
        pair("vocabulary", 9, array(8, 2000, text("token") * 2000)),
        pair("scores", 9, array(6, 2000, bytes(8000))),
        pair("last", 8, text("end")),
    )
    header = read_header(path)
    assert header.of_architecture("block_count") == 32
    assert header.of_architecture("absent", 7) == 7
    assert header.metadata["llama.eps"] == 0.5
    assert header.metadata["flag"] is True
    assert header.metadata["big"] == 2**40
    assert header.metadata["kinds"] == (1, 2, 3)
    assert header.metadata["words"] == ("a", "b")
    assert header.metadata["vocabulary"] == header.metadata["scores"] == Skipped(2000)
    assert header.metadata["last"] == "end"
    assert header.size == path.stat().st_size


@pytest.mark.parametrize("cut", [0, 3, 20, 24, 30, 60])
def test_files_that_end_too_early(tmp_path, cut):
    whole = written(tmp_path / "m.gguf", pair("general.architecture", 8, text("llama" * 20)))
    whole.write_bytes(whole.read_bytes()[:cut])
    with pytest.raises(NotGGUF, match="GGUF"):
        read_header(whole)


def test_other_files(tmp_path):
    with pytest.raises(NotGGUF, match="is not a GGUF file"):
        read_header(written(tmp_path / "m", magic=b"PK\x03\x04"))
    with pytest.raises(NotGGUF, match="broken"):
        read_header(written(tmp_path / "n", pair("x", 99, b"")))
    with pytest.raises(OSError, match="No such file"):
        read_header(tmp_path / "absent")


def test_the_bundled_models():
    folder = Path(workers.tiny.__file__).parent
    assert read_header(folder / "target.gguf").metadata["general.architecture"] == "qwen35"
    assert read_header(folder / "draft.gguf").of_architecture("block_count") > 0
