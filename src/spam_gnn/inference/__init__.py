"""Exact prediction in bounded memory: layer by layer over pieces of the graph, equal to a prediction of the whole at once."""
