"""Preparation: what rows, columns and targets become before members learn from them."""
