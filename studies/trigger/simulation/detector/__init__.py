"""Detector: tracks as they are measured, material, ghosts, and vertices of tracks::

tracks  material  ghosts  vertices
"""
