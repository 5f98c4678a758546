"""The dashboard over HTTP: the door, orders, preferences, refreshing, errors."""

from __future__ import annotations

from dataclasses import dataclass, field

import httpx
import pytest

from router.dashboard.access import COOKIE, Doorkeeper
from router.dashboard.app import Dashboard
from router.dashboard.figures import Snapshot
from router.dashboard.page import VIEWS
from tests.fakes.gateway import HandClock
from tests.fakes.snapshots import full
from workers.registry import RegistryUnavailable

BASE = "http://dashboard.test"


@dataclass
class Agents:
    """A registry of which only orders matter here."""

    heard: int = 1
    sent: list = field(default_factory=list)

    async def send(self, command) -> int:
        if self.heard < 0:
            raise RegistryUnavailable("gone")
        self.sent += [command]
        return self.heard


@dataclass
class Standing:
    """A source that always shows the same."""

    snapshot: object = field(default_factory=full)

    async def current(self):
        return self.snapshot


@pytest.fixture
def agents() -> Agents:
    return Agents()


@pytest.fixture
def source() -> Standing:
    return Standing()


@pytest.fixture
async def client(agents: Agents, source: Standing):
    clock = HandClock()
    door = Doorkeeper("the-token", "the-secret", clock)
    dashboard = Dashboard(source, agents, door, clock)
    transport = httpx.ASGITransport(dashboard.application(), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        yield client


async def sign_in(client: httpx.AsyncClient, **fields) -> httpx.Response:
    return await client.post("/sign-in", data={"token": "the-token", **fields})


async def test_strangers_see_the_door_only(client: httpx.AsyncClient) -> None:
    for path in ("/", "/classes", "/decisions/1-0", "/workers/code/drain"):
        answer = await client.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    assert (await client.get("/?part=content")).status_code == 401
    assert (await client.post("/workers/code/drain")).status_code == 403
    assert (await client.get("/health")).text == "ok"


async def test_a_wrong_token_is_told_and_kept_nowhere(client: httpx.AsyncClient) -> None:
    answer = await sign_in(client, token="wrong-one")  # noqa: S106
    assert answer.status_code == 401
    assert "wrong-one" not in answer.text
    assert COOKIE not in client.cookies


async def test_the_session_cookie_is_out_of_reach_of_scripts(client: httpx.AsyncClient) -> None:
    answer = await sign_in(client)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    page = await client.get("/")
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


async def test_nothing_is_fetched_from_elsewhere(client: httpx.AsyncClient) -> None:
    await sign_in(client)
    for path in ("/", "/static/app.css", "/static/app.js"):
        answer = await client.get(path)
        assert answer.status_code == 200
        assert "//" not in answer.text.replace("// ", "").replace("http://www.w3.org", "")


async def test_an_unchanged_part_is_not_sent_again(client: httpx.AsyncClient) -> None:
    await sign_in(client)
    first = await client.get("/classes?part=content")
    assert "<html" not in first.text
    again = await client.get(
        "/classes?part=content", headers={"if-none-match": first.headers["etag"]}
    )
    assert again.status_code == 304


async def test_an_order_is_confirmed_then_sent_once(
    client: httpx.AsyncClient, agents: Agents
) -> None:
    await sign_in(client)
    asked = await client.get("/workers/code/restart")
    assert "requests running on it are lost" in asked.text
    assert not agents.sent
    answer = await client.post("/workers/code/restart")
    (command,) = agents.sent
    assert (command.verb, command.worker) == ("restart", "code")
    told = await client.get(answer.headers["location"])
    assert "Restart was sent to code" in told.text


@pytest.mark.parametrize(("heard", "text"), [(0, "reached nobody"), (-1, "could not be sent")])
async def test_an_order_that_failed_is_told(
    client: httpx.AsyncClient, agents: Agents, heard: int, text: str
) -> None:
    agents.heard = heard
    await sign_in(client)
    answer = await client.post("/workers/code/drain", follow_redirects=True)
    assert text in answer.text


async def test_viewers_and_other_sites_order_nothing(
    client: httpx.AsyncClient, agents: Agents
) -> None:
    await sign_in(client)
    foreign = {"origin": "http://evil.example"}
    assert (await client.post("/workers/code/drain", headers=foreign)).status_code == 403
    assert (await client.post("/preferences", headers=foreign)).status_code == 403
    assert (await client.post("/sign-in", headers=foreign)).status_code == 403
    await sign_in(client, view_only="on")
    assert "read only" in (await client.get("/workers")).text
    assert (await client.post("/workers/code/drain")).status_code == 403
    assert (await client.get("/workers/code/drain")).status_code == 404
    assert not agents.sent


@pytest.mark.parametrize("path", ["/workers/code/explode", "/workers/nobody/drain"])
async def test_unknown_orders_and_workers(
    client: httpx.AsyncClient, agents: Agents, path: str
) -> None:
    await sign_in(client)
    assert (await client.get(path)).status_code == 404
    assert (await client.post(path)).status_code == 404
    assert not agents.sent


async def test_preferences_stay_and_lead_back(client: httpx.AsyncClient) -> None:
    await sign_in(client)
    form = {"language": "ru", "time": "local", "theme": "dark", "zone": "Europe/Moscow"}
    referer = {"referer": f"{BASE}/decisions?worker=code"}
    answer = await client.post("/preferences", data=form, headers=referer)
    assert answer.headers["location"] == "/decisions?worker=code"
    page = (await client.get("/decisions")).text
    assert 'lang="ru"' in page
    assert 'data-theme="dark"' in page
    assert "MSK" in page


@pytest.mark.parametrize(
    "referer", ["http://evil.example/x", f"{BASE}//evil.example/", "garbage", f"{BASE}"]
)
async def test_preferences_never_lead_away(client: httpx.AsyncClient, referer: str) -> None:
    answer = await client.post("/preferences", data={}, headers={"referer": referer})
    assert answer.headers["location"] in ("/", "/evil.example/")


async def test_signing_out(client: httpx.AsyncClient) -> None:
    await sign_in(client)
    await client.post("/sign-out")
    assert (await client.get("/")).status_code == 303


async def test_a_large_form_is_not_read(client: httpx.AsyncClient) -> None:
    answer = await sign_in(client, padding="x" * 5000)
    assert answer.status_code == 401


async def test_missing_pages_and_broken_ones(client: httpx.AsyncClient, source: Standing) -> None:
    await sign_in(client)
    assert (await client.get("/nowhere")).status_code == 404
    assert (await client.get("/decisions/9-9")).status_code == 404
    source.snapshot = None
    answer = await client.get("/")
    assert answer.status_code == 500
    assert "could not be made" in answer.text
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("path", VIEWS.values())
async def test_before_redis_was_read_nothing_is_said_of_workers_and_requests(
    client: httpx.AsyncClient, source: Standing, path: str
) -> None:
    await sign_in(client)
    source.snapshot = Snapshot(at=0.0, trouble="connection refused")
    text = (await client.get(path)).text
    assert "nothing to show yet" in text
    assert text.count("<h1>") == 1
    for guess in ("No worker", "No requests", "Nothing to change", "Requests per second"):
        assert guess not in text
