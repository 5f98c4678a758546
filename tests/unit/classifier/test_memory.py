import pytest

from classifier.classes import Classification, WorkloadClass
from classifier.features import extract
from classifier.memory import EMPTY, Memory, Remembered, blend, combine, fingerprint
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
        memory.record(Remembered(("app",), "json", float(at), 3.0))
    answer = blend(text_says(WorkloadClass.PROSE), memory.evidence("app", 3.0))
    assert (answer.workload_class, answer.kind) == (WorkloadClass.STRUCTURED, "json")
    assert answer.source == "memory"
    assert sum(answer.probabilities.values()) == pytest.approx(1)


def test_one_answer_does_not_overrule_a_sure_text():
    memory = Memory()
    memory.record(Remembered(("app",), "json", 0.0))
    answer = blend(text_says(WorkloadClass.PROSE, 0.9), memory.evidence("app", 0.0))
    assert answer.workload_class is WorkloadClass.PROSE


def test_fields_and_hints_stand_above_memory():
    memory = Memory()
    for at in range(9):
        memory.record(Remembered(("app",), "json", float(at)))
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
    memory.record(Remembered(("k",), "story", 0.0, 2.0))
    later = memory.evidence("k", 2 * HOUR)
    assert later.answers == pytest.approx(0.25)
    assert later.accepted_weight == pytest.approx(0.25)


def test_the_accepted_length_is_of_measured_answers_and_shrunk_to_the_usual():
    memory = Memory()
    assert memory.evidence("k", 0.0).accepted_ratio == 1.0
    memory.record(Remembered(("k",), "code", 0.0, 1.5))
    memory.record(Remembered(("k",), "code", 0.0))
    memory.record(Remembered(("k",), "code", 0.0, 0.0))  # nonsense counts as not measured
    once = memory.evidence("k", 0.0).accepted_ratio
    assert once == pytest.approx(1.5 ** (1 / 3))
    for _ in range(30):
        memory.record(Remembered(("k",), "code", 0.0, 1.5))
    assert 1.45 < memory.evidence("k", 0.0).accepted_ratio < 1.5


def test_the_table_is_bounded_and_forgets_the_least_used():
    memory = Memory(max_entries=3)
    for key in "abc":
        memory.record(Remembered((key,), "code", 0.0))
    memory.evidence("a", 0.0)
    memory.record(Remembered(("d",), "code", 0.0))
    assert [memory.evidence(key, 0.0).answers for key in "abcd"] == [1, 0, 1, 1]


def test_unknown_kinds_are_not_remembered():
    memory = Memory()
    memory.record(Remembered(("k",), "sonata", 0.0))
    assert len(memory) == 0


def test_a_conversation_weighs_half():
    application, conversation = Memory(), Memory()
    application.record(Remembered(("k",), "json", 0.0))
    conversation.record(Remembered(("k",), "story", 0.0))
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
    assert fingerprint(payload, "m") == ""


def test_a_request_without_system_prompt_or_tools_is_anybodys():
    assert fingerprint({"messages": [{"role": "user", "content": "hi"}]}, "m") == ""


def test_an_application_that_is_asked_for_everything_leaves_a_clear_text_alone():
    memory = Memory()
    for at in range(20):
        memory.record(Remembered(("app",), "json" if at % 5 == 0 else "chat", 0.0))
    evidence = memory.evidence("app", 0.0)
    code = text_says(WorkloadClass.STRUCTURED, 0.95)
    assert blend(code, evidence).workload_class is WorkloadClass.STRUCTURED
    unclear = text_says(WorkloadClass.STRUCTURED, 0.4)
    assert blend(unclear, evidence).workload_class is WorkloadClass.PROSE


def test_three_equal_answers_outweigh_a_text_that_says_otherwise():
    memory = Memory()
    for at in range(3):
        memory.record(Remembered(("app",), "json", float(at)))
    sure = text_says(WorkloadClass.PROSE, 0.9)
    assert blend(sure, memory.evidence("app", 3.0)).workload_class is WorkloadClass.STRUCTURED
