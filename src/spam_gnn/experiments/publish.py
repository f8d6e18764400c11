"""Studies on paper: `<out>/<study>.md`, CSV, LaTeX, PNG and SVG, compact records, and the page that puts them together."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from spam_gnn.experiments.records import compact, read_records, write_records
from spam_gnn.experiments.store import Record
from spam_gnn.experiments.study import Study, StudyResult, studies
from spam_gnn.files import make_folder, write_durably
from spam_gnn.report.exhibit import ResultFigure
from spam_gnn.report.study_page import render_studies

RECORDS = "records"
_UNFINISHED = "Not complete"  # as `Comparison.progress` says it
_FIRST = ("table-main", "table-homophilic", "table-attacked", "table-large")  # the others follow by name
_INTRODUCTION = """# Results

Every table and figure of the paper as measured here, for SpaM and the competing systems, with a sentence on whether the paper's
claim held. Assembled by `spam-gnn reproduce` from `{records}`; rendered again, without any run, by
`spam-gnn reproduce all --from-records`.
"""


def publish(study: Study, records: Sequence[Record], out: Path) -> StudyResult:
    """Write the records of a study, then everything that is made of them."""
    folder = make_folder(make_folder(out) / RECORDS)
    write_records(folder / f"{study.name}.jsonl", [compact(record) for record in records])
    return publish_again(study, out)


def publish_again(study: Study, out: Path) -> StudyResult:
    """Render a study from its compact records, so that tables are the same with and without the store."""
    records = read_records(out / RECORDS / f"{study.name}.jsonl")
    result = _said_if_unfinished(study.render(records), records)
    for table in result.tables:
        write_durably(out / f"{table.name}.csv", table.csv().encode())
        write_durably(out / f"{table.name}.tex", table.latex().encode())
    drawn = [figure for figure in result.figures if _write_figure(figure, out)]
    parts = [f"# {study.title}", result.verdict and f"**{result.verdict}**", result.markdown.strip()]
    parts += [f"![{figure.caption}]({figure.name}.png)\n\n*{figure.caption}*" for figure in drawn]
    write_durably(out / f"{study.name}.md", ("\n\n".join(part for part in parts if part) + "\n").encode())
    return result


def _said_if_unfinished(result: StudyResult, records: Sequence[Record]) -> StudyResult:
    """A verdict on some of the runs must not read like one on all of them."""
    missing = sum(record["status"] == "missing" for record in records)
    if not missing or result.verdict.startswith(_UNFINISHED):
        return result
    return replace(result, verdict=f"{_UNFINISHED}, {len(records) - missing} of {len(records)} runs so far. {result.verdict}")


def _write_figure(figure: ResultFigure, out: Path) -> bool:
    """PNG and SVG, the same bytes for the same data; False where matplotlib is not installed."""
    try:
        import matplotlib as mpl
    except ImportError:
        return False
    with mpl.rc_context({"svg.hashsalt": figure.name, "font.size": 9}):
        made = figure.draw()
        for kind, facts in (("png", {"Software": None}), ("svg", {"Date": None})):
            data = io.BytesIO()
            made.savefig(data, format=kind, dpi=150, metadata=facts)
            write_durably(out / f"{figure.name}.{kind}", data.getvalue())
    return True


def published_studies(out: Path) -> list[Study]:
    """Those that have records in the folder, in the order of the page."""
    there = [study for name, study in studies().items() if (out / RECORDS / f"{name}.jsonl").exists()]
    return sorted(there, key=lambda study: (_FIRST.index(study.name) if study.name in _FIRST else len(_FIRST), study.name))


def assemble(out: Path, page: Path) -> None:
    """RESULTS.md and `<out>/index.html`: every study that was written, one after the other."""
    where = os.path.relpath(out, page.parent)
    sections = []
    for study in published_studies(out):
        if not (out / f"{study.name}.md").exists():  # stopped between its records and what is made of them
            continue
        text = (out / f"{study.name}.md").read_text(encoding="utf-8")
        text = re.sub(r"\]\((?!https?:)([^)#]+)\)", lambda m: f"]({where}/{m[1]})", text)
        sections.append(f"#{text}")  # one level down
    content = "\n".join([_INTRODUCTION.format(records=f"{where}/{RECORDS}"), *sections])
    write_durably(page, content.encode())
    drawings = {f"{where}/{path.stem}": path.read_bytes() for path in out.glob("*.svg")}
    write_durably(out / "index.html", render_studies("SpaM: results", content, drawings).encode())
