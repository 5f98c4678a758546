"""Secrets are made once, kept, and readable by their owner only."""

from __future__ import annotations

import stat

from router.cli.kept_secrets import kept_secret, private_folder


def test_made_once_and_kept(tmp_path):
    first = kept_secret(tmp_path, "admin-token")
    assert len(first) >= 32
    assert kept_secret(tmp_path, "admin-token") == first
    assert kept_secret(tmp_path, "other") != first
    assert stat.S_IMODE((tmp_path / "admin-token").stat().st_mode) == 0o600


def test_a_configured_value_wins_and_is_not_written(tmp_path):
    assert kept_secret(tmp_path, "admin-token", "mine") == "mine"
    assert not (tmp_path / "admin-token").exists()


def test_the_folder_is_private(tmp_path):
    folder = private_folder(tmp_path / "state")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
