"""What is shipped: exactly three packages, and no stranger that provides one of them."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"router", "classifier", "workers"}


@pytest.mark.slow
def test_the_wheel_holds_the_three_packages_and_their_data(tmp_path):
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps"),
            "-w",
            str(tmp_path),
            str(ROOT),
        ],
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {t for t in tops if not t.endswith(".dist-info")} == PACKAGES
    for data in ("workers/tiny/target.gguf", "workers/tiny/draft.gguf"):
        assert data in names
    assert any(n.startswith("classifier/models/") and not n.endswith(".py") for n in names)


def test_no_other_distribution_provides_our_names():
    providers = importlib.metadata.packages_distributions()
    for name in PACKAGES:
        assert set(providers.get(name, ["specroute"])) == {"specroute"}


def test_locks_pin_with_hashes_and_name_no_index():
    for lock in ROOT.glob("requirements*.lock"):
        text = lock.read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text
        for line in text.splitlines():
            if line and not line.startswith((" ", "#")):
                assert "==" in line, line


def test_the_engine_is_pinned_alike_in_project_and_lock():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (pin,) = [d for d in project["optional-dependencies"]["local"] if "xllamacpp" in d]
    assert re.search(rf"^{re.escape(pin)} ", (ROOT / "requirements.lock").read_text(), re.M)


def test_models_in_the_repository_stay_small():
    for model in (ROOT / "workers" / "tiny").glob("*.gguf"):
        assert model.stat().st_size <= 8 * 1024 * 1024, model.name
