from __future__ import annotations

from workers.config.problems import Problem, nearest, spelled, suggestion


def test_a_problem_is_one_line_a_stranger_can_act_on():
    assert (
        str(Problem("f.yaml", 3, "this is wrong", "do that")) == "f.yaml:3: this is wrong; do that"
    )
    assert str(Problem("VARIABLE", None, "is wrong", "do")) == "VARIABLE: is wrong; do"


def test_the_nearest_word():
    assert nearest("Slotz", ["slots", "port"]) == "slots"
    assert nearest("zzz", ["slots", "port"]) is None
    assert suggestion("slotz", ["slots", "port"]) == "did you mean `slots`?"
    assert suggestion("zzz", ["slots", "port"]) == "use one of: port, slots"


def test_places_are_spelled_as_in_the_documentation():
    assert spelled(("workers", 0, "gpu", "layers")) == "workers[0].gpu.layers"
    assert spelled(()) == ""
