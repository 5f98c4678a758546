"""Chromium through Playwright, a dashboard as a subprocess, and axe's verdict on a page."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from tests.support.running import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page

_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for name in _NAMES if (path := shutil.which(name))), "/usr/bin/chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 30_000  # on a machine that is busy with other things


def blocking(function: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
    """Run a coroutine function in a thread: Playwright's own event loop occupies this one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(function(*arguments))).result()


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with a fresh profile."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def new_context(browser: Browser, width: int = 1440, **options) -> BrowserContext:
    """A viewer of its own; axe must be let in past the pages' content security policy."""
    size = {"width": width, "height": 900}
    context = browser.new_context(viewport=size, bypass_csp=True, **options)
    context.set_default_timeout(PATIENCE_MS)
    return context


def sign_in(page: Page, url: str, token: str, *, view_only: bool = False) -> None:
    """Through the door, by keyboard."""
    page.goto(f"{url}/sign-in")
    page.get_by_label("Admin token").fill(token)
    if view_only:
        page.get_by_label("Read only").check()
    page.keyboard.press("Enter")
    page.wait_for_url(f"{url}/")


def serious_faults(page: Page) -> list[str]:
    """What axe finds that is serious or worse: rule and elements."""
    found = Axe().run(page).response["violations"]
    return [
        f"{rule['id']}: {[node['html'][:120] for node in rule['nodes'][:3]]}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than its window."""
    root = "document.documentElement"
    return int(page.evaluate(f"{root}.scrollWidth - {root}.clientWidth"))


@contextmanager
def dashboard(
    config: Path, redis_url: str, token: str, secret: str
) -> Iterator[tuple[str, subprocess.Popen]]:
    """`specroute dashboard` of its own: its URL and its process."""
    port = free_port()
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SPECROUTE_")}
    env = clean | {
        "SPECROUTE_REDIS__URL": redis_url,
        "SPECROUTE_AUTH__ADMIN_TOKEN": token,
        "SPECROUTE_AUTH__CLUSTER_SECRET": secret,
    }
    argv = [sys.executable, "-m", "router", "dashboard", "-c", str(config), "--port", str(port)]
    argv += ["--state-dir", str(config.parent / "state")]
    process = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(url, process)
        yield url, process
    finally:
        process.kill()
        process.wait()


def _wait_for(url: str, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            httpx.get(f"{url}/health")
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("the dashboard did not start")
