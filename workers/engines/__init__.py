"""Engines by name. Out of tree: `module:Name` of a class with the same methods."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

from workers.engines.base import Engine, EngineMissing, LaunchContext, Routes
from workers.engines.external import External
from workers.engines.llama_cpp import EMBEDDED, LlamaCpp
from workers.engines.luce import Luce
from workers.engines.simulated import Simulated

if TYPE_CHECKING:
    from workers.spec import WorkerSpec

__all__ = [
    "EMBEDDED",
    "ENGINES",
    "Engine",
    "EngineMissing",
    "LaunchContext",
    "Routes",
    "engine_of",
    "get_engine",
]

ENGINES: dict[str, Engine] = {
    "llama-server": LlamaCpp(),
    "luce": Luce(),
    "external": External(),
    "simulated": Simulated(),
}


def get_engine(name: str) -> Engine:
    """The engine of that name, or the class that `module:Name` points at.

    Raises:
        KeyError: no such engine.
    """
    if name in ENGINES:
        return ENGINES[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise KeyError(f"no engine is called {name!r}; there are {', '.join(ENGINES)}")
    return cast("Engine", getattr(importlib.import_module(module), attribute)())


def engine_of(spec: WorkerSpec) -> Engine:
    """The engine of a worker; whatever has a `url` is attached."""
    return ENGINES["external"] if spec.url is not None else get_engine(spec.engine)
