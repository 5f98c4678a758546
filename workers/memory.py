"""How much memory a worker will need, from its files' headers and its sizes; pure.

An estimate of what llama.cpp allocates: weights, KV cache, recurrent state, compute buffer, the
same for a drafter, and the process itself. Not in it: a GPU runtime's context, and what the prompt
cache in RAM (`--cache-ram`) grows to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workers.gguf_header import Skipped
from workers.modes import MODES

if TYPE_CHECKING:
    from workers.gguf_header import Header
    from workers.spec import WorkerSpec

# Bytes per element, blocks of 32 with their scales (ggml's type table).
_ELEMENT = {
    "f32": 4.0,
    "f16": 2.0,
    "bf16": 2.0,
    "q8_0": 34 / 32,
    "q5_1": 24 / 32,
    "q5_0": 22 / 32,
    "q4_1": 20 / 32,
    "q4_0": 18 / 32,
    "iq4_nl": 18 / 32,
}
_TYPE_FLAGS = {
    "k": ("-ctk", "--cache-type-k"),
    "v": ("-ctv", "--cache-type-v"),
    "draft k": ("-ctkd", "--cache-type-k-draft", "--spec-draft-type-k"),
    "draft v": ("-ctvd", "--cache-type-v-draft", "--spec-draft-type-v"),
}
_RING_EXTRA = 512  # cells beside the window of a drafter's ring (measured, P40 lab)
_BATCH = 512  # llama.cpp's default -ub
_INTERVAL = 4  # every fourth layer of a hybrid model attends, unless its file says otherwise
_GB = 1e9
_LOOKUPS = tuple(mode.spec_type for mode in MODES.values() if mode.by_lookup)
# An MTP worker reserves its graph again at its first request, in addition (measured on the tiny
# trio, b11549: 28 MiB beside a compute buffer of 10.0 MiB).
_MTP_AGAIN = 2.8
_PROCESS = 58e6  # the embedded engine without a model: Python, llama.cpp's code and tables


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes by purpose."""

    weights: float = 0.0
    kv: float = 0.0
    state: float = 0.0
    compute: float = 0.0
    draft_weights: float = 0.0
    draft_kv: float = 0.0
    draft_compute: float = 0.0
    process: float = _PROCESS

    @property
    def total(self) -> float:
        """All of it, in bytes."""
        drafter = self.draft_weights + self.draft_kv + self.draft_compute
        own = self.weights + self.kv + self.state + self.compute
        return own + drafter + self.process

    @property
    def gigabytes(self) -> float:
        """All of it, in 1e9 bytes."""
        return self.total / _GB


def estimate(spec: WorkerSpec, target: Header, draft: Header | None) -> Estimate:
    """What a worker of that specification needs."""
    mode = MODES[spec.mode]
    attending, recurrent = _layers(target, drafts_itself=mode.spec_type == "draft-mtp")
    bytes_k, bytes_v = (_ELEMENT.get(_cache_type(spec, name), 2.0) for name in ("k", "v"))
    # A recurrent state cannot be taken back token by token: one is kept per position of a draft.
    kept = 1 + (spec.n_max or mode.n_max or 0)
    needs = Estimate(
        weights=float(target.size),
        kv=_tokens(spec) * attending * _kv_bytes(target, bytes_k, bytes_v),
        state=spec.slots * kept * recurrent * _state_bytes(target),
        compute=_compute_bytes(target, "feed_forward_length"),
    )
    if mode.spec_type in (None, *_LOOKUPS):
        return needs
    needs = replace(needs, draft_compute=_compute_bytes(target, "embedding_length"))
    if draft is None:  # the target's own head: its layers are counted above
        return replace(needs, draft_compute=needs.draft_compute + _MTP_AGAIN * needs.compute)
    return replace(needs, draft_weights=float(draft.size), draft_kv=draft_kv_bytes(spec, draft))


def draft_kv_bytes(spec: WorkerSpec, draft: Header) -> float:
    """Of a drafter: for every token of the context, or for the window of its ring."""
    bytes_k, bytes_v = (
        _ELEMENT.get(_cache_type(spec, name), 2.0) for name in ("draft k", "draft v")
    )
    window = spec.draft_context
    tokens = _tokens(spec) if window is None else spec.slots * (window + _RING_EXTRA)
    layers = int(draft.of_architecture("block_count", 0))
    return tokens * layers * _kv_bytes(draft, bytes_k, bytes_v)


def savings(spec: WorkerSpec, target: Header, draft: Header | None) -> dict[str, float]:
    """What could be written in the configuration to need less, and the bytes needed then."""
    tries: dict[str, WorkerSpec] = {}
    if draft is not None and spec.draft_context is None:
        tries["`draft_context: 4096`"] = replace(spec, draft_context=4096)
    if _cache_type(spec, "k") == "f16":
        small = ("-ctk", "q8_0", "-ctv", "q8_0", "-ctkd", "q8_0", "-ctvd", "q8_0")
        tries["q8_0 KV (`args: [-ctk, q8_0, -ctv, q8_0]`)"] = replace(
            spec, args=(*spec.args, *small)
        )
    if spec.slots > 1:
        tries["`slots: 1`"] = replace(spec, slots=1)
    return {name: estimate(other, target, draft).total for name, other in tries.items()}


def _tokens(spec: WorkerSpec) -> int:
    return spec.context if spec.kv == "unified" else spec.context * spec.slots


def _cache_type(spec: WorkerSpec, name: str) -> str:
    """The last one set in `args`, else llama.cpp's default."""
    pairs = zip(spec.args, spec.args[1:], strict=False)
    found = [value for flag, value in pairs if flag in _TYPE_FLAGS[name]]
    return found[-1] if found else "f16"


def _layers(target: Header, *, drafts_itself: bool) -> tuple[int, int]:
    """How many layers keep keys and values, and how many a recurrent state."""
    heads = int(target.of_architecture("nextn_predict_layers", 0))
    trunk = int(target.of_architecture("block_count", 0)) - heads
    extra = heads if drafts_itself else 0
    per_layer = target.of_architecture("attention.head_count_kv")
    if isinstance(per_layer, tuple):
        attending = sum(1 for count in per_layer[:trunk] if count)
    elif target.of_architecture("ssm.inner_size") is None:
        attending = trunk
    else:
        attending = _attending_of_hybrid(target, trunk)
    return attending + extra, trunk - attending


def _attending_of_hybrid(target: Header, trunk: int) -> int:
    marked = target.of_architecture("attention.recurrent_layers")
    if isinstance(marked, tuple):
        return sum(1 for recurrent in marked[:trunk] if not recurrent)
    return trunk // int(target.of_architecture("full_attention_interval", _INTERVAL))


def _kv_bytes(model: Header, bytes_k: float, bytes_v: float) -> float:
    """Of one token in one layer."""
    heads = model.of_architecture("attention.head_count_kv", 0)
    count = max(heads, default=0) if isinstance(heads, tuple) else int(heads)
    queries = model.of_architecture("attention.head_count", 1)
    queries = max(queries, default=1) if isinstance(queries, tuple) else int(queries)
    usual = int(model.of_architecture("embedding_length", 0)) // max(1, queries)
    key = int(model.of_architecture("attention.key_length", usual))
    value = int(model.of_architecture("attention.value_length", usual))
    return count * (key * bytes_k + value * bytes_v)


def _state_bytes(target: Header) -> float:
    """Of one sequence in one recurrent layer, kept in 32 bits."""
    inner = int(target.of_architecture("ssm.inner_size", 0))
    state = int(target.of_architecture("ssm.state_size", 0))
    groups = int(target.of_architecture("ssm.group_count", 0))
    kernel = int(target.of_architecture("ssm.conv_kernel", 1))
    return 4.0 * ((kernel - 1) * (inner + 2 * groups * state) + inner * state)


def _compute_bytes(target: Header, width_key: str) -> float:
    """The graph's largest results for one batch: logits, and a handful of wide activations.

    Fitted to what llama.cpp b11549 reserves for the tiny trio (10.0 MiB, drafter 7.0 MiB).
    """
    tokens = target.metadata.get("tokenizer.ggml.tokens", ())
    vocabulary = tokens.count if isinstance(tokens, Skipped) else len(tokens)
    width = target.of_architecture(width_key, 0)
    widest = max(width, default=0) if isinstance(width, tuple) else int(width)
    return 4.0 * _BATCH * (vocabulary + 6 * widest)
