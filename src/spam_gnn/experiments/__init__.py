"""Measurements that take longer than a test: speed, tables, figures."""
