"""Every target gets the same prompts, in the same blocks, warm-up included."""

from __future__ import annotations

import random
from collections import Counter

from router.bench.plan import BenchPlan

TARGETS = {"routed": "tiny", "ar": "tiny-only-ar", "mtp-n3": "tiny-only-mtp-n3"}


def test_every_target_gets_the_same_work():
    plan = BenchPlan(TARGETS, rounds=2, warmup_rounds=1, per_class=4)
    jobs = [job for block in plan.blocks(random.Random(3)) for job in block]
    assert len(jobs) == plan.total
    work = {
        target: Counter((j.round, j.prompt.text, j.seed) for j in jobs if j.target == target)
        for target in TARGETS
    }
    assert work["routed"] == work["ar"] == work["mtp-n3"]
    assert all(job.model == TARGETS[job.target] for job in jobs)


def test_a_block_holds_one_target_only_and_targets_alternate():
    plan = BenchPlan(TARGETS, rounds=3, per_class=4, concurrency=2)
    blocks = list(plan.blocks(random.Random(3)))
    assert all(len({job.target for job in block}) == 1 for block in blocks)
    firsts = {blocks[i][0].target for i in range(0, len(blocks), len(TARGETS))}
    assert len(firsts) > 1, "the same target always goes first"


def test_warm_up_comes_first_and_is_marked():
    plan = BenchPlan(TARGETS, rounds=1, warmup_rounds=2, per_class=1)
    rounds = [block[0].round for block in plan.blocks(random.Random(0))]
    assert rounds == sorted(rounds)
    assert {r for r in rounds if r <= 0} == {-1, 0}


def test_a_later_run_counts_on_from_the_earlier_ones():
    plan = BenchPlan(TARGETS, rounds=2, warmup_rounds=1, per_class=1, first_round=5)
    rounds = [block[0].round for block in plan.blocks(random.Random(0))]
    assert sorted(set(rounds)) == [0, 5, 6]
