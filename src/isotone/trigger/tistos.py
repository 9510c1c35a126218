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

from isotone.trigger.efficiency import Efficiency, divided, in_groups
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

        With a share r of events, or of their weight, that are not TIS it is
        :math:`r\,(\varepsilon_\mathrm{TIS} - \varepsilon_\mathrm{rest})`; NaN where there is
        nothing to compare.
        """
        return np.asarray(self._share * (self.tis.value - self.rest.value))

    @property
    def bias_error(self) -> Floats:
        r"""From the errors of both parts, which share no event.

        With weights all four sums, P and F of both parts, fluctuate independently with the
        variances :math:`\sum w^2`, and the difference of the two ratios is followed to first
        order; the share r fluctuates with them.
        """
        if self.tis.sums is None or self.rest.sums is None:
            return np.asarray(self._share * np.hypot(self.tis.error, self.rest.error))
        mine, every = self.tis.sums[:2], self.tis.sums[:2] + self.rest.sums[:2]
        own, others = _gradient(*mine) - _gradient(*every), _gradient(*every)
        variance = own**2 * self.tis.sums[2:] + others**2 * self.rest.sums[2:]
        return np.asarray(np.sqrt(variance.sum(axis=0)))

    @property
    def _share(self) -> Floats:
        if self.tis.sums is None or self.rest.sums is None:
            return np.asarray(self.rest.n / np.maximum(self.tis.n + self.rest.n, 1))
        rest = self.rest.sums[:2].sum(axis=0)
        return divided(rest, rest + self.tis.sums[:2].sum(axis=0))


def _gradient(passed: Floats, failed: Floats) -> Floats:
    """Derivatives of P / (P + F) by P and by F."""
    total = passed + failed
    return np.stack([divided(divided(side, total), total) for side in (failed, -passed)])


def overlap(
    passed: Bools,
    is_tis: Bools,
    groups: Sequence[Bools],
    at: NDArray[Any],
    weight: Floats | None = None,
) -> Overlap:
    """The efficiency by overlap of each of several selections of signal events.

    Parameters
    ----------
    passed : events whose signal fires
    is_tis : events that something else fired
    groups, at : selections, and what they are called
    weight : of every event, which may be negative

    Examples
    --------
    >>> passed, is_tis = np.array([1, 1, 0, 0], bool), np.array([1, 0, 1, 0], bool)
    >>> overlap(passed, is_tis, [np.ones(4, bool)], np.array(["all"])).tis.value.tolist()
    [0.5]
    """
    tis = in_groups(passed, [group & is_tis for group in groups], at, weight)
    return Overlap(tis, in_groups(passed, [group & ~is_tis for group in groups], at, weight))
