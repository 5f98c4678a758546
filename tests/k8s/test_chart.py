"""The chart renders over every value set, is valid in three Kubernetes versions, is committed."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import helm_python as helm
import jsonschema
import kubernetes_validate
import pytest
import yaml
from kubernetes_validate import utils as validate_utils

from k8s.render import CHART, MANIFESTS, outputs, render, value_sets, values_of
from tests.k8s.conftest import named, of_kind
from tests.k8s.crds import schema_of

if TYPE_CHECKING:
    from tests.k8s.conftest import Objects

FROM_ZERO = values_of("multi-model")["pools"]["coder"]
VERSIONS = ("1.29", "1.33", "1.37")


@pytest.fixture(scope="module", autouse=True)
def quick_schemas() -> Any:
    """Without this every object reads megabytes of JSON anew."""
    original = validate_utils.schema_contents
    validate_utils.schema_contents = functools.cache(original)
    yield
    validate_utils.schema_contents = original


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid_in(version: str, objects: Objects) -> None:
    assert len(objects) > 10
    for thing in objects:
        schema = schema_of(thing)
        if schema is None:
            assert kubernetes_validate.validate(thing, version, strict=True) == version
        else:
            jsonschema.validate(thing, schema)


def test_strict_validation_sees_a_misspelt_field(all_rendered: dict[str, Objects]) -> None:
    gateway = dict(named(all_rendered["cpu-demo"], "Deployment", "specroute-gateway"))
    gateway["spec"] = gateway["spec"] | {"replica": 2}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(gateway, VERSIONS[0], strict=True)


def test_the_six_situations_have_value_sets() -> None:
    wanted = {"cpu-demo", "one-gpu", "three-pools", "multi-model", "external-redis", "plain-pods"}
    assert set(value_sets()) == wanted


def test_committed_manifests_are_what_the_chart_renders() -> None:
    wanted = outputs()
    stale = [str(path) for path, text in wanted.items() if path.read_text() != text]
    assert not stale, "run: python k8s/render.py"
    leftover = [p for p in MANIFESTS.rglob("*") if p.is_file() and p not in wanted]
    assert not leftover


def test_kustomize_finds_every_file() -> None:
    for name in value_sets():
        kustomization = yaml.safe_load((MANIFESTS / name / "kustomization.yaml").read_text())
        assert [(MANIFESTS / name / r).is_file() for r in kustomization["resources"]] == [True]


def test_lint_has_no_complaint() -> None:
    for name in value_sets():
        result = helm.lint(CHART, values=values_of(name))
        messages = result["messages"] if isinstance(result, dict) else result
        bad = [m for m in messages or () if "icon" not in str(m) and _severity(m) > 1]
        assert not bad


def _severity(message: Any) -> int:
    """Helm's: 1 information, 2 warning, 3 error."""
    levels = {"INFO": 1, "WARNING": 2, "ERROR": 3}
    found = message.get("severity", 3)
    return levels.get(str(found).upper(), found if isinstance(found, int) else 3)


def test_no_two_objects_have_the_same_name(objects: Objects) -> None:
    names = [(o["kind"], o["metadata"]["name"]) for o in objects]
    assert len(names) == len(set(names))


def test_a_second_release_meets_nothing_of_the_first() -> None:
    first, second = render(values_of("cpu-demo")), render(values_of("cpu-demo"), "blue")
    names = [{(o["kind"], o["metadata"]["name"]) for o in found} for found in (first, second)]
    assert not names[0] & names[1]
    policy = named(second, "NetworkPolicy", "blue-specroute-worker")
    (peer,) = policy["spec"]["ingress"][0]["from"]
    assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/instance"] == "blue"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"models": []}, "models"),
        ({"pools": {"A": {}}}, "pools"),
        ({"typo": 1}, "typo"),
        ({"gateway": {"replica": 3}}, "replica"),
        ({"gateway": {"image": {"tag": "latest"}}}, "tag"),
        ({"pools": {"redis": {"resources": {}, "workers": []}}}, "redis"),
        ({"redis": {"maxMemory": "lots"}}, "maxMemory"),
        ({"modelStore": {"download": [{"path": "a", "url": "https://b"}]}}, "sha256"),
        ({"ingress": {"enabled": True}}, "ingress.host"),
        ({"redis": {"enabled": False}}, "redis.url"),
        ({"secrets": {"existing": ""}}, "secrets.clusterSecret"),
        ({"gateway": {"autoscaling": {"enabled": True}, "keda": {"enabled": True}}}, "both scale"),
        ({"pools": {"plain": FROM_ZERO}, "keda": {"prometheus": "http://p:90"}}, "readinessPath"),
    ],
)
def test_wrong_values_are_refused_by_name(change: dict[str, Any], word: str) -> None:
    with pytest.raises(helm.HelmError, match=word):
        render(values_of("cpu-demo") | change)


def test_secrets_can_come_from_values() -> None:
    texts = {"clusterSecret": "c1", "adminToken": "a1", "apiKey": "k1", "redisPassword": "r1"}
    objects = render(values_of("cpu-demo") | {"secrets": {"existing": "", **texts}})
    secret = named(objects, "Secret", "specroute")
    assert sorted(secret["stringData"].values()) == sorted(texts.values())


def test_nothing_secret_is_in_the_committed_manifests(objects: Objects) -> None:
    assert not of_kind(objects, "Secret")


def test_one_pool_changed_leaves_the_others_alone() -> None:
    before = values_of("three-pools")
    after = values_of("three-pools")
    after["pools"]["code"]["workers"][0]["slots"] = 8
    templates = []
    for values in (before, after):
        sets = of_kind(render(values), "StatefulSet", "Deployment")
        templates.append({s["metadata"]["name"]: s["spec"]["template"] for s in sets})
    changed = [name for name in templates[0] if templates[0][name] != templates[1][name]]
    assert changed == ["specroute-code"]


def test_a_pool_can_have_its_own_image() -> None:
    values = values_of("three-pools")
    values["pools"]["code"]["image"] = {"tag": "0.2.0-cuda"}
    images = {
        s["metadata"]["name"]: s["spec"]["template"]["spec"]["containers"][0]["image"]
        for s in of_kind(render(values), "StatefulSet")
    }
    assert images["specroute-code"] == "specroute-agent:0.2.0-cuda"
    assert images["specroute-prose"] == "specroute-agent:0.1.0-cuda"


def test_a_pool_can_be_switched_off_or_scaled_to_nothing() -> None:
    values = values_of("three-pools")
    values["pools"]["plain"]["enabled"] = False
    values["pools"]["code"]["replicas"] = 0
    sets = {s["metadata"]["name"]: s for s in of_kind(render(values), "StatefulSet")}
    assert "specroute-plain" not in sets
    assert sets["specroute-code"]["spec"]["replicas"] == 0
