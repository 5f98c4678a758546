"""Traffic for the fleet: the same for every policy, as dense and as mixed as asked for."""

from __future__ import annotations

from collections import Counter

from router.simulation.fleet_plan import Sizes, Traffic
from router.simulation.sessions import draw_sessions

ANSWER = {"prose": Sizes(200.0, 0.5), "structured": Sizes(100.0)}
TRAFFIC = Traffic(2.0, {"prose": 3.0, "structured": 1.0}, ANSWER)


def test_a_seed_gives_the_same_sessions_and_exactly_the_requests_asked_for():
    first, again = draw_sessions(TRAFFIC, 500, 1), draw_sessions(TRAFFIC, 500, 1)
    assert first == again
    assert first != draw_sessions(TRAFFIC, 500, 2)
    assert sum(len(session.turns) for session in first) == 500


def test_classes_come_in_their_shares_and_sizes():
    turns = [turn for session in draw_sessions(TRAFFIC, 6000, 3) for turn in session.turns]
    shares = Counter(turn.workload_class for turn in turns)
    assert 0.70 < shares["prose"] / len(turns) < 0.80
    assert {turn.tokens for turn in turns if turn.workload_class == "structured"} == {100}
    assert all(turn.read_as == turn.workload_class for turn in turns)


def test_a_burst_brings_more_sessions():
    burst = Traffic(1.0, {"prose": 1.0}, ANSWER, burst=5.0, burst_s=100.0, burst_every_s=1000.0)
    sessions = draw_sessions(burst, 20_000, 4)
    within = sum(session.at % 1000.0 < 100.0 for session in sessions)
    assert 0.28 < within / len(sessions) < 0.43  # 500 of 1400 on average


def test_some_requests_are_misread_where_asked_for():
    unsure = Traffic(1.0, {"prose": 1.0, "structured": 1.0}, ANSWER, misread=0.4)
    turns = [turn for session in draw_sessions(unsure, 4000, 5) for turn in session.turns]
    wrong = sum(turn.read_as != turn.workload_class for turn in turns)
    assert 0.16 < wrong / len(turns) < 0.24  # half of the misread draw the right one by chance
