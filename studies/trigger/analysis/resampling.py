"""Resampling: how much of an efficiency at the working point is the sample's own error.

Collisions and library hadrons are drawn anew (every one counts a Poisson number of times with mean
one); the threshold follows from the drawn collisions, and the efficiency from the drawn hadrons.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isotone.typing import Floats, Integers
from studies.trigger.analysis.tables import Candidates, Tables
from studies.trigger.analysis.working_point import MAX_RATE, exposure, n_validation
from studies.trigger.simulation.parameters import Parameters

BEAUTY_BELOW = 20_000_000  # codes of charm channels are larger


@dataclass(frozen=True, eq=False)
class Events:
    """Candidates of events, and which collision or library hadron every event belongs to.

    Parameters
    ----------
    event : (n_candidates,) number of the event of each candidate
    group : (n_events,) number of its collision or hadron
    is_beauty : (n_events,), for signal
    """

    event: Integers
    group: Integers
    is_beauty: Floats

    @classmethod
    def of(cls, candidates: Candidates) -> Events:
        _, first, event = np.unique(candidates.event, return_index=True, return_inverse=True)
        group = np.unique(candidates.collision[first], return_inverse=True)[1]
        return cls(event, group, (candidates.channel[first] < BEAUTY_BELOW).astype(float))

    def best(self, scores: Floats) -> Floats:
        """The largest score of every event."""
        best = np.full(len(self.group), -np.inf)
        np.maximum.at(best, self.event, scores)
        return best


@dataclass(frozen=True, eq=False)
class Draw:
    """How often every collision and every library hadron counts, and how many there are."""

    collisions: Floats
    n_collisions: float
    hadrons: Floats
    n_beauty: float
    n_charm: float


class Sampled:
    """Validation rows of a sample, for efficiencies of many models and many draws."""

    def __init__(self, tables: Tables) -> None:
        self.fraction = exposure(tables.about).allowed_fraction(MAX_RATE)
        self.passes = tables.about["size"]["passes"]
        self.n_collisions = n_validation(tables.about)
        self.background, self.signal = tables.collisions.validation, tables.signal.validation
        self.events, self.seen = Events.of(self.background), Events.of(self.signal)
        hadrons = tables.signal_hadrons.validation
        hadrons = hadrons[hadrons.proper_time > Parameters().min_proper_time]
        beauty = hadrons.channel < BEAUTY_BELOW
        self.n_hadrons = int(beauty.sum()), int((~beauty).sum())

    def as_it_is(self) -> Draw:
        """Everything once."""
        ones = np.ones(self.events.group.max() + 1), np.ones(self.seen.group.max() + 1)
        return Draw(ones[0], float(self.n_collisions), ones[1], *map(float, self.n_hadrons))

    def draw(self, rng: np.random.Generator, *, hadrons: bool = True) -> Draw:
        """A bootstrap; the number of hadrons without a candidate is drawn with it."""
        once = self.as_it_is()
        unseen = rng.poisson(self.n_collisions - len(once.collisions))
        weights = rng.poisson(1.0, len(once.collisions)).astype(float)
        n = float(weights.sum() + unseen)
        if not hadrons:
            return Draw(weights, n, once.hadrons, once.n_beauty, once.n_charm)
        some = rng.poisson(1.0, len(once.hadrons)).astype(float)
        both = []
        for n_all, mask in zip(self.n_hadrons, (self._beauty, 1.0 - self._beauty), strict=True):
            unseen = rng.poisson(n_all - mask.sum())
            both.append(float((mask * some[self.seen.group]).sum() + unseen))
        return Draw(weights, n, some, both[0], both[1])

    @property
    def _beauty(self) -> Floats:
        return self.seen.is_beauty

    def efficiency(self, background: Floats, signal: Floats, draw: Draw) -> tuple[float, float]:
        """Of beauty and charm with respect to the truth cut.

        Parameters
        ----------
        background, signal : best scores of the events
        """
        order = np.argsort(-background)
        counted = np.cumsum(draw.collisions[self.events.group[order]])
        allowed = self.fraction * draw.n_collisions * self.passes
        first = min(int(np.searchsorted(counted, np.floor(allowed), "right")), len(order) - 1)
        passed = (signal > background[order[first]]) * draw.hadrons[self.seen.group]
        beauty = float((passed * self._beauty).sum())
        return beauty / draw.n_beauty, (float(passed.sum()) - beauty) / draw.n_charm
