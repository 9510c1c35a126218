"""Fuzzing: inputs for the runtime, the extension, and all that reads model files and tables."""
