"""Exports for FPGAs: Verilog of networks in fixed point, and its simulation."""
