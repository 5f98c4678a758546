"""Everything the gateway is told, as one frozen value, and how the YAML's form becomes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from router.policy.settings import PolicySettings
from router.relay import Budgets

if TYPE_CHECKING:
    from pathlib import Path

    from router.access import KeyEntry


@dataclass(frozen=True, slots=True)
class Settings:
    """Sizes in bytes, times in seconds. `models` are (name, aliases)."""

    host: str = "127.0.0.1"
    port: int = 8080
    models: tuple[tuple[str, tuple[str, ...]], ...] = ()
    redis_url: str | None = None
    cluster_secret: str = ""
    state_dir: Path | None = None
    admin_token: str | None = None
    keys: tuple[KeyEntry, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    max_body_bytes: int = 32 * 1024 * 1024
    max_queue: int = 256
    budgets: Budgets = field(default_factory=Budgets)
    policy: str = "learned"
    policy_settings: PolicySettings = field(default_factory=PolicySettings)
    external_keys: tuple[tuple[str, str], ...] = ()  # (worker, API key) of servers not ours
    decision_log: bool = True
    dashboard_url: str | None = None
    log_format: str = "console"
    log_level: str = "info"
    shutdown_grace: float = 30.0
