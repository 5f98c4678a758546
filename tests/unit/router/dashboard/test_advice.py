"""Which sentences come, and that all of them can be said in every language."""

from __future__ import annotations

from dataclasses import replace

import pytest

from router.core import Status
from router.dashboard.advice import advise
from router.dashboard.views.advice import sentence
from router.dashboard.words import LANGUAGES, Words
from tests.fakes.gateway import record
from tests.fakes.outcomes import outcome
from tests.fakes.snapshots import NOW, cell, full, slices_of, speedup
from workers.arms import Arm
from workers.state import WorkerState


def keys(snapshot) -> list[str]:
    return [item.key for item in advise(snapshot)]


def test_a_mode_that_pays_alone_and_loses_in_company() -> None:
    (found,) = [item for item in advise(full()) if item.key == "advice_loss_above"]
    assert found.values["above"] == 2
    text = sentence(Words("en"), found)
    assert "runs 0.80 × AR above 2 parallel" in text


def test_a_mode_that_always_loses() -> None:
    snapshot = full(speedups=(speedup("prose", "mtp-n3", 0.8), speedup("prose", "ar", 1.0)))
    assert keys(snapshot)[0] == "advice_loss"


def test_an_interval_that_touches_one_is_no_advice() -> None:
    rows = (speedup("prose", "mtp-n3", 0.97), speedup("prose", "ar", 1.0))
    cells = (cell("prose", "ar", 40.0), cell("prose", "mtp-n3", 40.0))
    assert keys(full(speedups=rows, cells=cells)) == []


def test_the_best_mode_of_a_class() -> None:
    best = [item for item in advise(full()) if item.key == "advice_best"]
    assert {(i.values["class"], i.values["mode"]) for i in best} == {
        ("prose", "mtp-n3"),
        ("structured", "dflash2-margin"),
    }


def test_a_mode_is_not_called_fastest_beside_a_higher_figure() -> None:
    """The classes page shows 2.0 ×, though of 20 answers: the sentence must not deny it."""
    rows = (
        speedup("prose", "ar", 1.0),
        speedup("prose", "mtp-n3", 1.25),
        speedup("prose", "dflash2-margin", 2.0, ci_low=1.02, ci_high=3.9, n=20.0),
    )
    found = [item for item in advise(full(speedups=rows)) if item.level == "good"]
    assert [(item.key, item.values["mode"]) for item in found] == [("advice_surest", "mtp-n3")]
    for language in LANGUAGES:
        assert "{" not in sentence(Words(language), found[0])


def test_a_worker_that_serves_by_its_shorter_drafts_is_not_idle() -> None:
    many = slices_of(*[outcome(mode="mtp-n3", at=NOW - 30)] * 250)
    arms = (Arm("mtp-n3", 3),)
    long = record("long", mode="mtp-n7", effective_mode="mtp-n7", arms=arms)
    assert "advice_idle" not in keys(full(records=(long,), slices=many))
    assert "advice_idle" in keys(full(records=(replace(long, arms=()),), slices=many))


def test_missing_baseline_broken_worker_queue_and_idle_worker() -> None:
    rows = (speedup("prose", "mtp-n3", None), speedup("prose", "ar", None, n=7.0))
    assert "advice_baseline" in keys(full(speedups=rows, cells=()))
    broken = record("code", state=WorkerState.QUARANTINED, reason="crashed 5 times")
    assert "advice_worker" in keys(full(records=(broken,)))
    waited = slices_of(outcome(at=NOW - 30, queue_s=5.0, total_s=7.0))
    assert "advice_queue" in keys(full(slices=waited))
    many = slices_of(*[outcome(mode="ar", at=NOW - 30)] * 250)
    assert "advice_idle" in keys(full(slices=many))


def test_refused_requests_make_no_worker_idle_and_no_share_small() -> None:
    """A day of refusals says nothing about who is needed."""
    refused = [outcome(worker="", mode="", at=NOW - 30, decision=None, status=Status.SHED)] * 250
    some = [outcome(mode=mode, at=NOW - 30) for mode in ("ar", "mtp-n3", "mtp-n3", "mtp-n3")]
    rows = (speedup("prose", "mtp-n3", 0.8), speedup("prose", "ar", 1.0))
    found = advise(full(speedups=rows, slices=slices_of(*some, *refused)))
    assert [item.key for item in found if item.key == "advice_idle"] == []
    (loss,) = [item for item in found if item.key == "advice_loss"]
    assert loss.values["share"] == 0.75


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_advice_can_be_said(language: str) -> None:
    broken = record("code", state=WorkerState.QUARANTINED, reason="crashed")
    for item in advise(full(records=(broken,))):
        text = sentence(Words(language), item)
        assert "{" not in text
        assert text
