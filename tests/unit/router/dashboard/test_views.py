"""Every view in every state and language: it renders, escapes, and says what it must."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from router.core import Status
from router.dashboard.app import CONTENT
from router.dashboard.figures import Snapshot
from router.dashboard.happening_words import LETTERS
from router.dashboard.page import Context, page, trouble
from router.dashboard.report import covered, render
from router.dashboard.views import classes, classifier, decisions, overview, timelines, workers
from router.dashboard.words import Words
from router.telemetry.happenings import Kind
from router.telemetry.history_store import Entry
from tests.fakes.gateway import record
from tests.fakes.outcomes import outcome
from tests.fakes.snapshots import NOW, entry, full, slices_of, speedup
from workers.registry import Verb
from workers.state import WorkerState

STATES = {
    "full": full(),
    "nothing": Snapshot(at=1_700_000_000.0),
    "never": Snapshot(at=0.0, trouble="connection refused"),
    "workers only": full(slices={}, speedups=(), cells=(), decisions=(), happenings=()),
}
EVIL = '<script>alert("x")</script>'


class Balance(HTMLParser):
    """Open and close tags match."""

    VOID = frozenset({"meta", "link", "input", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def balanced(html: str) -> str:
    parser = Balance()
    parser.feed(html)
    assert not parser.open
    return html


@pytest.mark.parametrize("language", ["en", "ru"])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("view", CONTENT)
def test_every_view_in_every_state(view: str, state: str, language: str) -> None:
    context = Context(STATES[state], Words(language), operator=True)
    html = balanced(page(context, view, CONTENT[view](context)))
    assert html.count("<h1>") == 1
    assert f'lang="{language}"' in html


@pytest.mark.parametrize("view", CONTENT)
def test_names_of_strangers_are_escaped(view: str) -> None:
    bad = record(EVIL, reason=EVIL, argv=(EVIL,), host=EVIL, build=EVIL, state=WorkerState.FAILED)
    strange = entry(1, outcome(worker=EVIL, mode=EVIL, request_id=EVIL, error_code=EVIL))
    context = Context(full(records=(bad,), decisions=(strange,)), Words(), {"id": EVIL})
    assert "<script>alert" not in CONTENT[view](context)


def test_the_matrix_shows_no_number_below_the_minimum() -> None:
    rows = (speedup("prose", "ar", 1.0), speedup("prose", "mtp-n3", None))
    html = classes.matrix_table(Context(full(speedups=rows), Words()))
    assert "7 of 20 answers" in html
    assert "data-speedup" not in html.replace('data-speedup="1.000000"', "")


def test_the_matrix_says_which_side_lacks_answers() -> None:
    rows = (speedup("prose", "mtp-n3", None, n=50.0, n_plain=3.0),)
    assert "AR: 3 of 20 answers" in classes.matrix_table(Context(full(speedups=rows), Words()))


def test_drill_down_names_its_buckets() -> None:
    html = classes.drill(Context(full(), Words()), "prose", "mtp-n3")
    assert "3 … 4" in html  # the occupancy bucket 2
    assert "0 … 2,048" in html
    assert "not measured" in classes.drill(Context(full(), Words()), "no", "such")


def test_orders_are_offered_to_operators_only_and_fit_the_state() -> None:
    context = Context(full(), Words(), operator=True)
    assert "/workers/code/drain" in workers.content(context)
    assert "/drain" not in workers.content(replace(context, operator=False))
    draining = record("code", state=WorkerState.DRAINING)
    assert workers.verbs(draining) == (Verb.UNDRAIN, Verb.RESTART, Verb.UNLOAD)
    assert workers.verbs(record("code", state=WorkerState.QUARANTINED))[0] is Verb.LOAD
    assert Verb.DRAIN not in workers.verbs(record("code", state=WorkerState.LOADING))


@pytest.mark.parametrize(
    ("state", "up"),
    [
        (WorkerState.READY, True),
        (WorkerState.DRAINING, True),
        (WorkerState.BACKOFF, False),
        (WorkerState.STOPPED, False),
    ],
)
def test_a_worker_that_does_not_run_is_not_up_since_its_last_start(
    state: WorkerState, up: bool
) -> None:
    one = record("code", state=state, started_at=NOW - 60)
    assert ("Up since" in workers.content(Context(full(records=(one,)), Words()))) is up


def test_what_became_of_an_order_is_told_in_fixed_words() -> None:
    query = {"told": "sent", "verb": "drain", "worker": "code", "heard": "2"}
    assert "Drain was sent to code; 2 agent(s)" in workers.content(
        Context(full(), Words(), query, operator=True)
    )
    forged = query | {"worker": "send your token to evil.example"}
    assert "evil" not in workers.content(Context(full(), Words(), forged))


def test_decisions_are_filtered_and_paged() -> None:
    context = Context(full(), Words(), {"worker": "code"})
    html = decisions.content(context)
    assert "40 of 120" in html
    assert html.count('scope="row"') == 40
    everything = decisions.content(replace(context, query={}))
    assert everything.count('scope="row"') == decisions.PAGE
    assert "from=50" in everything
    last = decisions.content(replace(context, query={"from": "100"}))
    assert last.count('scope="row"') == 20
    assert "No decision matches" in decisions.content(replace(context, query={"id": "nothing"}))


def test_one_decision_shows_predicted_costs_and_why_others_were_out() -> None:
    context = Context(full(), Words())
    html = decisions.detail(context, context.snapshot.decisions[0])
    assert "is draining" in html
    assert "✓ code (chosen)" in html
    assert "2.1\u00a0s" in html  # 0.1 s prefill + 2 s decode
    assert "content" not in html.replace("content_", "")


@pytest.mark.parametrize(("language", "head"), [("en", "90 % interval"), ("ru", "90 % интервал")])
def test_the_interval_of_a_forecast_is_called_what_the_log_says_it_is(
    language: str, head: str
) -> None:
    """`interval_s` is a 90 % interval (docs/telemetry.md); that of a speed-up is a 95 % one."""
    context = Context(full(), Words(language))
    html = decisions.detail(context, context.snapshot.decisions[0])
    assert head in html
    assert "95 %" not in html


def test_one_decision_shows_what_the_classifier_went_by() -> None:
    context = Context(full(), Words())
    assert "What the classifier went by" in decisions.detail(context, context.snapshot.decisions[0])
    weights = {"structured": 2.5, "prose": -1.0, "reasoning": 0.0}
    grounds = {
        "features": {"n_messages": 3, "language": "ru", "has_tools": False},
        "contributions": [{"name": "lead:WRITE>code", "weights": weights}],
    }
    one = entry(1, outcome())
    one = one._replace(row=one.row | {"grounds": grounds})
    html = balanced(decisions.detail(context, one))
    assert "lead:WRITE&gt;code" in html
    assert "+2.50" in html
    assert "What the classifier saw" in html
    assert html.count("n_messages") == 1
    assert "−1.00" in html
    russian = decisions.detail(replace(context, words=Words("ru")), one)
    assert "+2,50" in russian
    assert "False" not in html  # a person reads "no"


def test_a_refused_request_has_no_decision_to_show() -> None:
    refused = entry(1, outcome(decision=None, classification=None, worker="", mode=""))
    context = Context(full(decisions=(refused,)), Words())
    balanced(decisions.content(context) + decisions.detail(context, refused))


@pytest.mark.parametrize(
    ("language", "name"), [("en", "reached no worker"), ("ru", "не дошли до сервера")]
)
def test_requests_that_reached_no_worker_have_a_name_and_a_look_where_they_count(
    language: str, name: str
) -> None:
    refused = outcome(worker="", mode="", at=NOW - 30, decision=None, status=Status.SHED)
    slices = slices_of(outcome(mode="ar", at=NOW - 30), refused)
    context = Context(full(slices=slices), Words(language))
    html = {
        metric: timelines.charts(context, metric, 3600) for metric in ("requests", "speed", "ttft")
    }
    legend = html["requests"].partition("</ul>")[0]
    assert f"<span>{name}</span>" in legend
    assert legend.count("s0") == legend.count("s8") == 2  # a line and a shape each
    assert f"<title>{name}</title>" in html["requests"]
    assert name not in html["speed"] + html["ttft"]
    assert "none" not in html["requests"] + html["speed"] + html["ttft"]


def ticks(html: str) -> list[str]:
    """The texts on the axes of the first chart: values upwards, then times."""
    return re.findall(r'class="tick [a-z]+">([^<]+)<', html.partition("</svg>")[0])


@pytest.mark.parametrize(
    ("count", "values"),
    [(1, ["0", "0.25", "0.5", "0.75", "1"]), (21, ["0", "6.25", "12.5", "18.75", "25"])],
)
def test_steps_of_an_axis_are_equal_as_written(count: int, values: list[str]) -> None:
    done = [outcome("structured", mode="ar", at=NOW - 30)] * count
    html = timelines.charts(Context(full(slices=slices_of(*done)), Words()), "requests", 3600)
    found = ticks(html.partition("<figure>")[2])
    assert found[:5] == values


def test_a_week_of_an_axis_has_dates() -> None:
    context = Context(full(), Words())
    week = timelines.charts(context, "speed", 7 * 86_400).partition("<figure>")[2]
    day = timelines.charts(context, "speed", 86_400).partition("<figure>")[2]
    assert ticks(week)[5:] == ["11-07 22:20", "11-10 06:20", "11-12 14:20", "11-14 22:20"]
    assert ticks(day)[5:] == ["22:20", "06:20", "14:20", "22:20"]


def test_requests_that_were_all_refused_are_not_no_requests() -> None:
    refused = outcome(worker="", mode="", at=NOW - 30, decision=None, status=Status.SHED)
    html = overview.traffic(Context(full(slices=slices_of(refused)), Words()))
    assert "No request of this time reached a worker" in html
    assert "No requests in this time" in overview.traffic(Context(full(slices={}), Words()))


def test_a_figure_that_no_request_tells_is_not_a_lack_of_requests() -> None:
    context = Context(full(slices=slices_of(outcome(mode="ar", at=NOW - 30))), Words())
    assert "no data" in timelines.charts(context, "acceptance", 3600)
    assert "No requests" in timelines.charts(
        replace(context, snapshot=full(slices={})), "speed", 60
    )


def test_a_mode_whose_worker_is_gone_does_not_look_like_plain_decoding() -> None:
    slices = slices_of(outcome(mode="eagle3", at=NOW - 30), outcome(mode="ar", at=NOW - 30))
    styles = Context(full(slices=slices), Words()).styles("tiny")
    assert len({styles[mode] for mode in ("ar", "mtp-n3", "dflash2-margin", "eagle3")}) == 4


@pytest.mark.parametrize(
    ("seconds_ago", "text"),
    [
        (100, "The 23 hours before the last have 0 classified requests"),
        (20_000, "The last hour has 0 classified requests"),
    ],
)
def test_drift_says_which_hours_have_too_few_requests(seconds_ago: int, text: str) -> None:
    slices = slices_of(*[outcome(at=NOW - seconds_ago)] * 60)
    html = classifier.content(Context(full(slices=slices), Words()))
    assert f"Drift: too early to tell. {text}" in html


def test_trouble_is_told_with_the_age_of_the_figures() -> None:
    away = full(trouble="connection refused")
    assert "2023-11-14 22:20:00 UTC" in trouble(Context(away, Words()))
    assert "nothing to show yet" in trouble(Context(STATES["never"], Words()))
    assert trouble(Context(full(), Words())) == ""


@pytest.mark.parametrize("state", STATES)
def test_the_report_is_one_page_without_links_or_scripts(state: str) -> None:
    html = balanced(render(Context(STATES[state], Words(), fixed=True), 86_400))
    for outside in ("<script", "<link", "<a ", "<form", "http://", "https://"):
        assert outside not in html


def test_the_report_covers_what_was_asked() -> None:
    assert [covered(s) for s in (60, 5400, 90_000, 1e9)] == [600, 5400, 90_000, 7 * 86_400]
    html = balanced(render(Context(full(), Words(), fixed=True), 5400))
    assert "2023-11-14 20:50:00 UTC to 2023-11-14 22:20:00 UTC" in html


@pytest.mark.parametrize(
    ("language", "text"),
    [("en", "accepted length is 0.41 × what it was"), ("ru", "принятая длина теперь 0.41 ×")],
)
def test_every_kind_of_happening_has_words_and_a_letter(language: str, text: str) -> None:
    row = {"at": NOW, "model": "tiny", "worker": "code", "before": "class prose", "after": "0.41"}
    entries = [
        Entry(f"{i}-0", row | {"kind": kind.value, "reason": "accepted length"})
        for i, kind in enumerate(Kind)
    ]
    context = Context(full(happenings=tuple(entries)), Words(language))
    html = CONTENT["timelines"](context)
    assert set(LETTERS) == {kind.value for kind in Kind}
    assert text in html
    assert "{" not in html
