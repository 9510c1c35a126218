"""LHCb's trigger: JSON that the evaluators of Allen (HLT1) and of HLT2 read."""
