"""The large graphs of Lim et al. (2021): Facebook100, genius, arXiv-year, snap-patents."""

from __future__ import annotations

from math import nan

from spam_gnn.data.parsers import linkx, pyg
from spam_gnn.data.spec import DatasetSpec, Figures, PaperRow, RawFile
from spam_gnn.homophily import Homophily

_GITHUB = "https://github.com/CUAI/Non-Homophily-Large-Scale/raw/master/data"
_DRIVE = "https://drive.usercontent.google.com/download?confirm=t&id="
_OGB = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
_SOURCE = "CUAI/Non-Homophily-Large-Scale"
_LIM = "Lim et al., Large Scale Learning on Non-Homophilous Graphs, NeurIPS 2021, as later papers repeat it; not measured here"
_RANDOM = "random:0.5/0.25/0.25"
_GENDER = ("labels are gender as written in 2005; unlabelled nodes (-1) stay in the graph and outside every split",)
_CLASS_INSENSITIVE = (
    "homophily: the paper's {} is the class-insensitive measure of Lim et al.; the edge measure, which its equation defines, "
    "is {} there"
)


def _facebook(name: str, file: str, *, splits: RawFile | None = None, **rest: object) -> DatasetSpec:
    data = RawFile("raw/data.mat", f"{_GITHUB}/facebook100/{file}.mat")
    return DatasetSpec(
        name=name, folder=name, files=(data, splits) if splits else (data,), parser=pyg.linkx(name), directed=False,
        protocols=("linkx", _RANDOM) if splits else (_RANDOM,), splits=5, source=_SOURCE,
        licence="none stated by the source", defects=_GENDER, **rest,  # pyright: ignore[reportArgumentType]
    )  # fmt: skip


SPECS = (
    _facebook(
        "penn94", "Penn94", title="friendships at a university, by gender",
        splits=RawFile("raw/fb100-Penn94-splits.npy", f"{_GITHUB}/splits/fb100-Penn94-splits.npy"),
        expected=Figures(41554, 2 * 1362229, 4814, 2, unlabelled=2739, density=6 / 4814,
                         homophily=Homophily(0.470, nan, 0.046, nan), origin="published",
                         source=f"{_LIM}; features as printed for the one-hot form; unlabelled: 41554 less 38815 in splits"),
        paper=PaperRow(41554, 1362229, 5, 5, 0.046),
        differences=("edges: the paper counts pairs here, but edges in both directions for Cora, Citeseer and Pubmed",
                     "features: five attributes, which PyG and LINKX expand to one column per value, 4814 in all",
                     "classes: two (gender), with unlabelled nodes outside; the paper has 5",
                     _CLASS_INSENSITIVE.format("0.046", "0.470")),
    ),
    _facebook(
        "cornell5", "Cornell5", title="friendships at a university, by gender",
        expected=Figures(18660, 1581554, 4735, 2, 1838, homophily=Homophily(0.5464, 0.5594, 0.0907, 0.0907),
                         degree_gini=0.475, density=0.0013, class_shares=(0.4836, 0.5164)),
    ),
    _facebook(
        "johnshopkins55", "Johns%20Hopkins55", title="friendships at a university, by gender",
        expected=Figures(5180, 373172, 2406, 2, 418, homophily=Homophily(0.5488, 0.5602, 0.1064, 0.0972),
                         degree_gini=0.491, density=0.0025, class_shares=(0.4521, 0.5479)),
    ),
    _facebook("amherst41", "Amherst41", title="friendships at a college, by gender",
              expected=Figures(classes=2, origin="published", source="gender, as for the other Facebook100 graphs")),
    _facebook("reed98", "Reed98", title="friendships at a college, by gender",
              expected=Figures(classes=2, origin="published", source="gender, as for the other Facebook100 graphs")),
    DatasetSpec(
        name="genius", title="users of a lyrics site, by whether they were marked", folder="genius",
        files=(RawFile("raw/data.mat", f"{_GITHUB}/genius.mat"),), parser=pyg.linkx("genius"), directed=True,
        protocols=(_RANDOM,), splits=5, source=_SOURCE, licence="none stated by the source",
        expected=Figures(421961, 984979, 12, 2, homophily=Homophily(0.618, nan, nan, nan), origin="published", source=_LIM),
    ),
    DatasetSpec(
        name="arxiv-year", title="papers that cite each other, by year", folder="arxiv_year",
        files=(*(RawFile(f"raw/{part}.csv.gz", _OGB, f"arxiv/raw/{part}.csv.gz")
                 for part in ("edge", "node-feat", "node_year")),
               RawFile("raw/arxiv-year-splits.npy", f"{_GITHUB}/splits/arxiv-year-splits.npy", protocol="linkx")),
        parser=linkx.arxiv_year, directed=True, protocols=("linkx", _RANDOM), splits=5,
        source=f"ogbn-arxiv (Open Graph Benchmark); splits {_SOURCE}",
        licence="OGB states ODC-BY for ogbn-arxiv; the splits state none",
        expected=Figures(169343, 1166243, 128, 5, homophily=Homophily(0.222, nan, 0.272, nan), origin="published", source=_LIM,
                         class_shares=(0.1888, 0.1251, 0.2231, 0.1760, 0.2870)),
        paper=PaperRow(169343, 1166243, 128, 40, 0.272),
        differences=("classes: five ranges of years; 40 is the number of subject areas of ogbn-arxiv",
                     _CLASS_INSENSITIVE.format("0.272", "0.222")),
        defects=("the five classes are unequal (12 to 29 percent of the nodes), since equal years cannot be parted",),
    ),
    DatasetSpec(
        name="snap-patents", title="patents that cite each other, by year", folder="snap_patents",
        files=(RawFile("raw/snap_patents.mat", f"{_DRIVE}1ldh23TSY1PwXia6dU0MYcpyEgX-w3Hia"),
               RawFile("raw/snap-patents-splits.npy", f"{_DRIVE}12xbBRqd8mtG_XkNLH8dRRNZJvVM4Pw-N", protocol="linkx")),
        parser=linkx.snap_patents, directed=True, protocols=("linkx", _RANDOM), splits=5,
        source=f"{_SOURCE} (Google Drive); made from the Stanford Network Analysis Project's cit-Patents",
        licence="none stated by the source",
        expected=Figures(2923922, 13975788, 269, 5, homophily=Homophily(0.073, nan, 0.100, nan), sparse=True,
                         origin="published", source=_LIM),
        paper=PaperRow(2923922, 13975788, 128, 5, 0.1),
        differences=("features: 269 in the file, 128 in the paper, which is arXiv-year's number",
                     _CLASS_INSENSITIVE.format("0.1", "0.073")),
    ),
)  # fmt: skip
