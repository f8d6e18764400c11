"""The report page without a browser: what it holds, what it escapes, how it copes with little or much."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from spam_gnn.report.content import EdgeTable, MetricRow, NodeTable, ReportContent
from spam_gnn.report.excerpt import MAX_EDGES, take_excerpt
from spam_gnn.report.page import render_report

NASTY = "</script><script>alert(1)</script><!-- \u2028 \"quoted\" & 'x' <img src=x onerror=alert(2)>"


def sample_edges(rng, n, m, label, directed, known):
    """Random pairs, listed once; like labels mostly help, unlike labels mostly oppose, some are noise."""
    pairs = np.sort(rng.integers(0, n, size=(3 * m + 10, 2)), axis=1) if n > 1 else np.zeros((0, 2), dtype=np.int64)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    pairs = pairs[np.sort(rng.permutation(len(pairs))[:m])]
    source, target = pairs[:, 0], pairs[:, 1]
    truth = np.where(label[source] == label[target], 1, -1)
    truth[rng.random(len(truth)) < 0.2] = 0
    logits = rng.normal(0, 0.9, size=(len(truth), 3))
    logits[np.arange(len(truth)), truth + 1] += 2.2
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return EdgeTable(source, target, p[:, 0], p[:, 1], p[:, 2], directed, truth if known else None)


def sample_history(rng, epochs):
    """Falling losses, rising accuracies, the validation measured every fifth epoch."""
    epoch = np.arange(1, epochs + 1)
    parts = {
        "class": 1.9 * np.exp(-epoch / 30) + 0.25 + rng.normal(0, 0.015, epochs),
        "sparsity": 0.12 * (1 - np.exp(-epoch / 40)),
        "structure": 0.3 * np.exp(-epoch / 60) + 0.05,
    }
    history = {"epoch": epoch, "loss": sum(parts.values()), **parts}
    history["train_accuracy"] = 0.95 - 0.7 * np.exp(-epoch / 20)
    val = 0.82 - 0.6 * np.exp(-epoch / 18) + rng.normal(0, 0.008, epochs)
    history["val_accuracy"] = np.where(epoch % 5 == 0, val, np.nan)
    return {name: [float(v) for v in series] for name, series in history.items()}


def sample_content(seed, *, n=120, m=260, classes=5, directed=False, known=True, names=None, epochs=200):
    """A plausible content: C classes, predictions right four times in five, confidence a little too high."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, classes, n)
    prediction = np.where(rng.random(n) < 0.8, label, rng.integers(0, classes, n))
    confidence = np.clip(rng.beta(6, 2, n), 1 / classes, 0.999)
    total = -np.log(confidence) * 1.5
    edges = sample_edges(rng, n, m, label, directed, known)
    test = np.arange(n) % 2 == 0
    confusion = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(confusion, (label[test], prediction[test]), 1)
    bins = [
        (c, max(0.0, c - 0.04 + rng.normal(0, 0.03)), int(s))
        for c, s in zip(np.linspace(0.25, 0.98, 10), rng.integers(3, 30, 10) + np.arange(10) * 8, strict=True)
    ]
    return ReportContent(
        title="Citations with doubtful links",
        facts={
            "Dataset": "citations.csv",
            "Model": "SpaM, 2 layers, K = 8",
            "Split": "48/32/20",
            "Seed": str(seed),
            "Epochs": f"{epochs} (stopped early)",
            "Time": "41.2 s",
            "Device": "cpu",
        },
        metrics=[
            MetricRow("accuracy", 0.821, 0.807),
            MetricRow("macro F1", 0.79, 0.784),
            MetricRow("NLL", 0.61, 0.65),
            MetricRow("Brier", 0.27, 0.29),
            MetricRow("ECE", None, 0.041),
            MetricRow("AUROC", 0.93, float("nan")),
        ],
        history=sample_history(rng, epochs),
        best_epoch=130 if epochs >= 130 else None,
        class_names=["Théorie", "Neural networks", "Genetics", "Rule learning", "強化学習"][:classes]
        + [f"class {i}" for i in range(5, classes)],
        confusion=confusion,
        reliability=bins,
        ece=0.041,
        edges=edges,
        nodes=NodeTable(
            names or [f"paper {i:04d}" for i in range(n)],
            prediction,
            np.where(rng.random(n) < 0.7, label, -1),
            confidence,
            total,
            total * rng.beta(2, 5, n),
        ),
        edge_detection={"AUROC of p(0)": 0.913, "Average precision": 0.71, "against": "planted noise edges"}
        if known
        else {},
        notes=["12 self-loops were dropped and 4 duplicate edges merged."],
    )


class Balance(HTMLParser):
    """Collects unbalanced tags, visible text and the tags that were opened."""

    VOID = frozenset({"meta", "input", "br", "img"})

    def __init__(self, page):
        super().__init__()
        self.stack, self.wrong, self.tags, self.text = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.stack or self.stack.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, text):
        if not {"script", "style"} & set(self.stack):
            self.text.append(text)


def page_data(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1))


def empty_content(seed=0):
    """No edges, no test labels, no history, one sampled graph."""
    content = sample_content(seed, n=3, m=0, classes=2)
    nodes = replace(content.nodes, structural=np.zeros(3), label=np.full(3, -1))
    return replace(
        content,
        nodes=nodes,
        confusion=np.zeros((0, 0), dtype=int),
        reliability=[],
        ece=float("nan"),
        metrics=[("accuracy", None, float("nan"))],
        history={},
        best_epoch=None,
        notes=[],
        edge_detection={},
    )


def nasty_content():
    content = sample_content(1, names=[NASTY, "Ωμέγα + 100% & co", "\ud800 lone", *(f"n{i}" for i in range(117))])
    return replace(
        content,
        title=NASTY,
        facts={NASTY: NASTY},
        notes=[NASTY],
        class_names=[NASTY] * 5,
        metrics=[(NASTY, 0.5, 0.5)],
        edge_detection={NASTY: NASTY},
    )


def test_page_is_self_contained_and_balanced():
    page = render_report(sample_content(0))
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert "@import" not in page
    assert set(re.findall(r"url\((.)", page)) == {"#"}
    parsed = Balance(page)
    assert not parsed.wrong
    assert not parsed.stack
    assert not any("src" in attrs for _, attrs in parsed.tags)
    assert all(attrs["href"].startswith("#") for _, attrs in parsed.tags if "href" in attrs)
    assert not any(name.startswith("on") for _, attrs in parsed.tags for name in attrs)


def test_references_inside_the_page_resolve():
    parsed = Balance(render_report(sample_content(0)))
    identifiers = [attrs["id"] for _, attrs in parsed.tags if "id" in attrs]
    assert len(identifiers) == len(set(identifiers))
    wanted = {attrs["href"][1:] for _, attrs in parsed.tags if "href" in attrs}
    wanted |= {attrs["for"] for tag, attrs in parsed.tags if tag in {"label", "output"} and "for" in attrs}
    assert wanted <= set(identifiers)
    assert all(attrs.get("scope") for tag, attrs in parsed.tags if tag == "th")
    assert all(attrs.get("aria-label") or attrs.get("aria-hidden") for tag, attrs in parsed.tags if tag == "svg")


def test_user_text_never_becomes_markup():
    page = render_report(nasty_content())
    assert page.lower().count("<script") == page.lower().count("</script") == 2
    assert "<img" not in page
    assert "<!--" not in page
    assert "\u2028" not in page[page.index('id="data">') : page.index("</script>")]
    names = page_data(page)["nodes"]["name"]
    assert NASTY in names
    page.encode("utf-8")
    assert not Balance(page).wrong


def test_long_names_are_clipped():
    page = render_report(sample_content(0, n=4, m=5, names=["x" * 100_000, "b", "c", "d"]))
    assert len(page) < 200_000


def test_large_graph_stays_small_and_says_so():
    content = sample_content(2, n=10_000, m=40_000, classes=50)
    page = render_report(content)
    data = page_data(page)
    assert len(page.encode("utf-8")) < 3_000_000
    assert len(data["edges"]["source"]) <= MAX_EDGES
    assert f"of {content.edges.count:,} edges" in page
    # The histogram counts every edge, stored in the page or not.
    tallied = re.findall(r": ([\d,]+) edges judged", page)
    assert sum(int(size.replace(",", "")) for size in tallied) == content.edges.count


def test_excerpt_is_deterministic_and_holds_whole_neighbourhoods():
    content = sample_content(3, n=3000, m=12_000)
    first, second = take_excerpt(content), take_excerpt(content)
    assert np.array_equal(first.edges, second.edges)
    assert np.array_equal(first.nodes, second.nodes)
    stored = set(first.edges.tolist())
    edges = content.edges
    worst = int(np.argmax(edges.p_absent))
    for node in (edges.source[worst], edges.target[worst]):
        assert set(np.flatnonzero((edges.source == node) | (edges.target == node)).tolist()) <= stored
    assert first.start >= 0


def test_tables_rank_every_edge():
    content = sample_content(2, n=2000, m=9000)
    page = render_report(content)
    for identifier, values in (("suspicious", content.edges.p_absent), ("opposing", content.edges.p_negative)):
        table = page[page.index(f'id="{identifier}"') :]
        rows = re.findall(r"<tr data-node.*?</tr>", table[: table.index("</table>")])
        assert len(rows) == 50
        column = 1 if identifier == "suspicious" else 2
        shown = [float(re.findall(r'class="p[^"]*" data-value="([\d.]+)"', row)[column]) for row in rows]
        assert shown == pytest.approx(np.sort(values)[::-1][:50], abs=1e-6)


@pytest.mark.parametrize("classes", [2, 6, 50])
def test_any_number_of_classes(classes):
    parsed = Balance(render_report(sample_content(4, classes=classes)))
    assert not parsed.wrong
    assert sum("hit" in (attrs.get("class") or "").split() for _, attrs in parsed.tags) == classes + 3


def test_nothing_to_show_is_said():
    page = render_report(empty_content())
    text = " ".join(Balance(page).text)
    for sentence in ("no edges to judge", "No labelled test nodes", "No training history", "–"):
        assert sentence in text
    assert "nan" not in text.lower()
    no_nodes = sample_content(0, n=2, m=0, classes=2)
    nothing = np.zeros(0)
    table = NodeTable([], nothing.astype(int), nothing.astype(int), nothing, nothing, nothing)
    assert not Balance(render_report(replace(no_nodes, nodes=table))).wrong


def test_non_finite_numbers_are_dashes():
    content = sample_content(5)
    edges = replace(content.edges, p_absent=np.full(content.edges.count, np.nan))
    nodes = replace(content.nodes, total=np.full(content.nodes.count, np.inf))
    page = render_report(replace(content, edges=edges, nodes=nodes, ece=float("inf")))
    assert not re.search(r"\b(nan|inf)\b", " ".join(Balance(page).text).lower())
    assert page_data(page)["edges"]["noise"][0] is None


def test_history_is_thinned_but_keeps_the_chosen_epoch():
    content = replace(sample_content(6, epochs=5000), best_epoch=1234)
    history = page_data(render_report(content))["history"]
    assert len(history["epoch"]) < 450
    assert 1234 in history["epoch"]
    assert 5000 in history["epoch"]


def test_shapes_are_checked():
    content = sample_content(7)
    with pytest.raises(ValueError, match="one entry per edge"):
        replace(content.edges, target=content.edges.target[1:])
    with pytest.raises(ValueError, match="truth"):
        replace(content.edges, truth=np.full(content.edges.count, 2))
    with pytest.raises(ValueError, match="one entry per node"):
        replace(content.nodes, label=content.nodes.label[1:])
    with pytest.raises(ValueError, match="history"):
        replace(content, history={"epoch": [1, 2], "loss": [0.1]})
    with pytest.raises(ValueError, match="confusion"):
        replace(content, confusion=np.zeros((2, 2), dtype=int))
    with pytest.raises(ValueError, match="not in `nodes`"):
        replace(content, edges=replace(content.edges, source=content.edges.source + 1000))
