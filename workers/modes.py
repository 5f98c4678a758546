"""The mode table of the contract: which speculation a mode stands for, and how its cut is spelled.

A mode is a name users write; its command line depends on the dialect of the build, since
builds compare `--spec-draft-p-min` with different quantities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from workers.spec import WorkerSpec

BuildDialect = Literal["stock", "patched"]
Cut = Literal["margin", "gap"]

# Starting points of the contract, section 2: nats between a DFlash drafter's two best candidates,
# and the difference of an MTP head's two best probabilities. The sweep decides for real models.
DEFAULT_MARGIN = 1.05
DEFAULT_GAP = 0.30
# Patched builds stop a draft when the margin is below three times p_min.
_PATCHED_MARGIN_FACTOR = 3.0


@dataclass(frozen=True, slots=True)
class Mode:
    """One way of drafting. `spec_type` is llama.cpp's own word; None drafts nothing."""

    name: str
    spec_type: str | None = None
    needs_draft: bool = False
    n_max: int | None = None  # tokens drafted at most; None leaves the binary's default
    n_min: int | None = None
    cut: Cut | None = None  # what stops a draft early
    ngram: tuple[str, ...] = ()  # NgramSettings fields that this mode knows
    luce: tuple[str, ...] = ()  # flags of Luce's dflash_server

    @property
    def engine(self) -> str:
        """The engine that offers it."""
        return "luce" if self.name.startswith("luce-") else "llama-server"

    @property
    def speculative(self) -> bool:
        """Whether it drafts at all."""
        return self.name != "ar"

    @property
    def by_lookup(self) -> bool:
        """Whether drafts are found in the text so far, with no weights that could misfit."""
        return self.name.startswith("ngram-")


_SIZES = ("size_n", "size_m", "min_hits")

MODES: dict[str, Mode] = {
    mode.name: mode
    for mode in (
        Mode("ar"),
        Mode("mtp", "draft-mtp", n_max=3),
        Mode("mtp-n3", "draft-mtp", n_max=3),
        Mode("mtp-margin", "draft-mtp", n_max=7, n_min=1, cut="gap"),
        Mode("dflash", "draft-dflash", needs_draft=True, n_max=7),
        Mode("dflash2", "draft-dflash", needs_draft=True, n_max=7),
        Mode("dflash-margin", "draft-dflash", needs_draft=True, n_max=7, n_min=1, cut="margin"),
        Mode("dflash2-margin", "draft-dflash", needs_draft=True, n_max=7, n_min=1, cut="margin"),
        Mode("dspark", "draft-dspark", needs_draft=True),
        Mode("eagle3", "draft-eagle3", needs_draft=True),
        Mode("draft", "draft-simple", needs_draft=True),
        Mode("ngram-mod", "ngram-mod", ngram=("n_match",)),
        Mode("ngram-map-k", "ngram-map-k", ngram=_SIZES),
        Mode("ngram-map-k4v", "ngram-map-k4v", ngram=_SIZES),
        Mode("ngram-simple", "ngram-simple", ngram=_SIZES),
        Mode("ngram-cache", "ngram-cache"),
        Mode("luce-chain", needs_draft=True),
        Mode("luce-ddtree", needs_draft=True, luce=("--ddtree",)),
    )
}


def p_min(spec: WorkerSpec, dialect: BuildDialect) -> float | None:
    """The value of `--spec-draft-p-min`, or None where the mode has no cut and none was set.

    A worker's own `p_min` is the last word. The converted values are rounded to two decimals: they
    are starting points, and a longer number would suggest a precision that nobody measured.
    """
    if spec.p_min is not None:
        return spec.p_min
    cut = MODES[spec.mode].cut
    if cut == "margin":
        return round(_from_margin(_or(spec.margin, DEFAULT_MARGIN), dialect), 2)
    if cut == "gap":
        return round(_from_gap(_or(spec.gap, DEFAULT_GAP), dialect), 2)
    return None


def _from_margin(margin: float, dialect: BuildDialect) -> float:
    # Stock compares the softmax over the selector's candidates at the best one; with two candidates
    # alive that is the logistic function of their gap, with more it is stricter.
    if dialect == "patched":
        return margin / _PATCHED_MARGIN_FACTOR
    return 1.0 / (1.0 + math.exp(-margin))


def _from_gap(gap: float, dialect: BuildDialect) -> float:
    # Stock compares the best probability alone: 0.3 was measured to cut nothing there.
    return gap if dialect == "patched" else (1.0 + gap) / 2.0


def _or(value: float | None, default: float) -> float:
    return default if value is None else value
