from __future__ import annotations

import subprocess
import sys

import orjson
import pytest
from click.testing import CliRunner

from router.cli.simulate import simulate

HEAD = "profile,cell,arm,mode,thinking,concurrency,tok_s,unit,measurement_id\n"
ROWS = (
    "P,code,a,mtp,on,1,40,per_request,1\nP,code,b,ar,on,1,20,per_request,2\n"
    "P,prose,a,mtp,on,1,30,per_request,3\nP,prose,b,ar,on,1,20,per_request,4\n"
)


@pytest.fixture
def cells(tmp_path):
    path = tmp_path / "cells.csv"
    path.write_text(HEAD + ROWS)
    return str(path)


def run(*arguments: str):
    return CliRunner().invoke(simulate, arguments)


def test_json_has_the_contracts_fields(cells):
    shown = run("--cells", cells, "--requests", "40", "--seeds", "2", "--json")
    assert shown.exit_code == 0
    figures = orjson.loads(shown.stdout)
    assert figures["profiles"][0]["profile"] == "P"
    keys = {"profiles", "worst_vs_oracle", "median_vs_oracle", "worst_vs_best_single", "checks"}
    assert set(figures) == keys


def test_the_table_shows_profiles_and_the_bar_and_the_plot_is_drawn(cells, tmp_path):
    path = tmp_path / "plot.png"
    shown = run("--cells", cells, "--requests", "40", "--seeds", "1", "--plot", str(path))
    assert shown.exit_code == 0
    assert "vs best single" in shown.stdout
    assert "median vs oracle" in shown.stdout
    assert path.exists()


def test_check_ends_with_status_1_where_the_bar_is_missed(tmp_path):
    path = tmp_path / "flips.csv"
    path.write_text(
        HEAD + ROWS + "P,list,a,mtp,on,1,20,per_request,5\nP,list,b,ar,on,1,22,per_request,6\n"
    )
    words = ["simulate", "--cells", str(path), "--requests", "10", "--seeds", "1", "--json"]
    for more, status in (([], 0), (["--check"], 1)):
        shown = subprocess.run(
            [sys.executable, "-c", "from router.cli import main; main()", *words, *more],
            capture_output=True,
            check=False,
        )
        assert shown.returncode == status, shown.stderr
        assert not all(row["met"] for row in orjson.loads(shown.stdout)["checks"])


def test_without_a_file_the_usage_is_shown():
    shown = run()
    assert shown.exit_code == 2
    assert "--fleet FILE or --scenarios" in shown.output


def test_a_bad_or_useless_file_is_a_usage_error(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("a,b\n1,2\n")
    assert run("--cells", str(path)).exit_code == 2
    path.write_text(HEAD + "P,code,a,mtp,on,1,40,per_request,1\n")
    assert "no profile has two cells" in run("--cells", str(path)).output


FLEET = """
requests: 80
modes:
  ar: {speed: {prose: 20}}
  mtp-n3: {speed: {prose: 30}, accepted: {prose: 2.4}}
workers: [{name: plain, mode: ar}, {name: fast, mode: mtp-n3}]
traffic: {sessions_per_s: 0.05, classes: {prose: 1}, answer: {prose: {median: 100}}}
"""


def test_a_fleet_is_compared_with_oracle_and_single_modes(tmp_path):
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    shown = run("--fleet", str(path), "--json")
    assert shown.exit_code == 0
    names = [row["name"] for row in orjson.loads(shown.stdout)["results"]]
    assert names == ["oracle", "learned", "least_loaded", "round_robin", "all ar", "all mtp-n3"]
    assert "all mtp-n3" in run("--fleet", str(path)).stdout


def test_a_bad_fleet_is_a_usage_error(tmp_path):
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET.replace("mode: ar", "mode: none"))
    shown = run("--fleet", str(path))
    assert shown.exit_code == 2
    assert "no mode 'none'" in shown.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--scenarios", "--policy", "learned"], "--policy is of --fleet"),
        (["--cells", "CELLS", "--policy", "nope"], "--policy is of --fleet"),
        (["--fleet", "FLEET", "--policy", "nope"], "no policy named 'nope'"),
        (["--scenarios", "--plot", "plot.png"], "--scenarios draws no plot"),
    ],
)
def test_what_would_be_ignored_is_refused(words, said, cells, tmp_path):
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(FLEET)
    places = {"CELLS": cells, "FLEET": str(fleet)}
    shown = run(*[places.get(word, word) for word in words])
    assert shown.exit_code == 2
    assert said in shown.output
