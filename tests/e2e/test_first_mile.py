"""What a newcomer sees: sixty requests through the openai SDK, and what they cost, everywhere."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict

import httpx
import openai
import pytest

from router.bench.workload import PROMPTS
from workers.timings import Timings

pytestmark = [pytest.mark.engine, pytest.mark.slow]

COUNTED = ("predicted_n", "draft_n", "draft_n_accepted")


def _ask(client: openai.OpenAI, prompt, index: int) -> tuple[str, str, Timings, str]:
    """(class, mode, timings, text) of one answer; every second request streams."""
    body = prompt.body("tiny", max_tokens=48, seed=index)
    extra = {key: body.pop(key) for key in ("chat_template_kwargs", "cache_prompt")}
    if index % 2 == 0:
        for key in ("stream", "stream_options"):
            del body[key]
        raw = client.chat.completions.with_raw_response.create(**body, extra_body=extra)
        answer = raw.parse()
        message = answer.choices[0].message
        text = (message.content or "") + (getattr(message, "reasoning_content", None) or "")
        timings = answer.model_extra["timings"]
    else:
        raw = client.chat.completions.with_raw_response.create(**body, extra_body=extra)
        text, timings = "", None
        for chunk in raw.parse():
            for choice in chunk.choices:
                text += choice.delta.content or ""
                text += getattr(choice.delta, "reasoning_content", None) or ""
            timings = (chunk.model_extra or {}).get("timings", timings)
    headers = raw.headers
    assert headers["x-specroute-worker"]
    assert headers["x-request-id"]
    assert float(headers["x-specroute-overhead-ms"]) >= 0
    return (
        headers["x-specroute-class"],
        headers["x-specroute-mode"],
        Timings.from_payload(timings),
        text,
    )


def _metric(text: str, name: str) -> dict[tuple[str, str], float]:
    """Values of one counter by (class, mode)."""
    values = {}
    for labels, value in re.findall(rf"^{name}\{{(.*?)\}} (\S+)$", text, re.MULTILINE):
        row = dict(re.findall(r'(\w+)="(.*?)"', labels))
        values[row["class"], row["mode"]] = float(value)
    return values


def _engine_counts(stack) -> Counter[str]:
    """llama.cpp's own cumulative counters, summed over the workers."""
    secret = (stack.state_dir / "cluster-secret").read_text().strip()
    from workers.keys import worker_api_key

    totals: Counter[str] = Counter()
    for name, row in stack.workers().items():
        key = worker_api_key(secret, name)
        page = httpx.get(row["url"] + "/metrics", headers={"authorization": f"Bearer {key}"})
        assert page.status_code == 200, page.text
        for metric, field in (
            ("tokens_predicted_total", "predicted_n"),
            ("spec_decode_num_draft_tokens_total", "draft_n"),
            ("spec_decode_num_accepted_tokens_total", "draft_n_accepted"),
        ):
            found = re.search(rf"^llamacpp:{metric} (\S+)$", page.text, re.MULTILINE)
            totals[field] += int(float(found[1])) if found else 0
    return totals


def _delta(after: dict, before: dict) -> dict:
    return {k: v - before.get(k, 0) for k, v in after.items() if v != before.get(k, 0)}


def test_sixty_prompts_and_equal_accounts_everywhere(stack):
    client = openai.OpenAI(base_url=stack.url + "/v1", api_key="unused", max_retries=0)
    engine_before = _engine_counts(stack)
    before = stack.get("/metrics").text
    redis_before = _redis_totals(stack)

    told: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    asked = Counter()
    for workload_class in ("structured", "prose", "reasoning"):
        pool = [p for p in PROMPTS if p.workload_class == workload_class]
        for index in range(20):
            cls, mode, timings, text = _ask(client, pool[index % len(pool)], index)
            assert text.strip(), "an answer without text"
            told[cls, mode]["requests"] += 1
            for field in COUNTED:
                told[cls, mode][field] += getattr(timings, field) or 0
            asked[workload_class] += 1
    assert asked.total() == 60

    expected = {field: {k: c[field] for k, c in told.items() if c[field]} for field in COUNTED}

    def metrics_agree():
        text = stack.get("/metrics").text
        names = {
            "predicted_n": "specroute_generation_tokens_total",
            "draft_n": "specroute_draft_tokens_total",
            "draft_n_accepted": "specroute_draft_accepted_tokens_total",
        }
        seen = {
            field: _delta(_metric(text, name), _metric(before, name))
            for field, name in names.items()
        }
        return seen == expected

    stack.wait_until(metrics_agree, 15, "/metrics equal to the answers' timings")

    def redis_agrees():
        now = _redis_totals(stack)
        seen = {field: _delta(now[field], redis_before[field]) for field in COUNTED}
        return seen == expected

    stack.wait_until(redis_agrees, 15, "Redis equal to the answers' timings")

    grown = _engine_counts(stack)
    grown.subtract(engine_before)
    assert grown["draft_n"] == sum(expected["draft_n"].values())
    assert grown["draft_n_accepted"] == sum(expected["draft_n_accepted"].values())
    # The engine's counter leaves the first, free token of each answer out or in by version; with
    # sixty answers the two readings are exact.
    total = sum(expected["predicted_n"].values())
    assert grown["predicted_n"] in (total, total - 60)


def _redis_totals(stack) -> dict[str, dict[tuple[str, str], int]]:
    """Redis' own totals of the tiny model by field and (class, mode)."""
    import redis

    client = redis.Redis(unix_socket_path=str(_socket(stack)), decode_responses=True)
    found: dict[str, dict[tuple[str, str], int]] = {field: {} for field in COUNTED}
    for key in client.scan_iter("specroute:totals:*"):
        _, cls, mode = json.loads(key.removeprefix("specroute:totals:"))
        row = client.hgetall(key)
        for field in COUNTED:
            if int(float(row.get(field, 0))):
                found[field][cls, mode] = int(float(row[field]))
    client.close()
    return found


def _socket(stack):
    lines = (stack.state_dir / "redis-url").read_text().strip()
    return lines.removeprefix("unix://")
