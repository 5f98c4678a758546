"""Everything the gateway is told, as one frozen value, and how the YAML's form becomes it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from router.access import KeyEntry, hash_key
from router.access.key_watch import Made, merged
from router.access.keys import read_keys
from router.policy.settings import PolicySettings
from router.relay import Budgets
from router.relay.fallback import Remote

if TYPE_CHECKING:
    from pathlib import Path

    from workers.config import Config
    from workers.config.sections import RemoteSection


class UnsafeSettings(ValueError):
    """Settings that would serve strangers without a key."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Sizes in bytes, times in seconds. `models` are (name, aliases)."""

    host: str = "127.0.0.1"
    port: int = 8080
    processes: int = 1
    process: int = 0  # which of them this is
    family_dir: Path | None = None  # where several processes meet for one page of figures
    models: tuple[tuple[str, tuple[str, ...]], ...] = ()
    redis_url: str | None = None
    cluster_secret: str = ""
    state_dir: Path | None = None
    admin_token: str | None = None
    keys: tuple[KeyEntry, ...] = ()  # the config's
    made_keys: Made = field(default_factory=Made)  # `specroute keys`'s, as known at the start
    allowed_hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    tenant_safe: bool = False
    max_body_bytes: int = 32 * 1024 * 1024
    max_grammar_bytes: int = 64 * 1024
    max_queue: int = 256
    wait_for_worker_s: float = 0.0
    budgets: Budgets = field(default_factory=Budgets)
    policy: str = "learned"
    policy_settings: PolicySettings = field(default_factory=PolicySettings)
    fallback: Remote | None = None
    fallbacks: tuple[tuple[str, Remote], ...] = ()  # (model, its own)
    fallback_when: tuple[str, ...] = ("down", "full", "unsupported")
    external_keys: tuple[tuple[str, str], ...] = ()  # (worker, API key) of servers not ours
    learning: bool = True
    learning_answers: int = 500  # new answers before the classifier studies them
    learning_interval: float = 600.0
    decision_log: bool = True
    otlp_endpoint: str | None = None
    dashboard_url: str | None = None
    log_format: str = "console"
    log_level: str = "info"
    shutdown_grace: float = 30.0

    @property
    def all_keys(self) -> tuple[KeyEntry, ...]:
        """Every key known at the start, by label."""
        return merged(self.keys, self.made_keys)

    def check(self) -> None:
        """Raise UnsafeSettings where nobody would be asked for a key on a public address."""
        if not self.all_keys and not is_loopback(self.host):
            raise UnsafeSettings(
                f"without API keys the gateway serves this machine only, and {self.host} is not: "
                "add auth.keys to the config, or bind to 127.0.0.1"
            )


def from_config(
    config: Config, *, admin_token: str | None, cluster_secret: str, state_dir: Path | None
) -> Settings:
    """The gateway's part of a validated config; keys that `specroute keys` made are added.

    Raises:
        ValueError: the key file in `state_dir` is damaged.
    """
    server, limits, telemetry = config.server, config.limits, config.telemetry
    made = read_keys(state_dir / "keys.json") if state_dir is not None else ()
    return Settings(
        host=server.host,
        port=server.port,
        processes=server.processes,
        models=tuple((model.name, model.aliases) for model in config.models),
        redis_url=None if config.redis.url == "embedded" else config.redis.url,
        cluster_secret=cluster_secret,
        state_dir=state_dir,
        admin_token=admin_token,
        keys=_configured_keys(config),
        made_keys=Made(file=made),
        allowed_hosts=server.allowed_hosts,
        cors_origins=server.cors_origins,
        tenant_safe=config.auth.tenant_safe,
        max_body_bytes=limits.max_body_bytes,
        max_grammar_bytes=limits.max_grammar_bytes,
        max_queue=limits.queue_size,
        wait_for_worker_s=limits.wait_for_worker,
        budgets=Budgets(
            connect=limits.connect_timeout,
            first_byte=limits.first_byte_timeout,
            prompt_tokens_per_second=limits.prompt_tokens_per_second,
            between_chunks=limits.chunk_timeout,
            total=limits.total_timeout,
        ),
        policy=config.routing.policy,
        policy_settings=_policy_settings(config),
        fallback=_remote(config.fallback),
        fallbacks=tuple(
            (name, remote)
            for name, section in config.fallback.models.items()
            if (remote := _remote(section)) is not None
        ),
        fallback_when=config.fallback.when,
        external_keys=tuple((w.name, w.api_key) for w in config.workers if w.api_key),
        learning=config.learning.enabled,
        learning_answers=config.learning.min_answers,
        learning_interval=config.learning.interval,
        decision_log=telemetry.decision_log,
        otlp_endpoint=telemetry.otlp_endpoint,
        dashboard_url=_dashboard_url(config),
        log_format=telemetry.log_format,
        log_level=telemetry.log_level,
        shutdown_grace=server.shutdown_grace,
    )


def _configured_keys(config: Config) -> tuple[KeyEntry, ...]:
    return tuple(
        KeyEntry(
            label=key.label,
            digest=key.digest or hash_key(key.key or ""),
            admin=key.admin,
            models=frozenset(key.models) if key.models is not None else None,
            priority=key.priority,
            requests_per_minute=key.requests_per_minute,
            tokens_per_minute=key.tokens_per_minute,
        )
        for key in config.auth.keys
        if key.digest or key.key
    )


def _remote(section: RemoteSection) -> Remote | None:
    """litellm's name for the model; a service known by its address alone speaks OpenAI's API."""
    if section.model is None:
        return None
    plain = section.url is not None and "/" not in section.model
    return Remote(
        model=f"openai/{section.model}" if plain else section.model,
        url=section.url or "",
        api_key=section.api_key or "",
        extra_fields=section.extra_fields,
    )


def _policy_settings(config: Config) -> PolicySettings:
    routing = config.routing
    return PolicySettings(
        seed=routing.seed,
        half_life_s=routing.half_life,
        exploration_budget=routing.exploration_budget,
        exploration_window=routing.exploration_window,
        max_loss_s=routing.max_loss,
        max_loss_share=routing.max_loss_share,
        baseline_share=routing.ar_floor,
        baseline_answers=routing.ar_floor_answers,
        switch_margin=routing.switch_margin,
        tie_margin=routing.tie_margin,
        min_class_probability=routing.min_class_probability,
        static_worker=routing.static_worker or "",
        priors=routing.priors,
    )


def _dashboard_url(config: Config) -> str | None:
    dashboard = config.dashboard
    if not dashboard.enabled:
        return None
    return dashboard.url or f"http://{dashboard.host}:{dashboard.port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches that address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
