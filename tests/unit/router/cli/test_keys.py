"""`specroute keys` on a file and on a real Redis."""

from __future__ import annotations

import json
import re
import stat

import pytest
from click.testing import CliRunner

from router.access.keys import hash_key, read_keys
from router.cli.keys import keys


@pytest.fixture(params=["file", "redis"])
def run(request, tmp_path):
    """The command on an empty place; returns its exit code, output and errors."""
    place = ["--state-dir", str(tmp_path / "state")]
    if request.param == "redis":
        url = request.getfixturevalue("redis_url")
        config = tmp_path / "c.yaml"
        config.write_text(
            f"redis: {{url: '{url}'}}\nmodels: [{{name: m, target: m.gguf}}]\n"
            "workers: [{name: w, model: m}]\n"
        )
        place += ["-c", str(config)]

    def call(*arguments: str):
        result = CliRunner().invoke(keys, [*arguments, *place])
        return result.exit_code, result.stdout, result.stderr

    return call


def test_a_key_is_made_shown_once_listed_and_revoked(run):
    code, out, told = run("create", "alice", "--model", "m", "--requests-per-minute", "60")
    assert code == 0
    key = out.strip()
    assert key.startswith("sk-specroute-")
    assert key not in told
    code, out, _ = run("list", "--json")
    (row,) = json.loads(out)
    assert row["digest"] == hash_key(key)
    assert (row["label"], row["models"], row["requests_per_minute"]) == ("alice", ["m"], 60.0)
    code, out, _ = run("list")
    assert (code, "alice" in out, key in out) == (0, True, False)
    code, out, told = run("revoke", "alice")
    assert (code, out) == (0, "revoked alice\n")
    assert "no keys are left" in told
    assert json.loads(run("list", "--json")[1]) == []


def test_the_table_is_written_for_people(run):
    run("create", "alice", "--model", "m", "--model", "a", "--tokens-per-minute", "1000000")
    run("create", "root", "--admin")
    table = run("list")[1]
    rows = [re.split(r"\s*[│┃]\s*", line.strip(" │┃")) for line in table.splitlines()]
    assert ["label", "admin", "models", "priority", "requests/min", "tokens/min"] in rows
    assert ["alice", "no", "a, m", "0", "", "1000000"] in rows
    assert ["root", "yes", "all", "0"] in [row[:4] for row in rows]


def test_labels_are_unique_and_sensible(run):
    assert json.loads(run("create", "a", "--json", "--admin", "--priority", "3")[1])["label"] == "a"
    code, _, told = run("create", "a")
    assert (code, "already" in told) == (1, True)
    assert run("create", " ")[0] == 2
    assert run("create", "b", "--tokens-per-minute", "0")[0] == 2
    code, _, told = run("revoke", "nobody")
    assert (code, "no key 'nobody'" in told) == (1, True)


def test_the_file_is_its_owners(tmp_path):
    state = tmp_path / "state"
    result = CliRunner().invoke(keys, ["create", "a", "--state-dir", str(state)])
    assert result.exit_code == 0
    assert stat.S_IMODE((state / "keys.json").stat().st_mode) == 0o600
    assert read_keys(state / "keys.json")[0].label == "a"


def test_a_broken_config_and_a_redis_that_is_away_are_told(tmp_path):
    config = tmp_path / "c.yaml"
    config.write_text("redis: {ur: x}\n")
    arguments = ["list", "--state-dir", str(tmp_path), "-c", str(config)]
    assert CliRunner().invoke(keys, arguments).exit_code == 2
    config.write_text(
        "redis: {url: 'redis://127.0.0.1:1'}\nmodels: [{name: m, target: m}]\n"
        "workers: [{name: w, model: m}]\n"
    )
    result = CliRunner().invoke(keys, arguments)
    assert (result.exit_code, "Redis does not answer" in result.stderr) == (1, True)
