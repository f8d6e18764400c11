"""`explain`: for one node, what each neighbour said and how far it was believed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.model import SpaM
from spam_gnn.network import told_beliefs
from spam_gnn.posterior.base import ABSENT, NEGATIVE, POSITIVE


def explain_node(model: SpaM, graph: Graph, node: int, seed: int, samples: int = 64) -> pd.DataFrame:
    """One row per neighbour of `node` and direction listened to, strongest contribution first.

    Columns: neighbour, p_negative, p_absent, p_positive (the posterior of the edge); coefficient, coefficient_std (mean and
    spread over samples of the first layer's alpha, 0 where the edge was drawn absent); contribution (mean signed weight
    alpha z+ - gamma |alpha| z-); verdict (helps, opposes, noise: the most probable sign).

    Args:
        model: trained.
        graph: as the user gave it; prepared here.
        node: its number.
    """
    if not 0 <= node < graph.num_nodes:
        raise BadInput(f"node: found {node}; this graph has nodes 0 to {graph.num_nodes - 1}")
    if samples < 1:
        raise BadInput(f"samples: found {samples}; use 1 or more")
    if not model.network.layers:
        raise BadInput("explain: this network has no layers, so no neighbour is heard; train with layers=1 or more")
    prepared = model.prepare(graph)
    with torch.no_grad():
        outcome = model(prepared, prepared.train_mask, seed=seed, samples=samples)
        first = model.network.layers[0]
        target, values = model.network.first_projections(prepared, told_beliefs(outcome.distribution))
        tables = []
        for way, messages in enumerate(model.network.neighbours(prepared)):
            local = outcome.signs.along(messages.edge)
            codes = first.coders[way](messages, target, values, local.presence)
            span = slice(int(messages.row_pointer[node]), int(messages.row_pointer[node + 1]))
            signed = local.positive * codes.positive - first.gamma * local.negative * codes.negative.abs()
            alpha = (local.positive * codes.positive + local.negative * codes.negative)[:, span]
            mean = alpha.mean(0)
            tables.append({
                "neighbour": messages.source[span], "edge": messages.edge[span],
                "coefficient": mean, "coefficient_std": (alpha - mean).square().mean(0).sqrt(),
                "contribution": signed[:, span].mean(0),
            })  # fmt: skip
    frame = pd.concat([pd.DataFrame({k: v.numpy() for k, v in table.items()}) for table in tables], ignore_index=True)
    edge = torch.tensor(frame.pop("edge").to_numpy())
    if outcome.distribution is None:
        probability = torch.tensor([0.0, 0.0, 1.0]).expand(len(frame), 3)
    else:
        probability = outcome.distribution.probability[edge]
    for place, (name, column) in enumerate((("p_negative", NEGATIVE), ("p_absent", ABSENT), ("p_positive", POSITIVE))):
        frame.insert(1 + place, name, probability[:, column].numpy())
    frame["verdict"] = [("opposes", "noise", "helps")[int(c)] for c in probability.argmax(-1)]
    if graph.node_names is not None:
        frame["neighbour"] = [graph.node_names[i] for i in frame["neighbour"]]
    order = np.argsort(-frame["contribution"].abs().to_numpy(), kind="stable")
    return frame.iloc[order].reset_index(drop=True)
