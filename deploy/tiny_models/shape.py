"""The sizes of the trio: the one place where network, export and training agree on them."""

from __future__ import annotations

from dataclasses import dataclass

VOCAB = 2048
SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|mask|>")


@dataclass(frozen=True, slots=True)
class TargetShape:
    """A small qwen35 trunk; `layers` has a letter a layer, D(eltaNet) or A(ttention)."""

    width: int = 256
    layers: str = "DADA"
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    ffn: int = 512
    delta_heads: int = 4
    delta_dim: int = 64
    conv: int = 4
    rope_base: float = 10_000.0
    eps: float = 1e-6
    context: int = 4096
    # Layers without effect after the trunk. One ships, so that the drafter can read the trunk's
    # output as "the input of the next layer"; workers.tiny.prepare adds the rest.
    zero_layers: int = 1

    @property
    def depth(self) -> int:
        """Trained layers of the trunk."""
        return len(self.layers)


@dataclass(frozen=True, slots=True)
class DraftShape:
    """The DFlash2 drafter. Layer ids k mean the input of target layer k."""

    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    ffn: int = 512
    block: int = 8
    taps: tuple[int, ...] = (1, 3, 4)
    conv_kernel: int = 4
    conv_group: int = 16
    rank: int = 64
    top_k: int = 8


TARGET = TargetShape()
DRAFT = DraftShape()


def special(name: str) -> int:
    """Token id of a special token; the specials are the last ids of the vocabulary."""
    return VOCAB - len(SPECIALS) + SPECIALS.index(name)
