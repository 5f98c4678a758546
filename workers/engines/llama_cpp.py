"""llama.cpp's llama-server: the flags of every mode, checked against what the binary lists."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.capabilities import DFLASH2_BUILD, dialect_of, parse, read
from workers.engines.base import EngineMissing, LaunchContext, Routes
from workers.llama_options import usage, version
from workers.modes import MODES, Mode, p_min
from workers.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from workers.capabilities import Capabilities
    from workers.modes import BuildDialect
    from workers.spec import GPUSettings, WorkerSpec

_DEVICE_FLAGS = ("--device", "--spec-draft-device")

# Rendered for every worker (contract, section 2): stock defaults shrink the context silently, serve
# a web page, and answer to any origin.
ALWAYS = ("--fit", "off", "--no-ui", "--cors-origins", "localhost", "--metrics", "--slots")

# Nothing is found again but what a gateway names as the request's own (router/fleet/pins.py).
TENANT_SAFE = ("--cache-ram", "0", "--no-cache-prompt")

_ANY_FILE = Path("model.gguf")  # stands in where only the names of flags matter

# -P: a folder called `workers` where the user happens to stand must not be run instead of ours.
EMBEDDED = (sys.executable, "-P", "-m", "workers.llama_embedded")


class LlamaCpp:
    """A user's own binary first (`binary`, then the PATH), else the embedded one."""

    name = "llama-server"
    routes = Routes()
    features: tuple[str, ...] = ("tools", "grammar", "json_schema", "logprobs", "n")

    def command(self, spec: WorkerSpec, path: str) -> tuple[str, ...]:
        """The program to run."""
        if spec.binary is not None:
            found = shutil.which(str(spec.binary), path=path)
            if found is None:
                raise EngineMissing(
                    f"{spec.binary} is not an executable file: correct `binary`, or leave it out "
                    "to use the llama-server on the PATH or the embedded one"
                )
            return (found,)
        found = shutil.which("llama-server", path=path)
        if found is not None:
            return (found,)
        if importlib.util.find_spec("xllamacpp") is not None:
            return EMBEDDED
        raise EngineMissing(
            "no llama-server on the PATH and no embedded engine: set `binary`, or install the "
            "embedded one with: pip install 'specroute[local]'"
        )

    def read_capabilities(self, command: tuple[str, ...]) -> Capabilities:
        """From --help and --version; the embedded engine is asked without starting it."""
        return parse(usage(), version()) if command == EMBEDDED else read(command)

    def render_argv(self, spec: WorkerSpec, launch: LaunchContext) -> tuple[str, ...]:
        """Program, address, model, size, mode, GPU; the worker's own `args` have the last word."""
        dialect, _ = dialect_of(spec, launch.capabilities)
        return (
            *launch.command,
            *("--host", spec.host, "--port", str(launch.port)),
            *("--api-key-file", str(launch.api_key_file)),
            *ALWAYS,
            *_model_flags(spec),
            *_size_flags(spec),
            *(TENANT_SAFE if spec.tenant_safe else ()),
            *speculation_flags(spec, dialect),
            *_gpu_flags(spec.gpu),
            *(() if spec.reasoning == "auto" else ("--reasoning", spec.reasoning)),
            *spec.args,
        )

    def problems(self, spec: WorkerSpec, capabilities: Capabilities | None) -> tuple[str, ...]:
        """Flags, speculation types and builds that do not go together."""
        if capabilities is None:
            return ()
        launch = LaunchContext(("llama-server",), 1, _ANY_FILE, capabilities)
        flags = [word for word in self.render_argv(spec, launch)[1:] if _is_flag(word)]
        found = [_unknown_flag(flag, spec) for flag in capabilities.unknown(_unique(flags))]
        found.extend(_type_problems(MODES[spec.mode], capabilities))
        return tuple(found)

    def parse_timings(self, final: Mapping[str, Any]) -> Timings:
        """The top-level `timings` block."""
        return Timings.from_payload(final.get("timings"))


def speculation_flags(spec: WorkerSpec, dialect: BuildDialect) -> tuple[str, ...]:
    """The flags of the worker's mode (contract, table of modes)."""
    mode = MODES[spec.mode]
    if mode.spec_type is None:
        return ()
    flags = ["--spec-type", mode.spec_type]
    if spec.draft is not None and mode.needs_draft:
        flags += ["-md", str(spec.draft)]
    if mode.by_lookup:
        return (*flags, *_lookup_flags(spec, mode))
    flags += _given("--spec-draft-n-max", mode.n_max if spec.n_max is None else spec.n_max)
    flags += _given("--spec-draft-n-min", mode.n_min if spec.n_min is None else spec.n_min)
    flags += _given("--spec-draft-p-min", p_min(spec, dialect))
    flags += _given("--spec-draft-ctx", spec.draft_context)
    return tuple(flags)


def _lookup_flags(spec: WorkerSpec, mode: Mode) -> list[str]:
    """Sizes of the ngram modes; only ngram-mod has its own limits on the draft's length."""
    limits = "--spec-ngram-mod" if mode.name == "ngram-mod" else "--spec-draft"
    flags = _given(f"{limits}-n-max", spec.n_max) + _given(f"{limits}-n-min", spec.n_min)
    for name in mode.ngram:
        value = getattr(spec.ngram, name)
        flags += _given(f"--spec-{mode.spec_type}-{name.replace('_', '-')}", value)
    return flags


def _model_flags(spec: WorkerSpec) -> tuple[str, ...]:
    # Not the aliases: of several names the server puts the alphabetically first into its answers.
    return ("-m", str(spec.target), "--alias", spec.model)


def _size_flags(spec: WorkerSpec) -> tuple[str, ...]:
    """`context` is tokens per request: multiplied out when each slot has its own share."""
    unified = spec.kv == "unified"
    tokens = spec.context if unified else spec.context * spec.slots
    threads = () if spec.threads is None else ("-t", str(spec.threads))
    layout = ("--kv-unified",) if unified else ()
    return ("-c", str(tokens), "-np", str(spec.slots), *layout, *threads)


def _gpu_flags(gpu: GPUSettings) -> tuple[str, ...]:
    flags: list[str] = []
    flags += _joined("--device", map(_device, gpu.devices))
    flags += _given("-ngl", gpu.layers)
    flags += _joined("--tensor-split", (f"{share:g}" for share in gpu.split))
    flags += _given("--main-gpu", gpu.main)
    flags += _joined("--spec-draft-device", map(_device, gpu.draft_devices))
    flags += _given("--spec-draft-ngl", gpu.draft_layers)
    return tuple(flags)


def _device(device: int | str) -> str:
    """An index means the CUDA device of that number; other backends are named in full."""
    return f"CUDA{device}" if isinstance(device, int) else device


def _joined(flag: str, values: Iterable[str]) -> list[str]:
    text = ",".join(values)
    return [flag, text] if text else []


def _given(flag: str, value: float | str | None) -> list[str]:
    if value is None:
        return []
    return [flag, f"{value:g}" if isinstance(value, float) else str(value)]


def _type_problems(mode: Mode, capabilities: Capabilities) -> list[str]:
    found = []
    offered = capabilities.spec_types
    if mode.spec_type is not None and offered and mode.spec_type not in offered:
        found.append(
            f"mode {mode.name} needs --spec-type {mode.spec_type}, this build offers "
            f"{', '.join(sorted(offered))}: use a newer llama-server"
        )
    build = capabilities.build
    if mode.name.startswith("dflash2") and build is not None and build < DFLASH2_BUILD:
        found.append(
            f"DFlash2 needs a llama.cpp of b{DFLASH2_BUILD} or later, this is b{build}: "
            "use a newer llama-server"
        )
    return found


def _unknown_flag(flag: str, spec: WorkerSpec) -> str:
    if flag == "--spec-draft-ctx":
        return "`draft_context` needs a build with --spec-draft-ctx, this one has none: remove it"
    if flag in _DEVICE_FLAGS and flag not in spec.args:
        return (
            f"this llama-server cannot place weights with {flag} (the embedded one is for the "
            "CPU): set `binary` to a build for your GPU, or remove `gpu.devices`"
        )
    where = "from `args`: remove or correct it" if flag in spec.args else "use a newer llama-server"
    return f"this llama-server does not know {flag}; {where}"


def _is_flag(word: str) -> bool:
    return word.startswith("-") and not word[1:2].isdigit() and len(word) > 1


def _unique(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))
