"""Which llama-server flags the embedded engine takes, and where each goes in CommonParams.

Names and meanings are llama-server's (b11434); the table has what xllamacpp exposes. Kept apart
from the program so that listing the flags imports no engine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

Reader = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Option:
    """One flag. `path` is a dotted attribute of CommonParams; without reader it sets `value`."""

    names: tuple[str, ...]
    path: str
    read: Reader | None = None
    hint: str = "N"
    value: Any = True

    @property
    def takes_value(self) -> bool:
        """Whether the next word belongs to it."""
        return self.read is not None

    def apply(self, params: Any, _flag: str, text: str) -> None:
        """Set the attribute. Raises ValueError or KeyError for a value it cannot take."""
        owner, name = _owner(params, self.path)
        setattr(owner, name, self.value if self.read is None else self.read(text))
        _remember_sampling(params, self.path)


@dataclass(frozen=True, slots=True)
class Toggle(Option):
    """A flag with a `--no-` twin; the first names switch on."""

    off: tuple[str, ...] = ()
    inverted: bool = False

    def apply(self, params: Any, flag: str, _text: str) -> None:
        """Set the attribute to what this spelling of the flag means."""
        owner, name = _owner(params, self.path)
        setattr(owner, name, (flag not in self.off) != self.inverted)


@dataclass(frozen=True, slots=True)
class Call(Option):
    """A flag that is more than one attribute."""

    act: Callable[[Any, str], None] = lambda _params, _text: None

    def apply(self, params: Any, _flag: str, text: str) -> None:
        """Run the action."""
        self.act(params, text)


def _owner(params: Any, path: str) -> tuple[Any, str]:
    *parents, name = path.split(".")
    for parent in parents:
        params = getattr(params, parent)
    return params, name


def _remember_sampling(params: Any, path: str) -> None:
    """Mark a sampling value as the user's, or the model file's own recommendation replaces it."""
    import xllamacpp

    name = f"COMMON_PARAMS_SAMPLING_CONFIG_{path.rpartition('.')[2].upper()}"
    bit = getattr(xllamacpp.common_params_sampling_config, name, None)
    if path.startswith("sampling.") and bit is not None:
        params.sampling.user_sampling_config |= int(bit)


def _enum(kind: str, prefix: str) -> Reader:
    def read(text: str) -> Any:
        import xllamacpp

        members = getattr(xllamacpp, kind).__members__
        name = prefix + text.upper().replace("-", "_").replace("+", "_")
        if name not in members:
            known = (m.removeprefix(prefix).lower() for m in members if m.startswith(prefix))
            raise ValueError(f"must be one of {', '.join(known)}")
        return members[name]

    return read


def _on_off(text: str) -> bool:
    return _choice({"on": True, "1": True, "off": False, "0": False})(text)  # type: ignore[no-any-return]


def _choice(values: dict[str, Any]) -> Reader:
    def read(text: str) -> Any:
        if text not in values:
            raise ValueError(f"must be one of {', '.join(values)}")
        return values[text]

    return read


def _layers(text: str) -> int:
    return {"auto": -1, "all": -2}.get(text) or int(text)


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _keys_in(params: Any, path: str) -> None:
    lines = (line.strip() for line in Path(path).read_text().splitlines())
    params.api_keys = [*params.api_keys, *(k for k in lines if k and not k.startswith("#"))]


def _keys(params: Any, text: str) -> None:
    params.api_keys = [*params.api_keys, *_words(text)]


def _origins(params: Any, text: str) -> None:
    params.cors_origins = text
    params.cors_origins_explicit = True


def _spec_types(params: Any, text: str) -> None:
    read = _enum("common_speculative_type", "COMMON_SPECULATIVE_TYPE_")
    params.speculative.types = [read(word) for word in _words(text)]
    # The head's tensors are only read from the target file when somebody will use them.
    params.load_mtp = "draft-mtp" in _words(text)


def _tensor_split(params: Any, text: str) -> None:
    shares = [float(word) for word in _words(text)]
    params.tensor_split = shares + [0.0] * (len(params.tensor_split) - len(shares))


def _template_arguments(params: Any, text: str) -> None:
    values = json.loads(text)
    if not isinstance(values, dict):
        raise ValueError("must be a JSON object")
    params.default_template_kwargs = {key: json.dumps(value) for key, value in values.items()}


def _rates(params: Any, text: str) -> None:
    params.speculative.synth_rates = [float(word) for word in _words(text)]


SPEC_TYPES = (
    "none",
    *(f"draft-{kind}" for kind in ("simple", "eagle3", "mtp", "dflash", "dspark")),
    *(f"ngram-{kind}" for kind in ("simple", "map-k", "map-k4v", "mod", "cache")),
)

_CACHE = _enum("ggml_type", "GGML_TYPE_")
_D = "speculative.draft"
_S = "sampling"

OPTIONS: tuple[Option, ...] = (
    # model and address
    Option(("-m", "--model"), "model.path", str, "FILE"),
    Option(("-a", "--alias"), "model_alias", lambda text: set(_words(text)), "NAMES"),
    Option(("-mm", "--mmproj"), "mmproj.path", str, "FILE"),
    Option(("--host",), "hostnames", _words, "HOST"),
    Option(("--port",), "port", int),
    Toggle(("--reuse-port",), "reuse_port"),
    Option(("--api-prefix",), "api_prefix", str, "PREFIX"),
    Call(("--api-key",), "api_keys", str, "KEY", act=_keys),
    Call(("--api-key-file",), "api_keys", str, "FILE", act=_keys_in),
    Call(("--cors-origins",), "cors_origins", str, "ORIGINS", act=_origins),
    Toggle(("--metrics",), "endpoint_metrics"),
    Toggle(("--props",), "endpoint_props"),
    Toggle(("--slots", "--no-slots"), "endpoint_slots", off=("--no-slots",)),
    Toggle(("--ui", "--webui", "--no-ui", "--no-webui"), "ui", off=("--no-ui", "--no-webui")),
    Option(("-to", "--timeout"), "timeout_read", int),
    Option(("--threads-http",), "n_threads_http", int),
    Option(("--sse-ping-interval",), "sse_ping_interval", int),
    Option(("--sleep-idle-seconds",), "sleep_idle_seconds", int),
    Option(("--slot-save-path",), "slot_save_path", str, "PATH"),
    Option(("-sps", "--slot-prompt-similarity"), "slot_prompt_similarity", float),
    Option(("-lv", "--verbosity", "--log-verbosity"), "verbosity", int),
    # size
    Option(("-c", "--ctx-size"), "n_ctx", int),
    Option(("-np", "--parallel"), "n_parallel", int),
    Toggle(
        ("-kvu", "--kv-unified", "-no-kvu", "--no-kv-unified"),
        "kv_unified",
        off=("-no-kvu", "--no-kv-unified"),
    ),
    Option(("-b", "--batch-size"), "n_batch", int),
    Option(("-ub", "--ubatch-size"), "n_ubatch", int),
    Option(("-n", "--predict", "--n-predict"), "n_predict", int),
    Option(("--keep",), "n_keep", int),
    Toggle(
        ("-cb", "--cont-batching", "-nocb", "--no-cont-batching"),
        "cont_batching",
        off=("-nocb", "--no-cont-batching"),
    ),
    Toggle(("--cache-prompt", "--no-cache-prompt"), "cache_prompt", off=("--no-cache-prompt",)),
    Option(("--cache-reuse",), "n_cache_reuse", int),
    Option(("-cram", "--cache-ram"), "cache_ram_mib", int),
    Option(("-ctxcp", "--ctx-checkpoints", "--swa-checkpoints"), "n_ctx_checkpoints", int),
    Toggle(
        ("--cache-idle-slots", "--no-cache-idle-slots"),
        "cache_idle_slots",
        off=("--no-cache-idle-slots",),
    ),
    Toggle(("--context-shift", "--no-context-shift"), "ctx_shift", off=("--no-context-shift",)),
    Option(("-ctk", "--cache-type-k"), "cache_type_k", _CACHE, "TYPE"),
    Option(("-ctv", "--cache-type-v"), "cache_type_v", _CACHE, "TYPE"),
    Option(
        ("-fa", "--flash-attn"),
        "flash_attn_type",
        lambda text: _enum("llama_flash_attn_type", "LLAMA_FLASH_ATTN_TYPE_")(
            {"on": "enabled", "off": "disabled"}.get(text, text)
        ),
        "on|off|auto",
    ),
    Toggle(("--swa-full",), "swa_full"),
    Option(("-fit", "--fit"), "fit_params", _on_off, "on|off"),
    Toggle(("--warmup", "--no-warmup"), "warmup", off=("--no-warmup",)),
    # threads and devices
    Option(("-t", "--threads"), "cpuparams.n_threads", int),
    Option(("-tb", "--threads-batch"), "cpuparams_batch.n_threads", int),
    Option(("--poll",), "cpuparams.poll", int),
    Option(("-ngl", "--gpu-layers", "--n-gpu-layers"), "n_gpu_layers", _layers, "N|all|auto"),
    Option(
        ("-sm", "--split-mode"),
        "split_mode",
        _enum("llama_split_mode", "LLAMA_SPLIT_MODE_"),
        "MODE",
    ),
    Call(("-ts", "--tensor-split"), "tensor_split", str, "N0,N1", act=_tensor_split),
    Option(("-mg", "--main-gpu"), "main_gpu", int),
    Toggle(
        ("-kvo", "--kv-offload", "-nkvo", "--no-kv-offload"),
        "no_kv_offload",
        off=("-nkvo", "--no-kv-offload"),
        inverted=True,
    ),
    Option(
        ("-lm", "--load-mode"), "load_mode", _enum("llama_load_mode", "LLAMA_LOAD_MODE_"), "MODE"
    ),
    # what kind of server
    Toggle(("--embedding", "--embeddings"), "embedding"),
    Option(
        ("--pooling",), "pooling_type", _enum("llama_pooling_type", "LLAMA_POOLING_TYPE_"), "TYPE"
    ),
    # chat and thinking
    Toggle(("--jinja", "--no-jinja"), "use_jinja", off=("--no-jinja",)),
    Option(("--chat-template",), "chat_template", str, "TEMPLATE"),
    Option(("--chat-template-file",), "chat_template", lambda path: Path(path).read_text(), "FILE"),
    Call(
        ("--chat-template-kwargs",), "default_template_kwargs", str, "JSON", act=_template_arguments
    ),
    Option(
        ("--reasoning-format",),
        "reasoning_format",
        _enum("common_reasoning_format", "COMMON_REASONING_FORMAT_"),
        "FORMAT",
    ),
    Option(
        ("-rea", "--reasoning"),
        "enable_reasoning",
        _choice({"on": 1, "off": 0, "auto": -1}),
        "on|off|auto",
    ),
    Option(("--reasoning-budget",), f"{_S}.reasoning_budget_tokens", int),
    # sampling defaults
    Option(("-s", "--seed"), f"{_S}.seed", lambda text: int(text) % 2**32),
    Option(("--temp", "--temperature"), f"{_S}.temp", float),
    Option(("--top-k",), f"{_S}.top_k", int),
    Option(("--top-p",), f"{_S}.top_p", float),
    Option(("--min-p",), f"{_S}.min_p", float),
    Option(("--repeat-last-n",), f"{_S}.penalty_last_n", int),
    Option(("--repeat-penalty",), f"{_S}.penalty_repeat", float),
    Option(("--presence-penalty",), f"{_S}.penalty_present", float),
    Option(("--frequency-penalty",), f"{_S}.penalty_freq", float),
    Toggle(("-bs", "--backend-sampling"), f"{_S}.backend_sampling"),
    Toggle(("--ignore-eos",), f"{_S}.ignore_eos"),
    # speculation
    Call(("--spec-type",), "speculative.types", str, ",".join(SPEC_TYPES), act=_spec_types),
    Option(("--spec-draft-model", "-md", "--model-draft"), f"{_D}.mparams.path", str, "FILE"),
    Option(("--spec-draft-n-max",), f"{_D}.n_max", int),
    Option(("--spec-draft-n-min",), f"{_D}.n_min", int),
    Option(("--spec-draft-p-min", "--draft-p-min"), f"{_D}.p_min", float, "P"),
    Option(("--spec-draft-p-split", "--draft-p-split"), f"{_D}.p_split", float, "P"),
    Option(("--spec-draft-device", "-devd", "--device-draft"), f"{_D}.devices", str, "DEVICES"),
    Option(
        ("--spec-draft-ngl", "-ngld", "--gpu-layers-draft", "--n-gpu-layers-draft"),
        f"{_D}.n_gpu_layers",
        _layers,
        "N|all|auto",
    ),
    Option(("--spec-draft-threads", "-td", "--threads-draft"), f"{_D}.cpuparams.n_threads", int),
    Option(
        ("--spec-draft-type-k", "-ctkd", "--cache-type-k-draft"),
        f"{_D}.cache_type_k",
        _CACHE,
        "TYPE",
    ),
    Option(
        ("--spec-draft-type-v", "-ctvd", "--cache-type-v-draft"),
        f"{_D}.cache_type_v",
        _CACHE,
        "TYPE",
    ),
    Toggle(
        ("--spec-draft-backend-sampling", "--no-spec-draft-backend-sampling"),
        f"{_D}.backend_sampling",
        off=("--no-spec-draft-backend-sampling",),
    ),
    Option(("--spec-synth-len",), "speculative.synth_len", float, "L"),
    Call(("--spec-synth-rates",), "speculative.synth_rates", str, "P0,P1", act=_rates),
    Option(("--spec-ngram-mod-n-min",), "speculative.ngram_mod.n_min", int),
    Option(("--spec-ngram-mod-n-max",), "speculative.ngram_mod.n_max", int),
    Option(("--spec-ngram-mod-n-match",), "speculative.ngram_mod.n_match", int),
    *(
        Option(
            (f"--spec-ngram-{kind}-{field.replace('_', '-')}",),
            f"speculative.ngram_{kind.replace('-', '_')}.{field}",
            int,
        )
        for kind in ("simple", "map-k", "map-k4v")
        for field in ("size_n", "size_m", "min_hits")
    ),
)

BY_NAME: dict[str, Option] = {name: option for option in OPTIONS for name in option.names}

_AUTO_SLOTS = 4  # what llama-server chooses when -np is not given, with one shared KV buffer


def finish(params: Any, given: set[str]) -> None:
    """The defaults that llama-server derives after it has read the command line."""
    if "--parallel" not in given:
        params.n_parallel = _AUTO_SLOTS
        params.kv_unified = params.kv_unified or "--kv-unified" not in given
    if params.cpuparams.n_threads < 1:
        params.cpuparams.n_threads = os.cpu_count() or 1
    for threads in (
        params.cpuparams_batch,
        params.speculative.draft.cpuparams,
        params.speculative.draft.cpuparams_batch,
    ):
        if threads.n_threads < 1:
            threads.n_threads = params.cpuparams.n_threads
    params.timeout_write = params.timeout_read


def usage() -> str:
    """The flags this program takes, laid out like llama-server's own help."""
    lines = ["usage: python -m workers.llama_embedded -m MODEL.gguf [flags of llama-server]", ""]
    for names, hint in (
        (("-h", "--help", "--usage"), "print this and exit"),
        (("--version",), "print the version of llama.cpp and exit"),
        *((option.names, option.path) for option in OPTIONS),
    ):
        option = BY_NAME.get(names[0])
        head = ", ".join(names) + (f" {option.hint}" if option and option.takes_value else "")
        lines.append(f"{head:<58}  {hint}")
    return "\n".join(lines)


def version() -> str:
    """llama.cpp's build number as xllamacpp's version tells it."""
    packaged = metadata.version("xllamacpp")
    return f"version: {packaged.rpartition('.')[2]} (xllamacpp {packaged})"
