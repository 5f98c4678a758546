"""Equal fleets for a comparison: the routed workers, and as many equal workers of each mode.

All fleets stand behind one gateway under names of their own, so that gateway, machine, slots and
threads are the same for every target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path


def equal_fleets(
    config: Path, folder: Path, *, routed: str
) -> tuple[Path, dict[str, str], tuple[str, ...]]:
    """Write a config with the fleets into `folder`: the file, target -> model, worker names.

    Only the first model of `config` is measured.

    Raises:
        ValueError: the config has no model or no workers, or they all run the same mode.
    """
    document = yaml.safe_load(config.read_text()) or {}
    if not document.get("models"):
        raise ValueError(f"{config} has no model: nothing to measure")
    model = document["models"][0]
    theirs = [w for w in document.get("workers") or () if w.get("model") == model["name"]]
    workers = [{"mode": "ar"} | w for w in theirs]  # what leaving it out means
    modes = list(dict.fromkeys(w["mode"] for w in workers))
    if len(modes) < 2:
        raise ValueError(
            f"{config} has {len(modes)} mode(s) of {model['name']}: nothing to compare"
        )
    targets = {routed: model["name"]}
    fleet = [dict(w) for w in workers]
    models = [model]
    for mode in modes:
        name = f"{model['name']}-only-{mode}"
        targets[mode] = name
        models.append({"name": name, "target": model["target"]})
        pattern = next(w for w in workers if w["mode"] == mode)
        fleet += [_copy(pattern, name, mode, number) for number in range(len(workers))]
    document = document | {"models": models, "workers": fleet}
    path = folder / "bench.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    return path, targets, tuple(w["name"] for w in fleet)


def _copy(pattern: dict[str, Any], model: str, mode: str, number: int) -> dict[str, Any]:
    return pattern | {"model": model, "name": f"{mode}-{number + 1}"}
