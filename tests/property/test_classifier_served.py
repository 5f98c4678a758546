"""What the shipped model is held to: conversations that change class, and settled requests."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from classifier import WorkloadClass, extract, load
from classifier.authored import rows as authored_rows
from classifier.dataset import read
from classifier.evaluate import evaluate, report

SWITCHES = Path(__file__).parents[1] / "data" / "classifier" / "switches.jsonl"
FRESH = SWITCHES.with_name("fresh.jsonl")
SCHEMA = {"type": "json_schema", "json_schema": {"name": "out", "schema": {"type": "object"}}}


@pytest.fixture(scope="module")
def predictor():
    return load()


def test_conversations_whose_last_turn_changes_the_class(predictor):
    figures = report(evaluate(read(SWITCHES), predictor, lambda: 0.0))
    assert figures["n"] == 120
    assert figures["macro_f1"] >= 0.85
    assert min(part["macro_f1"] for part in figures["by_language"].values()) >= 0.85


def test_prompts_in_styles_that_no_training_group_has(predictor):
    figures = report(evaluate(read(FRESH), predictor, lambda: 0.0))
    assert figures["n"] >= 300
    assert figures["macro_f1"] >= 0.88
    many = [part["accuracy"] for part in figures["by_language"].values() if part["n"] >= 30]
    assert min(many) >= 0.85


def test_prompts_that_were_written_before_the_model_and_never_looked_at(predictor):
    """The served model had 0.793 before the words at the ends of a turn were features."""
    figures = report(evaluate(read(FRESH.with_name("unseen.jsonl")), predictor, lambda: 0.0))
    assert figures["n"] == 358
    assert figures["macro_f1"] >= 0.82
    assert figures["ece"] <= 0.06


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"response_format": SCHEMA}, WorkloadClass.STRUCTURED),
        ({"grammar": 'root ::= "a"'}, WorkloadClass.STRUCTURED),
        ({"chat_template_kwargs": {"enable_thinking": True}}, WorkloadClass.REASONING),
        ({"reasoning_effort": "high"}, WorkloadClass.REASONING),
    ],
)
def test_settled_requests(predictor, fields, wanted):
    bodies = [{**row.body, **fields} for row in authored_rows()[::7]]
    hits = sum(predictor.predict(extract(body)).workload_class is wanted for body in bodies)
    assert hits / len(bodies) >= 0.98


def test_a_forced_tool_is_a_tool_call(predictor):
    tool = {"type": "function", "function": {"name": "look_up"}}
    body = {
        "messages": [{"role": "user", "content": "Tell me a story."}],
        "tools": [tool],
        "tool_choice": {"type": "function", "function": {"name": "look_up"}},
    }
    assert predictor.predict(extract(body)).kind == "tool_call"


def test_serving_imports_neither_scikit_learn_nor_numpy():
    code = (
        "import sys, classifier; classifier.load();"
        "sys.exit(bool({'sklearn', 'numpy', 'scipy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_command_line_prints_the_contracts_json(tmp_path):
    import json

    from click.testing import CliRunner

    from router.cli.classifier import group

    packed = tmp_path / "rows.jsonl.gz"
    packed.write_bytes(gzip.compress(SWITCHES.read_bytes()))
    result = CliRunner().invoke(group, ["evaluate", str(packed), "--json"])
    figures = json.loads(result.stdout)
    assert figures["n"] == 120
    assert figures["latency_us"]["p50"] > 0
    asked = CliRunner().invoke(
        group, ["explain", "-", "--json"], input='{"messages":[{"role":"user","content":"hi"}]}'
    )
    assert json.loads(asked.stdout)["class"] == "prose"
    assert CliRunner().invoke(group, ["explain", "-"], input="{").exit_code == 2
