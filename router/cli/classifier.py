"""`specroute classifier`: trains, evaluates and explains; thin, the work is in the package."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from router.cli.extras import need, needs

if TYPE_CHECKING:
    from classifier import Predictor
    from classifier.evaluate import Evaluation

DATA = click.Path(exists=True, dir_okay=False, path_type=Path)

_plots_option = click.option(
    "--plots",
    type=click.Path(file_okay=False, path_type=Path),
    callback=needs("matplotlib"),
    help="Folder for PNGs.",
)


@click.group()
def group() -> None:
    """Train, evaluate and explain the classifier.

    \b
    Example:
      specroute classifier evaluate prompts.jsonl.gz --json
    """


def _writable(_context: click.Context, _option: click.Parameter, path: Path) -> Path:
    """Training takes minutes: that its model cannot be kept is said before."""
    if not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise click.BadParameter(f"{path} cannot be written")
    return path


@group.command()
@click.argument("files", nargs=-1, required=True, type=DATA)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    callback=_writable,
    help="The model's file.",
)
@click.option("--cv/--no-cv", default=True, help="Cross-validate by group first, for the card.")
@click.option("--authored/--no-authored", default=True, help="Also train on our own prompts.")
@_plots_option
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def train(
    files: tuple[Path, ...],
    out: Path,
    cv: bool,
    authored: bool,
    plots: Path | None,
    as_json: bool,
) -> None:
    """Fit a model on labelled JSONL FILES and write it to --out.

    \b
    Example:
      specroute classifier train prompts.jsonl.gz --out model.json
    """
    need("sklearn")
    from classifier import authored as own
    from classifier.artifact import save
    from classifier.estimator import Settings
    from classifier.evaluate import report
    from classifier.train import TrainConfig
    from classifier.train import train as fit

    rows = [row for file in files for row in _read(file)]
    extra = own.rows() if authored else []
    figures: dict[str, Any] = {}
    if cv:
        evaluation = _cross_validated(rows, extra)
        figures = report(evaluation)
        _plot(evaluation, plots)
    artifact = fit([*rows, *extra], TrainConfig(Settings(), figures))
    try:
        save(artifact, out)
    except OSError as error:
        raise click.ClickException(f"{out} cannot be written: {error}") from error
    if as_json:
        click.echo(json.dumps(figures))
    click.echo(
        f"{artifact.version}: {len(artifact.names)} names, {out.stat().st_size} bytes", err=True
    )


@group.command()
@click.argument("file", type=DATA)
@click.option(
    "--cv",
    is_flag=True,
    callback=needs("sklearn"),
    help="Cross-validate the training by group instead.",
)
@click.option("--model", type=DATA, help="An artifact other than the shipped one.")
@_plots_option
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def evaluate(file: Path, cv: bool, model: Path | None, plots: Path | None, as_json: bool) -> None:
    """Score the served model on a labelled FILE (JSONL or .gz).

    \b
    Example:
      specroute classifier evaluate prompts.jsonl.gz --json
    """
    from classifier import authored as own
    from classifier.evaluate import evaluate as score
    from classifier.evaluate import report

    rows = _read(file)
    if cv:
        evaluation = _cross_validated(rows, own.rows())
    else:
        evaluation = score(rows, _predictor(model), time.perf_counter)
    _plot(evaluation, plots)
    figures = report(evaluation)
    click.echo(json.dumps(figures) if as_json else _table(figures))


@group.command()
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--model", type=DATA, help="An artifact other than the shipped one.")
@click.option("--thinking/--no-thinking", default=False, help="The worker's default thinking.")
@click.option("--top", default=12, show_default=True, help="Contributions shown.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(file: IO[bytes], model: Path | None, thinking: bool, top: int, as_json: bool) -> None:
    """Say what a chat body in FILE, or - for standard input, will produce, and why.

    \b
    Example:
      echo '{"messages":[{"role":"user","content":"hi"}]}' | specroute classifier explain
    """
    from classifier.explain import explain as account
    from classifier.explain import to_json, to_text

    explanation = account(_chat_body(file.read()), _predictor(model), default_thinking=thinking)
    click.echo(json.dumps(to_json(explanation, top)) if as_json else to_text(explanation, top))


def _predictor(model: Path | None) -> Predictor:
    from classifier import load
    from classifier.artifact import BadArtifact

    try:
        return load(model)
    except (BadArtifact, OSError) as error:
        raise click.UsageError(str(error)) from error


def _chat_body(body: bytes) -> dict[str, Any]:
    """What the gateway would take as a chat, but for the size of a grammar, which is a setting."""
    from router.api.schema import check, read_json
    from router.core import BadRequest, Endpoint

    try:
        payload = read_json(body, {b"content-type": b"application/json"})
        check(Endpoint.CHAT, payload, sys.maxsize)
    except BadRequest as error:
        raise click.UsageError(str(error)) from error
    return payload


def _draws(_context: click.Context, _option: click.Parameter, value: str) -> range:
    first, dash, last = value.partition("-")
    try:
        draws = range(int(first), int(last) + 1) if dash else range(int(first))
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is neither a number nor FIRST-LAST") from error
    if not draws:
        raise click.BadParameter(f"{value!r} is no draw at all")
    return draws


@group.command()
@click.argument("file", type=DATA)
@click.option("--language", default="ru", show_default=True, help="Left out of training.")
@click.option(
    "--kind",
    default="tool_call",
    show_default=True,
    help="Left out of training; `all` for every kind with enough rows, one after the other.",
)
@click.option(
    "--seeds",
    default="3",
    show_default=True,
    callback=_draws,
    help="How many draws, one line each, or which: FIRST-LAST.",
)
@click.option(
    "--trial",
    type=click.Choice(["blind", "known-words", "poisoned"]),
    default="blind",
    show_default=True,
    help="Leave the language out of the word lists too, or keep it there, or shuffle the labels.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON, one per line.")
def prove(file: Path, language: str, kind: str, seeds: range, trial: str, as_json: bool) -> None:
    """Learn 500 requests of traffic that the model was never trained on, and measure.

    A draw is made in five folds, so that every other row is kept out of training once. Exits 1 if
    in a draw learning cost more than 0.01 elsewhere, if it raised the F1 there by less than 0.15
    (blind), or if a poisoned stream was promoted.

    \b
    Example:
      specroute classifier prove prompts.jsonl.gz --kind all --json
      specroute classifier prove prompts.jsonl.gz --trial poisoned --seeds 20
      specroute classifier prove prompts.jsonl.gz --seeds 40-42
    """
    need("sklearn")
    from itertools import product

    from classifier import authored as own
    from classifier.proof import Experiment, kinds_of
    from classifier.proof import prove as run

    rows, extra = _read(file), own.rows()
    kinds = kinds_of(rows) if kind == "all" else [row.kind for row in rows if row.kind == kind][:1]
    if not kinds:
        raise click.UsageError(f"{file} has no kind with enough rows to leave out: --kind {kind}")
    met = True
    for left_out, seed in product(kinds, seeds):
        experiment = Experiment(
            language,
            left_out,
            seed=seed,
            blind=trial != "known-words",
            shuffled=trial == "poisoned",
        )
        proof = run(rows, extra, experiment)
        met = met and proof.meets(trial)
        click.echo(_proof_json(experiment, proof) if as_json else _proof_line(experiment, proof))
    if not met:
        sys.exit(1)


def _proof_json(experiment: Any, proof: Any) -> str:
    from dataclasses import asdict

    return json.dumps(asdict(experiment) | asdict(proof))


def _proof_line(experiment: Any, proof: Any) -> str:
    parts = [
        f"{name} {value:.3f} -> {proof.after[name]:.3f}" for name, value in proof.before.items()
    ]
    others = {v.reason for v in proof.verdicts if not v.promoted}
    why = f" ({'; '.join(sorted(others))})" if others else ""
    verdict = f"promoted {proof.promoted} of {len(proof.verdicts)}{why}"
    return f"{experiment.kind} seed {experiment.seed}  {verdict}  {'  '.join(parts)}"


def _read(file: Path) -> list[Any]:
    from classifier.dataset import BadRow, read

    try:
        rows = read(file)
    except (BadRow, OSError) as error:
        raise click.UsageError(str(error)) from error
    except (EOFError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file} cannot be read as text: {error}") from error
    if not rows:
        raise click.UsageError(f"{file} has no labelled request")
    return rows


def _cross_validated(rows: list[Any], extra: list[Any]) -> Evaluation:
    from classifier.estimator import Settings
    from classifier.evaluate import TooFewGroups, cross_validate

    def progress(done: int, total: int) -> None:
        click.echo(f"fold {done} of {total}", err=True)

    try:
        return cross_validate(rows, extra, Settings(), progress)
    except TooFewGroups as error:
        raise click.UsageError(str(error)) from error


def _plot(evaluation: Evaluation, folder: Path | None) -> None:
    if folder is None:
        return
    from classifier.plots import draw

    for path in draw(evaluation.rows, folder):
        print(path, file=sys.stderr)  # noqa: T201


def _table(figures: dict[str, Any]) -> str:
    latency = figures["latency_us"]
    lines = [
        f"rows {figures['n']}   accuracy {figures['accuracy']:.3f}"
        f"   macro F1 {figures['macro_f1']:.3f}   calibration error {figures['ece']:.3f}",
        f"non-ambiguous macro F1 {figures['non_ambiguous']['macro_f1']:.3f}",
        "recall " + "  ".join(f"{name} {value:.3f}" for name, value in figures["recall"].items()),
    ]
    if latency["p50"] is not None:
        lines.append(f"latency p50 {latency['p50']:.0f} us, p99 {latency['p99']:.0f} us")
    for title in ("by_language", "by_group"):
        lines.append(title.replace("_", " "))
        lines += [
            f"  {name:<45} {part['n']:>5}  {part['macro_f1']:.3f}  accuracy {part['accuracy']:.3f}"
            for name, part in figures[title].items()
        ]
    return "\n".join(lines)
