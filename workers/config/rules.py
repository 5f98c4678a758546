"""How the parts of a configuration must go together: rules that need no disk and no network."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from workers.config.problems import Finding, suggestion
from workers.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from workers.config.document import Config
    from workers.config.sections import WorkerSection

_SMALLEST_CONTEXT = 256  # tokens; less does not hold a chat template and an answer
# Given on an attached worker these would be without effect.
_ONLY_SPAWNED = ("binary", "port", "draft", "args", "env", "threads", "gpu", "draft_context")
_NOT_HERE = "remove it, or choose a mode that has it: "


def broken_rules(config: Config) -> tuple[Finding, ...]:
    """Every broken rule, in the order of the file's sections."""
    return (
        *_key_rules(config),
        *_model_rules(config),
        *_worker_list_rules(config),
        *(f for i, worker in enumerate(config.workers) for f in _worker_rules(config, i, worker)),
        *_port_rules(config),
        *_fallback_rules(config),
    )


def nothing_serves(config: Config) -> tuple[Finding, ...]:
    """Told where no worker can ever come: none here, and no Redis that agents elsewhere share.

    Apart from the broken rules, because commands that start nothing do well with such a file.
    """
    if config.workers or config.redis.url != "embedded":
        return ()
    missing = "no worker is" if config.models else "no model and no worker is"
    fix = (
        "add one under `workers` with its model under `models`, or, where agents on other hosts "
        "run them, give their `redis.url`"
    )
    return (Finding(("workers",), f"{missing} configured", fix),)


def _key_rules(config: Config) -> Iterator[Finding]:
    for i, key in enumerate(config.auth.keys):
        if (key.key is None) == (key.digest is None):
            yield Finding(
                ("auth", "keys", i),
                f"key {key.label!r} must have either `key` or `digest`",
                "give `key: ${A_VARIABLE}`, or the SHA-256 of it as `digest`",
            )


def _model_rules(config: Config) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for i, model in enumerate(config.models):
        for name in (model.name, *model.aliases):
            if name in seen:
                at = "name" if name == model.name else "aliases"
                message = f"the name {name!r} is taken by model {seen[name]!r}"
                yield Finding(("models", i, at), message, "use each name and alias once")
            seen.setdefault(name, model.name)


def _worker_list_rules(config: Config) -> Iterator[Finding]:
    seen: set[str] = set()
    for i, worker in enumerate(config.workers):
        if worker.name in seen:
            message = f"two workers are called {worker.name!r}"
            yield Finding(("workers", i, "name"), message, "give each worker its own name")
        seen.add(worker.name)
    groups = Counter(w.exclusive_group for w in config.workers if w.exclusive_group)
    for i, worker in enumerate(config.workers):
        if worker.exclusive_group and groups[worker.exclusive_group] == 1:
            yield Finding(
                ("workers", i, "exclusive_group"),
                f"{worker.name!r} is alone in the group {worker.exclusive_group!r}",
                "name the same group on the workers that cannot be resident together, or remove it",
            )


def _fallback_rules(config: Config) -> Iterator[Finding]:
    section, models = config.fallback, [model.name for model in config.models]
    if section.model is None and (section.url or section.api_key):
        yield Finding(("fallback",), "a fallback needs a `model`", "add `model: PROVIDER/MODEL`")
    for name, remote in section.models.items():
        at = ("fallback", "models", name)
        if name not in models:
            yield Finding(at, f"there is no model {name!r}", suggestion(name, models))
        if remote.model is None:
            yield Finding(at, "a fallback needs a `model`", "add `model: PROVIDER/MODEL`")


def _worker_rules(config: Config, index: int, worker: WorkerSection) -> Iterator[Finding]:
    at = ("workers", index)
    for key, message, fix in (
        *_model_reference(config, worker),
        *_draft_rules(worker),
        *_cut_rules(worker),
        *_engine_rules(worker),
        *_size_rules(worker),
        *_arm_rules(worker),
    ):
        yield Finding((*at, key), message, fix)


def _model_reference(config: Config, worker: WorkerSection) -> Iterator[tuple[str, str, str]]:
    models = {model.name: model for model in config.models}
    if worker.model not in models:
        fix = suggestion(worker.model, models) if models else "describe it under `models`"
        yield "model", f"there is no model {worker.model!r}", fix
    elif models[worker.model].target is None and worker.url is None:
        message = f"model {worker.model!r} has no `target`, so no worker can load it"
        yield "model", message, "give the model its GGUF file as `target`, or the worker a `url`"


def _draft_rules(worker: WorkerSection) -> Iterator[tuple[str, str, str]]:
    needed = MODES[worker.mode].needs_draft
    if needed and worker.draft is None and worker.url is None:
        yield "mode", f"mode {worker.mode} needs a draft file", "add `draft: FILE.gguf`"
    if not needed and worker.draft is not None:
        with_draft = ", ".join(name for name, mode in MODES.items() if mode.needs_draft)
        message = f"mode {worker.mode} does not use a draft file"
        yield "draft", message, f"remove `draft`, or choose a mode that uses it: {with_draft}"


def _cut_rules(worker: WorkerSection) -> Iterator[tuple[str, str, str]]:
    mode = MODES[worker.mode]
    for cut, value in (("margin", worker.margin), ("gap", worker.gap)):
        if value is not None and mode.cut != cut:
            having = ", ".join(name for name, m in MODES.items() if m.cut == cut)
            yield cut, f"mode {worker.mode} has no `{cut}`", _NOT_HERE + having
    for key in ("n_max", "n_min", "p_min"):
        if getattr(worker, key) is not None and not mode.speculative:
            yield key, f"mode {worker.mode} drafts nothing, so `{key}` means nothing", "remove it"
    for key, value in worker.ngram:
        if value is not None and key not in mode.ngram:
            having = ", ".join(name for name, m in MODES.items() if key in m.ngram)
            yield "ngram", f"mode {worker.mode} has no `ngram.{key}`", _NOT_HERE + having


def _engine_rules(worker: WorkerSection) -> Iterator[tuple[str, str, str]]:
    mode = MODES[worker.mode]
    if worker.engine == "external" and worker.url is None:
        yield "engine", "an external worker needs to be found", "add `url: http://HOST:PORT`"
    if worker.url is not None:
        for key in _ONLY_SPAWNED:
            if key in worker.model_fields_set:
                message = f"`{key}` has no effect on a server that is attached by `url`"
                yield key, message, f"remove `{key}`, or remove `url` to have it started"
    elif worker.api_key is not None:
        yield "api_key", "a worker that we start has a key of its own", "remove `api_key`"
    elif worker.engine not in (mode.engine, "external"):
        yield "mode", f"engine {worker.engine} has no mode {worker.mode}", f"use {mode.engine}"


def _size_rules(worker: WorkerSection) -> Iterator[tuple[str, str, str]]:
    if worker.context < _SMALLEST_CONTEXT:
        message = f"a context of {worker.context} tokens per request holds no conversation"
        yield "context", message, f"use at least {_SMALLEST_CONTEXT}, better 4096"
    n_max = worker.n_max or MODES[worker.mode].n_max
    if worker.n_min is not None and n_max is not None and worker.n_min > n_max:
        yield "n_min", f"n_min {worker.n_min} is more than n_max {n_max}", "lower n_min"
    gpu = worker.gpu
    if gpu.split and gpu.devices and len(gpu.split) != len(gpu.devices):
        message = f"gpu.split has {len(gpu.split)} shares for {len(gpu.devices)} devices"
        yield "gpu", message, "give one share per device"


def _arm_rules(worker: WorkerSection) -> Iterator[tuple[str, str, str]]:
    if not worker.arms:
        return
    mode = MODES[worker.mode]
    most = worker.n_max or mode.n_max
    if not mode.speculative or mode.by_lookup or mode.engine != "llama-server":
        yield "arms", f"mode {worker.mode} has no draft length to choose per request", "remove it"
    for arm in worker.arms:
        if most is not None and arm.n_max > most:
            message = f"an arm of {arm.n_max} tokens is more than the worker's n_max {most}"
            yield "arms", message, "raise n_max: what a worker is started with bounds its arms"
        if arm.p_min is not None and arm.p_min < (worker.p_min or 0.0):
            message = f"an arm's p_min {arm.p_min:g} is below the worker's {worker.p_min:g}"
            yield "arms", message, "lower the worker's p_min: arms can only be stricter"


def _port_rules(config: Config) -> Iterator[Finding]:
    taken: dict[tuple[str, int], str] = {}
    for location, who, host, port in _listeners(config):
        other = taken.setdefault((host, port), who)
        if other != who:
            message = f"{who} and {other} would both listen on port {port}"
            yield Finding(location, message, "choose another port, or leave a worker's out")


def _listeners(config: Config) -> Iterable[tuple[tuple[Any, ...], str, str, int]]:
    server, dashboard = config.server, config.dashboard
    yield ("server", "port"), "the gateway", _one_name(server.host), server.port
    if dashboard.enabled:
        at = ("dashboard", "port")
        yield at, "the dashboard", _one_name(dashboard.host), dashboard.port
    for i, worker in enumerate(config.workers):
        if worker.port is not None:
            who = f"worker {worker.name!r}"
            yield ("workers", i, "port"), who, _one_name(worker.host), worker.port


def _one_name(host: str) -> str:
    return "127.0.0.1" if host == "localhost" else host
