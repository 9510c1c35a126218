"""Signs: of which columns a direction proves that they can only raise, or only lower, a score.

If a score rises with feature j as computed, to the last bit, and j of a row is at least that of
every row of the background, then putting it in place of that of any of these rows never lowers
the score, whatever the other features are. A contribution is a sum of such differences with
positive weights, so it is not negative: nor as computed, nor for other rows of the table than
those drawn, nor for other orders of the columns. A column may have several features, such as a
number and the indicator of missing values; each must then rise, or be the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isotone.certificate.certify import Certificate
from isotone.certificate.verdicts import kept_directions
from isotone.explanation.background import Background
from isotone.typing import Bools, Floats, Indices, Signs


@dataclass(frozen=True, eq=False)
class Proved:
    """What directions prove about contributions of columns, (n_rows, n_columns) each.

    Parameters
    ----------
    never_negative, never_positive : both where a column contributes exactly nothing
    """

    never_negative: Bools
    never_positive: Bools

    @property
    def signs(self) -> Signs:
        """+1 for never negative, -1 for never positive, 0 for neither or both."""
        return self.never_negative.astype(np.int8) - self.never_positive.astype(np.int8)


def exact_directions(certificate: Certificate, output: int) -> Signs:
    """Directions of an output along features that are proved to the last bit, (n_encoded,)."""
    frozen = certificate.frozen
    if frozen.grid is None:  # promised up to rounding errors alone
        return np.zeros(len(frozen.inputs.encoded), np.int8)
    found: Signs = kept_directions(frozen, certificate.verdicts)[output]
    return found


def prove_signs(
    directions: Signs, features: Floats, background: Background, first: Indices
) -> Proved:
    """What the directions of features prove about rows.

    Parameters
    ----------
    features : (n_rows, n_encoded), in the order of their columns
    first : of every column its first feature in that order
    """
    low, high = background.low, background.high
    above, below = features >= high, features <= low
    same = above & below
    rises = np.where(directions > 0, above, (directions < 0) & below) | same
    falls = np.where(directions > 0, below, (directions < 0) & above) | same
    return Proved(
        *(np.logical_and.reduceat(moved, first, axis=1) for moved in (rises, falls)),
    )
