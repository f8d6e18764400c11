"""Batches: neighbour-sampled or clustered pieces of a graph, each a graph of its own, behind PyG's loader interfaces."""
