"""Efficiencies of signal at a working point: by channel and by proper time.

Only candidates of the signal hadron itself count. Each hadron counts once, and passes if any of
its candidates does.
"""

from __future__ import annotations

import numpy as np

from isotone.trigger import Efficiency, in_groups
from isotone.typing import Bools, Floats, Integers
from studies.trigger.analysis.tables import Candidates, Hadrons
from studies.trigger.simulation.parameters import Parameters

#: edges of proper time in ps
EDGES: Floats = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 11.0, 15.0, 25.0])


def passing(hadrons: Hadrons, candidates: Candidates, scores: Floats, threshold: float) -> Bools:
    """Which hadrons pass; both tables are of one sample, and the events are numbered alike."""
    return np.isin(hadrons.event, candidates.event[scores >= threshold])


def by_channel(hadrons: Hadrons, passed: Bools) -> Efficiency:
    """With respect to the truth cut: preselection times threshold."""
    truth = hadrons.proper_time > Parameters().min_proper_time
    codes = np.unique(hadrons.channel)
    return in_groups(passed, [truth & (hadrons.channel == code) for code in codes], codes)


def by_proper_time(
    hadrons: Hadrons, passed: Bools, flavor: int, edges: Floats = EDGES
) -> Efficiency:
    """Of hadrons with a preselected candidate; flavor 1 is charm, 2 beauty."""
    beauty = hadrons.channel < 20_000_000
    seen = (hadrons.n_candidates > 0) & (beauty if flavor == 2 else ~beauty)
    index: Integers = np.searchsorted(edges, hadrons.proper_time, side="right") - 1
    middles = np.sqrt(edges[:-1] * edges[1:])
    return in_groups(passed, [seen & (index == i) for i in range(len(middles))], middles)
