"""What a page does in a frame of a drag: it changes what it shows, and asks no more than fits."""

from __future__ import annotations

import numpy as np
import pytest

from browser import Opened
from reports import rows

pytestmark = pytest.mark.slow

ALIKE = """(rows) => {
    const { data } = isotone.app.network;
    const fresh = (row) => new isotone.Network(data).score(row);
    return rows.every((row) => Object.is(isotone.app.network.score(row)[0], fresh(row)[0]));
}"""


def test_scores_do_not_depend_on_the_rows_before(page: Opened) -> None:
    """Arrays are used for row after row; the bits are those of a network that never was used."""
    rng = np.random.default_rng(0)
    some = rows(6)[["income", "debt", "age"]].to_numpy()
    one_moves = np.repeat(some[:1], 20, axis=0)
    one_moves[np.arange(20), rng.integers(0, 3, 20)] = rng.normal(size=20)
    zeros = [[0.0, -0.0, 0.0], [-0.0, 0.0, -0.0]]
    assert page.run(ALIKE, [*some.tolist(), *one_moves.tolist(), *zeros])
