"""Make a work folder from the shipped files, to go on training where they stopped."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gguf
import torch
import vocabulary
from export import draft_tensors, target_tensors
from net import Draft, Mtp, Target
from optim import save
from shape import special

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHIPPED = Path(__file__).parents[2] / "workers" / "tiny"


def shipped(reader: gguf.GGUFReader) -> dict[str, NDArray[np.float32]]:
    """Every tensor of the file in float32."""
    return {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in reader.tensors}


def strings(reader: gguf.GGUFReader, key: str) -> list[str]:
    """A list of texts from the file's header."""
    field: Any = reader.get_field(key)
    return list(field.contents())


def nets(folder: Path) -> tuple[Target, Mtp, Draft]:
    """The three networks with the weights of target.gguf and draft.gguf.

    The exporter's list of tensors is the list of what to read: it hands out the parameters' own
    memory, but for two that it computes.
    """
    target, mtp, draft = Target(), Mtp(), Draft()
    values = shipped(gguf.GGUFReader(folder / "target.gguf"))
    for name, memory, _ in target_tensors(target, mtp, draft.mask_row):
        memory[...] = values[name].reshape(memory.shape)
    embed = torch.from_numpy(values["token_embd.weight"])
    target.embed.weight.data.copy_(embed)
    draft.mask_row.data.copy_(embed[special("<|mask|>")])
    for i, layer in enumerate(target.layers):
        if layer.kind == "D":
            layer.mixer.a_log.data.copy_(torch.from_numpy(-values[f"blk.{i}.ssm_a"]).log())
    values = shipped(gguf.GGUFReader(folder / "draft.gguf"))
    for name, memory, _ in draft_tensors(draft):
        memory[...] = values[name].reshape(memory.shape)
    return target, mtp, draft


def run(work: Path, folder: Path = SHIPPED) -> None:
    """Write tokenizer.json and the three checkpoints into the work folder."""
    work.mkdir(parents=True, exist_ok=True)
    reader = gguf.GGUFReader(folder / "draft.gguf")
    tokens = strings(reader, "tokenizer.ggml.tokens")
    vocabulary.rebuild(tokens, strings(reader, "tokenizer.ggml.merges"), work / "tokenizer.json")
    for net, name in zip(nets(folder), ("target", "mtp", "dflash"), strict=True):
        save(work / f"{name}.pt", net=net.state_dict())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    run(parser.parse_args().work)
