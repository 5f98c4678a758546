"""The sections of the YAML file as frozen pydantic models: names, types, ranges, defaults.

Times are in seconds, sizes in bytes, shares of 1, unless a field says otherwise.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from workers.config.problems import suggestion
from workers.modes import MODES

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MODEL_NAME = re.compile(r"[^\s@\x00-\x1f]{1,128}")
_REDIS_SCHEMES = ("redis", "rediss", "unix", "redis+sentinel")


def _worker_name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError("must be letters, digits, dot, dash or underscore, at most 64")
    return value


def _model_name(value: Any) -> str:
    if not isinstance(value, str) or not _MODEL_NAME.fullmatch(value):
        raise ValueError("must be a word without spaces or @ (MODEL@WORKER pins a worker)")
    return value


def _mode_name(value: Any) -> str:
    if not isinstance(value, str) or value not in MODES:  # a list cannot be looked up
        raise ValueError(f"there is no mode {value!r:.60}|{suggestion(str(value), MODES)}")
    return value


def _switch(value: Any) -> Any:
    """YAML reads an unquoted on or off as a boolean."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


def _arms(value: Any) -> Any:
    """`auto`, `off`, or lengths: a number, or `{n_max: N, p_min: P}`."""
    if value in ("auto", None):
        return None
    if _switch(value) == "off":
        return ()
    if not isinstance(value, (list, tuple)):
        raise ValueError("must be `auto`, `off` or a list of draft lengths such as [0, 3]")
    return tuple({"n_max": arm} if isinstance(arm, int) else arm for arm in value)


def _layers(value: Any) -> int | str:
    if value == "all":
        return "all"
    if isinstance(value, bool) or not str(value).isdigit():
        raise ValueError("must be a number of layers or `all`")
    return int(value)


def _device(value: Any) -> int | str:
    text = str(value)
    if isinstance(value, bool) or not text:
        raise ValueError("must be a GPU's index (0) or llama.cpp's name of a device (CUDA0)")
    return int(text) if text.isdigit() else text


def _redis_url(value: Any) -> str:
    scheme = str(value).partition("://")[0]
    if value != "embedded" and scheme not in _REDIS_SCHEMES:
        raise ValueError("must be `embedded` or a redis://, rediss:// or unix:// URL")
    return str(value)


def _http_url(value: Any) -> str | None:
    if value is not None and not re.match(r"https?://[^/\s]+", str(value)):
        raise ValueError("must be an http:// or https:// URL with a host")
    return None if value is None else str(value).rstrip("/")


def _path(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return Path(value).expanduser() if value else None
    except RuntimeError as error:  # pydantic knows ValueError only
        raise ValueError("must be a path; its ~ names nobody of this host") from error


_STRING = WithJsonSchema({"type": "string"})
_OPTIONAL = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]})
WorkerName = Annotated[str, BeforeValidator(_worker_name)]
ModelName = Annotated[str, BeforeValidator(_model_name)]
Switch = Annotated[Literal["on", "off", "auto"], BeforeValidator(_switch)]
ModeName = Annotated[
    str, BeforeValidator(_mode_name), WithJsonSchema({"type": "string", "enum": list(MODES)})
]
Layers = Annotated[
    Any,
    BeforeValidator(_layers),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"const": "all"}]}),
]
Device = Annotated[
    Any,
    BeforeValidator(_device),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}),
]
RedisURL = Annotated[str, BeforeValidator(_redis_url), _STRING]
HTTPURL = Annotated[str | None, BeforeValidator(_http_url), _OPTIONAL]
FilePath = Annotated[Path | None, BeforeValidator(_path)]
Port = Annotated[int, Field(ge=1, le=65535)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
VariableName = Annotated[str, Field(pattern="^[^=]+$")]  # else no process can be started with it


class Section(BaseModel):
    """Frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class ServerSection(Section):
    """Where the gateway listens."""

    host: str = "127.0.0.1"
    port: Port = 8080
    processes: Count = 1
    allowed_hosts: tuple[str, ...] = ()  # Host headers besides loopback's
    cors_origins: tuple[str, ...] = ()  # browser pages that may ask, or "*"
    shutdown_grace: Positive = 30.0  # for running streams after SIGTERM


class RedisSection(Section):
    """`embedded` is a redis-server of our own on a unix socket."""

    url: RedisURL = "embedded"


class KeySection(Section):
    """One API key, given in plain (from the environment, better) or as its SHA-256."""

    label: str
    key: str | None = None
    digest: str | None = Field(None, pattern=r"^[0-9a-f]{64}$")
    admin: bool = False
    models: tuple[str, ...] | None = None  # None: all
    priority: int = 0
    requests_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None


class AuthSection(Section):
    """Secrets that are left out are generated into the state folder."""

    admin_token: str | None = None
    cluster_secret: str | None = None
    keys: tuple[KeySection, ...] = ()
    tenant_safe: bool = False


class LimitsSection(Section):
    """What a request may cost before it is refused."""

    max_body_bytes: Count = 32 * 1024 * 1024
    queue_size: Annotated[int, Field(ge=0)] = 256
    wait_for_worker: Annotated[float, Field(ge=0)] = 0.0  # seconds, while a model has none
    connect_timeout: Positive = 5.0
    first_byte_timeout: Positive = 60.0
    prompt_tokens_per_second: Positive = 10.0  # the slowest prefill that is not yet a stall
    chunk_timeout: Positive = 120.0
    total_timeout: Positive = 3600.0  # of a request, waiting included
    max_grammar_bytes: Count = 64 * 1024


class ModelSection(Section):
    """One served model."""

    name: ModelName
    target: FilePath = None
    aliases: tuple[ModelName, ...] = ()


class NgramSection(Section):
    """Sizes of the ngram modes."""

    size_n: Count | None = None
    size_m: Count | None = None
    min_hits: Count | None = None
    n_match: Count | None = None


class ArmSection(Section):
    """One draft length offered per request, on builds that honour it; 0 drafts nothing."""

    n_max: Annotated[int, Field(ge=0)]
    p_min: Share | None = None


Arms = Annotated[
    tuple[ArmSection, ...] | None,
    BeforeValidator(_arms),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["auto", "off", False]},
                {"type": "array", "items": {"type": ["integer", "object"]}},
            ]
        }
    ),
]


class GPUSection(Section):
    """Where the weights live."""

    devices: tuple[Device, ...] = ()
    layers: Layers | None = None
    split: tuple[Positive, ...] = ()
    main: Annotated[int, Field(ge=0)] | None = None
    draft_devices: tuple[Device, ...] = ()
    draft_layers: Layers | None = None


class WorkerSection(Section):
    """One llama-server (contract, section 2). `context` is tokens per request."""

    name: WorkerName
    model: ModelName
    mode: ModeName = "ar"
    draft: FilePath = None
    engine: Literal["llama-server", "luce", "external"] = "llama-server"
    binary: FilePath = None
    url: HTTPURL = None
    api_key: str | None = None  # of a server attached by `url`; ours have derived ones
    host: str = "127.0.0.1"
    port: Port | None = None
    context: Annotated[int, Field(ge=1)] = 4096
    slots: Count = 1
    kv: Literal["split", "unified"] = "split"
    threads: Count | None = None
    dialect: Literal["auto", "stock", "patched"] = "auto"
    reasoning: Switch = "auto"
    n_max: Count | None = None
    n_min: Annotated[int, Field(ge=0)] | None = None
    p_min: Share | None = None
    margin: Positive | None = None
    gap: Share | None = None
    arms: Arms = None
    ngram: NgramSection = NgramSection()
    draft_context: Count | None = None
    gpu: GPUSection = GPUSection()
    exclusive_group: str | None = None
    vision: bool = False
    priority: int = 0
    load_timeout: Positive = 1800.0
    acceptance_floor: Share = 0.05
    args: tuple[str, ...] = ()
    env: dict[VariableName, str] = Field(default_factory=dict)


class RoutingSection(Section):
    """How a worker is chosen; `priors` are relative decode speeds by mode and class, AR = 1."""

    policy: str = "learned"  # or `module:Name`
    priors: dict[ModeName, dict[str, Positive]] = Field(default_factory=dict)
    exploration_budget: Share = 0.02  # of the seconds served
    exploration_window: Count = 1000  # requests over which the budget holds
    max_loss: Positive = 2.0  # predicted, that one exploring request may cost
    max_loss_share: Share = 0.5
    ar_floor: Share = 0.005  # of requests, while AR lacks recent answers
    ar_floor_answers: Count = 20
    switch_margin: Share = 0.15  # gain that makes a conversation leave its worker
    tie_margin: Share = 0.02
    half_life: Positive = 1800.0
    min_class_probability: Share = 0.15
    seed: int = 0
    static_worker: str | None = None


class LearningSection(Section):
    """Training the classifier on one's own traffic, of which hashes are kept, never text."""

    enabled: bool = True
    min_answers: Count = 500  # between two studies
    interval: Positive = 600.0  # seconds between looks at whether it is time


class RemoteSection(Section):
    """A model elsewhere, by litellm's name: PROVIDER/MODEL. `url` alone means openai/MODEL."""

    model: str | None = None
    url: HTTPURL = None  # with its /v1; left out: the provider's own
    api_key: str | None = None
    extra_fields: bool = False  # send llama.cpp's own fields (grammar, min_p, ...) along


class FallbackSection(RemoteSection):
    """Who answers when no worker can: for every model, and in `models` for single ones."""

    models: dict[ModelName, RemoteSection] = Field(default_factory=dict)
    when: tuple[Literal["down", "full", "unsupported"], ...] = ("down", "full", "unsupported")


class TelemetrySection(Section):
    """Logs, the decision log, traces."""

    log_format: Literal["console", "json"] = "console"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    decision_log: bool = True
    otlp_endpoint: HTTPURL = None


class DashboardSection(Section):
    """The ops dashboard, its own process."""

    enabled: bool = True
    host: str = "127.0.0.1"
    port: Port = 8081
    url: HTTPURL = None  # where browsers reach it, when not at host and port
