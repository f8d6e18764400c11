"""Fused sparse products on one shared edge list."""

import warnings

import torch

# torch announces once per process that CSR tensors are "in beta". Users cannot act on it, so it is spent here.
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
    torch.sparse_csr_tensor([0, 1], [0], [1.0], (1, 1), check_invariants=False)
