"""What is noticed, and that equal things have equal digests."""

from __future__ import annotations

from router.core import Reason
from router.telemetry.collapse import Collapse
from router.telemetry.happenings import VOTES, Kind, Noticer
from router.telemetry.knowledge import Alarm
from tests.fakes.gateway import record
from tests.fakes.outcomes import outcome
from workers.state import WorkerState


def test_the_first_sight_is_no_news() -> None:
    assert list(Noticer().workers([record("code")], 1.0)) == []


def test_states_restarts_and_leaving() -> None:
    noticer = Noticer()
    list(noticer.workers([record("code"), record("prose")], 1.0))
    crashed = record("code", state=WorkerState.BACKOFF, reason="exit code 9")
    (state, gone) = noticer.workers([crashed], 2.0)
    assert (state.kind, state.before, state.after) == (Kind.STATE, "ready", "backoff")
    assert state.reason == "exit code 9"
    assert (gone.kind, gone.worker) == (Kind.GONE, "prose")
    back = record("code", restarts=1)
    assert [h.kind for h in noticer.workers([back], 3.0)] == [Kind.RESTART, Kind.STATE]


def test_two_gateways_report_the_same_digest() -> None:
    digests = []
    for delay in (0.0, 0.9):
        noticer = Noticer()
        list(noticer.workers([record("code")], 1.0))
        after = record("code", state=WorkerState.DRAINING)
        digests.append([h.digest for h in noticer.workers([after], 10.0 + delay)])
    assert digests[0] == digests[1]


def test_an_alarm_is_told_once_with_its_workers_name() -> None:
    noticer = Noticer()
    alarms = [Alarm("m", "hash-code", "prose", 5.0)]
    (told,) = noticer.alarms(alarms, {"hash-code": "code"})
    assert (told.worker, told.workload_class) == ("code", "prose")
    assert list(noticer.alarms(alarms, {})) == []


def test_an_explained_collapse_is_told_once() -> None:
    noticer = Noticer()
    found = [Collapse("m", "accepted length", "class", "prose", 0.41, 9, 5.0)]
    (told,) = noticer.collapses(found)
    assert (told.workload_class, told.before, told.after) == ("prose", "class prose", "0.41")
    assert list(noticer.collapses(found)) == []


def test_a_policy_change() -> None:
    noticer = Noticer()
    assert list(noticer.policy("learned", 1.0)) == []
    (told,) = noticer.policy("static", 2.0)
    assert (told.before, told.after) == ("learned", "static")


def test_a_switch_needs_a_clear_majority_of_free_choices() -> None:
    noticer = Noticer()
    told = [noticer.choice(outcome(worker="code")) for _ in range(VOTES)]
    told += [noticer.choice(outcome(worker="x", reason=Reason.PINNED)) for _ in range(VOTES)]
    told += [noticer.choice(outcome(worker="plain")) for _ in range(VOTES)]
    (switch,) = [h for h in told if h is not None]
    assert (switch.before, switch.after, switch.workload_class) == ("code", "plain", "prose")


def test_empty_fields_are_left_out() -> None:
    noticer = Noticer()
    list(noticer.policy("a", 1.0))
    (told,) = noticer.policy("b", 2.0)
    assert told.as_dict().keys() == {"at", "kind", "before", "after", "sequence"}
