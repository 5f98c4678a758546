"""A simulated worker: what a batch shares, what a crash loses."""

from __future__ import annotations

import pytest
import simpy

from router.simulation.fleet_plan import ModeCurve, SimWorker
from router.simulation.machine import Job, Machine
from router.simulation.sessions import Turn

CURVE = ModeCurve({"prose": 10.0}, {1: 1.0, 2: 0.5})


class Bench:
    """One machine with two slots, and what became of its jobs."""

    def __init__(self, curve: ModeCurve = CURVE) -> None:
        self.env = simpy.Environment()
        self.done: list[tuple[str, float]] = []
        self.lost: list[str] = []
        self.loads: list[int] = []  # as a gateway would have seen them
        spec = SimWorker("w", "ar", slots=2, prompt_speed=100.0, cache=1)
        self.machine = Machine(self.env, "w", spec, curve, self._done, self._lost, self._touched)

    def ask(self, name: str, tokens: int = 101, prompt: int = 100) -> Job:
        job = Job(Turn("prose", "prose", tokens, prompt, 0.0, 0.0), name, prompt, self.env.now)
        self.machine.accept(job)
        return job

    def _done(self, job: Job, machine: Machine) -> None:
        self.done.append((job.session, self.env.now))

    def _lost(self, job: Job) -> None:
        self.lost.append(job.session)

    def _touched(self, machine: Machine) -> None:
        self.loads.append(machine.load)


def test_a_gateway_hears_of_every_request_that_comes_and_goes():
    bench = Bench()
    bench.ask("a")
    bench.ask("b")
    bench.env.run()
    assert bench.loads == [1, 2, 1, 0]


def test_a_lone_request_takes_its_prefill_and_its_tokens():
    bench = Bench()
    bench.ask("a")
    bench.env.run()
    assert bench.done == [("a", pytest.approx(1.0 + 10.0))]


def test_two_requests_share_by_the_curve_and_a_third_waits_for_a_slot():
    bench = Bench()
    for name in "abc":
        bench.ask(name)
    bench.env.run()
    at = dict(bench.done)
    assert at["a"] == at["b"] == pytest.approx(22.0)  # both at half speed
    assert at["c"] == pytest.approx(22.0 + 11.0)


def test_a_request_that_joins_slows_only_what_is_left():
    bench = Bench()
    bench.ask("a")
    bench.env.run(until=6.0)  # 6 of 11 lone seconds are done
    bench.ask("b")
    bench.env.run()
    assert dict(bench.done)["a"] == pytest.approx(6.0 + 5.0 / 0.5)


def test_what_a_conversation_left_is_not_prefilled_again_until_another_pushes_it_out():
    bench = Bench()
    bench.ask("a")
    bench.env.run()
    assert bench.machine.cached("a") == 201
    again = bench.ask("a", prompt=301)
    bench.env.run()
    assert again.fresh_tokens == 100
    bench.ask("b")
    bench.env.run()
    assert bench.machine.cached("a") == 0


def test_a_crash_loses_what_runs_waits_and_was_cached_and_passes():
    bench = Bench()
    for name in "abc":
        bench.ask(name)
    bench.env.run(until=2.0)
    bench.machine.crash(30.0)
    assert sorted(bench.lost) == ["a", "b", "c"]
    assert not bench.machine.serving
    bench.env.run(until=40.0)
    assert bench.machine.serving
    assert bench.done == []


def test_drift_counts_from_the_next_request_on():
    bench = Bench()
    bench.machine.drift["prose"] = 0.5
    bench.ask("a")
    bench.env.run()
    assert bench.done == [("a", pytest.approx(1.0 + 20.0))]
