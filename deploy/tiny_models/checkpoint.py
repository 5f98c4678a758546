"""The networks as the last checkpoints left them (or fresh), and the export from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import vocabulary
from export import export
from net import Draft, Mtp, Target

if TYPE_CHECKING:
    from pathlib import Path


def nets(folder: Path) -> tuple[Target, Mtp, Draft]:
    """Target, MTP head and drafter; the drafter after its last lessons, if it had them."""
    found = (Target(), Mtp(), Draft())
    last = "greedy" if (folder / "greedy.pt").exists() else "dflash"
    for net, name in zip(found, ("target", "mtp", last), strict=True):
        path = folder / f"{name}.pt"
        if path.exists():
            net.load_state_dict(torch.load(path)["net"])
    return found


def write(folder: Path, out: Path) -> None:
    """Export whatever is there."""
    out.mkdir(parents=True, exist_ok=True)
    export(out, nets(folder), *vocabulary.tables(folder / "tokenizer.json"))
