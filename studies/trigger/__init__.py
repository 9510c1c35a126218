"""An LHCb-like heavy-flavor trigger on simulated physics: the sample and the study.

The sample, from left to right (a module imports only from modules to its left)::

    parameters  particles  generators  channels  collisions  hadrons  decays
    detector  material  ghosts  vertices  candidates  tasks  storage  sample  checks

`docs/trigger.md` says what is modelled and what is not. It is LHCb-like, never LHCb.
"""
