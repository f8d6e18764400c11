"""From records to tables: what is written, that it is the same without the store, and what a person is told."""

from __future__ import annotations

import csv
import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from spam_gnn.cli import main
from spam_gnn.experiments import study as registry
from spam_gnn.experiments.paper import plan, published, table_homophilic, table_large, table_main, table_published
from spam_gnn.experiments.paper.comparison import Comparison
from spam_gnn.experiments.publish import assemble, publish, publish_again
from spam_gnn.experiments.records import compact, planned_records, read_records, take_over, write_records
from spam_gnn.experiments.spec import RunSpec
from spam_gnn.experiments.store import RunStore
from spam_gnn.experiments.study import Study, StudyResult
from spam_gnn.report.exhibit import ResultTable
from spam_gnn.report.study_page import render_studies

SCORES = {"spam": (0.80, 0.84, 0.88), "gcn": (0.60, 0.55, 0.50), "mlp": (0.79, 0.80, 0.90)}
MADE = {"code": {"version": "0", "commit": "c" * 40, "dirty": False}, "machine": {"processor": "p"},
        "packages": {"python": "3", "torch": "2"}}  # fmt: skip


def made_up(model, split, accuracy):
    spec = RunSpec.of("texas", model, split=split, seed=split)
    return {"status": "ok", "hash": spec.spec_hash, "spec": spec.to_json(), **MADE, "seconds": 1.0,
            "test": {"accuracy": accuracy, "ece": 1 / 3}, "val": {"accuracy": accuracy}, "data_sha256": "d" * 64}  # fmt: skip


@pytest.fixture
def records():
    rows = [made_up(model, split, value) for model, values in SCORES.items() for split, value in enumerate(values)]
    lost = made_up("gcn", 2, 0.5)
    failed = {"status": "failed", "hash": lost["hash"], "spec": lost["spec"], "reason": "time limit", "detail": "long"}
    return [failed if row["hash"] == lost["hash"] else row for row in rows]


def test_ranks_are_on_shared_splits_and_the_failed_is_last(records):
    made = Comparison(records, ("texas", "cornell"))
    assert made.datasets == ("texas",)
    assert made.models == ("spam", "mlp", "gcn")
    assert made.rank("gcn", "texas") == 3.0
    assert made.best_other("texas") == "mlp"
    pair, _ = made.against("texas")["mlp"]
    assert pair.difference == pytest.approx(1.0)  # (1 + 4 - 2) / 3
    assert pair.pairs == 3
    assert made.first_places == ["texas"]


def test_an_unfinished_split_ranks_nobody(records):
    missing = [{**row, "status": "missing"} if row["spec"]["split"] == 2 else row for row in records]
    made = Comparison(missing, ("texas",))
    assert made.shared_splits("texas") == {(0, 0), (1, 1)}
    assert [made.rank(model, "texas") for model in ("spam", "mlp", "gcn")] == [1.0, 2.0, 3.0]
    gone = [{**row, "status": "missing"} if row["spec"]["model"] == "gcn" else row for row in records]
    assert Comparison(gone, ("texas",)).ranked == ()
    assert Comparison(gone, ("texas",)).rank("spam", "texas") is None
    assert Comparison(gone, ("texas",)).first_places == []


def test_compact_records_say_the_same(tmp_path, records):
    short = [compact(record) for record in records]
    write_records(tmp_path / "x.jsonl", short)
    assert read_records(tmp_path / "x.jsonl") == short
    assert [compact(record) for record in short] == short
    assert short[0]["test"]["ece"] == 0.333333
    assert short[0]["spec"] == records[0]["spec"]
    assert all("detail" not in record for record in short)
    lines = (tmp_path / "x.jsonl").read_text().splitlines()
    assert max(map(len, lines[-9:])) < 250


@pytest.mark.parametrize("together", [True, False])
def test_records_of_earlier_versions_are_read(tmp_path, records, together):
    """With the numbers of a run together, and one by one."""
    short, names, runs = [compact(record) for record in records], {}, []

    def named(value):
        return names.setdefault(json.dumps(value), f"@{len(names)}")

    for record in short:
        spec = {**record["spec"]}
        own = {key: spec.pop(key) for key in ("split", "seed")}
        spec |= {key: named(spec[key]) for key in ("settings", "train")}
        run = {**record, "spec": {"same": named(spec), **own}, "made": named(record["made"])}
        run |= {key: [named(list(run[key])), *run[key].values()] for key in ("test", "val", "test_calibrated") if key in run}
        if together:
            numbers = {key: run.pop(key) for key in ("epochs", "best_epoch", "seconds") if key in run}
            run["numbers"] = [named(list(numbers)), *numbers.values()]
        runs.append(run)
    shared = [{"name": name, "value": json.loads(text)} for text, name in names.items()]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (*shared, *runs)))
    assert read_records(tmp_path / "x.jsonl") == short


def test_a_fresh_store_takes_over_what_records_hold(tmp_path, records):
    other = {**made_up("mlp", 5, 0.7), "hash": "0" * 16}  # a spec that this code would name otherwise
    write_records(tmp_path / "x.jsonl", [compact(record) for record in [*records, other]])
    store = RunStore(tmp_path / "runs")
    assert take_over([tmp_path / "x.jsonl"], store) == 8  # nine runs, one of them failed
    assert take_over([tmp_path / "x.jsonl"], store) == 0
    assert store.read(RunSpec.of("texas", "spam", split=1, seed=1))["test"]["accuracy"] == 0.84
    assert store.read(RunSpec.of("texas", "gcn", split=2, seed=2)) is None
    assert store.read(RunSpec.of("texas", "mlp", split=5, seed=5)) is None


def test_a_study_is_written_in_every_format_and_again_without_the_store(tmp_path, records):
    result = publish(table_main.STUDY, records, tmp_path / "results")
    assemble(tmp_path / "results", tmp_path / "RESULTS.md")
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.suffix for path in files} == {".md", ".csv", ".tex", ".png", ".svg", ".jsonl", ".html"}
    publish_again(table_main.STUDY, tmp_path / "results")
    assemble(tmp_path / "results", tmp_path / "RESULTS.md")
    assert {path: path.read_bytes() for path in files} == files

    assert "SpaM is first on 1 of 1 of its datasets (texas)" in result.verdict
    assert "above the paper's own figure for SpaM on 1 of 1" in result.verdict  # 84.0 against 83.8
    text = (tmp_path / "RESULTS.md").read_text()
    assert "84.0 ± 4.0 (3/3)" in text
    assert "57.5 ± 3.5 (2/3)" in text  # the failed run is counted and named
    assert "GCN on texas: time limit" in text
    assert "![" in text
    assert "](results/table-main.png)" in text
    page = (tmp_path / "results" / "index.html").read_text()
    assert "data:image/svg+xml;base64," in page
    assert "http-equiv" in page
    with (tmp_path / "results" / "table-main-cells.csv").open() as handle:
        cells = {row["system"]: row for row in csv.DictReader(handle)}
    assert float(cells["mlp"]["spam_minus_system"]) == pytest.approx(1.0)
    assert cells["gcn"]["command"] == "spam-gnn reproduce table-main --models gcn --datasets texas"
    assert float(cells["spam"]["paper"]) == published.paper_figure("spam", "texas").mean


def test_an_unfinished_study_says_so(tmp_path, records):
    store = RunStore(tmp_path)
    spec = RunSpec.of("texas", "spam", split=9, seed=9)
    missing = planned_records([spec, spec], store)
    assert [record["status"] for record in missing] == ["missing"]
    verdict = table_main.render([compact(record) for record in [*records, *missing]]).verdict
    assert verdict.startswith("Not complete, 9 of 10 runs so far.")


def test_a_figure_of_some_of_its_runs_says_so_too(tmp_path, records):
    study = Study("half", "Half of it", lambda _: [], lambda _: StudyResult("text\n", verdict="It held."))
    waiting = {**records[0], "status": "missing"}
    assert publish(study, [records[0], waiting], tmp_path).verdict == "Not complete, 1 of 2 runs so far. It held."
    assert "**Not complete, 1 of 2 runs so far. It held.**" in (tmp_path / "half.md").read_text()
    assert publish(study, [records[0]], tmp_path).verdict == "It held."


def test_records_without_their_page_do_not_stop_the_others(tmp_path, records):
    """As a kill between the two leaves them."""
    publish(table_main.STUDY, records, tmp_path / "results")
    write_records(tmp_path / "results" / "records" / "theory.jsonl", [])
    assemble(tmp_path / "results", tmp_path / "RESULTS.md")
    assert "Heterophilic benchmarks" in (tmp_path / "RESULTS.md").read_text()


def test_formats_escape_what_they_must():
    table = ResultTable("t", ("a|b", "50 %"), (("x_y & <z>", 1.23456), ("none", None)), frozenset({(0, 1)}))
    assert r"x\_y \& $<$z>" in table.latex()
    assert r"\textbf{1.23}" in table.latex()
    assert "| **1.23** |" in table.markdown()
    assert table.csv().splitlines()[1:] == ["x_y & <z>,1.23456", "none,"]
    page = render_studies("t", "<script>alert(1)</script>", {})
    assert "<script>" not in page


def test_the_five_best_are_chosen_on_validation_once_the_row_exists(tmp_path, monkeypatch):
    names = ("spam", *(f"m{k}" for k in range(7)))
    monkeypatch.setattr(plan, "system_names", lambda: names)
    monkeypatch.setattr(plan, "table_run", lambda _, model, split, __: (model, split))
    values = {(model, split): 0.1 * place for place, model in enumerate(names) for split in range(3)}

    class Store:
        def read(self, key):
            if key not in values:
                return None
            status = "failed" if key == ("m6", 1) else "ok"  # the best by far, but it failed once
            return {"status": status, "val": {"accuracy": values[key]}, "test": {"accuracy": 1.0 - values[key]}}

    assert plan.best_on_validation(Store(), "actor", 3, 5) == ("m5", "m4", "m3", "m2", "m1")
    del values["m0", 2]
    assert plan.best_on_validation(Store(), "actor", 3, 5) == ()


def test_every_command_of_the_page_is_understood(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr("spam_gnn.commands.reproduce.run_reproduce", asked.append)
    monkeypatch.setattr("spam_gnn.commands.tune.run_tune", lambda *options: asked.append(options))
    page = Path(__file__).resolve().parents[1] / "docs" / "reproduce.md"
    lines = page.read_text().partition("```bash\n")[2].partition("```")[0].splitlines()
    for line in lines:
        code, said = run(monkeypatch, capsys, *shlex.split(line, comments=True)[1:])
        assert code == 0, (line, said.err)
    assert len(asked) == len(lines) == 7
    assert asked[3].splits == 3
    assert asked[-1][:2] == ("spam", "texas")


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["spam-gnn", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code, capsys.readouterr()


def test_the_command_runs_a_study_to_its_end(tmp_path, monkeypatch, capsys):
    """Runs that are asked for because of the results of others are done too; a failed one gives exit code 6."""
    monkeypatch.chdir(tmp_path)
    quick = {"epochs": 2, "patience": 2}
    first = RunSpec.of("csbm", "mlp", train=quick)
    second, bad = replace(first, seed=1), RunSpec.of("csbm", "mlp", train={"epochs": 2, "learning_rate": 1e30})

    def specs(store):
        return [first, bad, second] if store.read(first) else [first]

    def render(records):
        return StudyResult(f"{len(records)} records\n", verdict="It is tiny.")

    study = Study("tiny", "A tiny study", specs, render)
    monkeypatch.setattr(registry, "studies", lambda: {"tiny": study})
    monkeypatch.setattr("spam_gnn.commands.reproduce.studies", lambda: {"tiny": study})
    monkeypatch.setattr("spam_gnn.experiments.publish.studies", lambda: {"tiny": study})
    code, said = run(monkeypatch, capsys, "reproduce", "tiny", "--dry-run")
    assert code == 0
    assert "to do" in said.out
    code, said = run(monkeypatch, capsys, "reproduce", "tiny")
    assert code == 6
    assert "1 runs failed" in said.err
    assert "3 records" in (tmp_path / "RESULTS.md").read_text()
    kept = [record["status"] for record in read_records(tmp_path / "results" / "records" / "tiny.jsonl")]
    assert sorted(kept) == ["failed", "ok", "ok"]
    code, said = run(monkeypatch, capsys, "reproduce", "all", "--from-records")
    assert code == 0
    assert "It is tiny." in said.out
    further = Study("twin", "Another", specs, render, further="what the first says")
    monkeypatch.setattr("spam_gnn.commands.reproduce.studies", lambda: {"tiny": study, "twin": further})
    code, said = run(monkeypatch, capsys, "reproduce", "all", "--models", "gcn")
    assert (code, said.err) == (0, "")  # studies without such a run are passed over, and said to be
    assert "tiny: no run with these" in said.out
    assert "twin: more runs follow from the results of these: what the first says" in run(
        monkeypatch, capsys, "reproduce", "all", "--dry-run")[1].out  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), [
    (("reproduce", "table-mian"), "did you mean 'table-main'?"),
    (("reproduce", "table-main", "--models", "gnc"), "did you mean 'gcn'?"),
    (("reproduce", "table-main", "--datasets", "texass"), "did you mean 'texas'?"),
    (("reproduce", "table-main", "--datasets", "cora"), "found no run"),
    (("reproduce", "table-main", "--from-records"), "not found"),
    (("reproduce", "table-main", "--time-limit", "-1"), "use a number above 0"),
    (("tune", "gnc", "texas"), "did you mean 'gcn'?"),
])  # fmt: skip
def test_mistakes_are_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, said = run(monkeypatch, capsys, *arguments)
    assert code == 2
    assert message in said.err
    assert said.err.count("\n") == 1


def test_the_best_get_further_seeds_and_what_was_run_is_shown(tmp_path, monkeypatch):
    store = RunStore(tmp_path)
    monkeypatch.setattr(table_homophilic, "present", lambda _: ("cora",))
    monkeypatch.setattr(table_homophilic, "best_on_validation", lambda *_: ("gcn",))
    asked = {(spec.model, spec.seed) for spec in table_homophilic.specs(store)}
    assert asked == {(model, 0) for model in plan.system_names()} | {
        (m, s) for m in ("spam", "gcn") for s in range(1, table_homophilic.SEEDS)
    }
    further = plan.table_run("cora", "gat", 0, 2)
    with store.claim(further):
        store.write(further, {**made_up("gat", 0, 0.8), "spec": further.to_json(), "hash": further.spec_hash})
    assert {(spec.model, spec.seed) for spec in table_homophilic.specs(store)} == asked | {("gat", 2)}


def test_the_best_of_the_smallest_graph_go_on_to_the_larger_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(table_large, "present", lambda names: names[:2])
    monkeypatch.setattr(table_large, "best_on_validation", lambda *_: ())
    first = {(s.dataset, s.model, s.split) for s in table_large.specs(RunStore(tmp_path))}
    small, large = table_large.REAL[:2]
    later = range(1, table_large.SPLITS)
    assert {model for data, model, split in first if (data, split) == (small, 0)} == set(plan.system_names())
    assert {model for data, model, split in first if (data, split) == (large, 0)} == set(table_large.ALWAYS)
    assert {(data, model) for data, model, split in first if split in later} == {(small, "spam"), (large, "spam")}
    monkeypatch.setattr(table_large, "best_on_validation", lambda *asked: ("gcnii", "gat") if asked[1] == small else ("gat",))
    then = {(s.dataset, s.model, s.split) for s in table_large.specs(RunStore(tmp_path))}
    added = {(small, m, split) for m in ("gcnii", "gat") for split in later} | {(large, "gat", split) for split in later}
    assert then - first == added | {(large, "gcnii", 0)}
    assert all(s.train.epochs == 3 for s in table_large.specs(RunStore(tmp_path)) if s.dataset.startswith("surrogate:"))


def test_surrogates_are_never_in_a_table_with_real_graphs(tmp_path):
    real = [spec for spec in table_large.specs(RunStore(tmp_path)) if not spec.dataset.startswith("surrogate:")]
    generated = [spec for spec in table_large.specs(RunStore(tmp_path)) if spec.dataset.startswith("surrogate:")]
    assert {spec.dataset.partition(":")[2] for spec in generated}.isdisjoint({spec.dataset for spec in real})
    records = [
        {**made_up("spam", 0, score), "spec": RunSpec.of(data, "spam").to_json(), "hash": data, "seconds_per_epoch": 2.5,
         "peak_memory_mb": 3072.0}
        for data, score in (("cornell5", 0.7), ("surrogate:snap-patents", 0.3))
    ]  # fmt: skip
    gat = RunSpec.of("surrogate:snap-patents", "gat").to_json()
    failed = {**records[1], "spec": gat, "hash": "gat", "status": "failed", "reason": "memory limit: 2 held, 1 allowed"}
    result = table_large.render([compact(record) for record in (*records, failed)])
    assert "| SpaM | 2.5 s, 3.0 GiB |" in result.markdown
    assert "- GAT on surrogate:snap-patents: memory limit: 2 held, 1 allowed" in result.markdown
    headers = {table.name: table.header for table in result.tables}
    assert "cornell5" in headers["table-large"]
    assert "cornell5" not in headers["table-large-surrogates"]
    assert not any("surrogate" in name for name in headers["table-large"])
    assert "surrogate:snap-patents" in headers["table-large-surrogates"]
    waiting = {**records[1], "status": "missing"}
    alone = table_large.render([compact(record) for record in (records[0], waiting)])
    assert "Surrogates" not in alone.markdown
    assert "Not complete" not in alone.verdict  # a surrogate still to be run is no gap among the real ones


def test_large_graphs_beside_the_strongest_system_with_as_many_splits():
    def run(model, split, score, data="cornell5"):
        made, spec = made_up(model, split, score), RunSpec.of(data, model, split=split, seed=split)
        return {**made, "spec": spec.to_json(), "hash": f"{data}{model}{split}"}

    scores = {"spam": (0.7, 0.8), "gat": (0.75, 0.81), "gcn": (0.9,)}  # the last has one split: no rival yet
    records = [run(model, split, score) for model, row in scores.items() for split, score in enumerate(row)]
    verdict = table_large.render([compact(record) for record in records]).verdict
    assert "None of the paper's large graphs is here" in verdict
    assert "cornell5, splits: 2, SpaM 75.0, GAT 78.0 (-3.0 ± 2.0)" in verdict
    there = [*records, run("spam", 0, 0.8, "penn94"), run("gat", 0, 0.7, "penn94")]
    assert "None of the paper's" not in table_large.render([compact(record) for record in there]).verdict


def test_a_published_figure_is_recognised_within_two_deviations_and_not_above(records):
    of = {f.source: f for f in published.figures("texas") if f.system == "mlp"}["h2gcn"]

    def beside(gap):
        made = Comparison([made_up("mlp", 0, (of.mean + gap * of.std) / 100)], ("texas",))
        return table_published.Beside(of, made.cell("mlp", "texas"))

    outcomes = {gap: beside(gap) for gap in (-2.1, -1.9, 0.0, 1.9, 2.1)}
    assert [item.judgement for item in outcomes.values()] == ["below", "yes", "yes", "yes", "above"]
    assert [gap for gap, item in outcomes.items() if item.recognised] == [-1.9, 0.0, 1.9]
    result = table_published.render([compact(record) for record in records])
    lines = {row[0]: row for row in result.tables[0].rows}
    assert lines["MLP"][1:3] == ("1 of 1", "texas")  # 83.0 here, 81.9 +- 4.8 published
    assert "BGCN" in result.verdict.partition("nobody's figure is known for")[2]
    assert "MLP" in result.verdict.partition("not yet")[2]  # one dataset is not enough


def test_runs_with_stated_settings_are_held_against_their_own_source_only(monkeypatch, tmp_path):
    monkeypatch.setattr(table_published, "present", tuple)
    planned = table_published.specs(RunStore(tmp_path))
    runs = [spec for spec in planned if spec.model == "gcnii" and spec.dataset == "texas"]
    equal, apart = runs[:3], runs[3:]
    assert [spec.settings.layers for spec in (*equal, *apart)] == [64] * 3 + [32] * 3
    records = [
        {**made_up("gcnii", spec.split, score), "spec": spec.to_json(), "hash": spec.spec_hash}
        for group, score in ((equal, 0.58), (apart, 0.78)) for spec in group
    ]  # fmt: skip
    found = [(item.published.source, item.as_stated, round(item.cell.mean)) for item in table_published.comparisons(records)]
    assert found == [("paper-main", False, 58), ("gcnii", False, 58), ("glognn-table", False, 58), ("gcnii", True, 78)]


def test_runs_on_other_splits_are_held_against_figures_of_those_splits_only(monkeypatch, tmp_path):
    monkeypatch.setattr(table_published, "present", tuple)
    planned = table_published.specs(RunStore(tmp_path))
    runs = [spec for spec in planned if spec.model == "tfe-gnn" and spec.dataset == "texas"]
    assert [spec.protocol for spec in runs] == ["geom-gcn"] * 3 + ["random:0.6/0.2/0.2"] * 3
    assert [spec.split for spec in runs] == [0, 1, 2] * 2
    records = [{**made_up("tfe-gnn", spec.split, 0.8), "spec": spec.to_json(), "hash": spec.spec_hash} for spec in runs]
    found = {(item.published.source, item.published.protocol) for item in table_published.comparisons(records)}
    assert found == {("paper-main", None), ("tfe-rerun", "random:0.6/0.2/0.2")}
    assert all(figure.protocol is None for figure in published.figures("texas"))  # other tables show comparable figures only
    full = table_published.render([compact(record) for record in records]).tables[1]
    assert {row[1] for row in full.rows} == {"texas", "texas (random:0.6/0.2/0.2)"}
