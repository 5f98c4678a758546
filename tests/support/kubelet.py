"""Runs one pod of the rendered manifests as processes of this machine, as a kubelet would.

Same command, arguments, environment, mounted files, probes (path, command, period, timeout,
threshold), preStop hook, signals and grace. What stands in: a loopback address for the pod's, a
folder for each volume (paths are rewritten), this virtual environment for the image.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import httpx

from workers.launch import wrapped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PATH = os.pathsep.join((str(BIN), "/usr/local/bin", "/usr/bin", "/bin"))
# What the images' entry points are here.
PROGRAMS = {"specroute": (sys.executable, "-m", "router"), "python3": (sys.executable,)}


@dataclass(frozen=True)
class Node:
    """What pods need of their surroundings."""

    folder: Path
    secrets: Mapping[str, str]
    config_maps: Mapping[str, Mapping[str, str]]
    services: Mapping[str, str]  # host:port as manifests name it, to where it is here
    models: Path


@dataclass
class Pod:
    """One pod. Times in seconds; `events` are (monotonic time, what happened)."""

    name: str
    ip: str
    template: dict[str, Any]
    node: Node
    on_change: Callable[[], None] = lambda: None
    ready: bool = False
    terminating: bool = False
    gone: bool = False
    restarts: int = 0
    killed_after_grace: bool = False
    stop_took: float = 0.0
    events: list[tuple[float, str]] = field(default_factory=list)
    _process: asyncio.subprocess.Process | None = None
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _log: IO[bytes] | None = None

    @property
    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.template["spec"]
        return spec

    @property
    def container(self) -> dict[str, Any]:
        (container,) = self.spec["containers"]
        return container

    @property
    def folder(self) -> Path:
        return self.node.folder / self.name

    @property
    def unready_takes(self) -> float:
        """Seconds after which a kubelet has surely seen that a running pod is not ready."""
        probe = self.container["readinessProbe"]
        failing: float = probe["failureThreshold"] * (
            probe["periodSeconds"] + probe["timeoutSeconds"]
        )
        return failing

    @property
    def log_text(self) -> str:
        return (self.folder / "container.log").read_text(errors="replace")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def say(self, what: str) -> None:
        self.events.append((time.monotonic(), what))
        self.on_change()

    async def start(self) -> None:
        """Mount, run the init containers, start the container and its probes."""
        self._mount()
        self._log = (self.folder / "container.log").open("ab")
        for container in self.spec.get("initContainers", ()):
            code = await self._run(container["command"], container, 60.0)
            assert code == 0, f"init container {container['name']}: {self.log_text[-500:]}"
        await self._start_container()

    async def delete(self) -> None:
        """What follows a deletion: preStop, SIGTERM, the rest of the grace, SIGKILL."""
        begun = time.monotonic()
        deadline = begun + self.spec["terminationGracePeriodSeconds"]
        self.terminating = True
        self.say("terminating")
        hook = self.container.get("lifecycle", {}).get("preStop")
        if hook is not None:
            await self._run(hook["exec"]["command"], self.container, deadline - time.monotonic())
        assert self._process is not None
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                await self._process.wait()
        except TimeoutError:
            self.killed_after_grace = True
            self._signal(signal.SIGKILL)
            await self._process.wait()
        self.stop_took = time.monotonic() - begun
        await self._end()

    async def lose(self) -> None:
        """The node is gone: no hook, no signal, no goodbye."""
        assert self._process is not None
        self._signal(signal.SIGKILL)
        await self._process.wait()
        await self._end()

    def freeze(self) -> None:
        """The node hangs: its sockets stay open and nothing comes out of them."""
        for pid in self._family():
            os.kill(pid, signal.SIGSTOP)
        self.say("frozen")

    async def until_ready(self, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while not self.ready:
                assert not self.gone, self.log_text[-2000:]
                await asyncio.sleep(0.05)

    def _family(self) -> list[int]:
        """The process and its descendants."""
        parents: dict[int, int] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    after_name = (entry / "stat").read_text().rpartition(")")[2]
                    parents[int(entry.name)] = int(after_name.split()[1])
        found = [self.pid]
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid]
        return found

    async def _start_container(self) -> None:
        container = self.container
        command = [*container.get("command", ()), *container.get("args", ())]
        # A container is gone with its node, here with the tests, however they end.
        self._process = await asyncio.create_subprocess_exec(
            *wrapped(tuple(self._argv(command)), os.getpid()),
            env=self._environment(container),
            cwd=self.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self.say("started")
        loop = asyncio.get_running_loop()
        self._tasks.append(loop.create_task(self._watch_probes(self._process)))

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._log is not None:
            self._log.close()
        for volume in self.spec["volumes"]:
            if "emptyDir" in volume and volume["name"] != "models":  # it goes with its pod
                shutil.rmtree(self._volume(volume["name"]), ignore_errors=True)
        self.ready, self.gone = False, True
        self.say("gone")

    def _signal(self, number: signal.Signals) -> None:
        """To the container's first process alone, as a runtime does; SIGKILL ends all of it."""
        assert self._process is not None
        pids = self._family() if number is signal.SIGKILL else [self._process.pid]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    async def _watch_probes(self, process: asyncio.subprocess.Process) -> None:
        """Startup first; then liveness and readiness beside each other, for this process's life."""
        if not await self._passes(self.container["startupProbe"]):
            await self._restart("startup probe failed")
            return
        self.say("started up")
        loop = asyncio.get_running_loop()
        others = [
            loop.create_task(self._keep_readiness()),
            loop.create_task(self._watch_liveness()),
        ]
        try:
            await process.wait()
            if not self.terminating:
                self.ready = False
                self.say(f"container ended with {process.returncode}")
        finally:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    async def _passes(self, probe: dict[str, Any]) -> bool:
        """Whether it succeeds before its threshold of failures."""
        for _ in range(probe["failureThreshold"]):
            if await self._probe(probe):
                return True
            await asyncio.sleep(probe["periodSeconds"])
        return False

    async def _keep_readiness(self) -> None:
        probe, failures = self.container["readinessProbe"], 0
        while True:
            failures = 0 if await self._probe(probe) else failures + 1
            wanted = failures == 0 or (self.ready and failures < probe["failureThreshold"])
            if wanted != self.ready:
                self.ready = wanted
                self.say("ready" if wanted else "not ready")
            await asyncio.sleep(probe["periodSeconds"])

    async def _watch_liveness(self) -> None:
        probe, failures = self.container["livenessProbe"], 0
        while failures < probe["failureThreshold"]:
            failures = 0 if await self._probe(probe) else failures + 1
            await asyncio.sleep(probe["periodSeconds"])
        loop = asyncio.get_running_loop()
        self._tasks.append(loop.create_task(self._restart("liveness probe failed")))

    async def _restart(self, why: str) -> None:
        assert self._process is not None
        self.restarts += 1
        self.ready = False
        self.say(why)
        self._signal(signal.SIGKILL)
        await self._process.wait()
        await self._start_container()

    async def _probe(self, probe: dict[str, Any]) -> bool:
        kinds: dict[str, Callable[[Any, float], Awaitable[bool]]] = {
            "httpGet": self._http_get,
            "exec": self._exec,
            "tcpSocket": self._tcp_socket,
        }
        (kind,) = kinds.keys() & probe.keys()
        return await kinds[kind](probe[kind], probe["timeoutSeconds"])

    async def _http_get(self, what: dict[str, Any], within: float) -> bool:
        url = f"http://{self.ip}:{self._port(what['port'])}{what['path']}"
        try:
            async with httpx.AsyncClient(timeout=within, trust_env=False) as client:
                return 200 <= (await client.get(url)).status_code < 400
        except httpx.HTTPError:
            return False

    async def _exec(self, what: dict[str, Any], within: float) -> bool:
        return await self._run(what["command"], self.container, within) == 0

    async def _tcp_socket(self, what: dict[str, Any], within: float) -> bool:
        try:
            async with asyncio.timeout(within):
                _, writer = await asyncio.open_connection(self.ip, self._port(what["port"]))
        except (OSError, TimeoutError):
            return False
        writer.close()
        return True

    def _port(self, port: int | str) -> int:
        ports = {p["name"]: p["containerPort"] for p in self.container["ports"]}
        return int(ports.get(port, port))

    async def _run(self, command: list[str], container: dict[str, Any], within: float) -> int:
        """A command inside the container; -1 when it takes too long."""
        process = await asyncio.create_subprocess_exec(
            *self._argv(command),
            env=self._environment(container),
            cwd=self.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        try:
            async with asyncio.timeout(within):
                return await process.wait()
        except TimeoutError:
            return -1
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    def _argv(self, command: list[str]) -> list[str]:
        program, *rest = command
        found = shutil.which(program, path=PATH) or program
        return [*PROGRAMS.get(program, (found,)), *(self._here(word) for word in rest)]

    def _environment(self, container: dict[str, Any]) -> dict[str, str]:
        environment = {"PATH": PATH, "HOSTNAME": self.name, "PYTHONPATH": str(ROOT)}
        for entry in container.get("env", ()):
            value = self._value(entry)
            for known, text in environment.items():
                value = value.replace(f"$({known})", text)
            for there, here in self.node.services.items():
                value = value.replace(there, here)
            environment[entry["name"]] = value
        return environment

    def _value(self, entry: dict[str, Any]) -> str:
        if "value" in entry:
            return str(entry["value"])
        source = entry["valueFrom"]
        if "secretKeyRef" in source:
            return self.node.secrets[source["secretKeyRef"]["key"]]
        fields = {"metadata.name": self.name, "status.podIP": self.ip}
        return fields[source["fieldRef"]["fieldPath"]]

    def _mount(self) -> None:
        """A folder for each volume; files of config maps with their paths rewritten."""
        for volume in self.spec["volumes"]:
            place = self._volume(volume["name"])
            place.mkdir(parents=True, exist_ok=True)
            if "configMap" in volume:
                for name, text in self.node.config_maps[volume["configMap"]["name"]].items():
                    (place / name).write_text(self._here(text))

    def _volume(self, name: str) -> Path:
        return self.node.models if name == "models" else self.folder / "volumes" / name

    def _here(self, text: str) -> str:
        """Paths below the pod's mounts as paths of this machine."""
        mounts = {
            mount["mountPath"]: str(self._volume(mount["name"]))
            for container in (*self.spec.get("initContainers", ()), *self.spec["containers"])
            for mount in container["volumeMounts"]
        }
        longest_first = sorted(mounts, key=len, reverse=True)
        pattern = "|".join(re.escape(path) for path in longest_first)
        return re.sub(rf"(?<![\w./-])({pattern})(?![\w-])", lambda found: mounts[found[1]], text)
