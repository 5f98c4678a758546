"""What the objects promise in service: configs that load, probes and times that fit each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from k8s.render import render, values_of
from tests.k8s.conftest import config_in, named, of_kind, pods
from workers.config import load_config

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.k8s.conftest import Objects
    from workers.config import Config

POD = {
    "POD_NAME": "specroute-code-0",
    "POD_IP": "10.1.2.3",
    "SPECROUTE_API_KEY": "key",
    "SPECROUTE_REDIS__URL": "redis://:pw@specroute-redis:6379/0",
    "SPECROUTE_AUTH__CLUSTER_SECRET": "secret",
    "SPECROUTE_REDIS_PASSWORD": "pw",
}


def load(config_map: dict[str, Any], folder: Path) -> Config:
    """The config as a pod would read it; raises on any problem."""
    path = folder / "specroute.yaml"
    path.write_text(config_map["data"]["specroute.yaml"])
    return load_config(path, POD)


def pools(objects: Objects) -> list[tuple[str, dict[str, Any]]]:
    return [
        (name, template)
        for name, template in pods(objects)
        if "specroute/pool" in template["metadata"]["labels"]
    ]


def seconds_to_start(container: dict[str, Any]) -> float:
    probe = container["startupProbe"]
    return float(probe["periodSeconds"] * probe["failureThreshold"])


def test_gateways_read_their_config_without_a_problem(objects: Objects, tmp_path: Path) -> None:
    config = load(named(objects, "ConfigMap", "specroute-gateway"), tmp_path)
    assert config.auth.cluster_secret == POD["SPECROUTE_AUTH__CLUSTER_SECRET"]
    assert [key.key for key in config.auth.keys] == ["key"]
    assert config.models
    assert not config.workers


def test_agents_read_their_config_without_a_problem(objects: Objects, tmp_path: Path) -> None:
    for name, template in pools(objects):
        specs = load(named(objects, "ConfigMap", name), tmp_path).worker_specs()
        (container,) = template["spec"]["containers"]
        ports = [port["containerPort"] for port in container["ports"]]
        assert [spec.port for spec in specs] == ports
        assert {spec.host for spec in specs} == {POD["POD_IP"]}
        assert all(spec.name.startswith(POD["POD_NAME"]) for spec in specs)


def test_models_lie_where_the_volume_is(objects: Objects) -> None:
    for name, template in pools(objects):
        (container,) = template["spec"]["containers"]
        (place,) = [m["mountPath"] for m in container["volumeMounts"] if m["name"] == "models"]
        config = config_in(named(objects, "ConfigMap", name))
        files = [m["target"] for m in config["models"]]
        files += [w["draft"] for w in config["workers"] if "draft" in w]
        assert all(path.startswith(place + "/") for path in files)


def test_the_kubelet_waits_longer_than_the_longest_stream(objects: Objects, tmp_path: Path) -> None:
    config = load(named(objects, "ConfigMap", "specroute-gateway"), tmp_path)
    gateway = named(objects, "Deployment", "specroute-gateway")["spec"]["template"]["spec"]
    (stop,) = [c["lifecycle"]["preStop"]["exec"]["command"] for c in gateway["containers"]]
    pause = float(stop[1])
    assert gateway["terminationGracePeriodSeconds"] > config.server.shutdown_grace + pause
    for _, template in pools(objects):
        (container,) = template["spec"]["containers"]
        drain = float(container["args"][container["args"].index("--drain-timeout") + 1])
        assert drain >= config.server.shutdown_grace
        assert template["spec"]["terminationGracePeriodSeconds"] > drain + 10


def test_gateways_leave_the_service_before_they_stop(objects: Objects) -> None:
    gateway = named(objects, "Deployment", "specroute-gateway")["spec"]["template"]["spec"]
    (container,) = gateway["containers"]
    command, pause = container["lifecycle"]["preStop"]["exec"]["command"]
    assert command == "sleep"
    ready = container["readinessProbe"]
    assert float(pause) >= ready["periodSeconds"] * ready["failureThreshold"]


def test_agents_get_one_sigterm_and_no_other(objects: Objects) -> None:
    """A second one would mean: do not wait for streams."""
    for _, template in pools(objects):
        (container,) = template["spec"]["containers"]
        assert "lifecycle" not in container
        assert container["command"][0] == "python3"  # not a shell, which would swallow it


def test_loading_gets_its_half_hour_and_nothing_else_waits_for_it(
    all_rendered: dict[str, Objects],
) -> None:
    for _, template in pools(all_rendered["three-pools"]):
        (container,) = template["spec"]["containers"]
        assert seconds_to_start(container) == 1800
    gateway = named(all_rendered["three-pools"], "Deployment", "specroute-gateway")
    (container,) = gateway["spec"]["template"]["spec"]["containers"]
    assert seconds_to_start(container) <= 60


def test_no_workers_trouble_restarts_anything(objects: Objects) -> None:
    """Liveness asks the event loop and the agent's heartbeat, never a worker or Redis."""
    gateway = named(objects, "Deployment", "specroute-gateway")["spec"]["template"]["spec"]
    assert gateway["containers"][0]["livenessProbe"]["httpGet"]["path"] == "/health"
    for _, template in pools(objects):
        assert "exec" in template["spec"]["containers"][0]["livenessProbe"]


def test_a_fleet_that_scales_to_zero_can_be_asked_while_it_is_there(
    all_rendered: dict[str, Objects],
) -> None:
    objects = all_rendered["multi-model"]
    (from_zero,) = [
        scaled
        for scaled in of_kind(objects, "ScaledObject")
        if scaled["spec"]["minReplicaCount"] == 0
    ]
    queries = [t["metadata"]["query"] for t in from_zero["spec"]["triggers"]]
    assert any("specroute_queue_depth" in q and "coder-7b" in q for q in queries)
    gateway = named(objects, "Deployment", "specroute-gateway")["spec"]["template"]["spec"]
    assert gateway["containers"][0]["readinessProbe"]["httpGet"]["path"] == "/health"
    limits = config_in(named(objects, "ConfigMap", "specroute-gateway"))["limits"]
    (coder,) = [t for name, t in pools(objects) if name == "specroute-coder"]
    assert limits["wait_for_worker"] > seconds_to_start(coder["spec"]["containers"][0])
    scaled = {s["spec"]["scaleTargetRef"]["name"] for s in of_kind(objects, "ScaledObject")}
    for workload in of_kind(objects, "Deployment", "StatefulSet"):
        has_replicas = "replicas" in workload["spec"]
        assert has_replicas is (workload["metadata"]["name"] not in scaled)


def test_gateways_scale_by_cpu_queue_and_slots(all_rendered: dict[str, Objects]) -> None:
    scaler = named(all_rendered["three-pools"], "HorizontalPodAutoscaler", "specroute-gateway")
    kinds = [metric["type"] for metric in scaler["spec"]["metrics"]]
    assert kinds == ["Resource", "Pods", "External"]
    gateway = named(all_rendered["three-pools"], "Deployment", "specroute-gateway")
    assert "replicas" not in gateway["spec"]


def test_streams_are_neither_buffered_nor_cut_on_the_way_in(
    all_rendered: dict[str, Objects],
) -> None:
    ingress = named(all_rendered["three-pools"], "Ingress", "specroute")
    notes = ingress["metadata"]["annotations"]
    prefix = "nginx.ingress.kubernetes.io/proxy-"
    assert notes[prefix + "buffering"] == "off"
    assert int(notes[prefix + "read-timeout"]) >= 3600
    route = named(all_rendered["multi-model"], "HTTPRoute", "specroute")
    assert route["spec"]["rules"][0]["timeouts"] == {"request": "0s", "backendRequest": "0s"}


def test_prometheus_scrapes_with_a_key_on_the_services_port(
    all_rendered: dict[str, Objects],
) -> None:
    objects = all_rendered["three-pools"]
    monitor = named(objects, "ServiceMonitor", "specroute")
    (endpoint,) = monitor["spec"]["endpoints"]
    service = named(objects, "Service", "specroute")
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    labels = service["metadata"]["labels"].items()
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels
    assert endpoint["authorization"]["credentials"]["key"] == "api-key"


def test_the_board_and_the_alerts_are_the_ones_of_deploy(
    all_rendered: dict[str, Objects], pytestconfig: pytest.Config
) -> None:
    objects, root = all_rendered["three-pools"], pytestconfig.rootpath
    board = named(objects, "ConfigMap", "specroute-board")["data"]["specroute.json"]
    source = (root / "deploy/grafana/dashboard.json").read_text()
    assert yaml.safe_load(board) == yaml.safe_load(source)
    rules = named(objects, "PrometheusRule", "specroute")["spec"]
    assert rules == yaml.safe_load((root / "deploy/prometheus/rules.yaml").read_text())


def test_what_operators_set_reaches_the_gateways_config(tmp_path: Path) -> None:
    values = values_of("cpu-demo")
    values["gateway"]["config"] = {"limits": {"queue_size": 7}, "telemetry": {"log_level": "debug"}}
    values["apiKeys"] = [{"label": "batch", "digest": "a" * 64, "priority": -1}]
    config = load(named(render(values), "ConfigMap", "specroute-gateway"), tmp_path)
    assert config.limits.queue_size == 7
    assert (config.telemetry.log_level, config.telemetry.log_format) == ("debug", "json")
    assert [key.label for key in config.auth.keys] == ["default", "batch"]
