"""Simulation: the sample. From left to right, a module imports only from modules to its left::

    parameters  particles  generation  detector  candidates  tasks  storage  sample  checks

`generation` is what Pythia does, `detector` what becomes of it in the detector.
"""
