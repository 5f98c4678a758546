"""The dashboard in a real Chromium, over a simulated day of a million requests."""

from __future__ import annotations

import logging
import re
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import expect

from router.dashboard.page import VIEWS
from tests.support.browser import (
    blocking,
    chromium,
    dashboard,
    new_context,
    overflow,
    serious_faults,
    sign_in,
)
from tests.support.redis_server import private_redis
from tests.support.simulated_day import CONFIG, publish_workers, write_day
from workers.clock import SystemClock

log = logging.getLogger(__name__)

pytestmark = [pytest.mark.slow, pytest.mark.browser]

TOKEN, SECRET = "token-of-the-tests", "secret-of-the-tests"


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def day():
    """The URL of a Redis that holds a day."""
    socket = Path(tempfile.mkdtemp(prefix="sr-day-")) / "redis.sock"
    url = f"unix://{socket}"
    with private_redis(socket):
        while not socket.exists():
            pass
        blocking(write_day, url, SECRET, SystemClock().wall())
        yield url


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dashboard") / "specroute.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="module")
def site(day: str, config: Path):
    with dashboard(config, day, TOKEN, SECRET) as (url, _):
        yield url


@pytest.fixture
def fresh_workers(day: str) -> None:
    """Records expire; these live for the next ten seconds."""
    blocking(publish_workers, day, SECRET, SystemClock().wall())


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (1024, "dark"), (390, "dark")])
def test_every_view_fits_and_is_accessible(browser, site: str, day: str, width: int, scheme: str):
    with new_context(browser, width, color_scheme=scheme) as context:
        page = context.new_page()
        faults, errors = {}, []
        page.on("pageerror", lambda error: errors.append(str(error)))
        sign_in(page, site, TOKEN)
        for name, path in VIEWS.items():
            blocking(publish_workers, day, SECRET, SystemClock().wall())
            page.goto(site + path)
            expect(page.locator("h1")).to_be_visible()
            assert overflow(page) <= 0, name
            if width != 1024:  # each colour scheme once: axe takes most of this test's time
                faults[name] = serious_faults(page)
        assert not {name: found for name, found in faults.items() if found}
        assert not errors


def test_the_door_and_a_decision_are_accessible_too(browser, site: str):
    with new_context(browser, 390) as context:
        page = context.new_page()
        page.goto(f"{site}/sign-in")
        assert serious_faults(page) == []
        sign_in(page, site, TOKEN)
        page.goto(f"{site}/decisions")
        page.locator("tbody a").first.click()
        expect(page.get_by_role("heading", name="Candidates")).to_be_visible()
        assert serious_faults(page) == []
        assert overflow(page) <= 0


def test_nothing_leaves_this_machine(browser, site: str):
    with new_context(browser) as context:
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        sign_in(page, site, TOKEN)
        for path in VIEWS.values():
            page.goto(site + path)
        hosts = {urlsplit(url).netloc for url in asked}
        assert hosts == {urlsplit(site).netloc}


def test_the_matrix_leads_to_its_parts(browser, site: str, fresh_workers):
    with new_context(browser) as context:
        page = context.new_page()
        sign_in(page, site, TOKEN)
        page.goto(f"{site}/classes")
        cell = page.locator('[data-class="prose"][data-mode="dflash2-margin"]')
        assert float(cell.get_attribute("data-speedup")) == pytest.approx(17 / 21, rel=0.1)
        cell.get_by_role("link").click()
        for title in ("By context", "By requests at once", "By language", "By thinking"):
            expect(page.get_by_role("heading", name=title)).to_be_visible()


def test_language_time_and_colours_are_choices_that_stay(browser, site: str):
    with new_context(browser, timezone_id="Europe/Moscow") as context:
        page = context.new_page()
        sign_in(page, site, TOKEN)
        page.get_by_label("Language").select_option("ru")
        expect(page.locator("h1")).to_have_text("Обзор")
        page.get_by_label("Время").select_option("local")
        page.get_by_label("Оформление").select_option("dark")
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        page.goto(f"{site}/decisions")
        expect(page.locator("tbody time").first).to_have_attribute(
            "datetime", re.compile(r"\+03:00$")
        )


def test_keyboard_alone_reaches_the_content(browser, site: str):
    with new_context(browser) as context:
        page = context.new_page()
        sign_in(page, site, TOKEN)
        page.goto(f"{site}/classes")
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()
        page.keyboard.press("Tab")
        assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_refreshing_keeps_what_the_viewer_holds(browser, site: str, fresh_workers):
    with new_context(browser) as context:
        page = context.new_page()
        sign_in(page, site, TOKEN)
        page.goto(f"{site}/decisions")
        box = page.get_by_label("Request")
        box.fill("req-0015")
        with page.expect_response(lambda answer: "part=content" in answer.url):
            pass
        expect(box).to_be_focused()
        expect(box).to_have_value("req-0015")
        page.keyboard.press("Enter")
        page.wait_for_url("**id=req-0015*")
        expect(page.locator("tbody tr").first).to_contain_text("ok")


def test_a_lost_process_is_told(browser, day: str, config: Path):
    with dashboard(config, day, TOKEN, SECRET) as (url, process), new_context(browser) as context:
        page = context.new_page()
        sign_in(page, url, TOKEN)
        expect(page.locator("#lost")).to_be_hidden()
        process.kill()
        expect(page.locator("#lost")).to_be_visible()
        expect(page.locator("h1")).to_be_visible()  # the last figures stay


def test_a_lost_redis_is_told_and_its_return_seen(browser, config: Path):
    socket = Path(tempfile.mkdtemp(prefix="sr-lost-")) / "redis.sock"
    with (
        dashboard(config, f"unix://{socket}", TOKEN, SECRET) as (url, _),
        new_context(browser) as context,
    ):
        page = context.new_page()
        sign_in(page, url, TOKEN)
        expect(page.get_by_text("nothing to show yet")).to_be_visible()
        with private_redis(socket):
            expect(page.get_by_text("No worker is registered")).to_be_visible()
            expect(page.get_by_text("nothing to show yet")).to_be_hidden()
        expect(page.get_by_text("Redis does not answer")).to_be_visible()


def test_memory_stays_small(day: str, config: Path):
    with dashboard(config, day, TOKEN, SECRET) as (url, process):
        viewers = [httpx.Client(base_url=url, timeout=60.0) for _ in range(3)]
        for viewer in viewers:
            viewer.post("/sign-in", data={"token": TOKEN})
        for path in (*VIEWS.values(), "/timelines?range=7d"):
            assert [viewer.get(path).status_code for viewer in viewers] == [200] * 3
        status = Path(f"/proc/{process.pid}/status").read_text()
        for viewer in viewers:
            viewer.close()
    peak = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024
    log.info("peak memory of a dashboard with three viewers: %.0f MiB", peak)
    assert peak < 300
