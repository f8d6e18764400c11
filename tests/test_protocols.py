"""Split protocols: what each name means, checked on the masks; and the authors' splits drawn a second way."""

from __future__ import annotations

import pytest
import torch

from spam_gnn import csbm
from spam_gnn.data import catalog
from spam_gnn.data.protocols import parse_protocol
from spam_gnn.errors import BadInput
from spam_gnn.source import DataSource

GRAPH = csbm(nodes=400, classes=4, seed=0)


def parts(graph):
    return graph.train_mask, graph.val_mask, graph.test_mask


def test_random_shares_hold_in_every_class_and_depend_on_the_split_alone():
    protocol = parse_protocol("random:0.1/0.45/0.45")
    graph = protocol.draw(GRAPH, 3)
    for mask, share in zip(parts(graph), (0.1, 0.45, 0.45), strict=True):
        assert torch.bincount(graph.y[mask], minlength=4).tolist() == [round(100 * share)] * 4
    assert torch.equal(graph.train_mask, protocol.draw(GRAPH, 3).train_mask)
    assert not torch.equal(graph.train_mask, protocol.draw(GRAPH, 4).train_mask)
    assert (sum(m.int() for m in parts(graph)) == 1).all()


@pytest.mark.parametrize(("text", "train", "val"), [("per-class:20", 20, 20), ("per-class:5/30", 5, 30), ("per-class:1", 1, 1)])
def test_few_labels_per_class(text, train, val):
    graph = parse_protocol(text).draw(GRAPH, 0)
    counts = [torch.bincount(graph.y[mask], minlength=4).tolist() for mask in parts(graph)]
    assert counts == [[train] * 4, [val] * 4, [100 - train - val] * 4]


def test_a_class_that_is_too_small_still_has_every_part():
    graph = parse_protocol("per-class:200").draw(GRAPH, 0)
    counts = [torch.bincount(graph.y[mask], minlength=4).tolist() for mask in parts(graph)]
    assert counts == [[98] * 4, [1] * 4, [1] * 4]


def test_the_authors_splits_are_one_permutation_seeded_by_the_split():
    for split in (0, 9):
        graph = parse_protocol("authors").draw(GRAPH, split)
        order = torch.randperm(400, generator=torch.Generator().manual_seed(split))
        for mask, members in zip(parts(graph), (order[:40], order[40:220], order[220:]), strict=True):
            assert mask.nonzero().flatten().tolist() == sorted(members.tolist())
    assert catalog.split_count("csbm", "authors") == 10
    with pytest.raises(BadInput, match="splits 0 to 9"):
        catalog.load("csbm", 10, 0, "authors")


@pytest.mark.parametrize("text", ["random", "random:", "random:0.5/0.5", "random:0.5/0.3/0.1", "random:1/0/0", "random:nan/1/1",
                                  "per-class", "per-class:0", "per-class:2.5", "per-class:x", "per-class:1/2/3", "geomgcn", "",
                                  "random:a/b/c", "random:inf/1/1"])  # fmt: skip
def test_nonsense_is_refused_in_one_line(text):
    with pytest.raises(BadInput, match="protocol") as caught:
        parse_protocol(text)
    assert "\n" not in str(caught.value)


def test_a_fixed_protocol_is_only_for_datasets_that_have_it():
    with pytest.raises(BadInput, match="which texas does not have; use geom-gcn"):
        catalog.load("texas", 0, 0, "public")
    with pytest.raises(BadInput, match="does not have"):
        catalog.load("csbm", 0, 0, "linkx")
    with pytest.raises(BadInput, match="comes without platonov splits"):
        parse_protocol("platonov").draw(GRAPH, 0)


def test_counts_by_dataset_and_protocol():
    counts = {"texas": 10, "minesweeper": 10, "penn94": 5, "cornell5": 5, "cora": 1, "csbm": 0, "surrogate:cora": 0}
    assert {name: catalog.split_count(name) for name in counts} == counts
    assert catalog.split_count("cora", "random:0.6/0.2/0.2") == 0
    assert catalog.split_count("cornell5", "random:0.5/0.25/0.25") == 5
    assert catalog.split_count("cora-metattack:0.2") == 1


def test_a_source_keeps_its_protocol(tmp_path):
    source = DataSource("csbm", protocol="per-class:3")
    assert DataSource.from_json(source.to_json()) == source
    assert int(source.load(0, 7).train_mask.sum()) == 9
    older = {key: value for key, value in source.to_json().items() if key != "protocol"}  # written before there were any
    assert DataSource.from_json(older).protocol is None
    (tmp_path / "n.csv").write_text("id,label,x\n" + "".join(f"{i},{'ab'[i % 2]},{i}.5\n" for i in range(20)))
    (tmp_path / "e.csv").write_text("source,target\n0,1\n2,3\n")
    tables = DataSource(nodes=str(tmp_path / "n.csv"), edges=str(tmp_path / "e.csv"), protocol="per-class:2")
    assert [int(mask.sum()) for mask in parts(tables.load(0, 0))] == [4, 4, 12]
    assert tables.split_count() == 0


def test_real_protocols_have_their_published_sizes():
    published = (("citeseer", "public", (120, 500, 1000)), ("pubmed", "public", (60, 500, 1000)),
                 ("texas", "geom-gcn", (87, 59, 37)), ("minesweeper", "platonov", (5000, 2500, 2500)),
                 ("johnshopkins55", None, (2380, 1190, 1192)), ("texas", "authors", (18, 82, 83)))  # fmt: skip
    for name, protocol, sizes in published:
        if not catalog.is_present(name):
            pytest.skip(f"the raw files of {name} are in none of {[str(f) for f in catalog.data_folders()]}")
        assert tuple(int(m.sum()) for m in parts(catalog.load(name, 1 if name == "texas" else 0, 0, protocol))) == sizes
