"""Generation: collisions, hadrons and decays of Pythia 8, before any detector::

generators  channels  collisions  hadrons  decays
"""
