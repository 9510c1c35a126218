"""Simulation: the sample. From left to right, a module imports only from modules to its left::

parameters  particles  generators  channels  collisions  hadrons  decays
detector  material  ghosts  vertices  candidates  tasks  storage  sample  checks
"""
