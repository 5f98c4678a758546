from __future__ import annotations

import pytest

from workers.watchdog import Patience, Sighting, Watch

PATIENCE = Patience(frozen=10.0, stuck=60.0, prompt_speed=10.0)
CONTEXT = 4096


def watched(*sightings):
    watch = Watch.begin(0.0)
    for sighting in sightings:
        watch = watch.seen(sighting)
    return watch.wedged(PATIENCE, CONTEXT)


def every_two_seconds(until, **values):
    """The same sighting every two seconds; a callable value is asked for each."""
    for at in range(2, until + 1, 2):
        filled = {k: v(at) if callable(v) else v for k, v in values.items()}
        yield Sighting(float(at), **filled)


def test_an_idle_worker_is_never_wedged():
    assert watched(*every_two_seconds(10_000, answered=True, cpu=1.0)) == ""


def test_a_busy_worker_that_gets_on_is_never_wedged():
    looks = every_two_seconds(10_000, answered=True, busy=True, progress=lambda at: (at // 50,))
    assert watched(*looks) == ""


def test_a_frozen_process_is_found_at_once():
    looks = list(every_two_seconds(12, answered=False, cpu=3.0))
    assert watched(Sighting(1.0, answered=True, busy=True, cpu=3.0), *looks[:5]) == ""
    found = watched(Sighting(1.0, answered=True, busy=True, cpu=3.0), *looks)
    assert found == "answered nothing and used no processor time for 11 s"


def test_a_long_prompt_that_blocks_every_page_is_left_alone():
    working = list(every_two_seconds(400, answered=False, cpu=float))
    assert watched(*working) == ""
    endless = every_two_seconds(480, answered=False, cpu=float)
    assert "no progress for 480 s" in watched(*endless)  # 60 s and a whole context at 10 tokens/s


@pytest.mark.parametrize(("pending", "wedged_after"), [(0, 60), (1000, 160)])
def test_patience_is_sized_by_the_prompt(pending, wedged_after):
    def look(until):
        return watched(
            *every_two_seconds(until, answered=True, busy=True, progress=(1,), pending=pending)
        )

    assert look(wedged_after + 2) == ""
    assert look(wedged_after + 6) != ""


def test_without_processor_figures_only_progress_counts():
    assert watched(*every_two_seconds(400, answered=False)) == ""
    assert watched(*every_two_seconds(500, answered=False)) != ""
