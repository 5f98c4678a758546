"""sweep, audit, advise and calibrate as a user types them, on the real engine."""

from __future__ import annotations

import json

import pytest
import yaml
from click.testing import CliRunner

from router.cli import root
from workers.config import read_config
from workers.tiny import NO_COST, prepare

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured")
    trio = prepare(folder, NO_COST)
    common = {"model": "tiny", "context": 1024, "threads": 1, "reasoning": "off"}
    document = {
        "models": [{"name": "tiny", "target": str(trio.target)}],
        "workers": [
            {"name": "mtp", "mode": "mtp-n3", **common},
            {"name": "dflash", "mode": "dflash2-margin", "draft": str(trio.draft), **common},
        ],
    }
    path = folder / "c.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def run(*arguments):
    return CliRunner().invoke(root, list(map(str, arguments)))


def test_a_sweep_tells_speed_by_setting_and_advise_reads_it(config, tmp_path):
    plot = tmp_path / "sweep.png"
    done = run(
        *("sweep", "-c", config, "--worker", "mtp", "--n-max", "1,3", "--per-class", 1),
        *("--rounds", 1, "--max-tokens", 40, "--length", "0,100", "--plot", plot, "--json"),
    )
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert {r["setting"] for r in report["rows"]} == {"ar", "mtp-n3 n_max=1", "mtp-n3 n_max=3"}
    assert {r["length"] for r in report["rows"]} == {0, 100}
    assert report["settings"][0]["memory_gb"] > 0
    assert report["build"]
    for row in report["rows"]:
        assert row["decode_tps"]["mean"] > 0
        assert (row["acceptance"] is None) == (row["mode"] == "ar")
        assert row["prompt_tokens"] > row["length"]
    assert plot.read_bytes().startswith(b"\x89PNG")
    measured, traffic = tmp_path / "sweep.json", tmp_path / "traffic.jsonl"
    measured.write_text(done.stdout)
    classes = {r["class"] for r in report["rows"] if r["setting"] == "ar"}
    rows = [
        {
            "request": {"class": name, "prompt_tokens": 20},
            "outcome": {"status": "ok", "completion_tokens": 50},
        }
        for name in sorted(classes)
    ]
    traffic.write_text("\n".join(map(json.dumps, rows)))
    advice = run("advise", traffic, "--measured", measured, "--workers", 2, "--json")
    assert advice.exit_code == 0, advice.output
    found = json.loads(advice.stdout)
    assert "ar" in found["recommended"]["settings"]
    assert len(found["plans"]) >= 3
    table = run("advise", traffic, "--measured", measured)
    assert "plans, the fastest first" in table.stdout


def test_an_audit_finds_greedy_outputs_equal(config):
    done = run("audit", "-c", config, "--prompts", 4, "--max-tokens", 40, "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["ok"]
    assert report["control"]["equal"] == 4
    for row in report["workers"]:
        assert row["drafted"] > 0
        assert row["equal"] + row["ties"] == row["n"] == 4


def test_calibrate_writes_a_config_that_can_be_served(tmp_path, config):
    trio = yaml.safe_load(config.read_text())
    target, draft = trio["models"][0]["target"], trio["workers"][1]["draft"]
    output = tmp_path / "made.yaml"
    arguments = (
        *("calibrate", "--target", target, "--draft", draft, "--name", "tiny"),
        *(
            "--context",
            1024,
            "--slots",
            1,
            "--threads",
            1,
            "--minutes",
            0.3,
            "-o",
            output,
            "--json",
        ),
    )
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    made, problems = read_config(output, {})
    assert problems == ()
    assert made is not None
    assert "ar" in {spec.mode for spec in made.worker_specs()}
    again = run(*arguments)
    assert again.exit_code == 2
    assert "is there already" in again.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("sweep",), "say what to measure"),
        (("sweep", "--quick", "--n-max", "x"), "give whole numbers from 1 to 64"),
        (("audit",), "say what to measure"),
        (("audit", "-c", "/nowhere.yaml"), "nowhere.yaml"),
        (("advise", "/nowhere.jsonl", "--measured", "/nowhere.json"), "does not exist"),
    ],
)
def test_wrong_usage_is_one_sentence(arguments, words):
    done = run(*arguments)
    assert done.exit_code == 2
    assert words in done.output
