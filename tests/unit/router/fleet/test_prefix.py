"""Hash chains over messages, and what a worker is believed to hold of them."""

from __future__ import annotations

import pytest

from router.fleet import prefix
from router.fleet.prefix import Chain, PrefixIndex, read_chain
from tests.fakes.gateway import record


def _chat(*turns: str) -> dict:
    roles = ("user", "assistant")
    return {
        "messages": [
            {"role": roles[index % 2], "content": text} for index, text in enumerate(turns)
        ]
    }


def _remember(index: PrefixIndex, worker, chain: Chain, cache_n=None, prompt_tokens=None) -> None:
    index.remember(worker, chain, chain.conversation, cache_n=cache_n, prompt_tokens=prompt_tokens)


def test_a_chain_has_one_boundary_per_message():
    chain = read_chain(_chat("ab", "cde", "f"))
    assert [chars for _, chars in chain.boundaries] == [2, 5, 6]
    assert chain.chars == 6
    assert chain.answers == 1


def test_later_turns_share_the_beginning_and_the_conversation():
    first, second = read_chain(_chat("a")), read_chain(_chat("a", "b", "c"))
    assert second.boundaries[0] == first.boundaries[0]
    assert second.conversation == first.conversation


def test_role_and_tools_are_part_of_the_chain():
    plain = read_chain({"messages": [{"role": "user", "content": "a"}]})
    other_role = read_chain({"messages": [{"role": "system", "content": "a"}]})
    with_tools = read_chain({"messages": [{"role": "user", "content": "a"}], "tools": [{"x": 1}]})
    assert len({c.boundaries[0][0] for c in (plain, other_role, with_tools)}) == 3


def test_odd_bodies_give_chains_too():
    for body in (
        {},
        {"messages": ["text", 3, None]},
        {"messages": [{"role": 3, "content": [{"type": "text", "text": "x"}]}]},
        {"prompt": "once"},
        {"prompt": [1, 2, 3]},
    ):
        assert isinstance(read_chain(body), Chain)
    assert read_chain({"prompt": "once"}) == read_chain({"prompt": "once"})


def test_a_worker_holds_what_it_has_digested():
    index, worker = PrefixIndex(), record()
    assert index.cached_tokens([worker], read_chain(_chat("abcd")), 100.0) == {}
    _remember(index, worker, read_chain(_chat("abcd")))
    longer = read_chain(_chat("abcd", "efgh", "ijkl"))
    assert index.cached_tokens([worker], longer, 120.0) == {"plain": 40.0}
    assert index.cached_tokens([record("other")], longer, 120.0) == {}


def test_the_conversation_lives_where_it_was_served_last():
    index, chain = PrefixIndex(), read_chain(_chat("a"))
    assert index.home(chain.conversation) is None
    _remember(index, record("one"), chain)
    _remember(index, record("two"), chain)
    assert index.home(chain.conversation) == "two"


def test_a_restarted_worker_is_cold():
    index, chain = PrefixIndex(), read_chain(_chat("abcd"))
    _remember(index, record(pid=1), chain)
    assert index.cached_tokens([record(pid=2)], chain, 100.0) == {}
    assert index.cached_tokens([record(pid=1)], chain, 100.0) == {}  # and so it stays


def test_trust_follows_what_the_worker_reports():
    index, worker, chain = PrefixIndex(), record(), read_chain(_chat("abcd"))
    _remember(index, worker, chain)
    for _ in range(30):
        _remember(index, worker, chain, cache_n=0, prompt_tokens=100)
    assert index.cached_tokens([worker], chain, 100.0)["plain"] < 1.0
    for _ in range(30):
        _remember(index, worker, chain, cache_n=100, prompt_tokens=100)
    assert index.cached_tokens([worker], chain, 100.0)["plain"] > 99.0


@pytest.mark.interpreted
def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(prefix, "BOUNDARIES_PER_WORKER", 8)
    monkeypatch.setattr(prefix, "HOMES", 8)
    index, worker = PrefixIndex(), record()
    chains = [read_chain(_chat(f"prompt {number}")) for number in range(20)]
    for chain in chains:
        _remember(index, worker, chain)
    known = [bool(index.cached_tokens([worker], chain, 1.0)) for chain in chains]
    assert known == [False] * 12 + [True] * 8
    assert [index.home(c.conversation) is not None for c in chains] == known
