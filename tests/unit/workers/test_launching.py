from __future__ import annotations

import stat
from dataclasses import replace

import pytest

from tests.support.supervised import host, simulated
from workers.engines import ENGINES, EngineMissing
from workers.keys import worker_api_key
from workers.launching import Launch, Unusable, key_path, prepare
from workers.spec import WorkerSpec

SIMULATED, LLAMA = ENGINES["simulated"], ENGINES["llama-server"]


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF" + bytes(996))
    return path


async def test_the_key_is_in_a_private_file_and_nowhere_else(tmp_path):
    launch = await prepare(simulated(), SIMULATED, host(tmp_path))
    path = key_path(tmp_path, "w")
    assert path.read_text() == worker_api_key("secret", "w") + "\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert str(path) in launch.argv
    assert launch.api_key not in " ".join(launch.argv)
    assert launch.url.startswith("http://127.0.0.1:")


async def test_our_own_settings_stay_ours(tmp_path):
    environ = {"PATH": "/bin", "SPECROUTE_AUTH__CLUSTER_SECRET": "s", "CUDA": "1"}
    spec = replace(simulated(), env=(("CUDA", "2"), ("NEW", "3")))
    launch = await prepare(spec, SIMULATED, host(tmp_path, environ=environ))
    assert launch.env == {"PATH": "/bin", "CUDA": "2", "NEW": "3"}


async def test_a_fixed_port_and_an_ipv6_host(tmp_path):
    launch = await prepare(simulated(port=9123, host="::1"), SIMULATED, host(tmp_path))
    assert launch.url == "http://[::1]:9123"


async def test_what_the_program_does_not_know_is_told_before_it_starts(tmp_path, model):
    spec = WorkerSpec("w", "m", "ar", target=model, args=("--wrong", "1"))
    with pytest.raises(Unusable, match="does not know --wrong"):
        await prepare(spec, LLAMA, host(tmp_path))
    with pytest.raises(EngineMissing, match="not an executable"):
        await prepare(replace(spec, binary=tmp_path / "absent"), LLAMA, host(tmp_path))
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\n")
    broken.chmod(0o755)
    with pytest.raises(Unusable, match="lists no flags"):
        await prepare(replace(spec, binary=broken), LLAMA, host(tmp_path))


async def test_programs_are_asked_once(tmp_path, model):
    calls, helped = tmp_path / "calls", tmp_path / "help"
    flags = ("-m", "-c", "-np", "--alias", "--host", "--port", "--api-key-file", "--fit", "--no-ui")
    helped.write_text("\n".join((*flags, "--cors-origins", "--metrics", "--slots", "")))
    binary = tmp_path / "llama-server"
    binary.write_text(f"#!/bin/sh\necho x >> {calls}\ncat {helped}\n")
    binary.chmod(0o755)
    here = host(tmp_path)
    spec = WorkerSpec("w", "m", "ar", target=model, binary=binary)
    for _ in range(3):
        assert (await prepare(spec, LLAMA, here)).argv[0] == str(binary)
    assert calls.read_text() == "x\nx\n"  # --help and --version


async def test_progress_is_the_share_of_the_files_in_memory(tmp_path, model):
    spec = WorkerSpec("w", "m", "dflash2", target=model, draft=model)
    launch = await prepare(spec, LLAMA, host(tmp_path))
    assert launch.model_bytes == 2000
    assert launch.progress(500) == 0.25
    assert launch.progress(10_000) == 0.99
    assert launch.progress(None) == 0.0
    nothing = Launch((), {}, "", "", tmp_path, 0, "")
    assert nothing.progress(5) == 0.0
