"""Lines written by a thread: all of them, in order, and none that anybody waits for."""

from __future__ import annotations

import threading

from workers.line_thread import LineThread


def test_every_line_comes_in_order_also_after_a_silence(monkeypatch):
    monkeypatch.setattr("workers.line_thread.GATHER_S", 0.001)
    monkeypatch.setattr("workers.line_thread.QUIET_ROUNDS", 1)
    seen: list[str] = []
    arrived = threading.Event()

    def keep(batch: list[str]) -> None:
        seen.extend(batch)
        arrived.set()

    thread = LineThread("test", keep)
    for number in range(20):
        thread.write(str(number))
        assert arrived.wait(10)  # it slept, and was woken
        arrived.clear()
        thread._closing.wait(0.01)
    thread.close()
    assert seen == [str(number) for number in range(20)]


def test_a_full_queue_drops_and_counts():
    go = threading.Event()
    seen: list[bytes] = []

    def stuck(batch: list[bytes]) -> None:
        go.wait(10)
        seen.extend(batch)

    thread = LineThread("test", stuck, capacity=3)
    for _ in range(20):
        thread.write(b"x")
    assert thread.dropped >= 14  # one batch may have been taken meanwhile
    go.set()
    thread.close()
    assert len(seen) == 20 - thread.dropped
