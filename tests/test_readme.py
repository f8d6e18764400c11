"""The README's own examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_the_python_example_runs_and_is_short(capsys):
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL).group(1)
    assert len([line for line in code.splitlines() if line.strip()]) <= 16
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert re.search(r"accuracy 0\.[6-9]", printed), printed
    assert "p_absent" in printed


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/paper.md"])
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert ((ROOT / page).parent / target).exists(), target


def test_doctests():
    import doctest

    import spam_gnn.estimator
    import spam_gnn.layer
    import spam_gnn.model

    for module in (spam_gnn.layer, spam_gnn.model, spam_gnn.estimator):
        failed, tried = doctest.testmod(module, extraglobs={"torch": __import__("torch")})
        assert tried > 0
        assert failed == 0
