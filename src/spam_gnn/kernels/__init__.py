"""Fused sparse products on one shared edge list."""

import spam_gnn.features  # noqa: F401 - which spends torch's notice about CSR tensors
