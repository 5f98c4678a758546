"""The init container's download: checked, once, resumed, and never half."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from k8s.render import CHART
from workers.tiny.trio import SHIPPED_DRAFT, SHIPPED_TARGET

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONTENT = b"GGUF" + bytes(range(256)) * 500
SHA = hashlib.sha256(CONTENT).hexdigest()

_spec = importlib.util.spec_from_file_location("fetch", CHART / "files/fetch.py")
assert _spec is not None
assert _spec.loader is not None
fetch = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fetch)


class Store(ThreadingHTTPServer):
    """Serves one file; breaks off `cuts` answers after half of what is left."""

    cuts = 0
    seen: list[dict[str, str]]


class Handler(BaseHTTPRequestHandler):
    server: Store

    def do_GET(self) -> None:
        self.server.seen.append(dict(self.headers))
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        rest = CONTENT[start:]
        if not rest:
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if self.server.cuts:
            self.server.cuts -= 1
            rest = rest[: len(rest) // 2]
        self.wfile.write(rest)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def store() -> Iterator[Store]:
    server = Store(("127.0.0.1", 0), Handler)
    server.seen = []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def plan(folder: Path, store: Store, sha: str = SHA, path: str = "a/model.gguf") -> str:
    entry = {"path": path, "url": f"http://127.0.0.1:{store.server_port}/m", "sha256": sha}
    file = folder / "models.json"
    file.write_text(json.dumps({"tiny": False, "files": [entry]}))
    return str(file)


def test_a_file_is_fetched_once(store: Store, tmp_path: Path) -> None:
    for _ in range(2):
        assert fetch.main(plan(tmp_path, store), str(tmp_path / "models")) == 0
    assert (tmp_path / "models/a/model.gguf").read_bytes() == CONTENT
    assert len(store.seen) == 1


def test_a_broken_download_goes_on_where_it_was(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store.cuts = 1
    assert fetch.main(plan(tmp_path, store), str(tmp_path / "models")) == 1
    assert "broke off" in capsys.readouterr().err
    assert not (tmp_path / "models/a/model.gguf").exists()
    assert fetch.main(plan(tmp_path, store), str(tmp_path / "models")) == 0
    assert (tmp_path / "models/a/model.gguf").read_bytes() == CONTENT
    assert store.seen[1]["Range"] == f"bytes={len(CONTENT) // 2}-"


def test_a_complete_part_of_an_earlier_pod_is_taken(store: Store, tmp_path: Path) -> None:
    part = tmp_path / "models/a/model.gguf.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT)
    assert fetch.main(plan(tmp_path, store), str(tmp_path / "models")) == 0
    assert (tmp_path / "models/a/model.gguf").read_bytes() == CONTENT


def test_another_file_than_promised_is_refused_and_not_kept(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetch.main(plan(tmp_path, store, sha="0" * 64), str(tmp_path / "models")) == 1
    assert "SHA-256" in capsys.readouterr().err
    assert sorted(p.name for p in (tmp_path / "models/a").iterdir()) == ["model.gguf.lock"]


def test_paths_stay_inside_the_folder(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetch.main(plan(tmp_path, store, path="../outside"), str(tmp_path / "models")) == 1
    assert "outside" in capsys.readouterr().err
    assert not store.seen


def test_a_token_is_sent_where_one_is_given(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOWNLOAD_TOKEN", "t0")
    assert fetch.main(plan(tmp_path, store), str(tmp_path / "models")) == 0
    assert store.seen[0]["Authorization"] == "Bearer t0"


def test_a_server_that_is_not_there_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"path": "m.gguf", "url": "http://127.0.0.1:1/m", "sha256": SHA}
    file = tmp_path / "models.json"
    file.write_text(json.dumps({"files": [entry]}))
    assert fetch.main(str(file), str(tmp_path)) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_the_toy_model_comes_from_the_package(tmp_path: Path) -> None:
    file = tmp_path / "models.json"
    file.write_text(json.dumps({"tiny": True, "files": []}))
    assert fetch.main(str(file), str(tmp_path)) == 0
    assert (tmp_path / "tiny/target.gguf").read_bytes() == SHIPPED_TARGET.read_bytes()
    assert (tmp_path / "tiny/draft.gguf").read_bytes() == SHIPPED_DRAFT.read_bytes()
