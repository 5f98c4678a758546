from __future__ import annotations

from workers.config import check_config, load_config

TEXT = """\
models:
  - name: m
    target: t.gguf
workers:
  - name: w
    model: m
    mode: dflash2
    draft: d.gguf
"""


def checked(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(TEXT)
    return [(p.line, p.message, p.fix) for p in check_config(load_config(path, {}))]


def test_files_must_be_there_and_be_models(tmp_path):
    (tmp_path / "d.gguf").write_text("hello")
    assert checked(tmp_path) == [
        (
            3,
            f"{tmp_path / 't.gguf'} cannot be read: No such file or directory",
            "correct the path, or put the model there",
        ),
        (
            8,
            f"{tmp_path / 'd.gguf'} is not a GGUF file",
            "give llama.cpp's model format (its first bytes: GGUF)",
        ),
    ]
    for name in ("t.gguf", "d.gguf"):
        (tmp_path / name).write_bytes(b"GGUF\x03")
    assert checked(tmp_path) == []
