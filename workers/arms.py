"""Arms: the draft lengths that one process offers per request, where its build honours them.

Stock llama.cpp ignores the fields; `deploy/llama_server` has the patch that switches them on. What
a worker was started with bounds its arms: it never drafts more, nor with a lower `p_min`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workers.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workers.spec import WorkerSpec

N_MAX: Final = "speculative.n_max"
P_MIN: Final = "speculative.p_min"
"""Fields of a request body, as the source of b11434 names them."""

PLAIN: Final = "ar"
CUSTOM: Final = "custom"
"""The mode of a request whose client chose a draft length that is no arm of ours."""

_WORTH_SHORTENING: Final = 4  # a process that drafts no more needs no shorter arm,
_SHORT: Final = 3  # what prose and thinking want in public measurements: 2 to 3
_DRAFTERS: Final = ("draft-mtp", "draft-dflash", "draft-dspark", "draft-eagle3", "draft-simple")


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to ask a worker. `n_max` is tokens drafted at most; 0 drafts nothing."""

    mode: str
    n_max: int
    p_min: float | None = None  # None: what the worker was started with

    @property
    def key(self) -> str:
        """What sets its learned speed apart from that of the worker's other arms."""
        return f"~{self.mode}"

    @property
    def overrides(self) -> Mapping[str, float]:
        """What the body of a request gets."""
        cut = {} if self.p_min is None else {P_MIN: self.p_min}
        return {N_MAX: self.n_max, **cut}

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Arm:
        """From a record's JSON.

        Raises:
            KeyError, TypeError, ValueError: not an arm.
        """
        cut = values.get("p_min")
        return cls(str(values["mode"]), int(values["n_max"]), None if cut is None else float(cut))


def longest(spec: WorkerSpec) -> int | None:
    """Tokens that the worker drafts at most; None where only its binary knows."""
    return spec.n_max or MODES[spec.mode].n_max


def offered(spec: WorkerSpec) -> tuple[Arm, ...]:
    """What the worker offers beside its own mode, should its build honour it.

    Left to us: plain decoding, and three tokens where its own length is well beyond.
    """
    if MODES[spec.mode].spec_type not in _DRAFTERS or spec.engine != "llama-server":
        return ()
    if spec.arms is not None:
        return tuple(_named(spec.mode, n_max, p_min) for n_max, p_min in spec.arms)
    most = longest(spec)
    lengths = (0, _SHORT) if most is not None and most > _WORTH_SHORTENING else (0,)
    return tuple(_named(spec.mode, n_max, None) for n_max in lengths)


def chosen_by_client(mode: str, arms: tuple[Arm, ...], payload: Mapping[str, Any]) -> Arm | None:
    """The arm that a client's own fields ask for; None where they say nothing.

    Args:
        mode: the worker's own mode.
        arms: the worker's arms; without any its build ignores the fields.
        payload: the request.
    """
    if not arms or (N_MAX not in payload and P_MIN not in payload):
        return None
    wanted = (payload.get(N_MAX), payload.get(P_MIN))
    if wanted[0] == 0:
        return _named(mode, 0, None)
    same = (arm for arm in arms if (arm.n_max, arm.p_min) == wanted)
    return next(same, Arm(CUSTOM, -1))


def _named(mode: str, n_max: int, p_min: float | None) -> Arm:
    if n_max == 0:
        return Arm(PLAIN, 0)
    head = "mtp" if mode == "mtp-n3" else mode
    cut = "" if p_min is None else f"-p{round(100 * p_min)}"
    return Arm(f"{head}-n{n_max}{cut}", n_max, p_min)
