"""Every command and Python block of the docs page on own graphs runs, in order, in an empty folder."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from spam_gnn.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "own-graph.md"


def command(line, monkeypatch, capsys):
    program, *arguments = shlex.split(line)
    assert program == "spam-gnn", line
    monkeypatch.setattr(sys, "argv", [program, *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    printed = capsys.readouterr()
    assert not stop.value.code, (line, printed.err)
    return printed.out


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    printed = {}
    blocks = re.findall(r"```(\w*)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert {kind for kind, _ in blocks} == {"python", "bash"}
    for kind, code in blocks:
        if kind == "python":
            exec(compile(code, str(PAGE), "exec"), names)
            printed["python"] = printed.get("python", "") + capsys.readouterr().out
        else:
            for line in code.strip().splitlines():
                printed[line] = command(line, monkeypatch, capsys)
    inspected = [out for line, out in printed.items() if line.startswith("spam-gnn inspect")]
    assert len(inspected) == 4
    assert all("what was understood" in out for out in inspected)
    assert "words: about" in inspected[0]
    assert "edge weights in column 'weight' accepted and not used" in inspected[0]
    assert float(re.search(r"accuracy (0\.\d+|1\.00)", printed["python"]).group(1)) > 0.7
    page = (tmp_path / "my-run" / "report.html").read_text()
    assert "<html" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert (tmp_path / "predictions.csv").read_text().count("\n") == 121


def test_the_page_names_every_option_and_links_lead_somewhere():
    text = PAGE.read_text()
    for option in ("--nodes", "--edges", "--graph", "--format", "--edge-format", "--no-header", "--id", "--label",
                   "--split-column", "--text", "--source", "--target", "--weight", "--directed"):  # fmt: skip
        assert option in text, option
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (PAGE.parent / target).exists(), target
