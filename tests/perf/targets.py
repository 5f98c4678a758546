"""What is compared: each target as processes on 127.0.0.1, its CPU and memory read from /proc."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TICK = os.sysconf("SC_CLK_TCK")
KEY = "sk-comparison-0123456789abcdef"
START_WITHIN_S = 240.0


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Target:
    """One running target. `headers` go with every request, each line ended by CRLF."""

    name: str
    port: int
    process: subprocess.Popen[bytes] | None = None
    headers: str = ""
    beside: list[subprocess.Popen[bytes]] = field(default_factory=list)  # not counted
    started_s: float = 0.0
    rss_start_mb: float = 0.0

    def cpu_s(self) -> float:
        """CPU seconds of its processes so far."""
        if self.process is None:
            return 0.0
        return sum(_cpu(pid) for pid in family(self.process.pid)) / TICK

    def rss_mb(self) -> float:
        """Resident megabytes of its processes."""
        if self.process is None:
            return 0.0
        return sum(_rss(pid) for pid in family(self.process.pid)) / 1e6

    def stop(self) -> None:
        """End it and what was started beside it."""
        for process in [*([self.process] if self.process else []), *reversed(self.beside)]:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, then SIGKILL, for the process and its group."""
    for sign, patience in ((signal.SIGTERM, 8.0), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return


def family(pid: int) -> list[int]:
    """`pid` and all its living descendants."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


def _cpu(pid: int) -> int:
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    return 0


def _rss(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def spawn(argv: Sequence[str], folder: Path, name: str, **env: str) -> subprocess.Popen[bytes]:
    """Start a program in a process group of its own, its output in a file."""
    with (folder / f"{name}.log").open("wb") as out:
        return subprocess.Popen(
            list(argv),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **env},
            start_new_session=True,
        )


def wait_for(url: str, process: subprocess.Popen[bytes], within_s: float = START_WITHIN_S) -> float:
    """Seconds until `url` answers 200.

    Raises:
        RuntimeError: it ended or took too long.
    """
    begin = time.monotonic()
    while time.monotonic() - begin < within_s:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args} ended with {process.returncode}")
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2.0) as answer:  # noqa: S310
            if answer.status == 200:
                return time.monotonic() - begin
        time.sleep(0.01)
    raise RuntimeError(f"{url} did not answer within {within_s:.0f} s")


def build_stub(folder: Path) -> Path:
    """Compile the worker.

    Raises:
        RuntimeError: there is no C compiler.
    """
    binary = folder / "stub"
    compiler = shutil.which("cc") or "cc"
    done = subprocess.run([compiler, "-O2", "-o", str(binary), str(HERE / "stub.c")], check=False)
    if done.returncode:
        raise RuntimeError("the comparison's worker is written in C: install gcc or clang as cc")
    return binary


def start_stub(folder: Path) -> Target:
    """The worker itself: the target `direct`."""
    port = free_port()
    process = spawn([str(build_stub(folder)), str(port)], folder, "stub")
    wait_for(f"http://127.0.0.1:{port}/health", process)
    return Target("direct", port, process)


def start_nginx(folder: Path, backend: int) -> Target:
    """The floor: one worker process, keep-alive to the backend, nothing buffered."""
    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(
        f"""worker_processes 1; pid {folder}/nginx.pid; daemon off; error_log {folder}/nginx.err;
events {{ worker_connections 1024; }}
http {{
  access_log {folder}/access.log;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  client_max_body_size 32m; client_body_buffer_size 1m;
  upstream workers {{ server 127.0.0.1:{backend}; keepalive 128; }}
  server {{ listen 127.0.0.1:{port}; keepalive_requests 1000000;
    location / {{ proxy_pass http://workers; proxy_http_version 1.1;
      proxy_set_header Connection ""; proxy_buffering off; }} }}
}}
"""
    )
    process = spawn(["nginx", "-p", str(folder), "-c", str(config)], folder, "nginx")
    target = Target("nginx", port, process)
    target.started_s = wait_for(f"http://127.0.0.1:{port}/health", process)
    return target


def start_vllm(folder: Path, backend: int, venv: Path) -> Target:
    """vllm-router with one worker."""
    return _rust("vllm-router", "vllm_router.launch_router", folder, backend, venv)


def start_sglang(folder: Path, backend: int, venv: Path) -> Target:
    """sglang-router with one worker."""
    return _rust("sglang-router", "sglang_router.launch_router", folder, backend, venv)


def _rust(name: str, module: str, folder: Path, backend: int, venv: Path) -> Target:
    port, figures = free_port(), free_port()
    argv = [str(venv / "bin/python"), "-m", module, "--host", "127.0.0.1", "--port", str(port)]
    argv += ["--worker-urls", f"http://127.0.0.1:{backend}", "--prometheus-host", "127.0.0.1"]
    argv += ["--prometheus-port", str(figures)]
    process = spawn(argv, folder, name)
    target = Target(name, port, process)
    target.started_s = wait_for(f"http://127.0.0.1:{port}/health", process)
    return target


def start_litellm(folder: Path, backend: int, venv: Path) -> Target:
    """LiteLLM's proxy, one worker process, with a master key."""
    port = free_port()
    config = folder / "litellm.yaml"
    config.write_text(
        f"""model_list:
  - model_name: tiny
    litellm_params: {{model: openai/tiny, api_base: "http://127.0.0.1:{backend}/v1", api_key: none}}
general_settings: {{master_key: {KEY}}}
"""
    )
    argv = [str(venv / "bin/litellm"), "--config", str(config), "--host", "127.0.0.1"]
    argv += ["--port", str(port), "--num_workers", "1"]
    local = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PATH": f"{venv}/bin:/usr/bin:/bin"}
    process = spawn(argv, folder, "litellm", **local)
    target = Target("LiteLLM", port, process, f"authorization: Bearer {KEY}\r\n")
    target.started_s = wait_for(f"http://127.0.0.1:{port}/health/liveliness", process)
    return target


def start_ours(
    folder: Path,
    backend: int,
    processes: int = 1,
    native: Path | None = None,
    root: Path = ROOT,
) -> Target:
    """`specroute gateway` with Redis, a key, metrics, log lines and decision log; three workers.

    `native` is a Python that has the compiled wheel, whose gateway is started instead of that of
    the checkout `root`.
    """
    from router.cli.embedded_redis import find_binary, redis_argv, socket_path

    folder = folder / ("compiled" if native else "interpreted")
    state = folder / "state"
    state.mkdir(mode=0o700, exist_ok=True, parents=True)
    path = socket_path(state)
    beside = [spawn(redis_argv(find_binary(), state, path), folder, "redis")]
    port, config = free_port(), folder / "specroute.yaml"
    config.write_text(
        f"""redis: {{url: "unix://{path}"}}
server: {{host: 127.0.0.1, port: {port}, processes: {processes}}}
auth: {{cluster_secret: secret-of-the-comparison, admin_token: {KEY}-admin,
  keys: [{{label: bench, key: {KEY}}}]}}
models: [{{name: tiny}}]
dashboard: {{enabled: false}}
telemetry: {{log_format: json}}
"""
    )
    beside.append(
        spawn(
            [
                sys.executable,
                str(HERE / "workers_published.py"),
                f"unix://{path}",
                "secret-of-the-comparison",
                str(backend),
            ],
            folder,
            "published",
        )
    )
    # Of the compiled one nothing may come from a checkout that happens to be on our own path.
    where = {"PYTHONPATH": "" if native else str(root)}
    argv = [str(native or sys.executable), "-m", "router", "gateway", "-c", str(config)]
    process = spawn([*argv, "--state-dir", str(state)], folder, "gateway", **where)
    target = Target(
        "specroute compiled" if native else "specroute",
        port,
        process,
        f"authorization: Bearer {KEY}\r\n",
        beside,
    )
    try:
        target.started_s = wait_for(f"http://127.0.0.1:{port}/health", process)
        wait_for(f"http://127.0.0.1:{port}/ready", process)
    except RuntimeError:
        target.stop()
        raise
    return target
