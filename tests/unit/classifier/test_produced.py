import json
from pathlib import Path

import pytest

from classifier.classes import CLASS_OF_KIND, WorkloadClass
from classifier.produced import MEASURED_ERROR, SAMPLE_CHARS, label_output

ANSWERS = Path(__file__).parents[2] / "data" / "classifier" / "answers.jsonl"


UNSEEN = ANSWERS.with_name("answers-unseen.jsonl")


def hand_labelled(path=ANSWERS):
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def label(row):
    return label_output(
        row["text"],
        reasoning=row.get("reasoning", ""),
        tool_calls=row.get("tool_calls", False),
        truncated=row.get("truncated", False),
    )


def agreement(rows):
    return sum(label(row).workload_class.value == row["label"] for row in rows) / len(rows)


def test_agrees_with_hand_labels():
    """Written in the styles of many models, or produced by the bundled ones; labels by reading."""
    rows = hand_labelled()
    made = [row for row in rows if row["id"].startswith("trio")]
    assert len(rows) >= 300
    assert len(made) >= 150
    assert agreement(rows) >= 0.95
    assert agreement(made) >= 0.95
    assert 1 - agreement(rows) <= MEASURED_ERROR


def test_agrees_with_hand_labels_of_answers_kept_out_of_its_design():
    rows = [row for row in hand_labelled() if row.get("held_out")]
    assert len(rows) == 100
    assert agreement(rows) >= 0.95


def test_agrees_with_hand_labels_of_answers_written_before_it_was_run_on_them():
    """0.929 on the first 112 and, after a repair, 0.940 on the other 67 before either was read."""
    rows = hand_labelled(UNSEEN)
    assert len(rows) == 179
    assert agreement(rows) >= 0.95


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("```python\nx = 1\n```", "code"),
        ('{"a": 1}', "json"),
        ("1. one\n2. two\n3. three", "list"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "table"),
        ("positive", "extraction"),
        ("1, 2, 3, 4, 5, 6", "count"),
        ("Rain falls.", "chat"),
        ("Use this:\n\n    tar -xzf backup.tgz -C /srv\n\nand restart.", "code"),
        ('Here it is:\n\n{"name": "Paul"}', "json"),
        ("Roses fade,\nthe river stays,\na lamp is lit\nin smaller ways.", "story"),
        ("Sei x der Preis. Dann ist 3x = 27, also x = 9.", "math"),
        ("Each is 8 / 4 = 2. So five cost 5 * 2 = 10. The answer is 10.", "math"),
    ],
)
def test_kinds(text, kind):
    assert label_output(text).kind == kind


def test_reasoning_counts_by_its_share():
    long_thought = label_output("42", reasoning="First I add forty and then I add two. " * 3)
    assert long_thought.workload_class is WorkloadClass.REASONING
    assert long_thought.reasoning_share > 0.9
    short_thought = label_output("word " * 100, reasoning="Hm.")
    assert short_thought.workload_class is WorkloadClass.PROSE


def test_an_empty_thinking_block_is_no_reasoning():
    assert label_output("<think>\n\n</think>\n\nRain falls.").kind == "chat"


def test_tool_calls_beat_the_text_beside_them():
    assert label_output("Let me check.", tool_calls=True).kind == "tool_call"


def test_truncated_json_is_still_json():
    assert label_output('{"a": [1, 2', truncated=True).kind == "json"


@pytest.mark.parametrize("text", ["", " \n ", "{" * 50_000, "[" * 100_000, "x" * 3 * SAMPLE_CHARS])
def test_odd_answers_get_some_label(text):
    got = label_output(text)
    assert CLASS_OF_KIND[got.kind] is got.workload_class
    assert 0 <= got.confidence <= 1
