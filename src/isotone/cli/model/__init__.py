"""Commands about a model file alone: what it is, and the files that are made of it."""
