"""The paper's posterior (`gcn`) in pieces: graph convolutions over blocks of nodes, then its decoder over ranges of edges."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from spam_gnn.graph import Graph
from spam_gnn.inference.pieces import Blocks, edge_ranges, features_of, node_ranges, scratch
from spam_gnn.model import SpaM
from spam_gnn.posterior import GCNPosterior, SignDistribution


def encoded_distribution(model: SpaM, posterior: GCNPosterior, graph: Graph) -> SignDistribution:
    """As `GCNPosterior.forward` with all training labels as context."""
    first = scratch(graph.num_nodes, posterior.from_features.shape[1])
    for rows in node_ranges(graph.num_nodes):
        labels = F.one_hot(graph.y[rows].clamp(min=0), posterior.num_classes) * graph.train_mask[rows].unsqueeze(1)
        features = model.scaler.scaled(features_of(graph, rows))
        first[rows] = features.project(posterior.from_features) + labels.to(torch.float32) @ posterior.from_labels
    smooth = _Smoothing(graph)
    hidden = smooth(first)
    for rows in node_ranges(graph.num_nodes):
        hidden[rows] = torch.relu(hidden[rows] + posterior.first_bias) @ posterior.second
    hidden = smooth(hidden)
    at_target, at_source = (scratch(*hidden.shape) for _ in range(2))
    for rows in node_ranges(graph.num_nodes):
        state = hidden[rows] + posterior.second_bias
        at_target[rows] = state @ posterior.at_target + posterior.decoder_bias
        at_source[rows] = state @ posterior.at_source
    return SignDistribution(_decoded(posterior, graph, at_target, at_source))


def _decoded(posterior: GCNPosterior, graph: Graph, at_target: Tensor, at_source: Tensor) -> Tensor:
    """(m, 3): log probabilities; the two directions of an undirected edge are averaged before the softmax."""
    out = scratch(graph.num_edges, 3)
    for edges in edge_ranges(graph.num_edges):
        source, target = graph.edge_index[:, edges]
        logits = torch.relu(at_target[target] + at_source[source]) @ posterior.out
        if not graph.directed:
            logits = 0.5 * (logits + torch.relu(at_target[source] + at_source[target]) @ posterior.out)
        out[edges] = torch.log_softmax(logits + posterior.out_bias, -1)
    return out


class _Smoothing:
    """D~^-1/2 (A + I) D~^-1/2 H over arriving messages, block by block: (n, d) -> (n, d)."""

    def __init__(self, graph: Graph) -> None:
        self.blocks = Blocks(graph, ("in",))
        self.scale = (graph.pointer.diff().to(torch.float32) + 1.0).rsqrt()

    def __call__(self, hidden: Tensor) -> Tensor:
        out = scratch(*hidden.shape)
        for rows in self.blocks.ranges():
            block = self.blocks.block(rows)
            [messages], scale = block.neighbours, self.scale[block.nodes]
            values = hidden[block.nodes] * scale.unsqueeze(1)
            total = torch.zeros_like(values).index_add(0, messages.target, values[messages.source])
            out[rows] = ((total + values) * scale.unsqueeze(1))[block.rows]
        return out
