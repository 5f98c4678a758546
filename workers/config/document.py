"""The whole configuration as one frozen value, and how it becomes worker and model specs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import PrivateAttr

from workers.config.sections import (
    AuthSection,
    DashboardSection,
    FallbackSection,
    GPUSection,
    LearningSection,
    LimitsSection,
    ModelSection,
    RedisSection,
    RoutingSection,
    Section,
    ServerSection,
    TelemetrySection,
    WorkerSection,
)
from workers.config.source import Source
from workers.spec import GPUSettings, ModelSpec, NgramSettings, WorkerSpec

if TYPE_CHECKING:
    from workers.tiny import TinyTrio

TINY_MODEL = "tiny"
# What a WorkerSpec takes over from its section as it is.
_SAME = (
    *("name", "model", "mode", "engine", "url", "host", "port", "context", "slots", "kv"),
    *("threads", "dialect", "reasoning", "n_max", "n_min", "p_min", "margin", "gap"),
    *("draft_context", "exclusive_group", "vision", "priority", "load_timeout"),
    *("acceptance_floor", "args", "api_key"),
)


class Config(Section):
    """Every section of the contract; what is left out has its default."""

    server: ServerSection = ServerSection()
    redis: RedisSection = RedisSection()
    auth: AuthSection = AuthSection()
    limits: LimitsSection = LimitsSection()
    models: tuple[ModelSection, ...] = ()
    workers: tuple[WorkerSection, ...] = ()
    routing: RoutingSection = RoutingSection()
    learning: LearningSection = LearningSection()
    fallback: FallbackSection = FallbackSection()
    telemetry: TelemetrySection = TelemetrySection()
    dashboard: DashboardSection = DashboardSection()

    _source: Source = PrivateAttr(default_factory=lambda: Source("no file"))
    _folder: Path = PrivateAttr(default_factory=Path)

    @property
    def source(self) -> Source:
        """Where each value was written."""
        return self._source

    def written_in(self, path: Path | None, source: Source) -> Config:
        """This configuration with its origin; relative paths count from the file's folder."""
        self._source = source
        self._folder = Path() if path is None else path.resolve().parent
        return self

    def resolved(self, path: Path | None) -> Path | None:
        """A path as written, made absolute; None stays None."""
        return None if path is None else self._folder / path

    def model_specs(self) -> tuple[ModelSpec, ...]:
        """The served models in their order."""
        return tuple(
            ModelSpec(model.name, self.resolved(model.target), model.aliases)
            for model in self.models
        )

    def worker_specs(self) -> tuple[WorkerSpec, ...]:
        """The workers in their order; one of an unknown model has no target."""
        models = {model.name: model for model in self.model_specs()}
        unknown = ModelSpec("")
        return tuple(self._worker(w, models.get(w.model, unknown)) for w in self.workers)

    def _worker(self, section: WorkerSection, model: ModelSpec) -> WorkerSpec:
        same: dict[str, Any] = {name: getattr(section, name) for name in _SAME}
        binary = section.binary
        # A bare name is looked for on the PATH; anything with a folder is a path.
        found = self.resolved(binary) if binary and len(binary.parts) > 1 else binary
        return WorkerSpec(
            **same,
            target=model.target,
            aliases=model.aliases,
            tenant_safe=self.auth.tenant_safe,
            draft=self.resolved(section.draft),
            binary=found,
            arms=_arms(section),
            ngram=NgramSettings(**dict(section.ngram)),
            gpu=_gpu(section.gpu),
            env=tuple(sorted(section.env.items())),
        )


def _arms(section: WorkerSection) -> tuple[tuple[int, float | None], ...] | None:
    arms = section.arms
    return None if arms is None else tuple((arm.n_max, arm.p_min) for arm in arms)


def _gpu(section: GPUSection) -> GPUSettings:
    return GPUSettings(**dict(section))


def default_config(tiny: TinyTrio | None) -> Config:
    """What `up` serves without a file: the tiny trio in three modes, one thread each.

    One thread, because on two cores more threads of three servers only wait for one another. None:
    no models and no workers.
    """
    if tiny is None:
        return Config()
    common: dict[str, Any] = {"model": TINY_MODEL, "context": 4096, "slots": 2, "threads": 1}
    return Config(
        models=(ModelSection(name=TINY_MODEL, target=tiny.target),),
        workers=(
            WorkerSection(name="dflash", mode="dflash2-margin", draft=tiny.draft, **common),
            WorkerSection(name="mtp", mode="mtp-n3", **common),
            WorkerSection(name="plain", mode="ar", **common),
        ),
    )
