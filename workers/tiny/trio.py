"""Put the bundled trio into a cache folder, with the zeros that make its costs realistic."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workers.tiny.cost import COST, NO_COST, Cost

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
SHIPPED_TARGET = HERE / "target.gguf"
SHIPPED_DRAFT = HERE / "draft.gguf"
# Enters the file names: raise it when the way a file is written changes.
RECIPE = 3


@dataclass(frozen=True, slots=True)
class TinyTrio:
    """Two GGUF files; AR and MTP need only the target, DFlash2 needs both."""

    target: Path
    draft: Path


def prepare(cache_dir: Path, cost: Cost = COST) -> TinyTrio:
    """Write the trio once into the folder (made if missing) and return its paths.

    The target gets the zeros of `cost`: function and acceptance stay the same, a step costs more.
    Both are written in float32, in which the modes agree. File names carry a hash of what they are
    made of, so a second call writes nothing and a new release never meets an old file; each file
    appears whole or not at all, so callers may race. Raises OSError if the folder cannot be
    written.
    """
    cache_dir.mkdir(parents=True, exist_ok=True)
    target = cache_dir / f"target-{digest(SHIPPED_TARGET, cost)}.gguf"
    draft = cache_dir / f"draft-{digest(SHIPPED_DRAFT, NO_COST)}.gguf"
    write_once(target, lambda path: _deepened(path, cost))
    # Its layer ids name layers before the added ones, so it serves every depth.
    write_once(draft, _widened)
    return TinyTrio(target=target, draft=draft)


def digest(source: Path, cost: Cost) -> str:
    """Twelve hex digits that name the source's content and what is done to it."""
    seed = f"{RECIPE}:{cost.layers}:{cost.feed_forward}:".encode()
    return hashlib.sha256(seed + source.read_bytes()).hexdigest()[:12]


def write_once(path: Path, write: Callable[[Path], object]) -> None:
    """Run the writer on a scratch file and move it into place, unless the file is there."""
    if path.exists():
        return
    handle, name = tempfile.mkstemp(prefix=path.stem, suffix=".part", dir=path.parent)
    os.close(handle)
    scratch = Path(name)
    try:
        write(scratch)
        scratch.chmod(0o644)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def _deepened(path: Path, cost: Cost) -> None:
    # Here, because it takes gguf and numpy (extra `local`) and most starts find the file written.
    from workers.tiny.deepen import deepen

    deepen(SHIPPED_TARGET, path, cost)


def _widened(path: Path) -> None:
    from workers.tiny.deepen import widen

    widen(SHIPPED_DRAFT, path)
