from __future__ import annotations

import pytest

from workers.arms import CUSTOM, N_MAX, P_MIN, Arm, chosen_by_client, offered
from workers.spec import WorkerSpec


def arms_of(mode, **changes):
    return {arm.mode: arm.n_max for arm in offered(WorkerSpec("w", "m", mode, **changes))}


@pytest.mark.parametrize(
    ("mode", "changes", "expected"),
    [
        ("dflash2", {}, {"ar": 0, "dflash2-n3": 3}),
        ("dflash2-margin", {}, {"ar": 0, "dflash2-margin-n3": 3}),
        ("dflash2", {"n_max": 4}, {"ar": 0}),
        ("mtp-n3", {}, {"ar": 0}),
        ("mtp", {"n_max": 7}, {"ar": 0, "mtp-n3": 3}),
        ("draft", {}, {"ar": 0}),
        ("mtp-n3", {"arms": ((1, None), (2, 0.75))}, {"mtp-n1": 1, "mtp-n2-p75": 2}),
        ("mtp-n3", {"arms": ()}, {}),
        ("ar", {}, {}),
        ("ngram-mod", {}, {}),
        ("luce-chain", {"engine": "luce"}, {}),
    ],
)
def test_what_a_worker_offers(mode, changes, expected):
    assert arms_of(mode, **changes) == expected


def test_what_a_request_gets():
    assert Arm("ar", 0).overrides == {N_MAX: 0}
    assert Arm("mtp-n2-p75", 2, 0.75).overrides == {N_MAX: 2, P_MIN: 0.75}


def test_arms_do_not_change_what_a_worker_is():
    plain, armed = WorkerSpec("w", "m", "mtp"), WorkerSpec("w", "m", "mtp", arms=((1, None),))
    assert plain.digest() == armed.digest()


ARMS = (Arm("ar", 0), Arm("dflash2-n3", 3))


@pytest.mark.parametrize(
    ("payload", "mode"),
    [
        ({}, None),
        ({N_MAX: 0}, "ar"),
        ({N_MAX: 3}, "dflash2-n3"),
        ({N_MAX: 5}, CUSTOM),
        ({N_MAX: 3, P_MIN: 0.9}, CUSTOM),
        ({P_MIN: 0.9}, CUSTOM),
        ({N_MAX: "nonsense"}, CUSTOM),
    ],
)
def test_what_a_clients_own_fields_mean(payload, mode):
    found = chosen_by_client("dflash2", ARMS, payload)
    assert (found.mode if found else None) == mode
    assert chosen_by_client("dflash2", (), payload) is None
