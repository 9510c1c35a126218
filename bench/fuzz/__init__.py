"""Fuzzing: inputs that coverage chooses, for the runtime and for all that reads model files."""
