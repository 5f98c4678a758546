"""The chart rendered once per value set for the whole run."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from k8s.render import render, value_sets, values_of

SETS = value_sets()
Objects = list[dict[str, Any]]


@pytest.fixture(scope="session")
def all_rendered() -> dict[str, Objects]:
    """Value set to its objects."""
    return {name: render(values_of(name)) for name in SETS}


@pytest.fixture(params=SETS)
def objects(request: pytest.FixtureRequest, all_rendered: dict[str, Objects]) -> Objects:
    """The objects of one value set after the other."""
    return all_rendered[request.param]


def of_kind(objects: Objects, *kinds: str) -> Objects:
    return [o for o in objects if o["kind"] in kinds]


def named(objects: Objects, kind: str, name: str) -> dict[str, Any]:
    (found,) = [o for o in of_kind(objects, kind) if o["metadata"]["name"] == name]
    return found


def pods(objects: Objects) -> list[tuple[str, dict[str, Any]]]:
    """(workload's name, pod template) of everything that runs pods."""
    workloads = of_kind(objects, "Deployment", "StatefulSet", "DaemonSet", "Job")
    return [(w["metadata"]["name"], w["spec"]["template"]) for w in workloads]


def containers(template: dict[str, Any]) -> Objects:
    return [*template["spec"].get("initContainers", ()), *template["spec"]["containers"]]


def config_in(config_map: dict[str, Any]) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(config_map["data"]["specroute.yaml"])
    return loaded
