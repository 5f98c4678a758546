"""A tenant's slot is its own, and whatever is not certain is nobody's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from router.fleet import Fleet, Tenant
from router.fleet.pins import Pin, SlotPins
from tests.fakes.gateway import HandClock, record


def take(pins, tenant, slots=2, certain=True):
    return pins.take(tenant, slots, certain=certain)


def back(pins, pin, answered=True):
    pins.give_back(pin, answered=answered)


def test_a_tenant_comes_back_to_its_slot_and_finds_its_words():
    pins = SlotPins()
    first = take(pins, "a")
    assert first == Pin(0, own=False)
    other = take(pins, "b")
    assert other == Pin(1, own=False)
    back(pins, first)
    back(pins, other)
    assert take(pins, "b") == Pin(1, own=True)
    assert take(pins, "a") == Pin(0, own=True)


def test_a_third_tenant_takes_the_slot_used_longest_ago_and_nothing_in_it():
    pins = SlotPins()
    for tenant in ("a", "b", "a"):
        back(pins, take(pins, tenant))
    assert take(pins, "c") == Pin(1, own=False)
    assert take(pins, "b") == Pin(0, own=False)


def test_what_cannot_name_its_slot_makes_everything_uncertain():
    pins = SlotPins()
    back(pins, take(pins, "a"))
    loose = take(pins, "b", certain=False)
    assert loose == Pin()
    assert loose.fields == {"id_slot": -1, "cache_prompt": False}
    assert take(pins, "a") == Pin()  # it may be in any slot
    back(pins, Pin())
    back(pins, loose)
    assert take(pins, "a") == Pin(1, own=False)


def test_a_request_without_an_answer_leaves_nothing_of_its_own():
    pins = SlotPins()
    back(pins, take(pins, "b", slots=1))
    back(pins, take(pins, "a", slots=1), answered=False)  # refused: b's words are still there
    assert take(pins, "a", slots=1) == Pin(0, own=False)


STEPS = st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans(), st.booleans())


@given(st.lists(STEPS, max_size=60))
def test_nobody_is_ever_told_that_anothers_words_are_its_own(steps):
    """Against a model of the server: who wrote into each slot last; none: perhaps anybody."""
    pins, wrote, running = SlotPins(), {}, []
    for tenant, certain, ends, answered in steps:
        if ends and running:
            pin = running.pop(0)
            back(pins, pin, answered)
            if pin.slot is None:
                wrote.clear()
            elif not answered:
                wrote.pop(pin.slot, None)
            continue
        pin = pins.take(tenant, 3, certain=certain)
        if pin.own:
            assert wrote[pin.slot] == tenant
        if pin.slot is None:
            wrote.clear()
        else:
            assert pin.slot not in [other.slot for other in running]
            wrote[pin.slot] = tenant
        running.append(pin)


def test_a_reservation_carries_its_pin_and_a_new_process_knows_nobody():
    fleet = Fleet(HandClock())
    fleet.update([record(slots=2)])
    mine = Tenant("a", names_slot=True)
    first = fleet.reserve("plain", tenant=mine)
    assert first.pin == Pin(0, own=False)
    first.produced = 1
    first.release()
    again = fleet.reserve("plain", tenant=mine)
    assert again.pin == Pin(0, own=True)
    again.produced = 1
    again.release()
    fleet.update([record(slots=2, pid=99)])
    assert fleet.reserve("plain", tenant=mine).pin == Pin(0, own=False)
    assert fleet.reserve("plain").pin is None


def test_slots_that_another_gateway_may_use_are_never_called_ones_own():
    fleet = Fleet(HandClock())
    fleet.update([record(slots=2)])
    mine = Tenant("a", names_slot=True)
    fleet.reserve("plain", tenant=mine).release()
    fleet._workers["plain"].elsewhere = 1
    assert fleet.reserve("plain", tenant=mine).pin == Pin()
