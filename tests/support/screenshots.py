"""Pictures of every view of the dashboard over a simulated day, for people to look at.

    python -m tests.support.screenshots FOLDER

Widths 1440, 1024 and 390, light and dark, English and Russian; a decision, the door, and the
states without workers, without Redis and without the process.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

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

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TOKEN, SECRET = "token-of-the-pictures", "secret-of-the-pictures"
SIZES = ((1440, "light", "en"), (1024, "dark", "ru"), (390, "light", "ru"), (390, "dark", "en"))
LOST_S = 12.0


class Pictures:
    """Takes them, and says what is wrong with a page beside how it looks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def take(self, page: Page, name: str) -> None:
        """One page, whole."""
        page.screenshot(path=self._folder / f"{name}.png", full_page=True)
        wrong = serious_faults(page)
        click.echo(f"{name}: overflow {overflow(page)} px, axe {wrong or 'nothing serious'}")


def enter(page: Page, url: str) -> None:
    """Through the door, whatever it is called."""
    page.goto(f"{url}/sign-in")
    page.locator("input[name=token]").fill(TOKEN)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{url}/")


def all_views(browser: Browser, url: str, redis: str, pictures: Pictures) -> None:
    """Every view in every size."""
    for width, scheme, language in SIZES:
        with new_context(browser, width, color_scheme=scheme, locale=language) as context:
            page = context.new_page()
            page.goto(f"{url}/sign-in")
            pictures.take(page, f"{width}-{scheme}-{language}-door")
            enter(page, url)
            for name, path in (*VIEWS.items(), ("drill", "/classes/prose/dflash2-margin")):
                blocking(publish_workers, redis, SECRET, SystemClock().wall())
                page.goto(url + path)
                pictures.take(page, f"{width}-{scheme}-{language}-{name}")
            page.goto(f"{url}/decisions")
            page.locator("tbody a").first.click()
            page.wait_for_load_state()
            pictures.take(page, f"{width}-{scheme}-{language}-decision")


def states(browser: Browser, config: Path, folder: Path, pictures: Pictures) -> None:
    """Redis never there, empty, gone; then the process gone."""
    socket = folder / "empty.sock"
    with (
        dashboard(config, f"unix://{socket}", TOKEN, SECRET) as (url, process),
        new_context(browser, 1024) as context,
    ):
        page = context.new_page()
        sign_in(page, url, TOKEN)
        pictures.take(page, "state-no-redis-yet")
        with private_redis(socket):
            time.sleep(4)
            for name, path in VIEWS.items():
                page.goto(url + path)
                pictures.take(page, f"state-empty-{name}")
            page.goto(url)
        time.sleep(LOST_S)
        pictures.take(page, "state-redis-lost")
        process.kill()
        time.sleep(LOST_S)
        pictures.take(page, "state-process-lost")


@click.command()
@click.argument("target", type=click.Path(path_type=Path, file_okay=False))
def main(target: Path) -> None:
    """Write pictures into TARGET."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        config = folder / "specroute.yaml"
        config.write_text(CONFIG)
        stack.enter_context(private_redis(folder / "redis.sock"))
        while not (folder / "redis.sock").exists():
            time.sleep(0.01)
        redis = f"unix://{folder / 'redis.sock'}"
        blocking(write_day, redis, SECRET, SystemClock().wall())
        browser = stack.enter_context(chromium())
        url, _ = stack.enter_context(dashboard(config, redis, TOKEN, SECRET))
        pictures = Pictures(target)
        all_views(browser, url, redis, pictures)
        states(browser, config, folder, pictures)


if __name__ == "__main__":
    main()
