"""Wasserstein distances with certified bounds, and shapes fitted by them."""
