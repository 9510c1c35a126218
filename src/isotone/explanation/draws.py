"""Draws: which columns are enumerated and which followed in drawn orders, and the mean of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from isotone.certificate.certify import Certificate
from isotone.checks import check_choice, check_count
from isotone.explanation.background import Background
from isotone.explanation.blocks import blocks_of
from isotone.explanation.outputs import Output
from isotone.explanation.shapley import MOST_COLUMNS
from isotone.typing import Floats, Indices

Method = Literal["auto", "exact", "sampled"]

_MOST_EXACT = 20  # columns that can be enumerated at all
_LEAST_ORDERS = 32  # of a block, there and back, if they are drawn
_CELLS, _FEWEST, _MOST = 2**21, 128, 8192  # scores held at once, and rows that they are of


@dataclass(frozen=True, eq=False)
class DrawPlan:
    """Which columns are enumerated, and in which orders the others are followed.

    Parameters
    ----------
    blocks : numbers of columns; those of different blocks do not interact
    orders : of every block some for each row of the background, or None if it is enumerated
    """

    blocks: list[list[int]]
    orders: list[list[list[Indices]] | None]
    n_orders: int

    @classmethod
    def of(
        cls,
        certificate: Certificate,
        output: Output,
        background: Background,
        method: Method,
        n_orders: int | None,
        seed: int,
    ) -> DrawPlan:
        check_choice("method", method, ("auto", "exact", "sampled"))
        blocks = blocks_of(certificate, output)
        _check_size(max(map(len, blocks), default=0), method)
        most = {"auto": MOST_COLUMNS, "exact": _MOST_EXACT, "sampled": 1}[method]
        m, rng = len(background.features), np.random.default_rng(seed)
        n = check_count(
            "n_orders", max(2, -(-_LEAST_ORDERS // m)) if n_orders is None else n_orders
        )
        orders: list[list[list[Indices]] | None] = [
            None
            if len(block) <= most
            else [[rng.permutation(len(block)) for _ in range(n)] for _ in range(m)]
            for block in blocks
        ]
        return cls(blocks, orders, n)

    @property
    def is_exact(self) -> bool:
        """Whether all blocks are enumerated."""
        return all(orders is None for orders in self.orders)

    @property
    def rows_at_once(self) -> int:
        """How many rows are explained together, so that scores of all sets fit in the cache."""
        sizes = zip(self.blocks, self.orders, strict=True)
        largest = max((len(block) for block, orders in sizes if orders is None), default=0)
        return int(np.clip(_CELLS >> largest, _FEWEST, _MOST))

    def together(self, n_rows: int, n_columns: int) -> int:
        """How many background rows these rows are compared with in one batch: more, if few."""
        most = min(_CELLS >> n_columns, _MOST)
        return max(most // max(n_rows, 1), 1)

    def describe(self, background: Background) -> str:
        n, of = len(background.features), background.n_table
        drawn = f"{n * self.n_orders:,} orders drawn, there and back"
        how = "exact" if self.is_exact else drawn
        rows = f"{n:,} row{'s' * (n != 1)}"
        against = f"all {rows}" if background.is_whole else f"{rows} drawn from {of:,}"
        return f"Shapley values, {how}, against {against} of the background"


def _check_size(largest: int, method: Method) -> None:
    if method == "exact" and largest > _MOST_EXACT:
        raise ValueError(
            f"`method='exact'` would enumerate the sets of {largest} columns that interact; at "
            f"most {_MOST_EXACT} are possible: choose 'sampled' or 'auto'"
        )


class Mean:
    """The mean over rows of the background, (n_columns, n_rows), and its standard error.

    For every row there are one or more draws of orders, of which the mean counts.
    """

    def __init__(self) -> None:
        self.n = self.n_draws = 0

    def add(self, draws: list[Floats]) -> None:
        n, mean = len(draws), sum(draws[1:], draws[0]) / len(draws)
        if self.n == 0:
            self._first, self.n_draws = mean, n
            self._total, self._off, self._squares, self._within = np.zeros((4, *mean.shape))
        self.n += 1
        self._total += mean  # of one sign, if all draws are
        self._off += mean - self._first
        self._squares += (mean - self._first) ** 2
        if n > 1:
            self._within += sum((draw - mean) ** 2 for draw in draws) / (n * (n - 1))

    @property
    def value(self) -> Floats:
        mean: Floats = self._total / self.n
        return mean

    def error(self, doubt: float, is_exact: bool) -> Floats:
        """Of drawing orders, unless it is exact, and of drawing the background, unless whole."""
        if is_exact and doubt == 0:
            return np.zeros_like(self._total)
        if self.n_draws == 1:  # the spread between rows has that of orders in it
            return np.sqrt(self._between * (doubt**2 if is_exact else 1.0))
        orders = self._within / self.n**2
        error: Floats = np.sqrt(orders + (doubt**2 * self._between if doubt else 0.0))
        return error

    @property
    def _between(self) -> Floats:
        """Variance of the mean if rows are independent; NaN of one row."""
        if self.n == 1:
            return np.full_like(self._total, np.nan)
        variance: Floats = np.maximum(self._squares - self._off**2 / self.n, 0.0)
        return variance / (self.n * (self.n - 1))
