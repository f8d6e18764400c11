"""The graphs of Pei et al. (2020), as PyG loads them, and the three citation graphs with Planetoid's public split as well."""

from __future__ import annotations

from spam_gnn.data.parsers import pyg
from spam_gnn.data.spec import DatasetSpec, Figures, PaperRow, Parser, RawFile
from spam_gnn.homophily import Homophily

_GEOM = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn"
_FIXED = "f1fc0d14b3b019c562737240d06ec83b07d16a8f"  # the commit that PyG takes Chameleon and Squirrel from
_PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data"
_SOURCE = "graphdml-uiuc-jlu/geom-gcn (also bingzhewei/geom-gcn)"
_SELF_LOOPS = "edges: the paper's count is that of the file less its {} self-loops, {} - {} = {}"
_WEBKB_HOMOPHILY = (
    "homophily: the paper's {} is the node measure of the undirected graph without self-loops ({}), not the edge measure "
    "that its equation defines ({} undirected, {} along the edges)"
)
_DIRECTED = "stored directed, with self-loops; results depend on whether a model reads the edges along, against or both ways"
_DUPLICATES = (
    "holds duplicate nodes, which training and test nodes of every split share: {} nodes, {} after Platonov et al. removed "
    "them; report {}-filtered beside it"
)


def _geom(name: str, folder: str, prefix: str, parser: Parser, commit: str = "master", **rest: object) -> DatasetSpec:
    files = (
        *(RawFile(f"raw/{part}", f"{_GEOM}/{commit}/new_data/{prefix}/{part}") for part in
          ("out1_node_feature_label.txt", "out1_graph_edges.txt")),
        *(RawFile(split, f"{_GEOM}/{commit}/splits/{split.removeprefix('raw/')}") for split in pyg.geom_gcn_names(prefix)),
    )  # fmt: skip
    return DatasetSpec(
        name=name, folder=folder, files=files, parser=parser, directed=True, protocols=("geom-gcn", "authors"), splits=10,
        source=_SOURCE, licence="none stated by the source", **rest,  # pyright: ignore[reportArgumentType]
    )  # fmt: skip


def _citation(name: str, **rest: object) -> DatasetSpec:
    files = (
        *(RawFile(f"raw/ind.{name}.{part}", f"{_PLANETOID}/ind.{name}.{part}") for part in pyg.PLANETOID_PARTS),
        *(RawFile(split, f"{_GEOM}/master/splits/{split.removeprefix('raw/')}", protocol="geom-gcn")
          for split in pyg.geom_gcn_names(name)),
    )  # fmt: skip
    return DatasetSpec(
        name=name, folder=name, files=files, parser=pyg.planetoid(name), directed=False, protocols=("public", "geom-gcn"),
        splits=1, source="kimiyoung/planetoid; splits graphdml-uiuc-jlu/geom-gcn",
        licence="MIT (planetoid); the geom-gcn splits state none", **rest,  # pyright: ignore[reportArgumentType]
    )  # fmt: skip


SPECS = (
    _geom(
        "texas", "texas", "texas", pyg.webkb("texas"), title="web pages of a university, by kind of page",
        expected=Figures(183, 325, 1703, 5, self_loops=16, homophily=Homophily(0.0615, 0.0968, 0.0013, -0.2795),
                         degree_gini=0.501, density=0.0490, class_shares=(0.1803, 0.0055, 0.0984, 0.5519, 0.1639)),
        paper=PaperRow(183, 309, 1703, 5, 0.06),
        differences=(_SELF_LOOPS.format(16, 325, 16, 309),
                     "homophily: the paper's 0.06 fits both the edge measure that its equation defines (0.061) and the node "
                     "measure of the undirected graph without self-loops (0.057), which it prints for Cornell and Wisconsin"),
        defects=(_DIRECTED, "one class has a single node, so that no split can both train and test on it"),
    ),
    _geom(
        "cornell", "cornell", "cornell", pyg.webkb("cornell"), title="web pages of a university, by kind of page",
        expected=Figures(183, 298, 1703, 5, self_loops=3, homophily=Homophily(0.1220, 0.1855, 0.0311, -0.2097),
                         degree_gini=0.486, density=0.0553, class_shares=(0.2077, 0.0874, 0.1639, 0.4481, 0.0929)),
        paper=PaperRow(183, 295, 1703, 5, 0.11),
        differences=(_SELF_LOOPS.format(3, 298, 3, 295), _WEBKB_HOMOPHILY.format("0.11", "0.111", "0.123", "0.122")),
        defects=(
            "exists in two versions: the files of 2020 repeated the features and labels of Texas; these are the corrected ones "
            "of July 2022, and results on the older files do not compare",
            _DIRECTED,
        ),
    ),
    _geom(
        "wisconsin", "wisconsin", "wisconsin", pyg.webkb("wisconsin"), title="web pages of a university, by kind of page",
        expected=Figures(251, 515, 1703, 5, self_loops=16, homophily=Homophily(0.1703, 0.1498, 0.0941, -0.1807),
                         degree_gini=0.471, density=0.0563, class_shares=(0.0398, 0.2789, 0.4701, 0.1275, 0.0837)),
        paper=PaperRow(251, 499, 1703, 5, 0.16),
        differences=(_SELF_LOOPS.format(16, 515, 16, 499), _WEBKB_HOMOPHILY.format("0.16", "0.155", "0.178", "0.170")),
        defects=(_DIRECTED,),
    ),
    _geom(
        "chameleon", "chameleon", "chameleon", pyg.wikipedia("chameleon"), _FIXED, title="Wikipedia pages, by traffic",
        expected=Figures(2277, 36101, 2325, 5, self_loops=50, homophily=Homophily(0.2339, 0.2470, 0.0620, 0.0374),
                         degree_gini=0.639, density=0.0055, class_shares=(0.2003, 0.2020, 0.1989, 0.2288, 0.1700)),
        paper=PaperRow(2277, 33824, 2325, 5, 0.23),
        differences=("edges: the paper's count is that of the file less the number of nodes, 36101 - 2277 = 33824; the file "
                     "has 50 self-loops, not one per node",
                     "homophily: the paper's 0.23 is the edge measure, while its values for the three WebKB graphs are node "
                     "measures (here 0.247)"),
        defects=(_DUPLICATES.format(2277, 890, "chameleon"), _DIRECTED),
    ),
    _geom(
        "squirrel", "squirrel", "squirrel", pyg.wikipedia("squirrel"), _FIXED, title="Wikipedia pages, by traffic",
        expected=Figures(5201, 217073, 2089, 5, self_loops=140, homophily=Homophily(0.2234, 0.2156, 0.0254, 0.0115),
                         degree_gini=0.742, density=0.0086, class_shares=(0.2003, 0.2000, 0.1998, 0.2000, 0.2000)),
        paper=PaperRow(5201, 211872, 2089, 5, 0.22),
        differences=("edges: the paper's count is that of the file less the number of nodes, 217073 - 5201 = 211872; the file "
                     "has 140 self-loops, not one per node",),
        defects=(_DUPLICATES.format(5201, 2223, "squirrel"), _DIRECTED),
    ),
    _geom(
        "actor", "actor", "film", pyg.actor, title="actors on Wikipedia, by kind of role",
        expected=Figures(7600, 30019, 932, 5, self_loops=93, homophily=Homophily(0.2163, 0.2210, 0.0110, 0.0025),
                         degree_gini=0.570, density=0.0058, class_shares=(0.1122, 0.1759, 0.2145, 0.2388, 0.2586)),
        paper=PaperRow(7600, 25944, 931, 5, 0.22),
        differences=("edges: 33391 lines in the file, 30019 distinct edges, 29926 without the 93 self-loops, 26752 pairs; the "
                     "paper's 25944 is none of them (it equals 33544, a count often printed for this graph, less 7600 nodes)",
                     "features: the file numbers its columns from 0 to 931, so there are 932"),
        defects=(_DIRECTED,),
    ),
    _citation(
        "cora", title="papers that cite each other, by topic",
        expected=Figures(2708, 10556, 1433, 7, homophily=Homophily(0.8100, 0.8252, 0.7657, 0.7711), degree_gini=0.405,
                         density=0.0127, class_shares=(0.1296, 0.0801, 0.1544, 0.3021, 0.1573, 0.1100, 0.0665)),
        paper=PaperRow(2708, 10558, 1433, 7, 0.81),
        differences=("edges: the files hold 5278 pairs, 10556 in both directions; the paper has 10558",),
        defects=("each geom-gcn split covers 2485 of the 2708 nodes",),
    ),
    _citation(
        "citeseer", title="papers that cite each other, by topic",
        expected=Figures(3327, 9104, 3703, 6, homophily=Homophily(0.7355, 0.7166, 0.6267, 0.6707), degree_gini=0.443,
                         density=0.0085, class_shares=(0.0794, 0.1773, 0.2008, 0.2107, 0.1791, 0.1527)),
        paper=PaperRow(3327, 9104, 3703, 6, 0.74),
        defects=("15 nodes have neither features nor a label; PyG gives them class 0",
                 "geom-gcn splits 4 and 5 cover 2120 of the 3327 nodes, the others all"),
    ),
    _citation(
        "pubmed", title="papers that cite each other, by kind of diabetes",
        expected=Figures(19717, 88648, 500, 3, homophily=Homophily(0.8024, 0.7924, 0.6641, 0.6860), degree_gini=0.604,
                         density=0.1002, class_shares=(0.2081, 0.3925, 0.3994)),
        paper=PaperRow(19717, 88648, 500, 3, 0.80),
    ),
)  # fmt: skip
