"""From the YAML's form to the gateway's; and what must not be served to strangers."""

from __future__ import annotations

import pytest

from router.access import KeyEntry, hash_key
from router.access.keys import write_keys
from router.settings import Settings, UnsafeSettings, from_config, is_loopback
from workers.config import load_config

TEXT = """\
server: {host: 127.0.0.1, port: 9999, allowed_hosts: [box.lan]}
redis: {url: redis://localhost/3}
auth:
  keys:
    - {label: alice, key: secret-a, models: [big], priority: 2, requests_per_minute: 60}
limits: {queue_size: 7, max_body_bytes: 1000, first_byte_timeout: 11, chunk_timeout: 12}
models:
  - {name: big, target: big.gguf, aliases: [gpt-4o]}
workers:
  - {name: one, model: big}
routing: {policy: round_robin, exploration_budget: 0.5, ar_floor: 0.1, static_worker: one,
          priors: {mtp-n3: {prose: 1.4}}}
telemetry: {log_format: json, decision_log: false}
dashboard: {port: 7777}
"""


def _settings(tmp_path, text: str = TEXT, state_dir=None) -> Settings:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    config = load_config(path, {})
    return from_config(config, admin_token="t", cluster_secret="s", state_dir=state_dir)  # noqa: S106


def test_every_section_arrives(tmp_path):
    settings = _settings(tmp_path)
    assert settings.port == 9999
    assert settings.redis_url == "redis://localhost/3"
    assert settings.models == (("big", ("gpt-4o",)),)
    assert settings.allowed_hosts == ("box.lan",)
    assert (settings.max_queue, settings.max_body_bytes) == (7, 1000)
    assert (settings.budgets.first_byte, settings.budgets.between_chunks) == (11, 12)
    assert settings.policy == "round_robin"
    assert settings.policy_settings.exploration_budget == 0.5
    assert settings.policy_settings.baseline_share == 0.1
    assert settings.policy_settings.static_worker == "one"
    assert settings.policy_settings.priors == {"mtp-n3": {"prose": 1.4}}
    assert settings.log_format == "json"
    assert not settings.decision_log
    assert settings.dashboard_url == "http://127.0.0.1:7777"
    assert (settings.admin_token, settings.cluster_secret) == ("t", "s")


def test_keys_are_kept_as_hashes(tmp_path):
    settings = _settings(tmp_path)
    (key,) = settings.keys
    assert key == KeyEntry(
        "alice", hash_key("secret-a"), models=frozenset({"big"}), priority=2, requests_per_minute=60
    )
    assert "secret-a" not in repr(settings)


def test_keys_that_were_created_are_added(tmp_path):
    made = KeyEntry("made", hash_key("x"))
    write_keys(tmp_path / "keys.json", [made])
    assert _settings(tmp_path, state_dir=tmp_path).made_keys.file == (made,)


def test_embedded_redis_is_not_the_gateways_to_find(tmp_path):
    settings = _settings(tmp_path, TEXT.replace("redis://localhost/3", "embedded"))
    assert settings.redis_url is None


def test_the_dashboard_may_be_elsewhere_or_off(tmp_path):
    elsewhere = TEXT.replace("{port: 7777}", "{url: 'https://ops.example'}")
    assert _settings(tmp_path, elsewhere).dashboard_url == "https://ops.example"
    off = TEXT.replace("{port: 7777}", "{enabled: false}")
    assert _settings(tmp_path, off).dashboard_url is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_this_machine_needs_no_key(host):
    assert is_loopback(host)
    Settings(host=host).check()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "::", "box.lan"])  # noqa: S104
def test_everybody_else_does(host):
    with pytest.raises(UnsafeSettings):
        Settings(host=host).check()
    Settings(host=host, keys=(KeyEntry("a", "b"),)).check()
