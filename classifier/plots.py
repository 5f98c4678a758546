"""The confusion matrix and the calibration plot as PNG files (matplotlib, extra `train`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from classifier.classes import CLASSES
from classifier.metrics import calibration, calibration_error, confusion

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from classifier.metrics import Scored


def draw(rows: Sequence[Scored], folder: Path) -> tuple[Path, Path]:
    """Writes confusion.png and calibration.png into `folder` (made if missing); raises OSError,
    ImportError without matplotlib."""
    import matplotlib as mpl

    mpl.use("agg")
    folder.mkdir(parents=True, exist_ok=True)
    matrix, curve = folder / "confusion.png", folder / "calibration.png"
    _draw_confusion(rows, matrix)
    _draw_calibration(rows, curve)
    return matrix, curve


def _axes() -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4.5), layout="constrained")
    return figure, figure.subplots()


def _draw_confusion(rows: Sequence[Scored], path: Path) -> None:
    table = confusion(rows)
    names = [c.value for c in CLASSES]
    figure, axes = _axes()
    counts = [[table[(truth, guess)] for guess in names] for truth in names]
    shares = [[cell / max(1, sum(row)) for cell in row] for row in counts]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for y, row in enumerate(counts):
        for x, cell in enumerate(row):
            shade = "white" if shares[y][x] > 0.5 else "black"
            text = f"{cell}\n{shares[y][x]:.0%}"
            axes.text(x, y, text, ha="center", va="center", color=shade)
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("label")
    figure.savefig(path, dpi=120)


def _draw_calibration(rows: Sequence[Scored], path: Path) -> None:
    bins = calibration(rows)
    figure, axes = _axes()
    axes.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=1)
    axes.plot([b.confidence for b in bins], [b.accuracy for b in bins], marker="o")
    axes.set_xlim(0.3, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("probability of the predicted class")
    axes.set_ylabel("share correct")
    axes.set_title(f"calibration error {calibration_error(rows):.3f}, {len(rows)} rows")
    figure.savefig(path, dpi=120)
