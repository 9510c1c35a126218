r"""Joint directions: columns in coordinates along which their directions are single ones.

Let s be the scaled columns, and the directions that f is to rise along, those of single columns
included, the columns of a matrix that is completed to a basis B. In the coordinates
:math:`z = B^{-1} s` a step along the j-th direction is a step along :math:`z_j` alone, so that the
functions that rise along all directions are those that rise with each of these coordinates. A
network of z with first weights W is a network of s with first weights :math:`W B^{-1}`: nothing is
lost, and a model file needs no coordinates.

With "a matters at least as much as b, which never hurts", the coordinates are a and a + b.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import nnls
from scipy.sparse.csgraph import connected_components

from isotone.certificate.certify import certify
from isotone.freezing.margin import coarsen, rounding_error
from isotone.frozen.joint import JointDirection, describe_joint
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import Dense, Steps, change_first
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category
from isotone.typing import Floats, Indices, Reals, Signs

_SAME = 1e-9  # directions that differ by less, relative to their size, are one
_SHARES = (0.0, *(2.0**k for k in range(-20, -3, 2)))  # of its slope that g may have to give up
_ROUNDING = 1.0 + 2.0**-40


@dataclass(frozen=True, eq=False)
class Oblique:
    """Coordinates that stand in for some features.

    Parameters
    ----------
    places : numbers of the features
    matrix : :math:`B^{-1}`, whose rows may have any positive scale, (n_places, n_places)
    signs : 1 for coordinates that f rises with, 0 for the others
    """

    places: Indices
    matrix: Floats
    signs: Signs

    @classmethod
    def of(cls, directions: Sequence[Floats], rows: Floats, places: Sequence[int]) -> Oblique:
        """Coordinates for directions of scaled columns, which are independent.

        Parameters
        ----------
        rows : (n_rows, n_places), scaled
        """
        known = np.array(directions)
        parts = connected_components(np.abs(known).T @ np.abs(known) > 0)[1]
        basis = _completed(known)
        signs = (np.arange(len(basis)) < len(known)).astype(np.int8)
        of = parts[np.abs(basis).argmax(axis=1)]  # where the columns of a vector are
        order = np.empty_like(of)  # a coordinate stands in for a column of its own part
        order[np.argsort(parts, kind="stable")] = np.argsort(of, kind="stable")
        basis, signs = basis[order], signs[order]
        inverse: Floats = np.linalg.inv(basis.T).astype(np.float64)
        matrix = np.where(parts[:, None] == parts, inverse, 0.0)
        spread = (rows @ matrix.T).std(axis=0)
        matrix /= np.where(spread > 0, spread, 1.0)[:, None]
        return cls(np.array(places), matrix, signs)

    def change(self, x: Reals, inputs: Indices) -> None:
        """Put coordinates in place of scaled columns, (n_rows, n_inputs)."""
        x[:, inputs] = x[:, inputs].astype(np.float64) @ self.matrix.T

    def limits(self, lipschitz: Floats) -> Floats:
        r"""λ of coordinates that leave columns theirs, :math:`\sum_l λ_l |T_{li}| \le λ_i`."""
        size = np.abs(self.matrix)
        with np.errstate(divide="ignore"):
            each = np.where(size > 0, lipschitz / size.sum(axis=0), np.inf)
        return np.asarray(each.min(axis=1))

    def of_columns(self, lipschitz: Floats) -> Floats:
        """λ of the columns, from those of the coordinates."""
        return lipschitz @ np.abs(self.matrix)

    def restore(
        self,
        frozen: FrozenNetwork,
        inputs: Indices,
        directions: Signs,
        joint_cst: Sequence[JointDirection],
    ) -> FrozenNetwork:
        """A network of columns from one of coordinates, with the directions that it is to keep.

        The rounding margin was that of the coordinates; where columns need more, all of them give
        up the same share of the slope of g.
        """
        whole = np.eye(frozen.n_features)
        whole[np.ix_(inputs, inputs)] = self.matrix
        changed = replace(
            frozen,
            steps=_with_first(frozen, whole),
            residual=frozen.residual @ whole,
            lipschitz=frozen.lipschitz @ np.abs(whole) * _ROUNDING,
            monotonic_cst=directions,
            joint_cst=tuple(joint_cst),
        )
        changed = coarsen(changed, rounding_error(changed))
        is_own = np.isin(np.arange(frozen.n_features), inputs)
        for share in _SHARES:
            factors = np.where(is_own, 1.0 - share, 1.0)
            found = replace(changed, steps=_with_first(changed, np.diag(factors)))
            if (certificate := certify(found)).holds:
                return found
        flat = min(certificate.verdicts, key=lambda verdict: verdict.slope, default=None)
        raise ValueError(
            "`joint_cst` cannot be proved: it leaves "
            f"{'a column' if flat is None else repr(flat.feature)} a slope that is smaller than "
            "rounding errors; rates must suit the units of their columns: give others"
        )


def _with_first(frozen: FrozenNetwork, matrix: Floats) -> Steps:
    return change_first(frozen.steps, lambda step: Dense(step.weight @ matrix, step.bias))


def check_joined(
    joint_cst: Sequence[JointDirection], inputs: Inputs, missing: Signs, knots: Any
) -> None:
    """Raise `ValueError` for columns, and numbers of outputs, that cannot have joint directions.

    Parameters
    ----------
    missing : (n_outputs, n_columns), directions of missing values
    knots : as the user gives them
    """
    if joint_cst and len(missing) > 1:
        raise ValueError(
            f"`joint_cst` is about one output but there are {len(missing)}; there must be one "
            "target, or two classes: leave it out"
        )
    for name in [name for direction in joint_cst for name in direction]:
        if isinstance(inputs.column(name), Category):
            raise ValueError(
                f"`joint_cst` names {name!r}, which holds categories without an order; it must "
                "hold numbers or ordered categories"
            )
        if missing[:, inputs.names.index(name)].any():
            raise ValueError(
                f"`joint_cst` names {name!r}, whose missing values have a direction; leave one of "
                "the two out"
            )
        if isinstance(knots, Mapping) and knots.get(name) is not None:
            raise ValueError(
                f"`joint_cst` and `knots` both name {name!r}; a column with a joint direction "
                "enters the network on a straight line: leave its knots out"
            )


def independent(directions: Sequence[Floats], joint_cst: Sequence[JointDirection]) -> list[Floats]:
    """The directions without those that follow from the others; `ValueError` if some depend.

    Parameters
    ----------
    directions : those of single columns included
    joint_cst : what the user gave, for the message
    """
    kept = [d / np.abs(d).max() for d in directions]
    for k in reversed(range(len(kept))):
        others = kept[:k] + kept[k + 1 :]
        if others and nnls(np.array(others).T, kept[k])[1] < _SAME:
            kept = others
    if np.linalg.matrix_rank(np.array(kept), _SAME) < len(kept):
        given = "; ".join(map(describe_joint, joint_cst))
        raise ValueError(
            f"`joint_cst` asks for {given}, which depend on one another or on directions of "
            "single columns, or contradict them; they must be independent: leave out one, or join "
            "some into a stronger one, such as a matters at least as much as b and c together"
        )
    return kept


def _completed(directions: Floats) -> Floats:
    """A basis that begins with the directions; the others are columns, (n, n), in rows."""
    basis = list(directions)
    for unit in np.eye(directions.shape[1]):
        if np.linalg.matrix_rank(np.array([*basis, unit]), _SAME) > len(basis):
            basis.append(unit)
    return np.array(basis)
