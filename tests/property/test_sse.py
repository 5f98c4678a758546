"""The SSE tools do not care how bytes are split, and agree with a plain reading of the rules."""

from __future__ import annotations

import orjson
from hypothesis import given
from hypothesis import strategies as st

from router.upstream.sse import SSEEvent, SSEParser, StreamTap, UsageFilter
from tests.support.http11_driver import split

ENDS = st.sampled_from(["\n", "\r\n", "\r"])
CUTS = st.lists(st.integers(0, 10_000), max_size=12)
TEXT = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=12)
LINE = st.one_of(
    st.just(""),
    st.just("data"),
    TEXT.map(": {}".format),
    TEXT.map("data: {}".format),
    TEXT.map("data:{}".format),
    TEXT.map("event: {}".format),
    TEXT.map("id: {}".format),
    TEXT.map("retry: {}".format),
    TEXT,
)


def read_plainly(text: str) -> list[SSEEvent]:
    """The standard's rules, applied to a whole text at once."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]
    events, data, kind, last_id = [], [], "", ""
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                events.append(SSEEvent("\n".join(data), kind or "message", last_id))
            data, kind = [], ""
        elif name == "data":
            data.append(value)
        elif name == "event":
            kind = value
        elif name == "id":
            last_id = value
    return events


@given(st.lists(st.tuples(LINE, ENDS), max_size=20), st.booleans(), CUTS)
def test_parser_reads_what_the_standard_says(rows, mark, cuts):
    text = ("\ufeff" if mark else "") + "".join(line + end for line, end in rows)
    parser = SSEParser()
    events = [event for part in split(text.encode(), cuts) for event in parser.feed(part)]
    assert events == read_plainly(text)


def _shuffled(draw, fields: dict) -> dict:
    return {name: fields[name] for name in draw(st.permutations(sorted(fields)))}


@st.composite
def bodies(draw) -> tuple[bytes, bool]:
    """An event's JSON, and whether it is the usage event."""
    text = draw(st.sampled_from(["x", 'say "usage"', '"choices":[]', "data: {\n\n", "é", "😀", ""]))
    choices = draw(st.sampled_from([[], [], [{"index": 0, "delta": {"content": text}}]]))
    usage = draw(st.sampled_from([None, None, {"total_tokens": 3, "note": text}]))
    fields = {"choices": choices, "id": text, "object": "chat.completion.chunk"}
    if usage is not None or draw(st.booleans()):
        fields["usage"] = usage
    encoded = orjson.dumps(_shuffled(draw, fields))
    if draw(st.booleans()):
        encoded = encoded.replace(b'":', b'" : ').replace(b',"', b' , "')
    return encoded, choices == [] and usage is not None


@st.composite
def streams(draw) -> list[tuple[bytes, bool]]:
    """Pieces of a stream with one kind of line end; True marks what must be taken out."""
    end = draw(ENDS).encode()
    pieces = []
    for kind in draw(st.lists(st.sampled_from("ddddcbneu"), max_size=10)):
        if kind == "d":
            body, is_usage = draw(bodies())
            space = draw(st.sampled_from([b" ", b""]))
            pieces.append((b"data:" + space + body + end + end, is_usage))
        elif kind == "c":
            pieces.append((b": keep-alive" + end, False))
        elif kind == "b":
            pieces.append((end, False))
        elif kind == "n":
            pieces.append((b"data: [DONE]" + end + end, False))
        elif kind == "e":
            pieces.append((b"event: x" + end + b"data: {}" + end + end, False))
        else:
            pieces.append((b"unknown: x" + end + end, False))
    return pieces


@given(streams(), CUTS)
def test_filter_takes_out_the_usage_event_and_nothing_else(pieces, cuts):
    hide = UsageFilter()
    out = b"".join(hide.feed(part) for part in split(b"".join(p for p, _ in pieces), cuts))
    assert out + hide.finish() == b"".join(p for p, is_usage in pieces if not is_usage)


@given(st.binary(max_size=200), CUTS)
def test_filter_passes_any_bytes(data, cuts):
    hide = UsageFilter()
    assert b"".join(map(hide.feed, split(data, cuts))) + hide.finish() == data


@given(streams(), CUTS)
def test_filter_holds_back_no_whole_event(pieces, cuts):
    """After each piece that ends plainly, all that may be seen has been seen."""
    hide = UsageFilter()
    out = wanted = b""
    for piece, is_usage in pieces:
        out += b"".join(map(hide.feed, split(piece, cuts)))
        wanted += b"" if is_usage else piece
        if not piece.endswith(b"\r"):  # a LF could still belong to it
            assert out == wanted


CONTENT = {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}]}


@given(st.integers(0, 60), st.integers(0, 3), CUTS)
def test_tap_reads_the_same_at_any_split(tokens, large, cuts):
    role = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]}
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "model": "m"}
    usage = {"choices": [], "usage": {"total_tokens": 9}, "timings": {"pad": "x" * 9000 * large}}
    events = [role, *([CONTENT] * tokens), last, usage]
    data = b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in events)
    data += b"data: [DONE]\n\n"
    tap = StreamTap()
    first = [tap.feed(part) for part in split(data, cuts)]
    result = tap.result()
    assert any(first) == (tokens > 0) == tap.first_content
    assert (result.usage, result.timings) == (usage["usage"], usage["timings"])
    assert (result.finish_reason, result.model, result.saw_done) == ("stop", "m", True)
    assert tap.sample == data[:16_384]
    if not cuts:
        assert result.content_events == tokens
