"""Renders the chart over every value set into k8s/manifests, for those who do not use Helm.

    python k8s/render.py           write
    python k8s/render.py --check   exit 1 where the committed files differ

Needs helm-python-sdk (a Helm without its binary) and PyYAML; asks no cluster and no network.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import helm_python as helm
import yaml

HERE = Path(__file__).parent
CHART = HERE / "chart"
VALUES = HERE / "values"
MANIFESTS = HERE / "manifests"
RELEASE = "specroute"

# What Prometheus and Grafana get lives in deploy/, and is carried into the chart from there.
CARRIED = {
    HERE.parent / "deploy/prometheus/rules.yaml": CHART / "files/rules.yaml",
    HERE.parent / "deploy/grafana/dashboard.json": CHART / "files/dashboard.json",
}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # much faster where libyaml is there
HEADER = "# Rendered by k8s/render.py from k8s/chart and k8s/values/{name}.yaml: change those.\n"


def value_sets() -> list[str]:
    """Names of the value sets, sorted."""
    return sorted(path.stem for path in VALUES.glob("*.yaml"))


def values_of(name: str) -> dict[str, Any]:
    """One value set as written."""
    values: dict[str, Any] = yaml.safe_load((VALUES / f"{name}.yaml").read_text())
    return values


def render(values: dict[str, Any], release: str = RELEASE) -> list[dict[str, Any]]:
    """Every object of the chart with these values, in the order of its templates' names.

    Raises:
        helm.HelmError: values that the schema or a template refuses.
    """
    with helm.Chart.load(CHART) as chart:
        chart.validate_schema(values)
        rendered = chart.render(values=values, name=release, namespace="default")
    texts = (rendered[name] for name in sorted(rendered) if not name.endswith(".txt"))
    return [found for text in texts for found in yaml.load_all(text, Loader=_LOADER) if found]


def manifests(name: str) -> dict[str, str]:
    """The files of one value set: file name to text."""
    dumped = yaml.dump_all(render(values_of(name)), Dumper=_Readable, sort_keys=False, width=100)
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["all.yaml"],
    }
    header = HEADER.format(name=name)
    return {
        "all.yaml": header + dumped,
        "kustomization.yaml": header + yaml.safe_dump(kustomization, sort_keys=False),
    }


def carried() -> dict[Path, str]:
    """Files of the chart that are copies of files elsewhere, with what they should hold."""
    return {to: source.read_text() for source, to in CARRIED.items() if source.exists()}


def outputs() -> dict[Path, str]:
    """Everything this script writes."""
    written = {MANIFESTS / s / f: text for s in value_sets() for f, text in manifests(s).items()}
    return written | carried()


class _Readable(yaml.SafeDumper):
    """Texts of several lines as blocks; no references."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Readable, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Readable.add_representer(str, _text)


def main(arguments: list[str]) -> int:
    """Write, or compare."""
    for path, text in carried().items():
        path.write_text(text)
    wanted = outputs()
    differing = [p for p, text in wanted.items() if not p.exists() or p.read_text() != text]
    if arguments == ["--check"]:
        sys.stdout.writelines(f"differs: {path.relative_to(HERE)}\n" for path in differing)
        return 1 if differing else 0
    for path in differing:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path])
        sys.stdout.write(f"wrote {path.relative_to(HERE)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
