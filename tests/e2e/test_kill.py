"""Death in every form: a worker under load, `up` itself, and the polite ways out."""

from __future__ import annotations

import os
import signal
import threading

import httpx
import pytest

from tests.support.running import processes_below, stop_stack

pytestmark = [pytest.mark.engine, pytest.mark.slow]

BODY = {
    "model": "tiny",
    "messages": [{"role": "user", "content": "Count from 1 to 60."}],
    "max_tokens": 120,
    "temperature": 0,
}


def _load(stack, results: list, stop: threading.Event, stream: bool) -> None:
    """Requests one after the other until told to stop; every ending is kept."""
    with httpx.Client(base_url=stack.url, timeout=60.0) as client:
        while not stop.is_set():
            answer = client.post("/v1/chat/completions", json=BODY | {"stream": stream})
            results.append((answer.status_code, answer.text))


def _clean(status: int, text: str) -> bool:
    """A whole answer, a refusal in the contract's shape, or a stream that says why it ended."""
    if status == 200:
        return '"error"' in text or "[DONE]" in text or '"finish_reason"' in text
    return status in (429, 502, 503, 504) and '"code"' in text


def test_a_killed_worker_comes_back_and_nobody_else_notices(own_stack):
    stack = own_stack
    results: list[tuple[int, str]] = []
    stop = threading.Event()
    threads = [
        threading.Thread(target=_load, args=(stack, results, stop, index % 2 == 0))
        for index in range(4)
    ]
    for thread in threads:
        thread.start()
    stack.wait_until(lambda: len(results) > 4, 60, "load running")
    before = stack.workers()
    busy = max(before, key=lambda name: before[name]["inflight"])
    os.kill(before[busy]["pid"], signal.SIGKILL)

    def back():
        row = stack.workers()[busy]
        return row["pid"] != before[busy]["pid"] and row["state"] == "ready"

    stack.wait_until(back, 30, f"{busy} back in service")
    seen = len(results)
    stack.wait_until(lambda: len(results) > seen + 4, 60, "load going on")
    stop.set()
    for thread in threads:
        thread.join(60)
    unclean = [r for r in results if not _clean(*r)]
    assert not unclean, unclean[:3]
    failed = [r for r in results if r[0] != 200 or '"error"' in r[1]]
    # Only requests that were on the killed worker may fail: at most its slots.
    assert len(failed) <= before[busy]["slots"], failed[:5]
    for name, row in stack.workers().items():
        assert row["inflight"] == 0, (name, row)
        if name != busy:
            assert row["pid"] == before[name]["pid"]


def test_kill_of_up_leaves_no_process(tmp_path, start):
    stack = start(tmp_path / "state")
    assert len(processes_below(stack.state_dir)) >= 5  # up, redis, agent, gateway, workers
    stack.process.send_signal(signal.SIGKILL)
    stack.process.wait()
    stack.wait_until(lambda: not processes_below(stack.state_dir), 2, "no process left after 2 s")


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_the_polite_ways_out_leave_nothing(tmp_path, start, sign):
    stack = start(tmp_path / "state")
    stack.process.send_signal(sign)
    assert stack.process.wait(timeout=30) in (0, 130)
    assert processes_below(stack.state_dir) == []


def test_state_survives_a_restart(tmp_path, start):
    stack = start(tmp_path / "state")
    token = (stack.state_dir / "admin-token").read_text()
    answer = httpx.post(stack.url + "/v1/chat/completions", json=BODY, timeout=60)
    assert answer.status_code == 200
    stack.wait_until(lambda: _classes(stack), 15, "the outcome in /ops/classes")
    seen = _classes(stack)
    stop_stack(stack)
    again = start(tmp_path / "state")
    assert (again.state_dir / "admin-token").read_text() == token
    again.wait_until(lambda: _classes(again) == seen, 15, "learned state back from Redis")


def _classes(stack) -> dict[str, int]:
    rows = stack.get("/ops/classes").json()
    rows = rows["classes"] if isinstance(rows, dict) else rows
    return {row["class"]: row["n"] for row in rows if row["n"]}


def test_a_port_in_use_is_one_clear_sentence(stack, tmp_path):
    import subprocess
    import sys

    port = stack.url.rpartition(":")[2]
    second = subprocess.run(
        [
            *(sys.executable, "-m", "router", "up", "--port", port),
            *("--state-dir", str(tmp_path / "second")),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert second.returncode != 0
    said = second.stdout + second.stderr
    assert f"port {port}" in said
    assert "Traceback" not in said
    assert processes_below(tmp_path / "second") == []
