"""The page's tables: metrics, heat tables, and the ranked edges and nodes, readable without a script."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spam_gnn.report.content import VERDICTS, ReportContent
from spam_gnn.report.excerpt import TABLE_ROWS, Excerpt, ranked
from spam_gnn.report.markup import MISSING, bar, count, escape, is_number, number, percent, probability

# Above this many classes a cell has room for its count only; the percentage moves to the tooltip.
_ROOMY_CLASSES = 10
_MISTAKES = 6
_GLYPHS = {1: "+", 0: "0", -1: "−"}


def metrics_table(content: ReportContent) -> str:
    """Every metric on the validation and the test nodes."""
    if not content.metrics:
        return '<p class="empty">No metrics were computed.</p>'
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{number(validation)}</td><td>{number(test)}</td></tr>'
        for name, validation, test in content.metrics
    )
    return (
        '<table class="plain"><caption>Metrics</caption><thead><tr><th scope="col">Metric</th>'
        f'<th scope="col">Validation</th><th scope="col">Test</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def heat_table(
    matrix: NDArray[np.integer], rows: Sequence[str], columns: Sequence[str], corner: str, caption: str
) -> str:
    """Counts shaded by their share of the row; the right answers lie on the outlined diagonal."""
    roomy = len(columns) <= _ROOMY_CLASSES
    heads = "".join(
        f'<th scope="col" title="{escape(name)}"><span class="clip"><bdi>{escape(name)}</bdi></span></th>'
        for name in columns
    )
    body = ""
    for i, name in enumerate(rows):
        total = int(matrix[i].sum())
        cells = "".join(_heat_cell(int(matrix[i, j]), total, i == j, roomy) for j in range(len(columns)))
        recall = percent(matrix[i, i] / total, 0) if total else MISSING
        body += (
            f'<tr><th scope="row" title="{escape(name)}"><span class="clip"><bdi>{escape(name)}</bdi></span></th>'
            f'{cells}<td class="sum">{count(total)}</td><td class="sum">{recall}</td></tr>'
        )
    size = "roomy" if roomy else "dense"
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
        f'<table class="heat {size}"><caption>{escape(caption)}</caption><thead><tr>'
        f'<th scope="col">{escape(corner)}</th>{heads}'
        '<th scope="col" class="sum">all</th><th scope="col" class="sum">right</th></tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def mistakes_table(content: ReportContent) -> str:
    """The confusions that happen most, for matrices too large to read at a glance."""
    wrong = content.confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MISTAKES]
    rows = ""
    for true, predicted in zip(*np.unravel_index(order, wrong.shape), strict=True):
        if wrong[true, predicted]:
            share = percent(wrong[true, predicted] / content.confusion[true].sum(), 0)
            rows += (
                f'<tr><th scope="row"><bdi>{_class_name(content, int(true))}</bdi> <span class="to">taken for</span> '
                f"<bdi>{_class_name(content, int(predicted))}</bdi></th><td>{count(int(wrong[true, predicted]))}</td>"
                f"<td>{share}</td></tr>"
            )
    if not rows:
        return ""
    return (
        '<h3>Most frequent mistakes</h3><table class="plain"><thead><tr><th scope="col">True class and prediction</th>'
        f'<th scope="col">Nodes</th><th scope="col">Of the class</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def _heat_cell(size: int, total: int, right: bool, roomy: bool) -> str:
    share = size / total if total else 0.0
    label = percent(share, 0) if total else MISSING
    small = f"<small>{label}</small>" if roomy else ""
    return (
        f'<td class="{"hit" if right else "miss"}{"" if size else " zero"}" style="--p:{share:.3f}" '
        f'title="{label} of the row">{count(size)}{small}</td>'
    )


def edge_table(content: ReportContent, excerpt: Excerpt, state: int, identifier: str, caption: str) -> str:
    """The edges with the highest probability of `state`."""
    edges = content.edges
    known = edges.truth is not None
    order = ranked(edges.probability(state), TABLE_ROWS)
    rows = "".join(_edge_row(content, excerpt, int(edge)) for edge in order)
    heads = [("Edge", "text", "none")]
    heads += [(word, word, "descending" if sign == state else "none") for sign, word in VERDICTS.items()]
    heads += [("truth", "text", "none")] if known else []
    return _sortable(identifier, caption, heads, rows)


def _edge_row(content: ReportContent, excerpt: Excerpt, edge: int) -> str:
    edges = content.edges
    ends = [int(edges.source[edge]), int(edges.target[edge])]
    names = [_node_button(content, excerpt, node) for node in ends]
    sign = '<span class="to" title="to">→</span>' if edges.directed else '<span class="to" title="and">–</span>'
    cells = "".join(
        _probability_cell(edges.probability(state)[edge], VERDICTS[state], int(edges.verdict[edge]) == state)
        for state in VERDICTS
    )
    if edges.truth is not None:
        truth = int(edges.truth[edge])
        agrees = truth == int(edges.verdict[edge])
        mark = '<span title="verdict is right">✓</span>' if agrees else '<span title="verdict is wrong">✗</span>'
        word = f'{_GLYPHS[truth]} <span class="spoken">{VERDICTS[truth]}</span>'
        cells += f'<td class="truth" data-value="{truth}">{word} {mark}</td>'
    return (
        f'<tr data-node="{excerpt.position[ends[0]]}"><th scope="row" class="pair">'
        f'<span class="from">{names[0]} {sign}</span> {names[1]}</th>{cells}</tr>'
    )


def _probability_cell(value: float, word: str, verdict: bool) -> str:
    emphasis = " verdict" if verdict else ""
    return f'<td class="p{emphasis}" data-value="{_sort_key(value)}">{probability(value)}{bar(value, word)}</td>'


def _node_button(content: ReportContent, excerpt: Excerpt, node: int) -> str:
    name = escape(content.nodes.names[node])
    place = excerpt.position[node]
    return f'<button type="button" class="node" data-node="{place}" title="{name}"><bdi>{name}</bdi></button>'


def node_table(content: ReportContent, excerpt: Excerpt) -> str:
    """The nodes whose label depends most on which edges are real; empty when one graph decided alone."""
    nodes = content.nodes
    order = [int(node) for node in ranked(nodes.structural, TABLE_ROWS) if nodes.structural[node] > 0]
    if not order:
        return ""
    largest = max((float(value) for value in nodes.total[order] if is_number(value)), default=1.0) or 1.0
    rows = ""
    for node in order:
        predicted = _class_name(content, int(nodes.prediction[node]))
        label = _class_name(content, int(nodes.label[node]))
        wrong = label not in (MISSING, predicted)
        rows += (
            f'<tr data-node="{excerpt.position[node]}"><th scope="row" class="pair">'
            f"{_node_button(content, excerpt, node)}</th>"
            f'<td data-value="{_sort_key(nodes.confidence[node])}">{percent(nodes.confidence[node], 0)}</td>'
            f"{_doubt_cell(nodes.structural[node], largest)}{_doubt_cell(nodes.total[node], largest)}"
            f'<td class="word"><bdi>{predicted}</bdi></td>'
            f'<td class="word">{"✗ " if wrong else ""}<bdi>{label}</bdi></td></tr>'
        )
    heads = [("Node", "text", "none"), ("confidence", "", "none"), ("doubt from edges", "", "descending")]
    heads += [("doubt in all", "", "none"), ("predicted", "text", "none"), ("label", "text", "none")]
    table = _sortable("doubtful", "Nodes whose label depends most on which edges are real", heads, rows)
    return (
        f'{table}<p class="hint">Doubt is the entropy of the averaged prediction, in nats; the part from the edges is '
        "what knowing the true graph would remove.</p>"
    )


def _doubt_cell(value: float, largest: float) -> str:
    return f'<td class="p" data-value="{_sort_key(value)}">{number(value)}{bar(float(value) / largest, "doubt")}</td>'


def _sort_key(value: float) -> str:
    """What page.js sorts by; missing numbers go below all others."""
    return f"{float(value):.6f}" if is_number(value) else "-1"


def _class_name(content: ReportContent, index: int) -> str:
    return escape(content.class_names[index]) if 0 <= index < len(content.class_names) else MISSING


def _sortable(identifier: str, caption: str, heads: Sequence[tuple[str, str, str]], rows: str) -> str:
    """A table in its own scrolling frame; each heading is a button that page.js gives a meaning."""
    cells = "".join(
        f'<th scope="col" class="{kind}" aria-sort="{order}"><button type="button" class="sort">{escape(label)}'
        "</button></th>"
        for label, kind, order in heads
    )
    return (
        f'<div class="ranked"><h3>{escape(caption)}</h3>'
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}"><table class="sortable" '
        f'id="{identifier}"><thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table></div></div>'
    )
