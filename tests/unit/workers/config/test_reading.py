"""Broken files and what is said of them; good ones and what becomes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.config import Config, ConfigError, Problem, load_config, read_config

GOOD = """\
redis: {url: embedded}
models:
  - name: qwen
    aliases: [gpt-4o-mini]
    target: models/qwen.gguf
workers:
  - {name: code, model: qwen, mode: dflash2-margin, draft: d.gguf, gpu: {devices: [0], layers: all}}
  - {name: prose, model: qwen, mode: mtp-n3, context: 131072, slots: 4}
  - {name: plain, model: qwen, env: {A: b}, args: [-ctk, q8_0], binary: llama-server}
"""


def write(tmp_path, text):
    path = tmp_path / "specroute.yaml"
    path.write_text(text)
    return path


def told(tmp_path, text, environ=None):
    """Problems as (line, message, fix)."""
    _, problems = read_config(write(tmp_path, text), environ or {})
    return [(p.line, p.message, p.fix) for p in problems]


def test_a_good_file(tmp_path):
    config = load_config(write(tmp_path, GOOD), {})
    code, prose, plain = config.worker_specs()
    assert code.target == tmp_path / "models" / "qwen.gguf"
    assert code.draft == tmp_path / "d.gguf"
    assert (code.gpu.devices, code.gpu.layers) == ((0,), "all")
    assert (prose.context, prose.slots, prose.aliases) == (131072, 4, ("gpt-4o-mini",))
    assert (plain.mode, plain.env, plain.args) == ("ar", (("A", "b"),), ("-ctk", "q8_0"))
    assert plain.binary == Path("llama-server")
    (model,) = config.model_specs()
    assert (model.name, model.target) == ("qwen", code.target)


def test_no_file_is_the_defaults():
    config = load_config(None, {})
    assert (config.server.host, config.server.port, config.redis.url) == (
        "127.0.0.1",
        8080,
        "embedded",
    )
    assert (config.routing.exploration_budget, config.routing.ar_floor) == (0.02, 0.005)
    assert config.worker_specs() == ()


def test_an_empty_file_is_the_defaults(tmp_path):
    assert load_config(write(tmp_path, "# nothing yet\n"), {}).workers == ()


def test_unknown_keys_name_the_nearest_and_their_line(tmp_path):
    text = GOOD.replace("slots: 4", "slotz: 4") + "routng: {}\n"
    assert told(tmp_path, text) == [
        (8, "unknown key `workers[1].slotz`", "did you mean `slots`?"),
        (10, "unknown key `routng`", "did you mean `routing`?"),
    ]
    text = GOOD.replace("layers: all", "layrs: all, zzz: 1")
    assert [fix for _, _, fix in told(tmp_path, text)] == [
        "did you mean `layers`?",
        "use one of: devices, draft_devices, draft_layers, layers, main, split",
    ]


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        ("server: {port: 70000}", "`server.port` cannot be 70000", "less than or equal to 65535"),
        ("server: {port: abc}", "`server.port` cannot be 'abc'", "a valid integer"),
        ("redis: {url: mysql://h}", "`redis.url` cannot be 'mysql://h'", "redis://"),
        ("routing: {ar_floor: 2}", "`routing.ar_floor` cannot be 2", "less than or equal to 1"),
        ("telemetry: {log_format: jsn}", "`telemetry.log_format` cannot be 'jsn'", "`json`"),
        ("dashboard: {url: somewhere}", "`dashboard.url`", "http://"),
        ("models: {a: b}", "`models` cannot be {'a': 'b'}", "tuple"),
        ("models: [{target: t}]", "`models[0].name` is missing", "add `name:`"),
        ("models: [{name: a@b}]", "`models[0].name` cannot be 'a@b'", "MODEL@WORKER"),
        ("routing: {priors: {arr: {prose: 1}}}", "`routing.priors.arr`", "did you mean `ar`?"),
        ("routing: {priors: {ar: {prose: -1}}}", "`routing.priors.ar.prose`", "greater than 0"),
        ("auth: {keys: [{label: x}]}", "key 'x' must have either", "SHA-256"),
        ("server: 5", "`server` cannot be 5", "dictionary"),
        ("[1, 2]", "must be sections", "models"),
        ("a: [", "is not YAML", "brackets"),
        ("workers: [{name: a, model: m, mode: [mtp-n3]}]", "no mode ['mtp-n3']", "`mtp-n3`"),
        ("workers: [{name: a, model: m, mode: {}}]", "there is no mode {}", "use one of"),
        ("models: [{name: m, target: ~noone/x}]", "`models[0].target`", "its ~ names nobody"),
        ("workers: [{name: a, model: m, env: {A=B: x}}]", "`workers[0].env.A=B`", "match"),
        ("learning: 2026-02-30", "`learning` looks like a YAML timestamp", "quotes around it"),
        ("server: {port: '${PORT}'}", "the environment has no PORT", "export PORT"),
        ("server: {port: ${PORT}}", "is not YAML", "put quotes around"),
        (
            "server: {port: 1}\nserver: {port: 2}",
            "`server` is written twice, here and on line 1",
            "keep one",
        ),
    ],
)
def test_each_kind_of_mistake(tmp_path, text, message, fix):
    (line, said, advice), *_ = told(tmp_path, text)
    assert message in said
    assert fix in advice
    assert line == text.count("\n") + 1


def test_one_mistake_does_not_hide_another(tmp_path):
    text = (
        "models: [{name: m, target: t}]\n"
        "workers:\n"
        "  - {name: a b, model: m, mode: arr, slots: 0}\n"
        "  - {name: b, model: n, mode: dflash2, margin: 1, colour: red}\n"
    )
    assert told(tmp_path, text) == [
        (
            3,
            "`workers[0].name` cannot be 'a b'",
            "it must be letters, digits, dot, dash or underscore, at most 64",
        ),
        (3, "`workers[0].mode`: there is no mode 'arr'", "did you mean `ar`?"),
        (3, "`workers[0].slots` cannot be 0", "it must be greater than or equal to 1"),
        (4, "unknown key `workers[1].colour`", told(tmp_path, text)[3][2]),
        (4, "there is no model 'n'", "use one of: m"),
        (4, "mode dflash2 needs a draft file", "add `draft: FILE.gguf`"),
        (
            4,
            "mode dflash2 has no `margin`",
            "remove it, or choose a mode that has it: dflash-margin, dflash2-margin",
        ),
    ]


def test_load_raises_with_all_of_them(tmp_path):
    path = write(tmp_path, "a: 1\nb: 2\n")
    with pytest.raises(ConfigError) as raised:
        load_config(path, {})
    first, second = raised.value.problems
    assert str(first).startswith(f"{path}:1: unknown key `a`; ")
    assert isinstance(second, Problem)
    assert (second.path, second.line) == (str(path), 2)


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_config(tmp_path / "absent.yaml", {})


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_bytes(b"models: []\nserver: {host: \xff}\n")
    with pytest.raises(ConfigError, match=r"c\.yaml:2: is not text in UTF-8"):
        load_config(path, {})


def test_variables_are_expanded_in_values_of_any_depth(tmp_path):
    text = "auth: {admin_token: '${T}-x', keys: [{label: a, key: '${K:-fallback}'}]}\n"
    config = load_config(write(tmp_path, text + "server: {port: '${P}'}\n"), {"T": "t", "P": "90"})
    assert config.auth.admin_token == "t-x"  # noqa: S105
    assert config.auth.keys[0].key == "fallback"
    assert config.server.port == 90


def test_the_environment_overrides_scalars_lists_and_entries_by_name(tmp_path):
    environ = {
        "SPECROUTE_SERVER__PORT": "9000",
        "SPECROUTE_SERVER__ALLOWED_HOSTS": "[a, b]",
        "SPECROUTE_WORKERS__CODE__SLOTS": "3",
        "SPECROUTE_WORKERS__1__CONTEXT": "512",
        "SPECROUTE_AUTH__ADMIN_TOKEN": "0123",
        "SPECROUTE_PARENT": "no override",
    }
    config = load_config(write(tmp_path, GOOD), environ)
    assert config.server.port == 9000
    assert config.server.allowed_hosts == ("a", "b")
    assert [w.slots for w in config.workers] == [3, 4, 1]
    assert config.workers[1].context == 512
    assert config.auth.admin_token == "0123"  # noqa: S105


def test_a_bad_override_is_told_by_its_own_name(tmp_path):
    environ = {
        "SPECROUTE_SERVER__PROT": "1",
        "SPECROUTE_LIMITS__QUEUE_SIZE": "-1",
        "SPECROUTE_WORKERS__NOBODY__SLOTS": "1",
    }
    _, problems = read_config(write(tmp_path, GOOD), environ)
    assert {p.path: p.line for p in problems} == dict.fromkeys(environ)
    assert "did you mean `port`?" in {p.fix for p in problems}


def test_the_schema_lists_the_sections_and_forbids_others():
    schema = Config.model_json_schema()
    assert list(schema["properties"]) == [
        *("server", "redis", "auth", "limits", "models", "workers"),
        *("routing", "learning", "fallback", "telemetry", "dashboard"),
    ]
    assert schema["additionalProperties"] is False
    assert "dflash2-margin" in str(schema["$defs"]["WorkerSection"]["properties"]["mode"])
