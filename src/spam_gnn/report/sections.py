"""The page's sections, from the headline to the training curves: what each says when there is nothing to say, too."""

from __future__ import annotations

import numpy as np

from spam_gnn.report import charts
from spam_gnn.report.content import VERDICTS, ReportContent
from spam_gnn.report.curves import training_curves
from spam_gnn.report.excerpt import Excerpt
from spam_gnn.report.markup import MISSING, count, definitions, escape, is_number, number, percent
from spam_gnn.report.tables import edge_table, heat_table, metrics_table, mistakes_table, node_table

_GLYPHS = {1: "+", 0: "0", -1: "−"}
_NARROW_CLASSES = 5
_NOUNS = {True: "directed edges", False: "edges"}


def headline(content: ReportContent) -> str:
    """Three answers: how often right, how honest, what the edges are worth."""
    accuracy, validation = _accuracy(content)
    tested = int(content.confusion.sum())
    about = f"of {count(tested)} test nodes" if tested else "no labelled test nodes"
    if is_number(validation):
        about += f" · validation {percent(validation)}"
    tiles = _tile("Test accuracy", percent(accuracy), about) + _tile(
        "Calibration error", number(content.ece), _calibration(content)
    )
    return f'<section class="headline" aria-label="Headline numbers">{tiles}{_edge_tile(content)}</section>'


def _tile(label: str, value: str, about: str) -> str:
    return f'<div class="tile"><h2>{label}</h2><p class="big">{value}</p><p class="about">{about}</p></div>'


def _accuracy(content: ReportContent) -> tuple[float | None, float | None]:
    """Test and validation accuracy, from the metrics or else from the confusion matrix."""
    row = content.metric("accuracy")
    if is_number(row.test) or not content.confusion.sum():
        return row.test, row.validation
    return float(np.trace(content.confusion) / content.confusion.sum()), row.validation


def _calibration(content: ReportContent) -> str:
    """Which way the confidence errs, in words."""
    bins = [(c, a, n) for c, a, n in content.reliability if n > 0 and is_number(c) and is_number(a)]
    total = sum(n for _, _, n in bins)
    if not total:
        return "not measured"
    gap = sum(n * (c - a) for c, a, n in bins) / total
    if abs(gap) < 0.005:
        return "confidence matches accuracy on average"
    return f"{'over' if gap > 0 else 'under'}-confident by {abs(100 * gap):.1f} points on average"


def _edge_tile(content: ReportContent) -> str:
    edges = content.edges
    if not edges.count:
        return _tile("Edges", MISSING, "this graph has no edges")
    if not edges.judged:
        return _tile("Edges", count(edges.count), f"{_NOUNS[edges.directed]}, taken as given: this model does not judge them")
    shares = [(state, edges.share(state)) for state in (1, 0, -1)]
    bars = "".join(f'<span class="{VERDICTS[s]}" style="--p:{share:.4f}"></span>' for s, share in shares)
    keys = "".join(
        f'<li><span class="swatch {VERDICTS[s]}" aria-hidden="true">{_GLYPHS[s]}</span>'
        f"<strong>{percent(share)}</strong> {VERDICTS[s]}</li>"
        for s, share in shares
    )
    return (
        f'<div class="tile edges"><h2>What {count(edges.count)} {_NOUNS[edges.directed]} are worth</h2>'
        f'<div class="shares" aria-hidden="true">{bars}</div><ul class="keys">{keys}</ul>'
        '<p class="about">by the most probable of the three states of each edge</p></div>'
    )


def predictions(content: ReportContent) -> str:
    """Metrics, confusion and calibration."""
    confusion = '<p class="empty">No labelled test nodes, so there is no confusion to show.</p>'
    if content.confusion.size and content.confusion.sum():
        names = content.class_names
        confusion = heat_table(content.confusion, names, names, "true ↓ predicted →", "Confusion on the test nodes")
        confusion += '<p class="hint">Nodes, shaded by their share of the row; point at a cell to read it.</p>'
    rows = "".join(
        f"<tr><td>{number(c, 2)}</td><td>{number(a, 2)}</td><td>{count(int(n))}</td></tr>"
        for c, a, n in content.reliability
    )
    numbers = (
        '<details><summary>The numbers of the diagram</summary><table class="plain"><thead><tr>'
        '<th scope="col">Mean confidence</th><th scope="col">Accuracy</th><th scope="col">Nodes</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></details>"
    )
    calibration = charts.reliability_diagram(content)
    if content.reliability:
        hint = "Dotted: perfectly calibrated. Below it the model is surer than it is right. Expected calibration error"
        calibration += f'<p class="hint">{hint}: <strong>{number(content.ece)}</strong>.</p>{numbers}'
    confusion = f"<h3>Confusion</h3>{confusion}"
    # A few classes fit next to the calibration; many need the width of the page.
    fits = len(content.class_names) <= _NARROW_CLASSES or not content.confusion.size
    beside, below = (confusion, "") if fits else (mistakes_table(content), confusion)
    return _section(
        "predictions",
        "Predictions",
        f'<div class="columns uneven"><div><h3>Metrics</h3>{metrics_table(content)}{beside}</div>'
        f"<figure><h3>Calibration</h3>{calibration}</figure></div>{below}",
    )


def edge_section(content: ReportContent, excerpt: Excerpt) -> str:
    """The distribution of the posterior, its check against known signs, and the ranked tables."""
    edges = content.edges
    if not edges.judged:
        return ""
    if not edges.count:
        return _section("edges", "Edges", '<p class="empty">This graph has no edges to judge.</p>')
    intro = (
        "For each edge the model learned how probable it is that the neighbour's message should be added "
        "(<b>+ helps</b>), subtracted (<b>− opposes</b>) or ignored (<b>0 noise</b>)."
    )
    small = "".join(charts.state_histogram(edges, state) for state in (1, 0, -1))
    body = (
        f'<p class="lead">{intro}</p><figure class="posterior">{charts.balance_histogram(edges)}'
        f'<div class="smalls">{small}</div></figure>{_detection(content)}'
        '<p class="hint">Choose a row to see the neighbourhood; choose a heading to sort.</p><div class="columns">'
        + edge_table(content, excerpt, 0, "suspicious", "Most suspicious edges, by p(noise)")
        + edge_table(content, excerpt, -1, "opposing", "Most opposing edges, by p(opposes)")
        + "</div>"
        + node_table(content, excerpt)
    )
    return _section("edges", "Edges", body)


def _detection(content: ReportContent) -> str:
    """How well the posterior finds what is known about the edges."""
    edges = content.edges
    facts = {k: v if isinstance(v, str) else number(v) for k, v in content.edge_detection.items()}
    listed = definitions(facts, "facts")
    table = ""
    if edges.truth is not None:
        states = (1, 0, -1)
        matrix = np.array([[((edges.truth == t) & (edges.verdict == v)).sum() for v in states] for t in states])
        names = [f"{_GLYPHS[s]} {VERDICTS[s]}" for s in states]
        table = heat_table(matrix, names, names, "true ↓ verdict →", "Verdicts against the known signs")
    if not listed + table:
        return ""
    return f'<h3>Finding what is known of the edges</h3><div class="columns">{listed}{table}</div>'


def neighbourhood(content: ReportContent, excerpt: Excerpt) -> str:
    """The controls, the picture and the panel that view.js and panel.js fill."""
    if not content.nodes.count or not content.edges.judged:
        return ""
    filters = "".join(
        f'<label class="filter"><input type="checkbox" data-verdict="{state}" checked>'
        '<svg class="key" viewBox="0 0 34 8" aria-hidden="true">'
        f'<path class="edge {VERDICTS[state]}" d="M2 4H32"/></svg>{VERDICTS[state]}</label>'
        for state in (1, 0, -1)
    )
    body = (
        f'<p class="lead">{_stored(content, excerpt)}</p>'
        '<form class="controls" id="find"><div class="control"><label for="node">Node</label>'
        '<input id="node" list="node-names" autocomplete="off" spellcheck="false"><datalist id="node-names"></datalist>'
        '<button type="submit">Show</button></div>'
        f'<fieldset class="control"><legend>Edges</legend>{filters}</fieldset>'
        '<div class="control"><label for="threshold">Hide verdicts less sure than</label>'
        '<input type="range" id="threshold" min="0" max="1" step="0.01" value="0">'
        '<output for="threshold" id="threshold-shown">0.00</output></div>'
        '<label class="filter"><input type="checkbox" id="two-hops"> neighbours of neighbours</label></form>'
        '<p class="status" id="view-status" role="status"></p>'
        '<div class="explorer"><div class="picture"><svg id="view" role="group" aria-label="Neighbourhood"></svg>'
        '<ul class="legend" id="view-legend" aria-label="Predicted classes"></ul></div>'
        '<div class="panel" id="panel"></div></div>'
        '<noscript><p class="empty">The neighbourhood view needs JavaScript; the tables above do not.</p></noscript>'
    )
    return _section("neighbourhood", "Neighbourhood", body)


def _stored(content: ReportContent, excerpt: Excerpt) -> str:
    """What of the graph is in this page."""
    edges, nodes = content.edges.count, content.nodes.count
    intro = "One node and the edges around it, as the model sees them."
    if len(excerpt.edges) == edges and len(excerpt.nodes) == nodes:
        return f"{intro} All {count(edges)} edges and {count(nodes)} nodes are in this page."
    return (
        f"{intro} To stay small, this page holds {count(len(excerpt.edges))} of {count(edges)} edges and "
        f"{count(len(excerpt.nodes))} of {count(nodes)} nodes: the neighbourhoods of the most suspicious and most "
        "opposing edges and of the nodes in most doubt. All other figures count every edge."
    )


def training(content: ReportContent) -> str:
    """The curves."""
    return _section("training", "Training", training_curves(content))


def kind(content: ReportContent) -> str:
    """What the page is: a report on one model."""
    return f"{escape(content.facts.get('model', 'SpaM'))} report"


def masthead(content: ReportContent) -> str:
    """Title, facts and notes."""
    notes = "".join(f"<li>{escape(note, 600)}</li>" for note in content.notes)
    listed = f'<ul class="notes" aria-label="Notes">{notes}</ul>' if notes else ""
    return (
        '<header><div class="top"><p class="kind">'
        f"{kind(content)}</p>"
        '<button type="button" id="theme" hidden>Theme: auto</button></div>'
        f"<h1><bdi>{escape(content.title, 300)}</bdi></h1>{definitions(dict(content.facts), 'facts')}{listed}</header>"
    )


def _section(identifier: str, title: str, body: str) -> str:
    return f'<section id="{identifier}"><h2>{title}</h2>{body}</section>'
