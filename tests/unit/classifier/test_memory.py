import pytest

from classifier.classes import Classification, WorkloadClass
from classifier.features import extract
from classifier.memory import EMPTY, Memory, blend, combine, fingerprint
from classifier.rules import RuleClassifier

HOUR = 3600.0


def text_says(workload_class, probability=0.6, source="model"):
    rest = (1 - probability) / 2
    return Classification(
        workload_class=workload_class,
        kind="qa",
        probabilities={
            c.value: probability if c is workload_class else rest for c in WorkloadClass
        },
        expected_output_tokens=100.0,
        output_tokens_interval=(50.0, 200.0),
        model_version="t",
        thinking=False,
        language="en",
        source=source,
    )


def test_an_application_is_known_after_three_answers():
    memory = Memory()
    for at in range(3):
        memory.record(["app"], "json", now=float(at), accepted_length=3.0)
    answer = blend(text_says(WorkloadClass.PROSE), memory.evidence("app", 3.0))
    assert (answer.workload_class, answer.kind) == (WorkloadClass.STRUCTURED, "json")
    assert answer.source == "memory"
    assert sum(answer.probabilities.values()) == pytest.approx(1)


def test_one_answer_does_not_overrule_a_sure_text():
    memory = Memory()
    memory.record(["app"], "json", now=0.0)
    answer = blend(text_says(WorkloadClass.PROSE, 0.9), memory.evidence("app", 0.0))
    assert answer.workload_class is WorkloadClass.PROSE


def test_fields_and_hints_stand_above_memory():
    memory = Memory()
    for at in range(9):
        memory.record(["app"], "json", now=float(at))
    for source in ("rules", "hint"):
        said = text_says(WorkloadClass.PROSE, source=source)
        assert blend(said, memory.evidence("app", 9.0)) is said
    body = {"messages": [{"role": "user", "content": "hi"}], "reasoning_effort": "high"}
    thinking = RuleClassifier().predict(extract(body))
    assert blend(thinking, memory.evidence("app", 9.0)) is thinking


def test_no_evidence_changes_nothing():
    said = text_says(WorkloadClass.PROSE)
    assert blend(said, EMPTY) is said


def test_evidence_decays_by_half_lives():
    memory = Memory(half_life_s=HOUR)
    memory.record(["k"], "story", now=0.0, accepted_length=2.0)
    later = memory.evidence("k", 2 * HOUR)
    assert later.answers == pytest.approx(0.25)
    assert later.accepted_length == pytest.approx(2.0)


def test_the_accepted_length_is_of_measured_answers_only():
    memory = Memory()
    memory.record(["k"], "code", now=0.0, accepted_length=4.0)
    memory.record(["k"], "code", now=0.0)
    memory.record(["k"], "code", now=0.0, accepted_length=2.0)
    assert memory.evidence("k", 0.0).accepted_length == pytest.approx(3.0)
    assert memory.evidence("unknown", 0.0).accepted_length is None


def test_the_table_is_bounded_and_forgets_the_least_used():
    memory = Memory(max_entries=3)
    for key in "abc":
        memory.record([key], "code", now=0.0)
    memory.evidence("a", 0.0)
    memory.record(["d"], "code", now=0.0)
    assert set(memory.snapshot()) == {"a", "c", "d"}


def test_unknown_kinds_are_not_remembered():
    memory = Memory()
    memory.record(["k"], "sonata", now=0.0)
    assert len(memory) == 0


def test_snapshots_of_the_same_answers_are_not_counted_twice():
    one, two = Memory(), Memory()
    for at in range(4):
        one.record(["k"], "table", now=float(at))
    two.merge(one.snapshot())
    two.merge(one.snapshot())
    one.merge(two.snapshot())
    assert one.evidence("k", 3.0) == two.evidence("k", 3.0)
    assert one.evidence("k", 3.0).answers == pytest.approx(4.0, abs=0.01)


def test_a_snapshot_can_be_of_what_changed():
    memory = Memory()
    memory.record(["old"], "code", now=1.0)
    memory.record(["new"], "code", now=9.0)
    assert set(memory.snapshot(since=5.0)) == {"new"}


def test_a_conversation_weighs_half():
    application, conversation = Memory(), Memory()
    application.record(["k"], "json", now=0.0)
    conversation.record(["k"], "story", now=0.0)
    both = combine(application.evidence("k", 0.0), conversation.evidence("k", 0.0))
    assert both.by_class == {"structured": 1.0, "prose": 0.5}


def test_fingerprints_tell_applications_apart():
    def body(system, tool="f", **fields):
        tools = [{"type": "function", "function": {"name": tool}}]
        messages = [{"role": "system", "content": system}, {"role": "user", "content": "hi"}]
        return {"messages": messages, "tools": tools, **fields}

    base = fingerprint(body("extract"), "m")
    assert base == fingerprint(body("extract", temperature=1), "m")
    others = {
        fingerprint(body("chat"), "m"),
        fingerprint(body("extract", tool="g"), "m"),
        fingerprint(body("extract"), "n"),
    }
    assert base not in others
    assert len(others) == 3


@pytest.mark.parametrize("payload", [{}, {"messages": 3}, {"messages": [None]}, {"tools": [7, {}]}])
def test_fingerprints_of_odd_bodies(payload):
    assert len(fingerprint(payload, "m")) == 16
