"""The catalog: every spec, its files where they are present, its parsers on files of the same format written here."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import pickle
import shutil

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import torch
from torch_geometric.datasets import Planetoid

from spam_gnn.data import catalog, parsed, store
from spam_gnn.data.entries import SPECS
from spam_gnn.data.parsers import linkx, pyg
from spam_gnn.data.parsers.pickles import read_object_array, read_pickle
from spam_gnn.data.spec import known_checksums
from spam_gnn.data.statistics import degree_gini, disagreements, measure
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph

PAPER = ("roman-empire", "minesweeper", "amazon-ratings", "chameleon", "squirrel", "actor", "cornell", "texas", "wisconsin",
         "cora", "citeseer", "pubmed", "penn94", "arxiv-year", "snap-patents")  # fmt: skip
README = {  # ../shared/datasets/README.md: nodes, edges as stored, features, classes, unlabelled
    "texas": (183, 325, 1703, 5, 0), "cornell": (183, 298, 1703, 5, 0), "wisconsin": (251, 515, 1703, 5, 0),
    "chameleon": (2277, 36101, 2325, 5, 0), "squirrel": (5201, 217073, 2089, 5, 0), "actor": (7600, 30019, 932, 5, 0),
    "minesweeper": (10000, 78804, 7, 2, 0), "chameleon-filtered": (890, 8854, 2325, 5, 0),
    "squirrel-filtered": (2223, 46998, 2089, 5, 0), "cora": (2708, 10556, 1433, 7, 0), "citeseer": (3327, 9104, 3703, 6, 0),
    "pubmed": (19717, 88648, 500, 3, 0), "cornell5": (18660, 1581554, 4735, 2, 1838),
    "johnshopkins55": (5180, 373172, 2406, 2, 418), "cora-metattack:0.25": (2485, 12492, 1433, 7, 0),
}  # fmt: skip


def need(name, protocol=None):
    if not catalog.is_present(name, protocol):
        pytest.skip(f"the raw files of {name} are in none of {[str(f) for f in catalog.data_folders()]}")


def test_every_dataset_of_the_paper_has_a_spec_with_the_papers_row():
    assert [name for name, spec in SPECS.items() if spec.paper is not None] == sorted(PAPER, key=list(SPECS).index)
    for name in PAPER:
        spec = SPECS[name]
        same = all(getattr(spec.paper, key) == getattr(spec.expected, key) for key in ("nodes", "edges", "features", "classes"))
        assert same or spec.differences, f"{name} differs from the paper's table and does not say why"
    for spec in SPECS.values():
        assert spec.licence
        assert spec.source
        assert spec.protocols


def test_checksums_belong_to_files_of_specs():
    paths = {f"{spec.folder}/{file.name}" for spec in SPECS.values() for file in spec.files}
    extra = set(known_checksums()) - paths
    # directed twins of the filtered graphs, and OGB files that the catalog does not read
    assert all("_directed" in path or path.startswith("arxiv_year/raw/n") for path in extra), extra
    assert all(len(digest) == 64 and int(digest, 16) >= 0 for digest in known_checksums().values())


@pytest.mark.parametrize("name", README)
def test_present_files_have_the_figures_of_the_readme_and_of_the_spec(name):
    need(name)
    spec = SPECS[name]
    raw, build = catalog.load_raw(spec)
    found = measure(raw, build())
    assert (found.nodes, found.edges, found.features, found.classes, found.unlabelled) == README[name]
    assert disagreements(found, spec.expected) == []
    assert found.degree_gini == pytest.approx(spec.expected.degree_gini, abs=6e-4)
    assert found.density == pytest.approx(spec.expected.density, abs=6e-5)
    assert found.class_shares == pytest.approx(spec.expected.class_shares, abs=6e-5)


def test_a_figure_that_is_off_is_found():
    spec = SPECS["texas"]
    wrong = dataclasses.replace(spec.expected, edges=309, homophily=dataclasses.replace(spec.expected.homophily, node=0.2))
    assert disagreements(spec.expected, wrong) == ["edges 325, expected 309", "node homophily 0.0968, expected 0.2000"]
    assert disagreements(spec.expected, SPECS["reed98"].expected) == ["classes 5, expected 2"]


def test_gini_by_hand():
    star = Graph.build(torch.zeros(4, 1), torch.tensor([[1, 2, 3], [0, 0, 0]]), directed=False)
    # degrees 1, 1, 1, 3: mean absolute difference 12 * 2 / 16 = 0.75, over twice the mean 1.5
    assert degree_gini(star) == pytest.approx((6 * 2 / 16) / (2 * 1.5))


def test_the_papers_webkb_homophily_is_the_node_measure_of_the_undirected_graph():
    for name, printed in (("texas", 0.06), ("cornell", 0.11), ("wisconsin", 0.16)):
        need(name)
        from spam_gnn.homophily import homophily

        assert round(homophily(catalog.load(name).as_undirected()).node, 2) == printed


def test_planetoid_agrees_with_pyg_under_both_protocols(tmp_path):
    need("cora", "geom-gcn")
    raw, _ = catalog.load_raw(SPECS["cora"], "geom-gcn")
    place = tmp_path / "cora" / "geom-gcn"
    place.mkdir(parents=True)
    source = store.find(SPECS["cora"], SPECS["cora"].files[0])
    assert source is not None
    (place / "raw").symlink_to(source.parent)
    theirs = Planetoid(str(tmp_path), "cora", split="geom-gcn")[0]
    for mine, part in zip(raw.fixed["geom-gcn"], ("train", "val", "test"), strict=True):
        assert torch.equal(mine, theirs[f"{part}_mask"])
    public = catalog.load("cora")
    assert [int(m.sum()) for m in (public.train_mask, public.val_mask, public.test_mask)] == [140, 500, 1000]
    assert catalog.split_count("cora") == 1
    assert catalog.split_count("cora", "geom-gcn") == 10
    assert not torch.equal(catalog.load("cora", 3, protocol="geom-gcn").train_mask, public.train_mask)


def write_facebook(folder):
    """Four people, seven attributes each; the second attribute is gender, 0 where unknown."""
    adjacency = scipy.sparse.csc_array(np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=float))
    info = [[1, 1, 5, 0, 2, 9, 3], [2, 2, 5, 0, 2, 9, 3], [1, 0, 6, 0, 2, 8, 3], [1, 1, 6, 1, 2, 8, 3]]
    scipy.io.savemat(folder / "data.mat", {"A": adjacency, "local_info": np.array(info, dtype=np.uint16)})
    return {"raw/data.mat": folder / "data.mat"}


def write_splits(path, nodes, splits=5):
    content = np.empty(splits, dtype=object)
    for i in range(splits):
        order = np.random.default_rng(i).permutation(nodes)
        content[i] = {"train": order[: nodes // 2], "valid": order[nodes // 2 : -1], "test": order[-1:]}
    np.save(path, content, allow_pickle=True)
    return content


def test_facebook_graphs_keep_unknown_gender_apart(tmp_path):
    raw = pyg.linkx("reed98")(write_facebook(tmp_path))
    assert raw.y.tolist() == [0, 1, -1, 0]
    assert raw.edge_index.t().tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    dense = raw.x.to_dense()
    assert dense.shape == (4, 2 + 2 + 2 + 1 + 2 + 1)  # one column per value of the six other attributes
    assert torch.equal(dense.sum(1), torch.full((4,), 6.0))
    assert raw.fixed == {}


def test_penn94_reads_its_five_splits(tmp_path):
    paths = write_facebook(tmp_path)
    splits = np.empty(5, dtype=object)
    for i in range(5):
        splits[i] = {"train": np.array([0]), "valid": np.array([1]), "test": np.array([3])}
    np.save(tmp_path / "fb100-Penn94-splits.npy", splits, allow_pickle=True)
    raw = pyg.linkx("penn94")({**paths, "raw/fb100-Penn94-splits.npy": tmp_path / "fb100-Penn94-splits.npy"})
    train, val, test = raw.fixed["linkx"]
    assert train.shape == (4, 5)
    assert (train[0].all(), val[1].all(), test[3].all(), int((train | val | test).sum())) == (True, True, True, 15)


def test_arxiv_year_from_ogb_files(tmp_path):
    years = np.array([2001, 2001, 2003, 2003, 2005, 2007, 2007, 2009, 2009, 2009])
    features = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    edges = np.array([[0, 1], [2, 1], [9, 0]])
    paths = {}
    for name, table in (("edge", edges), ("node-feat", features), ("node_year", years[:, None])):
        paths[f"raw/{name}.csv.gz"] = tmp_path / f"{name}.csv.gz"
        text = io.StringIO()
        np.savetxt(text, table, delimiter=",", fmt="%.9g")
        paths[f"raw/{name}.csv.gz"].write_bytes(gzip.compress(text.getvalue().encode()))
    paths["raw/arxiv-year-splits.npy"] = tmp_path / "arxiv-year-splits.npy"
    splits = write_splits(paths["raw/arxiv-year-splits.npy"], 10)
    raw = linkx.arxiv_year(paths)
    # quantiles 0.2, 0.4, 0.6, 0.8 of the ten years: 2002.6, 2004.2, 2007, 2009; a class begins at its quantile
    assert raw.y.tolist() == [0, 0, 1, 1, 2, 3, 3, 4, 4, 4]
    assert raw.edge_index.tolist() == edges.T.tolist()
    np.testing.assert_allclose(raw.x, features, rtol=1e-6)
    for i in range(5):
        assert sorted(raw.fixed["linkx"][0][:, i].nonzero().flatten().tolist()) == sorted(splits[i]["train"].tolist())


def test_quantile_classes_leave_unknown_years_out():
    years = np.array([np.nan, 1.0, 2.0, 3.0, 4.0, 5.0])
    assert linkx.quantile_classes(years).tolist() == [-1, 0, 1, 2, 3, 4]


def test_snap_patents_from_its_mat_file(tmp_path):
    features = scipy.sparse.random_array((6, 4), density=0.4, rng=np.random.default_rng(0), format="csc")
    stored = {"edge_index": np.array([[0, 1, 5], [2, 0, 4]]), "node_feat": features, "num_nodes": 6,
              "years": np.array([[1970, 1975, 1980, 1985, 1990, 1995]])}  # fmt: skip
    scipy.io.savemat(tmp_path / "snap_patents.mat", stored)
    raw = linkx.snap_patents({"raw/snap_patents.mat": tmp_path / "snap_patents.mat"})
    assert raw.x.layout == torch.sparse_csr
    np.testing.assert_allclose(raw.x.to_dense(), features.toarray(), rtol=1e-6)
    assert raw.y.tolist() == [0, 1, 2, 3, 4, 4]  # the quantiles are the second to the fifth year
    assert raw.edge_index.tolist() == [[0, 1, 5], [2, 0, 4]]
    scipy.io.savemat(tmp_path / "other.mat", {"years": stored["years"]})
    with pytest.raises(BadInput, match="found no edge_index, node_feat"):
        linkx.snap_patents({"raw/snap_patents.mat": tmp_path / "other.mat"})


def test_a_damaged_file_of_unknown_checksum_is_refused_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(store, "data_folders", lambda: [tmp_path])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name, file in (("tolokers", "raw/tolokers.npz"), ("reed98", "raw/data.mat"), ("snap-patents", "raw/snap_patents.mat")):
        path = tmp_path / SPECS[name].folder / file
        path.parent.mkdir(parents=True)
        path.write_bytes(b"not really")
        with pytest.raises(BadInput, match=str(path)) as caught:
            catalog.load(name, protocol="random:0.5/0.25/0.25")
        assert "\n" not in str(caught.value)


class Evil:
    def __reduce__(self):
        return (open, ("/tmp/owned-by-a-pickle", "w"))


def test_a_pickle_that_names_a_function_is_refused_unopened(tmp_path):
    bad = np.empty(1, dtype=object)
    bad[0] = Evil()
    np.save(tmp_path / "bad.npy", bad, allow_pickle=True)
    (tmp_path / "ind.cora.x").write_bytes(pickle.dumps(Evil()))
    for read, name in ((read_object_array, "bad.npy"), (read_pickle, "ind.cora.x")):
        with pytest.raises(BadInput, match=r"it names (_?io|builtins)\.open"):
            read(tmp_path / name)
    np.save(tmp_path / "plain.npy", np.arange(3))
    assert read_object_array(tmp_path / "plain.npy").tolist() == [0, 1, 2]
    (tmp_path / "junk.npy").write_bytes(b"junk")
    with pytest.raises(BadInput, match=r"not a \.npy file"):
        read_object_array(tmp_path / "junk.npy")


def test_planetoid_vets_its_pickles_before_pyg_opens_them(tmp_path):
    names = [f"raw/ind.cora.{part}" for part in pyg.PLANETOID_PARTS]
    for name in names:
        (tmp_path / name.removeprefix("raw/")).write_bytes(pickle.dumps(Evil()))
    with pytest.raises(BadInput, match="it names"):
        pyg.planetoid("cora")({name: tmp_path / name.removeprefix("raw/") for name in names})


def test_other_attacked_graphs_are_listed_where_their_folder_is(monkeypatch, tmp_path):
    need("cora-metattack:0.1")
    source = store.find(SPECS["cora-metattack:0.1"], SPECS["cora-metattack:0.1"].files[0])
    assert source is not None
    shutil.copytree(source.parent, tmp_path / "attacked" / "citeseer")
    monkeypatch.setattr(store, "data_folders", lambda: [tmp_path])
    assert "citeseer-metattack:0.25" in catalog.names()
    graph = catalog.load("citeseer-metattack:0.1")
    assert (graph.name, graph.num_edges, int(graph.train_mask.sum())) == ("citeseer-metattack:0.1", 11134, 247)
    with pytest.raises(BadInput, match="datasets` lists"):
        catalog.load("citeseer-metattack:0.3")


def test_parsed_graphs_come_back_equal_and_only_for_the_same_files(monkeypatch, tmp_path):
    need("texas")
    spec, paths = SPECS["texas"], store.ensure(SPECS["texas"])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(parsed, "SLOW_SECONDS", -1.0)
    first = parsed.read(spec, paths)
    (kept,) = (tmp_path / "spam-gnn" / "parsed").iterdir()
    again = parsed.read(dataclasses.replace(spec, parser=lambda _: pytest.fail("parsed again")), paths)
    assert torch.equal(first.x, again.x)
    assert torch.equal(first.edge_index, again.edge_index)
    assert all(torch.equal(a, b) for a, b in zip(first.fixed["geom-gcn"], again.fixed["geom-gcn"], strict=True))
    kept.write_bytes(kept.read_bytes()[:1000])  # a damaged cache is parsed anew
    assert torch.equal(parsed.read(spec, paths).y, first.y)
    sparse = dataclasses.replace(first, x=first.x.to_sparse_csr())
    parsed.keep(sparse, tmp_path / "sparse.npz")
    assert torch.equal(parsed._from_file(tmp_path / "sparse.npz").x.to_dense(), first.x)


def test_a_missing_benchmark_says_where_it_was_looked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("SPAM_GNN_OFFLINE", "1")
    monkeypatch.setattr(store, "data_folders", lambda: [tmp_path])
    assert not catalog.is_present("texas")
    with pytest.raises(BadInput, match=f"not found in {tmp_path}.*SPAM_GNN_DATA"):
        catalog.load("texas")


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("SPAM_GNN_OFFLINE", "1")


def test_datasets_lists_shows_and_checks(run):
    need("texas")
    code, out, _ = run("datasets", "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert code == 0
    assert set(PAPER) <= set(rows)
    assert (rows["texas"]["files"], rows["snap-patents"]["present"], rows["minesweeper"]["metric"]) == (
        "present", False, "accuracy, roc_auc")  # fmt: skip
    code, out, _ = run("datasets", "show", "texas")
    assert code == 0
    assert "325 - 16 = 309" in out
    code, out, _ = run("datasets", "check", "texas", "snap-patents", "--json")
    assert code == 0
    assert [(row["verdict"], row["nodes"]) for row in json.loads(out)] == [("ok", 183), ("absent", None)]
    code, out, _ = run("datasets", "show", "snap-patents")
    assert (code, "0 of 2 present" in out, "13975788" in out) == (0, True, True)


def test_datasets_check_finds_a_changed_file(run, monkeypatch, tmp_path):
    need("texas")
    source = store.find(SPECS["texas"], SPECS["texas"].files[0])
    assert source is not None
    shutil.copytree(source.parent, tmp_path / "texas" / "raw", copy_function=shutil.copy)
    edges = tmp_path / "texas" / "raw" / "out1_graph_edges.txt"
    edges.chmod(0o600)
    edges.write_text(edges.read_text() + "0\t1\n")
    monkeypatch.setattr(store, "data_folders", lambda: [tmp_path])
    code, out, err = run("datasets", "check", "texas", "cora")
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert "1 of 2 are wrong (texas)" in err
    assert f"{edges}: SHA-256" in out
    code, _, err = run("train", "texas", "--out", tmp_path / "run")
    assert (code, "found SHA-256" in err, (tmp_path / "run").exists()) == (2, True, False)


@pytest.mark.parametrize("arguments", [("show", "csbm"), ("check", "surrogate:cora"), ("fetch", "digits"), ("show", "txas"),
                                       ("fetch", "cora-metattack:0.3")])  # fmt: skip
def test_datasets_refuses_in_one_line(run, arguments):
    code, _, err = run("datasets", *arguments)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
