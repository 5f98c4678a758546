"""The text is what Prometheus' own parser reads back."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from router.telemetry.exposition import Page, label_text


def samples(page: Page):
    found = text_string_to_metric_families(page.body().decode())
    return {f.name: (f.type, f.documentation, f.samples) for f in found}


def test_counters_and_gauges_come_back():
    page = Page()
    page.counter("asked", "How often", ("by",), [(("me",), 3), (("you",), 4)])
    page.gauge("heat", "Degrees", (), [((), 36.6)])
    page.gauge("none", "Nothing yet", ("by",), [])
    kind, text, rows = samples(page)["asked"]
    assert (kind, text) == ("counter", "How often")
    assert [(s.name, s.labels, s.value) for s in rows] == [
        ("asked_total", {"by": "me"}, 3),
        ("asked_total", {"by": "you"}, 4),
    ]
    assert [s.value for s in samples(page)["heat"][2]] == [36.6]
    assert samples(page)["none"][2] == []


def test_a_histogram_counts_upwards_to_infinity():
    page = Page()
    page.histogram("took", "Seconds", (0.1, 1.0), [('by="me"', (2, 0, 3), 7.5)])
    kind, _, rows = samples(page)["took"]
    assert kind == "histogram"
    assert [(s.labels["le"], s.value) for s in rows if s.name == "took_bucket"] == [
        ("0.1", 2),
        ("1.0", 2),
        ("+Inf", 5),
    ]
    assert {s.name: s.value for s in rows if "le" not in s.labels} == {
        "took_count": 5,
        "took_sum": 7.5,
    }


def test_labels_with_quotes_slashes_and_lines_stay_one_label():
    odd = 'a"b\\c\nd'
    page = Page()
    page.gauge("heat", "Degrees", ("by",), [((odd,), 1)])
    assert samples(page)["heat"][2][0].labels == {"by": odd}
    assert "\n" not in label_text(("by",), (odd,))
