"""Competing models behind the contract of `NodeModel`; `registry.py` lists them."""
