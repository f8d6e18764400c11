"""Statistics against numpy, scipy and figures worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from spam_gnn.experiments.statistics import Cell, gather, holm, paired, ranks


def record(model, split, accuracy, status="ok"):
    spec = {"model": model, "dataset": "texas", "split": split, "seed": split, "perturbation": None}
    return {"status": status, "hash": "h", "spec": spec, "reason": "why", "test": {"accuracy": accuracy}}


def test_mean_and_sample_deviation_over_what_exists():
    rows = [record("gcn", 0, 0.5), record("gcn", 1, 0.7), record("gcn", 2, 0.6, "failed"), record("gcn", 3, 0.0, "missing")]
    cell = gather(rows)["gcn", "texas"]
    assert cell.mean == pytest.approx(60.0)
    assert cell.std == pytest.approx(np.std([50, 70], ddof=1))
    assert cell.counts == "2/4"
    assert cell.reasons == ("why",)
    assert cell.mean_on([(0, 0), (1, 1)]) == pytest.approx(60.0)
    assert cell.mean_on([(0, 0), (2, 2)]) is None
    assert Cell({}, frozenset()).mean is None
    assert Cell({(0, 0): 1.0}, frozenset()).std is None


def test_the_paired_tests_are_scipys():
    generator = np.random.default_rng(0)
    a, b = generator.normal(1.0, 1.0, 10), generator.normal(0.4, 1.0, 10)
    first, second = ({(k, k): float(v) for k, v in enumerate(values)} for values in (a, b))
    del first[0, 0]  # only splits that both have count
    found = paired(first, second)
    assert found.pairs == 9
    assert found.difference == pytest.approx(np.mean(a[1:] - b[1:]))
    assert found.t_p == pytest.approx(stats.ttest_rel(a[1:], b[1:]).pvalue)
    assert found.wilcoxon_p == pytest.approx(stats.wilcoxon(a[1:], b[1:]).pvalue)


def test_seeds_of_a_split_are_one_observation():
    """Split 0 has gaps 1, 3 and a run that the other lacks, split 1 has gaps -1 and 2: means 2 and 0.5."""
    first = {(0, 0): 11.0, (0, 10): 13.0, (0, 20): 90.0, (1, 1): 9.0, (1, 11): 12.0}
    second = {(0, 0): 10.0, (0, 10): 10.0, (1, 1): 10.0, (1, 11): 10.0}
    found = paired(first, second)
    assert (found.pairs, found.difference) == (2, pytest.approx(1.25))
    assert found.error == pytest.approx(0.75)
    alone = paired({(0, 0): 3.0, (0, 1): 6.0}, {(0, 0): 1.0, (0, 1): 1.0})
    assert alone.pairs == 2  # of a single split, seeds are what there is


def test_a_test_without_spread_is_undefined():
    assert paired({(0, 0): 1.0}, {(1, 1): 1.0}) is None
    same = {(0, 0): 1.0, (1, 1): 2.0}
    assert paired(same, same).t_p is None
    assert paired({(0, 0): 1.0}, {(0, 0): 0.5}).wilcoxon_p is None


def test_holm_by_hand():
    # sorted 0.01 * 3, max(0.03, 0.02 * 2), max(0.04, 0.04 * 1); the undefined one does not count
    assert holm([0.04, None, 0.01, 0.02]) == pytest.approx([0.04, None, 0.03, 0.04])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_ranks_share_ties_and_put_the_missing_last():
    assert ranks({"a": 3.0, "b": 5.0, "c": 3.0, "d": None}) == {"b": 1.0, "a": 2.5, "c": 2.5, "d": 4.0}
