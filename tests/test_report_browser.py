"""The report page in a real browser, where one is installed: errors, overflow, and what each control does."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from urllib.parse import quote

import numpy as np
import pytest

from spam_gnn.report.content import EdgeTable
from spam_gnn.report.page import render_report
from test_report import NASTY, Balance, empty_content, nasty_content, sample_content

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--virtual-time-budget=1500",
    "--dump-dom",
)


@pytest.fixture(scope="session")
def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    return pytest.skip("no chromium, chromium-browser or google-chrome on PATH")


@pytest.fixture(scope="session")
def profile(tmp_path_factory):
    """One browser profile for all visits: making a fresh one takes longer than opening a page."""
    return tmp_path_factory.mktemp("profile")


@pytest.fixture
def visit(chromium, profile, tmp_path):
    """Open a page and return its document after the scripts ran; `script` acts as the reader's hands."""

    def run(content, address="", script="", phone=False):
        page = render_report(content)
        if script:
            # The page's own policy forbids foreign scripts, ours included; only for the test it is lifted.
            page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
            page = page.replace("</body>", f"<script>{script}</script></body>")
        if phone:
            page = in_a_phone(page)
        path = tmp_path / "report.html"
        path.write_text(page, encoding="utf-8")
        command = [chromium, *FLAGS, "--window-size=1200,900", f"--user-data-dir={profile}"]
        shown = subprocess.run([*command, path.as_uri() + address], capture_output=True, timeout=60, check=True)
        return shown.stdout.decode("utf-8")

    return run


def in_a_phone(page, width=360):
    """The page in a narrow frame, for a window cannot be narrower than 500 pixels; its findings are copied out."""
    return (
        f'<!doctype html><iframe style="width:{width}px;height:700px;border:0" srcdoc="{html.escape(page)}"></iframe>'
        "<script>const frame = document.querySelector('iframe'); frame.onload = () => Object.assign("
        "document.documentElement.dataset, frame.contentDocument.documentElement.dataset, "
        "{ width: frame.contentWindow.innerWidth });</script>"
    )


def root(document):
    """The attributes the page's script leaves on <html>."""
    return dict(re.findall(r'data-([\w-]+)="([^"]*)"', re.search(r"<html[^>]*>", document).group(0)))


def drawn(document):
    """The edges in the picture, by verdict."""
    picture = re.search(r'<svg id="view".*?</svg>', document, re.DOTALL).group(0)
    return re.findall(r'<path class="edge (\w+)"', picture)


def panel_rows(document):
    return re.findall(r'<tr data-node="\d+" data-edge="\d+"', document)


def assert_healthy(document):
    assert root(document)["ready"] == "1"
    assert root(document)["errors"] == "0"
    assert "overflow" not in root(document)


def star(directed=False):
    """Node 0 with two helpers, one opponent and three noise edges, and one edge between two of them."""
    content = sample_content(0, n=8, m=0, classes=3, known=False)
    p = np.array(
        [
            [0.1, 0.1, 0.8],
            [0.1, 0.3, 0.6],
            [0.9, 0.05, 0.05],
            [0.1, 0.7, 0.2],
            [0.2, 0.5, 0.3],
            [0.0, 0.9, 0.1],
            [0.1, 0.2, 0.7],
            [0.3, 0.1, 0.6],
        ]
    )
    edges = EdgeTable(np.array([0, 0, 0, 4, 5, 6, 1, 6]), np.array([1, 2, 3, 0, 0, 0, 2, 7]), *p.T, directed)
    return replace(content, edges=edges, nodes=replace(content.nodes, names=[f"star {i}" for i in range(8)]))


def test_address_chooses_the_node(visit):
    document = visit(star(), "#node=star%200")
    assert_healthy(document)
    # Six edges at the centre and the one between its neighbours.
    assert sorted(drawn(document)) == ["helps"] * 3 + ["noise"] * 3 + ["opposes"]
    assert len(panel_rows(document)) == 6
    assert len(re.findall(r'class="vertex[^"]*"', document)) == 7
    assert 'marker-end="' not in document


def test_directed_edges_have_arrows(visit):
    document = visit(star(directed=True), "#node=star%203&theme=dark")
    assert_healthy(document)
    assert root(document)["theme"] == "dark"
    assert drawn(document) == ["opposes"]
    assert 'marker-end="url(#arrow-opposes-near)"' in document


def test_controls_do_what_they_say(visit):
    script = """
      const seen = [], note = (what) => seen.push([what, document.querySelectorAll('#view .edge').length]);
      const part = (id) => document.getElementById(id);
      const set = (id, value) => { part(id).value = value; part(id).dispatchEvent(new Event('input')); };
      note('start');
      set('threshold', 0.65); note('threshold'); set('threshold', 0);
      document.querySelector('[data-verdict="0"]').click(); note('without noise');
      document.querySelector('[data-verdict="0"]').click();
      part('two-hops').click(); note('two hops'); part('two-hops').click();
      part('node').value = 'star 7'; part('find').requestSubmit(); note('search');
      const vertex = document.querySelector('#view .vertex:not(.centre)');
      vertex.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true })); note('keyboard');
      const row = document.querySelector('#opposing tbody tr:first-child'); row.click(); note('row');
      const address = location.hash;
      const sort = [...document.querySelectorAll('#suspicious .sort')][1]; sort.click();
      const first = document.querySelector('#suspicious tbody tr td').textContent;
      part('epoch').value = 0; part('epoch').dispatchEvent(new Event('input'));
      const found = { seen, address, sorted: sort.closest('th').getAttribute('aria-sort'), first,
        epoch: part('epoch-shown').textContent, loss: document.querySelector('[data-series=loss]').textContent };
      part('node').value = 'nobody'; part('find').requestSubmit();
      found.missing = part('view-status').textContent;
      document.documentElement.dataset.found = encodeURIComponent(JSON.stringify(found));
    """
    content = star()
    document = visit(content, "#node=star%200", script)
    assert_healthy(document)
    found = json.loads(re.sub("%([0-9A-F]{2})", lambda m: chr(int(m.group(1), 16)), root(document)["found"]))
    assert found["seen"] == [
        ["start", 7],
        ["threshold", 5],
        ["without noise", 4],
        ["two hops", 8],
        ["search", 1],
        ["keyboard", 2],
        ["row", 7],
    ]
    assert found["address"] == "#node=star%200"
    assert found["sorted"] == "descending"
    assert found["first"] == "0.80"
    assert found["epoch"] == "1"
    assert float(found["loss"]) == pytest.approx(content.history["loss"][0], abs=1e-3)
    assert found["missing"].endswith("nobody")


def test_hostile_names_stay_text(visit):
    content = nasty_content()
    document = visit(content, "#node=" + quote(NASTY, safe=""))
    assert_healthy(document)
    assert "<img" not in document
    assert len(re.findall("<script", document)) == 2
    at_first = int(((content.edges.source == 0) | (content.edges.target == 0)).sum())
    assert len(panel_rows(document)) == at_first


@pytest.mark.parametrize("kind", ["large", "hostile", "empty"])
def test_phone_width_does_not_overflow(visit, kind):
    made = {
        "large": lambda: sample_content(1, n=10_000, m=30_000, classes=50, directed=True),
        "hostile": lambda: replace(nasty_content(), class_names=["unbreakable" * 12] * 5),
        "empty": empty_content,
    }
    document = visit(made[kind](), phone=True)
    assert root(document)["width"] == "360"
    assert_healthy(document)


def test_full_sample_opens(visit):
    document = visit(sample_content(2))
    assert_healthy(document)
    assert len(set(drawn(document))) >= 2
    assert not Balance(document).wrong
