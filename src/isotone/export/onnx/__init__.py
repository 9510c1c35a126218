"""ONNX: a graph of standard operators from raw columns to the score."""
