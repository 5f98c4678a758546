"""What a worker should be: the operator's wish as frozen values, without how to fulfil it."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal

import orjson

if TYPE_CHECKING:
    from pathlib import Path

EngineName = Literal["llama-server", "luce", "external", "simulated"]
KVLayout = Literal["split", "unified"]
ReasoningDefault = Literal["on", "off", "auto"]
Dialect = Literal["auto", "stock", "patched"]

# What may change without a change of speed or output.
_COSMETIC = (
    *("name", "aliases", "api_key", "host", "port"),
    *("load_timeout", "acceptance_floor", "priority", "arms"),
)


@dataclass(frozen=True, slots=True)
class NgramSettings:
    """Sizes of the ngram drafters; None leaves the binary's default."""

    size_n: int | None = None
    size_m: int | None = None
    min_hits: int | None = None
    n_match: int | None = None


@dataclass(frozen=True, slots=True)
class GPUSettings:
    """Where the weights live. `layers` is a count or "all"; devices are indices or names."""

    devices: tuple[int | str, ...] = ()
    layers: int | Literal["all"] | None = None
    split: tuple[float, ...] = ()
    main: int | None = None
    draft_devices: tuple[int | str, ...] = ()
    draft_layers: int | Literal["all"] | None = None


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One served model: the name clients use, its aliases and its target file."""

    name: str
    target: Path | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """One worker as configured (contract, section 2). `context` is tokens per request."""

    name: str
    model: str
    mode: str
    target: Path | None = None
    draft: Path | None = None
    aliases: tuple[str, ...] = ()
    engine: EngineName = "llama-server"
    binary: Path | None = None
    url: str | None = None
    api_key: str | None = field(default=None, repr=False)  # of an attached server
    host: str = "127.0.0.1"
    port: int | None = None  # None: a free one is chosen at start
    context: int = 4096
    slots: int = 1
    kv: KVLayout = "split"
    threads: int | None = None
    dialect: Dialect = "auto"
    reasoning: ReasoningDefault = "auto"
    n_max: int | None = None
    n_min: int | None = None
    p_min: float | None = None
    margin: float | None = None
    gap: float | None = None
    # Draft lengths (n_max, p_min) offered per request; None leaves them to us.
    arms: tuple[tuple[int, float | None], ...] | None = None
    ngram: NgramSettings = field(default_factory=NgramSettings)
    draft_context: int | None = None
    gpu: GPUSettings = field(default_factory=GPUSettings)
    exclusive_group: str | None = None
    vision: bool = False
    priority: int = 0
    load_timeout: float = 1800.0  # seconds; big models load for many minutes
    tenant_safe: bool = False  # no prompt is found in another's slot or in the cache in RAM
    acceptance_floor: float = 0.05  # share of drafts; below it the start probe says degraded
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()

    @property
    def managed(self) -> bool:
        """Whether we run the process ourselves; an external worker is only attached."""
        return self.url is None

    def digest(self) -> str:
        """16 hex digits that change when anything changes that changes speed or output.

        Learned state is keyed by it: a changed worker starts from its parents, not stale numbers.
        """
        values = asdict(self)
        for cosmetic in _COSMETIC:
            del values[cosmetic]
        if not self.tenant_safe:  # as before there was such a field
            del values["tenant_safe"]
        text = orjson.dumps(values, option=orjson.OPT_SORT_KEYS, default=str)
        return hashlib.sha256(text).hexdigest()[:16]
