"""The commands that ask a gateway: where they look for it, and what they say of other servers."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from click.testing import CliRunner

from router.cli.bench import bench
from router.cli.route import route
from router.cli.workers import workers

WORKERS = {"workers": [{"name": "plain", "state": "ready"}, {"name": "mtp", "state": "ready"}]}


class _Server(ThreadingHTTPServer):
    answer = (200, "text/html", b"<!doctype html><p>hello")
    seen: list[tuple[str, str | None]]


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        status, kind, body = self.server.answer
        self.server.seen.append((self.path, self.headers.get("authorization")))
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.do_GET()

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    """Some web server; its `answer` is given to every request."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.seen = []
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def run(command, *arguments: str, stdin: str = "{}"):
    clean = {"SPECROUTE_URL": None, "SPECROUTE_ADMIN_TOKEN": None}
    return CliRunner(env=clean).invoke(command, arguments, input=stdin)


COMMANDS = {"workers": workers, "route": route, "bench": bench}
OTHERS = [
    (200, "text/html", b"<!doctype html><p>hello"),
    (401, "text/html", b"<!doctype html><p>sign in"),
    (200, "application/json", b'{"hello": 1}'),
    (200, "application/json", b"[]"),
    (404, "application/json", b'{"detail": "Not Found"}'),
    (200, "application/json", b"\xff\xfe\xfa"),
]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("answer", OTHERS)
def test_what_is_no_gateway_is_told_in_one_sentence(server, name, answer):
    server.answer = answer
    told = run(COMMANDS[name], "--url", server.url)
    assert told.exit_code == 1
    assert told.stderr == (
        f"Error: what answers at {server.url} is no Specroute gateway "
        f"(status {answer[0]}, {answer[1]}); say where the gateway is with --url\n"
    )


def test_a_refusal_is_the_gateways_own_sentence(server):
    server.answer = (401, "application/json", b'{"error": {"message": "no such key"}}')
    told = run(workers, "--url", server.url)
    assert (told.exit_code, told.stderr) == (1, "Error: the gateway refused (401): no such key\n")


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("url", ["notaurl", "127.0.0.1:8080", "http://", "http://[::1", "ftp://h"])
def test_a_malformed_address_is_a_usage_error(name, url):
    told = run(COMMANDS[name], "--url", url)
    assert told.exit_code == 2
    assert f"'{url}' is no address; write it like http://127.0.0.1:8080" in told.stderr


def test_address_and_token_are_those_that_up_left(server, tmp_path):
    server.answer = (200, "application/json", json.dumps(WORKERS).encode())
    (tmp_path / "gateway-url").write_text(server.url + "\n")
    (tmp_path / "admin-token").write_text("secret\n")
    told = run(workers, "list", "--json", "--state-dir", str(tmp_path))
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout) == WORKERS["workers"]
    assert server.seen == [("/ops/workers", "Bearer secret")]


def test_help_names_the_variables():
    told = run(workers, "--help").stdout
    assert "SPECROUTE_URL" in told
    assert "SPECROUTE_ADMIN_TOKEN" in told


def test_one_worker_is_listed_by_its_name(server):
    server.answer = (200, "application/json", json.dumps(WORKERS).encode())
    told = run(workers, "list", "mtp", "--json", "--url", server.url)
    assert [row["name"] for row in json.loads(told.stdout)] == ["mtp"]
    told = run(workers, "list", "extra", "--url", server.url)
    assert told.exit_code == 1
    assert "no worker named 'extra'; there are: plain, mtp" in told.stderr


def test_an_order_is_told_as_json_to_tools(server):
    sent = {"worker": "plain", "verb": "undrain", "heard_by": 1}
    server.answer = (200, "application/json", json.dumps(sent).encode())
    told = run(workers, "undrain", "plain", "--json", "--url", server.url)
    assert json.loads(told.stdout) == sent
