from __future__ import annotations

import math
from dataclasses import replace

import pytest

from router.core import FleetView
from router.policy.cost import CostModel
from router.telemetry import Knowledge
from tests.fakes.outcomes import classification, outcome
from tests.fakes.routing import question, snapshot
from workers.state import WorkerState


def learned(*outcomes) -> CostModel:
    knowledge = Knowledge()
    for finished in outcomes:
        knowledge.observe(finished)
    knowledge.settle()
    return CostModel(knowledge)


def price(model: CostModel, request, *workers):
    prices = model.price(model.prepare(request), workers)
    return prices[0].estimate if len(workers) == 1 else [p.estimate for p in prices]


def many(count=40, **changes):
    return [outcome(at=1_700_000_000.0 + i, **changes) for i in range(count)]


def test_the_measured_speed_replaces_the_prior():
    model = learned(*many(worker="plain", mode="ar", tokens=401, tokens_per_second=80.0))
    estimate = price(model, question(), snapshot())
    assert estimate.decode_tokens_per_second == pytest.approx(80.0, rel=0.03)
    assert estimate.samples > 20


def test_the_priors_order_the_modes_of_an_unmeasured_fleet():
    plain, prose, code = (
        price(learned(), question(classification=classification("structured", 1.0)), worker)
        for worker in (snapshot(), snapshot("p", "mtp-n3"), snapshot("c", "dflash2-margin"))
    )
    assert code.decode_s < prose.decode_s < plain.decode_s


def test_an_unsure_class_is_priced_between_the_classes():
    model, worker = learned(), snapshot("code", "dflash2-margin")
    prose = price(model, question(classification=classification("prose", 1.0)), worker)
    code = price(model, question(classification=classification("structured", 1.0)), worker)
    mixed = classification("prose", 0.5, probabilities={"prose": 0.5, "structured": 0.5})
    assert code.decode_s < price(model, question(classification=mixed), worker).decode_s
    assert price(model, question(classification=mixed), worker).decode_s < prose.decode_s


def test_only_uncached_prompt_tokens_cost_prefill():
    model = learned()
    cold = price(model, question(prompt_tokens=1000.0), snapshot())
    warm = price(model, question(prompt_tokens=1000.0, cached_tokens={"plain": 900.0}), snapshot())
    assert warm.prefill_s == pytest.approx(cold.prefill_s / 10, rel=0.01)
    full = question(prompt_tokens=1000.0, cached_tokens={"plain": 1200.0})
    assert price(model, full, snapshot()).prefill_s == 0.0


def test_a_full_worker_costs_the_shortest_remaining_answer():
    busy = snapshot(in_flight=2, remaining_tokens=(300.0, 60.0))
    estimate = price(learned(), question(), busy)
    assert estimate.queue_s == pytest.approx(60.0 / estimate.decode_tokens_per_second)
    longer = snapshot(in_flight=3, remaining_tokens=(300.0, 60.0, 80.0))
    later = price(learned(), question(), longer)
    assert later.queue_s == pytest.approx(80.0 / later.decode_tokens_per_second)


def test_a_queue_of_unknown_length_is_counted_in_rounds():
    estimate = price(learned(), question(), snapshot(in_flight=4))
    assert estimate.queue_s == pytest.approx(1.5 * estimate.decode_s, rel=0.01)


def test_joining_a_batch_is_charged_with_what_the_others_lose():
    slow_at_two = [
        *many(mode="ar", worker="plain", occupancy=1, tokens_per_second=40.0),
        *many(mode="ar", worker="plain", occupancy=2, tokens_per_second=20.0),
    ]
    joined = snapshot(in_flight=1, remaining_tokens=(100.0,))
    estimate = price(learned(*slow_at_two), question(), joined)
    assert estimate.externality_s == pytest.approx(100.0 * (1 / 20 - 1 / 40), rel=0.1)
    assert estimate.total_s == pytest.approx(estimate.own_s + estimate.externality_s)
    assert price(learned(*slow_at_two), question(), snapshot()).externality_s == 0.0


def test_one_more_in_the_same_bucket_costs_a_share_of_the_step():
    loaded = snapshot(in_flight=3, remaining_tokens=(100.0,), record={"slots": 8})
    estimate = price(learned(), question(), loaded)
    assert estimate.externality_s >= 0.0
    assert math.isfinite(estimate.externality_s)


def test_max_tokens_caps_the_expected_answer_and_the_interval():
    model = learned()
    free = price(model, question(), snapshot())
    capped = price(model, question(max_tokens=20), snapshot())
    assert capped.decode_s < 0.2 * free.decode_s
    low, high = capped.interval_s
    assert low < capped.own_s < high < free.interval_s[1]


def test_the_shortlist_keeps_the_fastest():
    model = learned()
    workers = [snapshot(f"plain{i}") for i in range(20)] + [snapshot("prose", "mtp-n3")]
    kept = model.shortlist(model.prepare(question()), workers, 4)
    assert len(kept) == 4
    assert kept[0].name == "prose"


def test_a_sleeper_costs_its_load_and_less_once_it_loads():
    group = {"exclusive_group": "gpu", "load_s": 20.0}
    states = (("ready", 1.0), ("stopped", 0.0), ("loading", 0.75))
    workers = [
        snapshot(name, record={**group, "state": WorkerState(name), "progress": progress})
        for name, progress in states
    ]
    model = CostModel(Knowledge())
    asked = question(*workers)
    prices = model.price(model.prepare(asked), workers)
    assert [price.estimate.swap_s for price in prices] == [0.0, 20.0, 5.0]
    assert prices[1].total == pytest.approx(prices[0].total + 20.0)
    assert prices[1].estimate.own_s == pytest.approx(prices[0].estimate.own_s + 20.0)


def test_an_application_whose_drafts_are_taken_decodes_faster_where_something_drafts():
    model = learned(*many())
    usual, liked = classification("prose", 1.0), classification("prose", 1.0, accepted=1.25)
    drafting, plain = snapshot("prose", "mtp-n3"), snapshot()
    before = price(model, question(classification=usual), drafting, plain)
    after = price(model, question(classification=liked), drafting, plain)
    assert after[0].decode_s == pytest.approx(before[0].decode_s / 1.25)
    assert after[1].decode_s == before[1].decode_s


def halved_by_a_neighbour() -> CostModel:
    alone = [outcome(at=1_700_000_000.0 + i, tokens_per_second=80.0, host="box") for i in range(30)]
    beside = [
        replace(o, beside=1.0, wall_time=o.wall_time + 60.0, timings=o.timings.faster(0.5))
        for o in alone
    ]
    return learned(*alone, *beside)


def test_busy_neighbours_slow_every_part_and_widen_the_interval():
    model = halved_by_a_neighbour()
    worker = snapshot("prose", "mtp-n3", record={"host": "box"})
    quiet = question(view=FleetView("tiny", (worker,)), prompt_tokens=900.0)
    busy = replace(quiet, view=FleetView("tiny", (worker,), {"box": 1}))
    more = replace(quiet, view=FleetView("tiny", (worker,), {"box": 8}))
    # The last requests had a neighbour each, so even one that begins alone reckons with one.
    estimates = [price(model, request, worker) for request in (quiet, busy, more)]
    assert estimates[0] == estimates[1]
    widths = [math.log(e.interval_s[1] / e.interval_s[0]) for e in estimates]
    assert widths[2] > 1.2 * widths[1]


def test_making_another_worker_busy_costs_what_its_neighbours_lose_joining_one_does_not():
    model = halved_by_a_neighbour()
    on_box = {"host": "box"}
    idle = snapshot("idle", "mtp-n3", record=on_box)
    busy = snapshot("busy", "mtp-n3", in_flight=1, remaining_tokens=(200.0,), record=on_box)
    view = FleetView("tiny", (idle, busy), {"box": 1})
    opened, joined = price(model, question(view=view), idle, busy)
    # 200 tokens at 80 a second take 2.5 s alone, and twice that beside one more.
    assert opened.externality_s == pytest.approx(2.5, rel=0.15)
    assert joined.externality_s < 0.5 * opened.externality_s
    apart = question(view=FleetView("tiny", (idle, busy)))  # nobody busy on its host
    assert price(model, apart, idle).externality_s == 0.0
