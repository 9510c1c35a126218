"""The least change of a row that turns its decision, and a proof of how little can."""
