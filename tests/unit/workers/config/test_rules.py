from __future__ import annotations

import pytest

from workers.config import read_config

MODELS = "models: [{name: m, target: t}, {name: bare}]\n"


def told(tmp_path, text):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    return [(p.line, p.message, p.fix) for p in read_config(path, {})[1]]


@pytest.mark.parametrize(
    ("worker", "message", "fix"),
    [
        ("model: x", "there is no model 'x'", "use one of: bare, m"),
        ("model: bare", "model 'bare' has no `target`", "`url`"),
        ("model: m, mode: dflash2", "mode dflash2 needs a draft file", "add `draft:"),
        ("model: m, mode: mtp, draft: d", "mode mtp does not use a draft file", "dflash2"),
        ("model: m, margin: 1", "mode ar has no `margin`", "dflash2-margin"),
        ("model: m, mode: mtp-n3, gap: 0.3", "mode mtp-n3 has no `gap`", "mtp-margin"),
        ("model: m, n_max: 3", "`n_max` means nothing", "remove it"),
        ("model: m, ngram: {size_n: 3}", "mode ar has no `ngram.size_n`", "ngram-simple"),
        ("model: m, mode: ngram-mod, ngram: {size_n: 3}", "no `ngram.size_n`", "ngram-map-k"),
        ("model: m, engine: external", "needs to be found", "add `url:"),
        ("model: m, url: 'http://h:1', binary: b", "`binary` has no effect", "remove `binary`"),
        ("model: m, url: 'http://h:1', gpu: {devices: [0]}", "`gpu` has no effect", "remove"),
        ("model: m, api_key: k", "has a key of its own", "remove `api_key`"),
        ("model: m, mode: luce-chain, draft: d", "no mode luce-chain", "use luce"),
        ("model: m, engine: luce, mode: mtp", "engine luce has no mode mtp", "use llama-server"),
        ("model: m, context: 16", "16 tokens per request", "at least 256"),
        ("model: m, mode: mtp-n3, n_min: 5", "n_min 5 is more than n_max 3", "lower n_min"),
        ("model: m, gpu: {devices: [0], split: [1, 2]}", "2 shares for 1 devices", "one share"),
        ("model: m, arms: [3]", "mode ar has no draft length", "remove it"),
        ("model: m, mode: mtp-n3, arms: [5]", "an arm of 5 tokens", "raise n_max"),
        (
            "model: m, mode: mtp-n3, p_min: 0.5, arms: [{n_max: 2, p_min: 0.2}]",
            "an arm's p_min 0.2 is below the worker's 0.5",
            "only be stricter",
        ),
        ("model: m, arms: maybe", "`workers[0].arms` cannot be 'maybe'", "`off` or a list"),
        ("model: m, exclusive_group: g", "is alone in the group 'g'", "same group"),
        ("model: m, port: 8080", "worker 'w' and the gateway would both listen", "another port"),
        ("model: m, port: 8081, host: localhost", "and the dashboard would both", "another port"),
    ],
)
def test_rules_of_one_worker(tmp_path, worker, message, fix):
    (problem,) = told(tmp_path, f"{MODELS}workers:\n  - {{name: w, {worker}}}\n")
    assert problem[0] == 3
    assert message in problem[1]
    assert fix in problem[2]


@pytest.mark.parametrize(
    "worker",
    [
        "model: m",
        "model: m, url: 'http://h:1', api_key: k, mode: dflash2-margin",
        "model: bare, url: 'http://h:1'",
        "model: m, mode: luce-ddtree, engine: luce, draft: d",
        "model: m, mode: dflash2-margin, draft: d, margin: 1.2, n_max: 5, n_min: 1",
        "model: m, mode: mtp, n_max: 7, arms: [0, {n_max: 3, p_min: 0.6}]",
        "model: m, mode: mtp-n3, arms: off",
        "model: m, mode: mtp-n3, arms: auto",
        "model: m, mode: ngram-mod, ngram: {n_match: 16}, n_max: 32",
        "model: m, port: 9001, gpu: {devices: [0, 1], split: [1, 2]}",
    ],
)
def test_good_workers(tmp_path, worker):
    assert told(tmp_path, f"{MODELS}workers:\n  - {{name: w, {worker}}}\n") == []


def test_names_are_used_once(tmp_path):
    text = (
        "models:\n  - {name: m, target: t}\n  - {name: n, aliases: [m], target: t}\n"
        "workers:\n  - {name: w, model: m, port: 9001}\n  - {name: w, model: n, port: 9001}\n"
    )
    assert told(tmp_path, text) == [
        (3, "the name 'm' is taken by model 'm'", "use each name and alias once"),
        (6, "two workers are called 'w'", "give each worker its own name"),
    ]


def test_ports_are_used_once(tmp_path):
    text = (
        f"{MODELS}workers:\n  - {{name: a, model: m, port: 9001}}\n"
        "  - {name: b, model: m, port: 9001}\n  - {name: c, model: m, port: 9001, host: 10.0.0.1}\n"
    )
    assert told(tmp_path, text) == [
        (
            4,
            "worker 'b' and worker 'a' would both listen on port 9001",
            "choose another port, or leave a worker's out",
        ),
    ]
