from __future__ import annotations

import pytest

from router.core import BadRequest, FleetView, Loading, NoWorker
from router.policy.filters import eligible, wished_mode
from tests.fakes.routing import features, question, snapshot, trio
from workers.state import WorkerState


def why(fit, worker):
    return next(c.excluded_because for c in fit.excluded if c.worker == worker)


def test_every_ready_worker_may_serve_a_plain_request():
    fit = eligible(question())
    assert [worker.name for worker in fit.workers] == ["plain", "prose", "code"]
    assert fit.excluded == ()


@pytest.mark.parametrize(
    ("state", "reason", "told"),
    [
        (WorkerState.DRAINING, "", "draining"),
        (WorkerState.QUARANTINED, "crashed 5 times", "quarantined: crashed 5 times"),
        (WorkerState.LOADING, "", "loading"),
    ],
)
def test_a_worker_that_does_not_serve_is_left_out_with_its_reason(state, reason, told):
    ill = snapshot("ill", record={"state": state, "reason": reason})
    assert why(eligible(question(ill, snapshot())), "ill") == told


def test_a_degraded_worker_serves_by_its_effective_mode():
    degraded = snapshot("code", "ar", record={"state": WorkerState.DEGRADED})
    assert eligible(question(degraded, mode="ar")).workers == (degraded,)


def test_an_open_breaker_and_a_failed_attempt_exclude():
    broken = snapshot("broken", available=False, unavailable_reason="breaker open")
    fit = eligible(question(broken, snapshot("tried"), snapshot(), excluded=frozenset({"tried"})))
    assert why(fit, "broken") == "breaker open"
    assert why(fit, "tried") == "tried already and failed"
    assert [worker.name for worker in fit.workers] == ["plain"]


def test_without_any_lease_the_request_may_wait_for_a_worker():
    bare = snapshot("bare", slots=0)
    assert eligible(question(bare)).workers == (bare,)
    assert why(eligible(question(bare, snapshot())), "bare") == "no slots leased to this gateway"


def test_a_pin_leaves_only_its_worker():
    fit = eligible(question(worker="code"))
    assert [worker.name for worker in fit.workers] == ["code"]
    assert why(fit, "plain") == "the request is pinned to code"


def test_an_unknown_pin_names_the_workers_there_are():
    with pytest.raises(BadRequest, match="plain, prose, code") as refused:
        eligible(question(worker="nobody"))
    assert refused.value.code == "worker_not_found"


def test_a_required_mode_leaves_only_workers_that_run_it():
    fit = eligible(question(mode="mtp-n3"))
    assert [worker.name for worker in fit.workers] == ["prose"]
    assert why(fit, "code") == "runs dflash2-margin, the request requires mtp-n3"
    assert wished_mode(question(mode="auto")) is None


def test_a_mode_that_nobody_offers_is_the_callers_mistake():
    with pytest.raises(BadRequest, match="offered: ar, dflash2-margin, mtp-n3") as refused:
        eligible(question(mode="eagle3"))
    assert refused.value.code == "mode_unavailable"


def test_a_pin_and_a_mode_that_its_worker_does_not_offer_contradict_each_other():
    with pytest.raises(
        BadRequest, match="plain does not offer the mode 'mtp-n3'; offered: ar"
    ) as no:
        eligible(question(worker="plain", mode="mtp-n3"))
    assert (no.value.code, no.value.param) == ("mode_unavailable", "x-specroute-mode")


def test_images_go_only_where_they_are_taken():
    seeing = snapshot("seeing", record={"vision": True})
    fit = eligible(question(*trio(), seeing, features=features(has_images=True)))
    assert fit.workers == (seeing,)
    with pytest.raises(BadRequest, match="does not take images"):
        eligible(question(features=features(has_images=True)))


@pytest.mark.parametrize(("feature", "told"), [("has_tools", "tools"), ("has_grammar", "grammars")])
def test_a_worker_without_a_feature_is_left_out(feature, told):
    bare = snapshot("bare", record={"features": ()})
    fit = eligible(question(bare, snapshot(), features=features(**{feature: True})))
    assert told in why(fit, "bare")


def test_prompt_and_answer_must_fit_the_context():
    small = snapshot("small", record={"context": 512})
    big = snapshot("big", record={"context": 8192})
    fit = eligible(question(small, big, prompt_tokens=400.0, max_tokens=200))
    assert fit.workers == (big,)
    assert "max_tokens 200 do not fit its context of 512" in why(fit, "small")


def test_where_nobody_surely_fits_the_largest_context_decides():
    small = snapshot("small", record={"context": 512})
    big = snapshot("big", record={"context": 1024})
    assert eligible(question(small, big, prompt_tokens=3 * 1024.0)).workers == (big,)


def test_a_prompt_far_beyond_every_context_is_refused_in_the_workers_words():
    with pytest.raises(BadRequest) as refused:
        eligible(question(prompt_tokens=100_000.0))
    body = refused.value.payload()["error"]
    assert body["code"] == "context_length_exceeded"
    assert body["type"] == "exceed_context_size_error"
    assert (body["n_prompt_tokens"], body["n_ctx"]) == (100_000, 4096)


def test_while_all_load_the_refusal_says_so():
    loading = [snapshot(name, record={"state": WorkerState.LOADING}) for name in ("a", "b")]
    with pytest.raises(Loading, match="a: loading; b: loading"):
        eligible(question(*loading))


def test_when_nobody_can_serve_the_refusal_says_why_for_each():
    gone = snapshot("gone", record={"state": WorkerState.BACKOFF, "reason": "out of memory"})
    broken = snapshot("broken", available=False, unavailable_reason="no heartbeat")
    with pytest.raises(NoWorker, match="gone: backoff: out of memory; broken: no heartbeat"):
        eligible(question(gone, broken))
    with pytest.raises(NoWorker, match="none is known"):
        eligible(question(view=FleetView("tiny", ())))


GROUP = {"exclusive_group": "gpu", "state": WorkerState.STOPPED}


def test_a_worker_that_only_a_swap_keeps_away_is_told_apart():
    asleep = snapshot("b", "mtp-n3", record=GROUP)
    fit = eligible(question(snapshot("a", record={"exclusive_group": "gpu"}), asleep))
    assert ([w.name for w in fit.workers], [w.name for w in fit.asleep]) == (["a"], ["b"])
    assert fit.excluded == ()


def test_a_drained_member_leaves_to_the_other_what_that_can_serve():
    drained = {"exclusive_group": "gpu", "state": WorkerState.DRAINING, "held": True}
    a, b = snapshot("a", record=drained), snapshot("b", "mtp-n3", record=GROUP)
    assert [w.name for w in eligible(question(a, b)).workers] == ["b"]
    with pytest.raises(NoWorker, match="a: draining"):
        eligible(question(a, b, worker="a"))


@pytest.mark.parametrize("changes", [{"mode": "mtp-n3"}, {"worker": "b"}])
def test_what_only_a_sleeper_offers_waits_for_it(changes):
    workers = (
        snapshot("a", record={"exclusive_group": "gpu"}),
        snapshot("b", "mtp-n3", record=GROUP),
    )
    assert [w.name for w in eligible(question(*workers, **changes)).workers] == ["b"]


@pytest.mark.parametrize(
    ("record", "changes"),
    [
        (GROUP | {"exclusive_group": None}, {}),
        (GROUP | {"state": WorkerState.QUARANTINED}, {}),
        (GROUP | {"context": 50}, {}),
        (GROUP, {"features": features(has_images=True)}),
    ],
)
def test_a_swap_would_not_help(record, changes):
    fits = snapshot("a", record={"vision": True})
    assert eligible(question(fits, snapshot("b", record=record), **changes)).asleep == ()
