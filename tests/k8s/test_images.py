"""Images, compose file, systemd units, example configs: what can be checked without an engine."""

from __future__ import annotations

import configparser
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from workers.config import load_config

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILES = ("Dockerfile.gateway", "Dockerfile.agent")
ENVIRON = {"SPECROUTE_API_KEY": "k", "SPECROUTE_ADMIN_TOKEN": "t", "REMOTE_API_KEY": "r"}
EXAMPLES = sorted((DEPLOY / "config").glob("*.yaml"))
EXACT_TAG = re.compile(r":[a-z-]*b?v?\d+(\.\d+\.\d+)?[\w.-]*$")


def instructions(name: str) -> list[tuple[str, str]]:
    """(instruction, rest) with continued lines joined and comments left out."""
    lines = (DEPLOY / name).read_text().splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    joined = text.replace("\\\n", " ")
    pairs = (line.split(None, 1) for line in joined.splitlines() if line.strip())
    return [(word.upper(), rest) for word, rest in pairs]


def stages(name: str) -> list[list[tuple[str, str]]]:
    found: list[list[tuple[str, str]]] = []
    for word, rest in instructions(name):
        if word == "FROM":
            found.append([])
        if found:
            found[-1].append((word, rest))
    return found


def pins(name: str) -> dict[str, str]:
    lines = (DEPLOY / name).read_text().splitlines()
    found = (re.match(r"^([a-z0-9.-]+)==(\S+)", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


@pytest.mark.parametrize("name", DOCKERFILES)
def test_hadolint_is_content(name: str) -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, DEPLOY / name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", DOCKERFILES)
def test_the_last_stage_runs_as_a_user_by_number(name: str) -> None:
    users = [rest for word, rest in stages(name)[-1] if word == "USER"]
    assert users[-1] == "10001:10001"


@pytest.mark.parametrize("name", DOCKERFILES)
def test_base_images_are_arguments_with_exact_tags(name: str) -> None:
    defaults = dict(rest.split("=", 1) for word, rest in instructions(name) if word == "ARG")
    images = [value for argument, value in defaults.items() if argument.endswith("_IMAGE")]
    assert all(EXACT_TAG.search(image) for image in images)
    bases = [rest.split()[0] for word, rest in instructions(name) if word == "FROM"]
    assert all(re.fullmatch(r"\$\{\w+\}", base) for base in bases)


@pytest.mark.parametrize("name", DOCKERFILES)
def test_sources_and_build_tools_stay_out_of_the_last_stage(name: str) -> None:
    last = stages(name)[-1]
    assert len(stages(name)) == 3
    copies = [rest for word, rest in last if word in ("COPY", "ADD")]
    assert copies == ["--from=venv /opt/specroute /opt/specroute"]
    assert not [rest for word, rest in last if word == "RUN" and "pip" in rest]


@pytest.mark.parametrize("name", DOCKERFILES)
def test_signals_reach_the_process(name: str) -> None:
    (entry,) = [rest for word, rest in stages(name)[-1] if word == "ENTRYPOINT"]
    assert entry.startswith("[")  # not a shell


@pytest.mark.parametrize("name", DOCKERFILES)
def test_packages_come_with_hashes(name: str) -> None:
    runs = [rest for word, rest in instructions(name) if word == "RUN" and "pip install" in rest]
    for command in runs:
        parts = re.findall(r"pip install [^&]*", command)
        assert all("--require-hashes" in part or "--no-deps" in part for part in parts)


def test_only_the_gateways_wheel_is_compiled_and_only_its_wheel_stage_has_a_compiler() -> None:
    wheel, *others = stages("Dockerfile.gateway")
    runs = " ".join(rest for word, rest in wheel if word == "RUN")
    assert "install -y --no-install-recommends gcc libc6-dev" in runs
    assert "deploy/native/build.py --no-isolation" in runs  # what is not in the lock is not fetched
    assert ("ARG", "COMPILED=1") in wheel
    assert not [rest for stage in others for _, rest in stage if "apt-get" in rest]
    assert not [rest for _, rest in instructions("Dockerfile.agent") if "native" in rest]


def test_the_wheel_stage_has_all_that_is_compiled() -> None:
    copied = {
        word
        for kind, rest in stages("Dockerfile.gateway")[0]
        if kind == "COPY"
        for word in rest.split()[:-1]
    }
    modules = (DEPLOY / "native/modules.txt").read_text().split()
    assert {module.split("/")[0] for module in modules} | {"deploy/native"} <= copied


def test_the_image_is_compiled_by_the_mypyc_that_the_tests_compile_with() -> None:
    build, dev = pins("requirements-build.lock"), pins("../requirements-dev.lock")
    assert {"mypy", "setuptools", "wheel"} <= build.keys()
    gateway = pins("requirements-gateway.lock")
    for name, version in build.items():  # both are installed in the wheel stage
        assert dev.get(name, version) == gateway.get(name, version) == version, name


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("*.lock")), ids=lambda path: path.stem)
def test_locks_have_hashes_and_no_index_address(path: Path) -> None:
    text = path.read_text()
    assert "--hash=sha256:" in text
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links|--trusted-host", text)


def test_the_agents_image_is_lean_and_both_agree_with_the_lock() -> None:
    agent, gateway = pins("requirements-agent.lock"), pins("requirements-gateway.lock")
    heavy = {"scikit-learn", "litellm", "torch"}
    assert not (heavy | {"fastapi", "starlette", "uvicorn", "numpy"}) & agent.keys()
    assert not heavy & gateway.keys()
    assert {"numpy", "scipy"} <= gateway.keys()  # teach the classifier
    lock = pins("../requirements.lock")
    for name, version in (agent | gateway).items():
        assert lock.get(name, version) == version, f"{name}: run deploy/lock.sh"


def test_the_agent_imports_nothing_that_its_image_lacks() -> None:
    code = (
        "import sys, workers.__main__, workers.engines, workers.registry\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    loaded = set(done.stdout.split())
    assert "click" in loaded
    assert not loaded & {"fastapi", "starlette", "uvicorn", "sklearn", "litellm", "numpy", "router"}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return loaded


def test_compose_has_a_profile_for_the_processor_and_one_for_gpus(compose: dict[str, Any]) -> None:
    by_profile: dict[str, set[str]] = {"cpu": set(), "gpu": set()}
    for name, service in compose["services"].items():
        for profile in service["profiles"]:
            by_profile[profile].add(name)
    assert by_profile["cpu"] == {"redis", "gateway-cpu", "tiny-model", "agent-cpu"}
    assert by_profile["gpu"] == {"redis", "gateway-gpu", "agent-gpu"}
    gpu = compose["services"]["agent-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert gpu[0]["capabilities"] == ["gpu"]


def test_compose_services_are_hardened_and_refer_to_what_is_there(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"]
        assert "memory" in service["deploy"]["resources"]["limits"]
        assert EXACT_TAG.search(service["image"]), service["image"]
        assert service.get("user", "1") != "0:0"
        assert set(service.get("depends_on", ())) <= compose["services"].keys()
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in compose["volumes"] or volume.startswith("${")
        for config in service.get("configs", ()):
            assert (DEPLOY / compose["configs"][config["source"]]["file"]).is_file()
        if "build" in service:
            assert (ROOT / service["build"]["dockerfile"]).is_file()


def test_compose_opens_only_the_gateway_and_only_on_this_machine(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        ports = service.get("ports", [])
        assert bool(ports) is name.startswith("gateway")
        assert all(port.startswith("127.0.0.1:") for port in ports)
    assert compose["networks"]["inside"]["internal"] is True


def test_compose_waits_longer_than_streams_run(compose: dict[str, Any]) -> None:
    grace = {"11m": 660, "1m": 60}
    for profile, file in (("cpu", "cpu-demo"), ("gpu", "gpu-compose")):
        config = load_config(DEPLOY / f"config/{file}.yaml", ENVIRON)
        gateway = compose["services"][f"gateway-{profile}"]
        assert grace[gateway["stop_grace_period"]] > config.server.shutdown_grace
        agent = compose["services"][f"agent-{profile}"]
        drain = float(agent["command"][-1]) if "command" in agent else 30.0
        assert grace[agent["stop_grace_period"]] > drain


def test_containers_find_their_workers_by_the_agents_name(compose: dict[str, Any]) -> None:
    agent = compose["services"]["agent-cpu"]
    environ = ENVIRON | {"SPECROUTE_WORKER_HOST": agent["environment"]["SPECROUTE_WORKER_HOST"]}
    specs = load_config(DEPLOY / "config/cpu-demo.yaml", environ).worker_specs()
    assert {spec.host for spec in specs} == {agent["hostname"]} == {"agent"}


def test_there_is_an_example_for_each_situation() -> None:
    names = {path.stem for path in EXAMPLES}
    assert {"single-gpu", "multi-gpu", "apple", "cpu-demo", "mixed-remote"} <= names


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_configs_have_no_problem(path: Path) -> None:
    config = load_config(path, ENVIRON)
    assert config.worker_specs()
    assert path.read_text().startswith("#")


@pytest.mark.parametrize("name", ["specroute-gateway", "specroute-agent"])
def test_units_stop_gently_and_are_hardened(name: str) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / f"systemd/{name}.service")
    service = unit["Service"]
    assert service["KillMode"] == "mixed"  # the main process alone gets SIGTERM, and drains
    assert service["TimeoutStopSec"] == "11min"
    assert service["DynamicUser"] == service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict"
    command = shlex.split(service["ExecStart"])
    state = command[command.index("--state-dir") + 1]
    assert state == f"/var/lib/{service['StateDirectory']}"
    assert unit["Install"]["WantedBy"] == "multi-user.target"
