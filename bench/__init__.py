"""Benchmarks and long proofs, by what they measure; make has a target for each.

One runs as ``python -m bench.inference.engine``.
"""
