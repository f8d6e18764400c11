"""One HTML file of all studies: the text of RESULTS.md with its figures inside, nothing loaded from anywhere."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping

from markdown_it import MarkdownIt

from spam_gnn.report.markup import escape
from spam_gnn.report.page import stylesheet

_IMAGE = re.compile(r'<img src="([^"]+)\.png"')
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_STYLE = (
    "main{overflow-wrap:anywhere}"
    "table{display:block;overflow-x:auto;border-collapse:collapse;font-size:.8rem;margin:0 0 1.2rem}"
    "td,th{padding:.15rem .55rem;border-bottom:1px solid var(--line);white-space:nowrap} img{max-width:100%;background:#fff}"
)


def render_studies(title: str, markdown: str, figures: Mapping[str, bytes]) -> str:
    """The page as text. `figures` are SVG files by the path that the Markdown names, without its ending.

    Raw HTML in the Markdown is shown, not obeyed.
    """
    body = MarkdownIt("js-default").render(markdown)

    def inline(found: re.Match[str]) -> str:
        drawing = figures.get(found[1])
        if drawing is None:
            return found[0]
        return f'<img src="data:image/svg+xml;base64,{base64.b64encode(drawing).decode("ascii")}"'

    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{stylesheet('page.css')}{_STYLE}</style></head>"
        f'<body><div class="page"><main>{_IMAGE.sub(inline, body)}</main></div></body></html>\n'
    )
