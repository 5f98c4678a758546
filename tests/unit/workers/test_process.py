from __future__ import annotations

import os
import signal
import socket
import sys

from workers.process import free_port, rotate, spawn

ENV = {"PATH": "/usr/bin:/bin", "GREETING": "hello"}


def sh(script):
    return ("/bin/sh", "-c", script)


async def test_output_and_status_are_kept(tmp_path):
    log = tmp_path / "logs" / "w.log"
    process = await spawn(sh('echo "$GREETING"; echo oops >&2; exit 3'), ENV, log)
    assert await process.wait() == 3
    assert process.returncode == 3
    assert process.said() == ("hello", "oops")


async def test_only_this_runs_words_are_told(tmp_path):
    log = tmp_path / "w.log"
    await (await spawn(sh("echo first"), ENV, log)).wait()
    second = await spawn(sh("echo second; echo; echo third"), ENV, log)
    await second.wait()
    assert second.said() == ("second", "third")
    assert second.said(1) == ("third",)
    assert log.read_text() == "first\nsecond\n\nthird\n"


async def test_stop_asks_first_and_then_does_not_ask(tmp_path):
    polite = await spawn(sh("trap 'exit 5' TERM; sleep 60 & wait"), ENV, tmp_path / "a.log")
    deaf = await spawn(
        sh("trap '' TERM; echo up; while :; do sleep 0.1; done"), ENV, tmp_path / "b"
    )
    while not deaf.said():
        await polite_pause()
    assert await polite.stop(10.0) in (5, -signal.SIGTERM)
    assert await deaf.stop(0.2) == -signal.SIGKILL
    assert await deaf.stop(0.2) == -signal.SIGKILL
    deaf.kill()
    deaf.terminate()


async def polite_pause():
    import asyncio

    await asyncio.sleep(0.02)


async def test_the_terminals_ctrl_c_does_not_reach_it(tmp_path):
    process = await spawn(sh("sleep 60"), ENV, tmp_path / "w.log")
    assert os.getsid(process.pid) != os.getsid(0)
    assert await process.stop(5.0) != 0


async def test_memory_in_use_is_known_while_it_runs(tmp_path):
    code = "x = bytearray(50_000_000); print('up', flush=True); input()"
    argv = (sys.executable, "-c", f"import time; {code.replace('input()', 'time.sleep(60)')}")
    process = await spawn(argv, ENV, tmp_path / "w.log")
    while not process.said():
        await polite_pause()
    assert process.resident_bytes() > 50_000_000
    await process.stop(5.0)
    assert process.resident_bytes() is None


def test_big_logs_are_moved_and_three_are_kept(tmp_path):
    log = tmp_path / "deep" / "w.log"
    rotate(log, limit=10)
    for number in range(6):
        log.write_text(f"{number:>20}")
        rotate(log, limit=10)
        assert not log.exists()
    kept = {path.name: path.read_text().strip() for path in log.parent.iterdir()}
    assert kept == {"w.log.1": "5", "w.log.2": "4", "w.log.3": "3"}
    log.write_text("short")
    rotate(log, limit=10)
    assert log.exists()


def test_a_free_port_can_be_bound():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free_port("127.0.0.1")))


async def test_processor_time_only_grows_while_it_works(tmp_path):
    busy = (sys.executable, "-c", "print('up', flush=True)\nwhile True: pass")
    process = await spawn(busy, ENV, tmp_path / "w.log")
    while not process.said():
        await polite_pause()
    before = process.cpu_seconds()
    while process.cpu_seconds() <= before:
        await polite_pause()
    os.kill(process.pid, signal.SIGSTOP)
    await polite_pause()
    stopped = process.cpu_seconds()
    await polite_pause()
    assert process.cpu_seconds() == stopped
    process.kill()
    await process.wait()
    assert process.cpu_seconds() is None
