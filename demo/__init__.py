"""The demo: a trigger from a table of candidates to C++ and pictures."""
