"""The dashboard of a running `specroute up` while mixed traffic runs on the tiny trio."""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
import time

import httpx
import pytest
from playwright.sync_api import expect
from prometheus_client.parser import text_string_to_metric_families

from router.dashboard.page import VIEWS
from tests.support.browser import chromium, new_context, sign_in

log = logging.getLogger(__name__)

pytestmark = [pytest.mark.slow, pytest.mark.browser]

PROMPTS = (
    "Return a JSON object with three users.",
    "Tell a long story about a river.",
    "Расскажи о море.",
    "Solve 17 * 23 step by step.",
)


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


def address(stack) -> str:
    """Where `up` said its dashboard is; it says so after `ready`."""

    def line() -> str | None:
        return next((one for one in stack.lines if one.strip().startswith("dashboard")), None)

    return stack.wait_until(line, what="the dashboard's address").split()[-1]


def token(stack) -> str:
    return (stack.state_dir / "admin-token").read_text().strip()


def ask(stack, prompt: str, **fields) -> int:
    body = {"model": "tiny", "messages": [{"role": "user", "content": prompt}], "max_tokens": 24}
    answer = httpx.post(f"{stack.url}/v1/chat/completions", json=body | fields, timeout=120.0)
    return answer.status_code


def metrics(stack) -> dict[str, float]:
    """Sums over all labels."""
    totals: dict[str, float] = {}
    for family in text_string_to_metric_families(stack.get("/metrics").text):
        for sample in family.samples:
            totals[sample.name] = totals.get(sample.name, 0.0) + sample.value
    return totals


def shown(page, name: str) -> float:
    text = page.locator(f'[data-figure="{name}"]').inner_text()
    return float(re.sub(r"[^\d.]", "", text))


def test_every_view_while_traffic_runs(browser, stack):
    stop = threading.Event()
    codes: list[int] = []

    def traffic() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            codes.append(ask(stack, PROMPTS[number % len(PROMPTS)], stream=number % 2 == 0))

    thread = threading.Thread(target=traffic)
    thread.start()
    try:
        with new_context(browser) as context:
            page = context.new_page()
            errors: list[str] = []
            page.on("pageerror", lambda error: errors.append(str(error)))
            sign_in(page, address(stack), token(stack))
            for path in VIEWS.values():
                page.goto(address(stack) + path)
                expect(page.locator("h1")).to_be_visible()
                expect(page.locator(".banner.warn").get_by_text("Redis")).to_have_count(0)
            page.goto(f"{address(stack)}/decisions")
            expect(page.locator("tbody tr").first).to_be_visible()
    finally:
        stop.set()
        thread.join()
    assert not errors
    assert set(codes) == {200}


def test_figures_equal_those_of_metrics_and_ops(browser, stack):
    for number in range(8):
        assert ask(stack, PROMPTS[number % len(PROMPTS)]) == 200
    with new_context(browser) as context:
        page = context.new_page()
        sign_in(page, address(stack), token(stack))
        page.goto(f"{address(stack)}/?window=24h")
        expected = metrics(stack)["specroute_requests_total"]
        expect(page.locator('[data-figure="requests"]')).to_have_text(f"{expected:,.0f}")
        page.goto(f"{address(stack)}/classes")
        _same_speedups(page, stack)


def _same_speedups(page, stack) -> None:
    """Each measured cell of the matrix is the row of /ops/classes."""
    for row in stack.get("/ops/classes").json()["classes"]:
        for figure in row["speedups"]:
            place = f'[data-class="{row["class"]}"][data-mode="{figure["mode"]}"]'
            cell = page.locator(place)
            expect(cell).to_have_attribute("data-n", str(figure["n"]))
            if figure["speedup"] is not None:
                given = float(cell.get_attribute("data-speedup"))
                assert given == pytest.approx(figure["speedup"], rel=0.02)


def test_a_worker_is_drained_and_taken_back_by_an_operator_only(browser, stack):
    name = sorted(stack.workers())[0]
    card = f'[data-worker="{name}"]'
    with new_context(browser) as context:
        page = context.new_page()
        sign_in(page, address(stack), token(stack), view_only=True)
        page.goto(f"{address(stack)}/workers")
        expect(page.locator(card)).to_be_visible()
        expect(page.locator(card).get_by_role("link", name="Drain")).to_have_count(0)
        page.get_by_role("button", name="Sign out").click()
        sign_in(page, address(stack), token(stack))
        page.goto(f"{address(stack)}/workers")
        before = page.locator(f"{card} [data-state]").get_attribute("data-state")
        _order(page, card, "Drain")
        expect(page.locator(f'{card} [data-state="draining"]')).to_be_visible()
        assert stack.workers()[name]["state"] == "draining"
        _order(page, card, "Undrain")
        expect(page.locator(f'{card} [data-state="draining"]')).to_have_count(0)
        stack.wait_until(lambda: stack.workers()[name]["state"] == before, what="undrained")


def _order(page, card: str, verb: str) -> None:
    """Through the confirmation."""
    page.locator(card).get_by_role("link", name=verb, exact=True).click()
    page.get_by_role("button", name=verb, exact=True).click()
    expect(page.get_by_role("status")).to_contain_text(f"{verb} was sent")


def test_a_killed_worker_is_seen(browser, own_stack):
    """Its restart may be over before the page looks again: the crash stays to be read."""
    with new_context(browser) as context:
        page = context.new_page()
        sign_in(page, address(own_stack), token(own_stack))
        page.goto(f"{address(own_stack)}/workers")
        victim = own_stack.workers()["plain"]
        card = page.locator('[data-worker="plain"]')
        expect(card.locator("[data-state]")).to_have_attribute("data-state", victim["state"])
        expect(card.locator('[data-fact="last_crash"]')).to_have_count(0)
        began = time.monotonic()
        os.kill(victim["pid"], signal.SIGKILL)
        told = card.locator('[data-fact="last_crash"]')
        expect(told).to_contain_text("SIGKILL", timeout=30_000)
        log.info("a killed worker was seen after %.2f s", time.monotonic() - began)
        expect(card.locator('[data-fact="restarts"]')).to_have_text("1")
        expect(card.locator('[data-state="ready"]')).to_have_count(1, timeout=60_000)
        own_stack.wait_until(
            lambda: own_stack.workers()["plain"]["pid"] != victim["pid"], what="a new process"
        )
        page.goto(f"{address(own_stack)}/timelines")
        expect(page.get_by_text("plain was restarted").first).to_be_visible(timeout=30_000)
