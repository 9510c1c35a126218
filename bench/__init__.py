"""Benchmarks and long proofs: `python -m bench.inference`, and a target of make for each."""
