"""`render_report`: one HTML file that needs nothing else, now or in ten years.

Style, script and data are inside the file. A content security policy forbids every request and every script but
ours (by its hash), so that a name in a user's data can never become code.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from spam_gnn.report import sections
from spam_gnn.report.charts import TEXTURES
from spam_gnn.report.content import ReportContent
from spam_gnn.report.curves import thinned_history
from spam_gnn.report.excerpt import payload, take_excerpt
from spam_gnn.report.markup import escape, json_block

_STYLES = ("page.css", "figures.css", "view.css", "print.css")
# One scope for all scripts; page.js comes last because it starts the page.
_SCRIPTS = ("layout.js", "panel.js", "view.js", "explorer.js", "page.js")
_LINKS = ("predictions", "edges", "neighbourhood", "training")


def render_report(content: ReportContent) -> str:
    """The whole page as text, to be written as UTF-8."""
    excerpt = take_excerpt(content)
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in _SCRIPTS) + "\n})();"
    style = stylesheet(*_STYLES)
    data = payload(content, excerpt) | {"history": thinned_history(content)}
    parts = {
        "headline": sections.headline(content),
        "predictions": sections.predictions(content),
        "edges": sections.edge_section(content, excerpt),
        "neighbourhood": sections.neighbourhood(content, excerpt),
        "training": sections.training(content),
    }
    links = "".join(f'<a href="#{name}">{name.capitalize()}</a>' for name in _LINKS if parts[name])
    main = "".join(parts.values())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(content.title, 300)} · {sections.kind(content)}</title><style>{style}</style></head><body>{TEXTURES}"
        f'<div class="page">{sections.masthead(content)}<nav aria-label="Sections">{links}</nav>'
        f"<main>{main}</main></div>{json_block('data', data)}<script>{script}</script></body></html>\n"
    )


def stylesheet(*names: str) -> str:
    """The page's styles, for this page and others that look like it."""
    return "\n".join(_asset(name) for name in names)


def _asset(name: str) -> str:
    return resources.files("spam_gnn.report").joinpath(name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """Nothing may be loaded; inline style is needed for the bars; the one script is known by its hash."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
