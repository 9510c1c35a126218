r"""Overlap: the efficiency of a trigger, measured with events that another trigger kept anyway.

In data there are only events that something triggered. Of those that fired *independently* of the
signal (TIS), the share whose signal also fires (TOS) estimates the efficiency:

.. math:: \varepsilon_\mathrm{TOS} = \frac{N(\mathrm{TIS} \wedge \mathrm{TOS})}{N(\mathrm{TIS})}

It assumes that, within each group or bin, whether an event is TIS says nothing about whether it is
TOS. Momenta of both hadrons of a pair are correlated, so judge in bins of what both depend on. In
simulation, where all signal is known, `Overlap.bias` tests the assumption.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.trigger.efficiency import Efficiency, in_groups
from isotone.typing import Bools, Floats


@dataclass(frozen=True, eq=False)
class Overlap:
    """The efficiency by overlap, and that of all signal events, for each of some selections.

    Parameters
    ----------
    tis : of events that fired independently of the signal
    rest : of the others; the two together are all signal events
    """

    tis: Efficiency
    rest: Efficiency

    @property
    def bias(self) -> Floats:
        r"""The efficiency by overlap less that of all signal events.

        With a share r of events that are not TIS it is :math:`r\,(\varepsilon_\mathrm{TIS} -
        \varepsilon_\mathrm{rest})`; NaN where there is nothing to compare.
        """
        return np.asarray(self._share * (self.tis.value - self.rest.value))

    @property
    def bias_error(self) -> Floats:
        """From the errors of both parts, which share no event."""
        return np.asarray(self._share * np.hypot(self.tis.error, self.rest.error))

    @property
    def _share(self) -> Floats:
        return np.asarray(self.rest.n / np.maximum(self.tis.n + self.rest.n, 1))


def overlap(passed: Bools, is_tis: Bools, groups: Sequence[Bools], at: NDArray[Any]) -> Overlap:
    """The efficiency by overlap of each of several selections of signal events.

    Parameters
    ----------
    passed : events whose signal fires
    is_tis : events that something else fired
    groups, at : selections, and what they are called

    Examples
    --------
    >>> passed, is_tis = np.array([1, 1, 0, 0], bool), np.array([1, 0, 1, 0], bool)
    >>> overlap(passed, is_tis, [np.ones(4, bool)], np.array(["all"])).tis.value.tolist()
    [0.5]
    """
    tis = in_groups(passed, [group & is_tis for group in groups], at)
    return Overlap(tis, in_groups(passed, [group & ~is_tis for group in groups], at))
