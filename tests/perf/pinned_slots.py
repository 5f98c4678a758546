"""Prompt tokens read by a real server: conversations in turn, with and without a slot of their own.

    python tests/perf/pinned_slots.py

Two slots, a system prompt that all conversations share, five turns each. What a pin would save is
what the server reads less with it.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import click
import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.engines import RealWorker, real_workers

TURNS, SLOTS = 5, 2
SYSTEM = " ".join(f"Rule {n}: be exact about number {n * 7 % 13}." for n in range(60))


async def tokens_read(worker: RealWorker, conversations: int, *, pinned: bool) -> int:
    """Prompt tokens that were in no cache."""
    said = {c: [{"role": "system", "content": SYSTEM}] for c in range(conversations)}
    order, slot_of = list(range(SLOTS)), dict[int, int]()
    read = 0
    async with httpx.AsyncClient(
        base_url=worker.url,
        headers=worker.headers,
        timeout=120.0,
        limits=httpx.Limits(max_keepalive_connections=0),
    ) as http:
        for turn in range(TURNS):
            for c, messages in said.items():
                ask = f"Conversation {c}, turn {turn}: list {turn + 3} words."
                messages.append({"role": "user", "content": ask})
                body = {"messages": messages, "max_tokens": 40, "temperature": 0}
                if pinned:
                    slot = slot_of.setdefault(c, order[0])
                    order.remove(slot)
                    order.append(slot)
                    body["id_slot"] = slot
                answer = (await http.post("/v1/chat/completions", json=body)).json()
                text = answer["choices"][0]["message"]["content"]
                messages.append({"role": "assistant", "content": text})
                read += answer["timings"]["prompt_n"]
    return read


def main() -> None:
    """A line for each number of conversations and each way; a fresh server for each."""
    click.echo("| conversations | read, server's choice | read, pinned | with pins |")
    click.echo("| --- | --- | --- | --- |")
    for conversations in (2, 3, 4):
        reads = []
        for pinned in (False, True):
            with (
                tempfile.TemporaryDirectory() as folder,
                real_workers(Path(folder), "ar", slots=SLOTS) as started,
            ):
                reads.append(asyncio.run(tokens_read(started[0], conversations, pinned=pinned)))
        more = reads[1] / reads[0] - 1
        click.echo(f"| {conversations} | {reads[0]} | {reads[1]} | {more:+.0%} |")


if __name__ == "__main__":
    main()
