"""Values into markup: escaping, numbers, tags and the JSON block. The one place where the page's safety is decided.

Names come from users' files and can hold anything: every text passes through `escape` or `json_block`.
"""

from __future__ import annotations

import html
import json
import math
import unicodedata
from typing import Any

import numpy as np

MISSING = "–"
# A name longer than this is clipped; it bounds the size of the page whatever the input holds.
LONGEST_NAME = 160


def clean(value: object, limit: int = LONGEST_NAME) -> str:
    """Text that can be stored as UTF-8 and shown on one line: no lone surrogates, no control characters, clipped."""
    raw = str(value)[: limit + 1].encode("utf-8", "replace").decode("utf-8")
    shown = "".join(" " if unicodedata.category(char) == "Cc" else char for char in raw)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def escape(value: object, limit: int = LONGEST_NAME) -> str:
    """`clean` text for element content or a quoted attribute."""
    return html.escape(clean(value, limit), quote=True)


def is_number(value: object) -> bool:
    """Whether `value` is a finite number."""
    return isinstance(value, (int, float, np.number)) and math.isfinite(float(value))


def number(value: Any, digits: int = 3) -> str:
    """A number with fixed digits; very small or large ones in scientific notation; a dash if there is none."""
    if not is_number(value):
        return MISSING
    if value != 0 and not 0.5 * 10**-digits <= abs(value) < 1e6:
        return f"{value:.1e}".replace("-", "−")
    return f"{value:.{digits}f}".replace("-", "−")


def probability(value: Any) -> str:
    """Two fixed digits: in a column of probabilities a tiny one is simply 0.00."""
    return f"{value:.2f}" if is_number(value) else MISSING


def percent(value: Any, digits: int = 1) -> str:
    """A share as a percentage; a dash if there is none."""
    return f"{100 * value:.{digits}f}%" if is_number(value) else MISSING


def count(value: int) -> str:
    """A whole number with thousands separators."""
    return f"{value:,}"


def bar(share: Any, kind: str) -> str:
    """A thin bar of the given share, in the colour and texture of `kind`; decoration next to its number."""
    width = min(max(float(share), 0.0), 1.0) if is_number(share) else 0.0
    return f'<span class="bar {kind}" style="--p:{width:.3f}" aria-hidden="true"></span>'


def definitions(facts: dict[str, str], css_class: str) -> str:
    """A definition list."""
    rows = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v, 400)}</dd></div>" for k, v in facts.items())
    return f'<dl class="{css_class}">{rows}</dl>' if rows else ""


def finite(values: Any, digits: int = 4) -> list[float | None]:
    """Rounded numbers for JSON, None where JSON has no word for the value."""
    return [round(float(v), digits) if math.isfinite(v) else None for v in np.asarray(values, dtype=float)]


def json_block(identifier: str, value: Any) -> str:
    """A script block of data that cannot end its own element.

    ASCII output escapes U+2028, U+2029 and lone surrogates; without `<`, `>` and `&` neither `</script>` nor `<!--`
    can occur. JSON reads the escapes back as the same characters.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="{identifier}">{text}</script>'
