"""Studies behind the figures: their plans, and what they make of records; measures against closed forms."""

from __future__ import annotations

import importlib
import math

import pytest
import torch

from spam_gnn.baselines.base import Shape
from spam_gnn.baselines.mc_dropout import MonteCarloDropoutGCN
from spam_gnn.baselines.plain import PlainNetwork
from spam_gnn.baselines.registry import find
from spam_gnn.baselines.sampled import SampledSettings
from spam_gnn.data import catalog
from spam_gnn.data.synthetic import csbm
from spam_gnn.experiments.execute import execute
from spam_gnn.experiments.measures import edge_posterior, sample_counts, smoothness, trust
from spam_gnn.experiments.paper import figure_posterior, figure_samples, table_ablation, table_authors
from spam_gnn.experiments.paper.labelled import Spread, draws_of, grouped, shown, specs_of
from spam_gnn.experiments.paper.plan import EQUAL_BUDGET
from spam_gnn.experiments.records import compact
from spam_gnn.experiments.spec import Perturbation, RunSpec
from spam_gnn.experiments.study import find_study
from spam_gnn.randomness import stream

NAMES = ("figure-posterior", "figure-depth", "figure-robustness", "figure-samples", "figure-sensitivity", "figure-cost",
         "calibration")  # fmt: skip
MEASURES = ("smoothness", "sample_counts", "edge_posterior", "trust")


@pytest.fixture(scope="module")
def measured():
    """One real run with every measure."""
    spec = RunSpec.of("csbm", "spam", train={"epochs": 2}, perturbation=Perturbation("additions", 0.3), measures=MEASURES)
    record = compact(execute(spec))
    assert record["status"] == "ok", record
    return record


@pytest.fixture
def everything_present(monkeypatch):
    monkeypatch.setattr(catalog, "is_present", lambda _: True)


def pretended(specs, measured, keep):
    """Records of other runs with the numbers of one, varied by the spec; some failed, some missing."""
    for place, spec in enumerate(specs):
        if max(spec.split, spec.seed) >= keep:
            continue
        if place % 17 == 5:
            yield {"status": "failed", "hash": spec.spec_hash, "spec": spec.to_json(), "reason": "time limit"}
        elif place % 19 == 5:
            yield {"status": "missing", "hash": spec.spec_hash, "spec": spec.to_json()}
        else:
            test = {**measured["test"], "accuracy": 0.5 + 0.4 * ((7 * place) % 11) / 11}
            yield {**measured, "hash": spec.spec_hash, "spec": spec.to_json(), "test": test}


@pytest.mark.parametrize("name", NAMES)
def test_a_study_is_rendered_from_whatever_records_there_are(name, measured, everything_present):
    study = find_study(name)
    specs = study.specs(None)
    assert len(specs) == len(set(specs)) > 10
    for spec in specs:
        catalog.spec_of(spec.dataset)
        for measure in spec.measures:
            assert hasattr(importlib.import_module(f"spam_gnn.experiments.measures.{measure}"), "measure")
    result = study.render(list(pretended(specs, measured, keep=2)))
    assert any(word in result.verdict for word in ("held", "did not hold", "cannot be told"))
    assert all(table.rows for table in result.tables)
    for figure in result.figures:
        figure.draw().canvas.draw()
    empty = study.render([{"status": "missing", "hash": s.spec_hash, "spec": s.to_json()} for s in specs])
    assert empty.verdict == ""
    for figure in empty.figures:
        figure.draw().canvas.draw()


@pytest.mark.parametrize("name", NAMES)
def test_records_are_rendered_where_no_file_is(name, measured, monkeypatch):
    """The plan of a machine without files is empty, and what another one recorded is shown there all the same."""
    study = find_study(name)
    monkeypatch.setattr(catalog, "is_present", lambda _: True)
    records = list(pretended(study.specs(None), measured, keep=2))
    wanted = study.render(records)
    monkeypatch.setattr(catalog, "is_present", lambda _: False)
    assert study.specs(None) == []
    found = study.render(records)
    assert (found.markdown, found.tables, found.verdict) == (wanted.markdown, wanted.tables, wanted.verdict)


def test_what_a_part_is_worth_is_paired_by_split(measured, everything_present):
    specs = table_ablation.specs(None)
    wanted = [(data, change) for data in table_ablation.DATASETS for change in table_ablation.CHANGES
              if table_ablation.concerns(change, data)]  # fmt: skip
    again = [data for data, _ in wanted if data not in table_ablation._ONCE]
    often = [data for data in again if data in table_ablation._SMALL]
    assert len(specs) == len(set(specs)) == len(wanted) + len(again) + 4 * len(often)
    assert {change for _, change in wanted} == set(table_ablation.CHANGES)
    assert {change for some in table_ablation._SOME.values() for change in some} <= set(table_ablation.CHANGES)
    assert [spec.dataset for spec in specs][: len(wanted)] == [data for data, _ in wanted]  # one draw of each before the second
    off, base = table_ablation.CHANGES["no posterior"], table_ablation._BASE
    values = {True: (0.8, 0.6, 0.9), False: (0.7, 0.494)}  # the third split of the change has no run yet

    def record(spec, value):
        return {**measured, "hash": spec.spec_hash, "spec": spec.to_json(), "test": {"accuracy": value}}

    records = [
        record(RunSpec.of("texas", "spam", split=k, seed=k, settings=base if whole else off, train=EQUAL_BUDGET), value)
        for whole, row in values.items() for k, value in enumerate(row)
    ]  # fmt: skip
    result = table_ablation.render(records)
    (table,) = result.tables
    assert table.header == ("SpaM", "mean", "texas")
    rows = {row[0]: row for row in table.rows}
    assert table.rows[0] == (table_ablation.WHOLE, None, "76.7 (3)")
    assert rows["no posterior"] == ("no posterior", "-10.3", "-10.3 ± 0.3")
    assert rows["no sign"][1:] == (None, None)
    assert "that cost accuracy: no posterior (-10.3); that add to it: none" in result.verdict
    assert "cost nothing on any dataset: none." in result.markdown
    same = [record(RunSpec.from_json(r["spec"]), 0.5) for r in records]  # one difference twice is no spread to judge by
    assert "that cost accuracy: none" in table_ablation.render(same).verdict
    assert "cost nothing on any dataset: no posterior." in table_ablation.render(same).markdown
    assert "Nothing has been measured" in table_ablation.render([]).verdict


def test_the_authors_splits_are_drawn_ones(monkeypatch):
    monkeypatch.setattr(table_authors, "present", tuple)
    specs = table_authors.specs(None)
    assert {spec.protocol for spec in specs} == {"authors"}
    assert {spec.model for spec in specs} == {"spam", "mlp", "gcn", "gat", "h2gcn"}
    graphs = {spec.dataset for spec in specs}
    assert len(graphs) == 11  # nine of the paper, and two of them without duplicate nodes
    assert {"chameleon-filtered", "squirrel-filtered"} < graphs
    assert len(specs) == len(set(specs))


def test_a_run_with_two_labels_is_made_once_and_shown_twice(measured):
    spec = RunSpec.of("csbm", "gcn")
    plan = [(("a",), spec), (("b",), spec)]
    assert specs_of(plan) == [spec]
    groups = grouped(plan, [{**measured, "hash": spec.spec_hash, "spec": spec.to_json()}])
    assert set(groups) == {("a",), ("b",)}


def test_spread_is_the_sample_standard_deviation():
    spread = Spread.of([1.0, 3.0])
    assert (spread.mean, spread.std, spread.count) == (2.0, math.sqrt(2.0), 2)
    assert shown(Spread.of([1.0])) == "1.0 (1)"
    assert draws_of("cora", 3) == [(0, 0), (0, 1), (0, 2)]
    assert draws_of("texas", 2) == [(0, 0), (1, 1)]


def test_the_gain_of_the_posterior_is_paired_by_split(measured):
    def rows(*values):
        return [{**measured, "spec": {"split": k}, "test": {"accuracy": v}} for k, v in enumerate(values)]

    groups = {("default", "FullPosterior"): rows(0.8, 0.6, 0.9), ("default", "HardSign"): rows(0.7, 0.5)}
    gap = figure_posterior.gaps(groups, "default", "HardSign")
    assert gap is not None
    assert gap.mean == pytest.approx(10.0)
    assert gap.std == pytest.approx(0.0, abs=1e-9)
    assert figure_posterior.gaps(groups, "default", "NoPosterior") is None


def test_monte_carlo_error_has_slope_minus_one_half():
    values = [(3.0 / math.sqrt(k), 0.0) for k in sample_counts.COUNTS]
    assert figure_samples.slope(values) == pytest.approx(-0.5)


def test_smoothness_of_constant_and_of_opposed_outputs():
    graph = csbm(nodes=40, seed=0)
    constant = torch.ones(40, 3)
    assert float(smoothness.dirichlet(constant, graph)) == 0.0
    assert float(smoothness.mean_distance(constant)) == pytest.approx(0.0, abs=2e-3)  # cdist rounds
    unrelated = torch.randn(40, 3, generator=stream(0, "x"))
    assert 0.7 < float(smoothness.dirichlet(unrelated, graph)) < 1.3
    torch.testing.assert_close(smoothness.dirichlet(5.0 * unrelated, graph), smoothness.dirichlet(unrelated, graph))
    halves = torch.cat([torch.ones(20, 1), -torch.ones(20, 1)])
    assert float(smoothness.mean_distance(halves)) == pytest.approx(2.0 * 20 * 20 * 2 / (40 * 39), rel=1e-3)


def test_selective_accuracy_takes_the_surest_first():
    probability = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.45, 0.55]])
    accuracy = trust.selective_accuracy(probability, torch.tensor([0, 0, 1, 0]))
    assert accuracy[trust.COVERAGES.index(0.5)] == 1.0
    assert accuracy[-1] == 0.75


def test_measures_of_a_run_are_numbers_with_the_shapes_figures_expect(measured):
    found = measured["measures"]
    assert len(found["sample_counts"]["accuracy"]) == len(sample_counts.COUNTS)
    assert {len(row) for row in found["sample_counts"]["accuracy"]} == {sample_counts.SEEDS}
    counts = found["edge_posterior"]["same"]["positive"]["counts"]
    assert len(counts) == edge_posterior.BINS
    assert sum(counts) > 0
    assert 0.0 <= found["trust"]["flags"]["structural"] <= 1.0
    assert sum(row[2] for row in found["trust"]["reliability"]) == round(0.2 * 600)


def test_mc_dropout_without_dropout_is_gcn_and_masks_follow_identities():
    graph = csbm(nodes=60, seed=1)
    gcn = PlainNetwork(Shape.of(graph), find("gcn").settings, 0, graph_layers=True)
    plain = MonteCarloDropoutGCN(Shape.of(graph), SampledSettings(dropout=0.0), 0)
    plain.load_state_dict(gcn.state_dict())
    torch.testing.assert_close(plain.predict(graph, 3, samples=2).log_prob[1], gcn.predict(graph, 0).log_prob[0])
    model = MonteCarloDropoutGCN(Shape.of(graph), SampledSettings(), 0)
    order = torch.randperm(60, generator=stream(0, "order"))
    there, here = (model.predict(g, 3, samples=4).log_prob for g in (graph, graph.relabel(order)))
    torch.testing.assert_close(here, there[:, order], rtol=1e-4, atol=1e-5)
    assert float((there[0] - there[1]).abs().max()) > 0.01  # masks differ
