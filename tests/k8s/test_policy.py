"""What an admission policy asks: no root, limits, probes, exact tags, no rights, closed network."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.k8s.conftest import containers, named, of_kind, pods

if TYPE_CHECKING:
    from tests.k8s.conftest import Objects

EXACT_TAG = re.compile(r"^[a-z0-9./-]+:[a-z]*v?\d+\.\d+\.\d+[\w.-]*$")


def test_nothing_runs_as_root_or_can_become_it(objects: Objects) -> None:
    for name, template in pods(objects):
        pod = template["spec"]["securityContext"]
        assert pod["runAsNonRoot"] is True, name
        assert pod["runAsUser"] >= 10000
        assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in containers(template):
            mine = container["securityContext"]
            assert mine["allowPrivilegeEscalation"] is False
            assert mine["capabilities"] == {"drop": ["ALL"]}
            assert "runAsUser" not in mine
            assert "privileged" not in mine


def test_root_folders_are_read_only_and_what_is_written_has_a_size(objects: Objects) -> None:
    for _, template in pods(objects):
        for container in containers(template):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            places = [m["mountPath"] for m in container["volumeMounts"]]
            assert "/tmp" in places  # noqa: S108 - a volume
        for volume in template["spec"]["volumes"]:
            if "emptyDir" in volume:
                assert volume["emptyDir"]["sizeLimit"], volume["name"]


def test_only_the_operators_model_folder_is_of_the_host_and_read_only(objects: Objects) -> None:
    for _, template in pods(objects):
        host = [v["name"] for v in template["spec"]["volumes"] if "hostPath" in v]
        assert host in ([], ["models"])
        for container in template["spec"]["containers"]:
            for mount in container["volumeMounts"]:
                if mount["name"] == "models":
                    assert mount["readOnly"] is True
        for forbidden in ("hostNetwork", "hostPID", "hostIPC"):
            assert forbidden not in template["spec"]


def test_images_have_exact_tags(objects: Objects) -> None:
    for _, template in pods(objects):
        for container in containers(template):
            assert EXACT_TAG.match(container["image"]), container["image"]
            assert "latest" not in container["image"]


def test_every_container_has_requests_and_a_memory_limit(objects: Objects) -> None:
    for _, template in pods(objects):
        for container in containers(template):
            resources = container["resources"]
            assert {"cpu", "memory"} <= resources["requests"].keys(), container["name"]
            assert "memory" in resources["limits"]


def test_gpus_are_limits_where_the_set_asks_for_them(all_rendered: dict[str, Objects]) -> None:
    for set_name, pool, resource, count in (
        ("one-gpu", "specroute-gpu", "nvidia.com/gpu", 1),
        ("three-pools", "specroute-code", "nvidia.com/gpu", 1),
        ("multi-model", "specroute-large", "nvidia.com/gpu", 2),
        ("external-redis", "specroute-prose", "amd.com/gpu", 1),
    ):
        pod = named(all_rendered[set_name], "StatefulSet", pool)["spec"]["template"]["spec"]
        assert pod["containers"][0]["resources"]["limits"][resource] == count


def test_every_long_running_container_has_three_probes(objects: Objects) -> None:
    for name, template in pods(objects):
        for container in template["spec"]["containers"]:
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                assert probe in container, f"{name} has no {probe}"
                assert container[probe]["timeoutSeconds"] <= 5


def test_service_accounts_have_no_rights_and_no_token(objects: Objects) -> None:
    assert not of_kind(objects, "ClusterRole", "ClusterRoleBinding")
    accounts = {a["metadata"]["name"]: a for a in of_kind(objects, "ServiceAccount")}
    subjects = {s["name"] for b in of_kind(objects, "RoleBinding") for s in b["subjects"]}
    for _, template in pods(objects):
        name = template["spec"]["serviceAccountName"]
        assert accounts[name]["automountServiceAccountToken"] is False
        assert template["spec"]["automountServiceAccountToken"] is (name in subjects), name
        assert name not in subjects or "endpointslices" in template["spec"]["containers"][0]["args"]


def test_the_one_right_is_to_list_endpointslices_where_pods_are_looked_for(
    all_rendered: dict[str, Objects],
) -> None:
    given = {name: of_kind(found, "Role") for name, found in all_rendered.items()}
    (role,) = given.pop("plain-pods")
    assert not any(given.values())
    (rule,) = role["rules"]
    assert (rule["apiGroups"], rule["resources"], rule["verbs"]) == (
        ["discovery.k8s.io"],
        ["endpointslices"],
        ["list"],
    )
    (binding,) = of_kind(all_rendered["plain-pods"], "RoleBinding")
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["metadata"]["namespace"] == role["metadata"]["namespace"] == "models"


def test_secrets_are_references_and_never_arguments(objects: Objects) -> None:
    words = ("secret", "token", "api_key", "password")
    for _, template in pods(objects):
        for container in containers(template):
            for variable in container.get("env", ()):
                if any(word in variable["name"].lower() for word in words):
                    assert "secretKeyRef" in variable["valueFrom"], variable["name"]
            argv = [*container.get("command", ()), *container.get("args", ())]
            assert not [a for a in argv if "$(" in a]


def test_every_pod_is_selected_by_one_network_policy(objects: Objects) -> None:
    policies = of_kind(objects, "NetworkPolicy")
    for name, template in pods(objects):
        labels = template["metadata"]["labels"]
        mine = [p for p in policies if _selects(p["spec"]["podSelector"], labels)]
        assert len(mine) == 1, name


def test_only_gateways_reach_workers_and_only_ours_reach_redis(objects: Objects) -> None:
    by_name = {p["metadata"]["name"]: p["spec"] for p in of_kind(objects, "NetworkPolicy")}
    ours = {_component(template) for _, template in pods(objects)} | {"worker"}
    reachable = {"specroute-worker": {"gateway"}, "specroute-redis": ours - {"redis"}}
    for name, expected in reachable.items():
        if name not in by_name:
            continue
        (rule,) = by_name[name]["ingress"]
        peers = {
            peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
            for peer in rule["from"]
        }
        assert peers == expected
        ports = [(p["port"], p.get("endPort", p["port"])) for p in rule["ports"]]
        for _, template in pods(objects):
            for container in template["spec"]["containers"]:
                if f"specroute-{_component(template)}" == name:
                    for port in container["ports"]:
                        assert ports[0][0] <= port["containerPort"] <= ports[0][1]
    if "specroute-redis" in by_name:
        assert by_name["specroute-redis"]["policyTypes"] == ["Ingress", "Egress"]
        assert "egress" not in by_name["specroute-redis"]


def test_every_workload_has_a_disruption_budget_that_lets_nodes_drain(objects: Objects) -> None:
    budgets = of_kind(objects, "PodDisruptionBudget")
    for name, template in pods(objects):
        labels = template["metadata"]["labels"]
        (budget,) = [b for b in budgets if _selects(b["spec"]["selector"], labels)]
        assert budget["spec"]["maxUnavailable"] == 1, name


def test_gateways_and_workers_are_spread_over_zones_and_nodes(objects: Objects) -> None:
    for name, template in pods(objects):
        if name.endswith("-redis"):
            continue
        keys = []
        for constraint in template["spec"]["topologySpreadConstraints"]:
            assert _selects(constraint["labelSelector"], template["metadata"]["labels"])
            keys.append(constraint["topologyKey"])
        assert keys == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_selectors_select_their_own_pods_and_nobody_elses(kind: str, objects: Objects) -> None:
    for workload in of_kind(objects, kind):
        mine = [
            name
            for name, template in pods(objects)
            if _selects(workload["spec"]["selector"], template["metadata"]["labels"])
        ]
        assert mine == [workload["metadata"]["name"]]


def _component(template: dict[str, Any]) -> str:
    component: str = template["metadata"]["labels"]["app.kubernetes.io/component"]
    return component


def _selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    return selector["matchLabels"].items() <= labels.items()
