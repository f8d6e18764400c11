"""Citation graphs under Metattack, as robustness papers share them: `cora-metattack:0.25` has 25 percent more edges.

Cora's figures are measured. Others of the family have the same format (Pro-GNN published Citeseer's, Pubmed's and Polblogs'
too): they are listed where a data folder holds `attacked/<name>`.
"""

from __future__ import annotations

from spam_gnn.data.parsers import arrays
from spam_gnn.data.spec import DatasetSpec, Figures, RawFile
from spam_gnn.homophily import Homophily

RATES = ("0", "0.05", "0.1", "0.15", "0.2", "0.25")
_SHARES = (0.1147, 0.1634, 0.2922, 0.1525, 0.0861, 0.0527, 0.1384)
_CORA = {  # edges in both directions; homophily by the four measures; Gini of the degrees
    "0": (10138, Homophily(0.8041, 0.8145, 0.7536, 0.7637), 0.397),
    "0.05": (10644, Homophily(0.7734, 0.7778, 0.7210, 0.7261), 0.375),
    "0.1": (11134, Homophily(0.7449, 0.7504, 0.6906, 0.6912), 0.367),
    "0.15": (11618, Homophily(0.7132, 0.7226, 0.6517, 0.6532), 0.364),
    "0.2": (12080, Homophily(0.6811, 0.6946, 0.6251, 0.6129), 0.365),
    "0.25": (12492, Homophily(0.6606, 0.6759, 0.5995, 0.5879), 0.359),
}


def attacked_spec(graph: str, rate: str, expected: Figures | None = None) -> DatasetSpec:
    """The spec of one graph at one rate of added edges."""
    adjacency = () if rate == "0" else (RawFile(f"meta_adj_{rate}.npz"),)
    return DatasetSpec(
        name=f"{graph}-metattack:{rate}", title=f"{graph.capitalize()}'s largest component, attacked at rate {rate}",
        folder=f"attacked/{graph}", files=(RawFile("graph.npz"), RawFile("splits.json"), *adjacency),
        parser=arrays.metattack, directed=False, protocols=("pro-gnn",), splits=1, expected=expected or Figures(),
        source="ChandlerBang/Pro-GNN (attacked edges, split); LoadingByte/are-gnn-defenses-robust (clean graph)",
        licence="MIT for Cora (planetoid); the attacked edges state none",
        defects=("the attack knew the plain GCN, not the model under test: an adaptive attack is harder",),
    )  # fmt: skip


SPECS = tuple(
    attacked_spec("cora", rate, Figures(2485, edges, 1433, 7, homophily=homophily, degree_gini=gini, density=0.0128,
                                        class_shares=_SHARES))
    for rate, (edges, homophily, gini) in _CORA.items()
)  # fmt: skip
