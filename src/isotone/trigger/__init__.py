"""Candidates of a trigger, thresholds by rate, and efficiencies."""
