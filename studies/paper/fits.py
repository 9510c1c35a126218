"""Fits: networks of this library, trained on a toy from many seeds at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
import torch

from isotone import Ensemble, LipschitzNetwork, MonotonicNetwork, Recipe, certify, freeze, train
from isotone.losses import Loss, SquaredError
from isotone.nn import Options
from isotone.typing import Floats
from studies.paper.toys import Toy


def network(
    widths: Sequence[int], toy: Toy, seed: int, **options: Unpack[Options]
) -> LipschitzNetwork:
    """A network for a toy: monotone if the toy is, with the toy's λ."""
    torch.manual_seed(seed)
    options = {"lipschitz": toy.lipschitz, **options}
    if toy.monotone:
        return MonotonicNetwork(widths, monotonic_cst=[1] * widths[0], **options)
    return LipschitzNetwork(widths, **options)


def fit(
    networks: Sequence[LipschitzNetwork],
    toy: Toy,
    recipe: Recipe,
    loss: Loss | None = None,
) -> None:
    """Train all networks, together if an ensemble can hold them, otherwise one after the other."""
    loss = loss or SquaredError()
    try:
        ensemble = Ensemble(networks)
    except ValueError:  # other norms, projection, other activations
        for member in networks:
            train(member, toy.x, toy.y, loss, recipe)
        return
    ensemble.train(toy.x, toy.y, loss, recipe)


def full_batch(toy: Toy, steps: int) -> Recipe:
    """One step an epoch, on all rows."""
    return Recipe(epochs=steps, batch_size=len(toy.x), learning_rate=0.01)


@torch.no_grad()
def predict(networks: Sequence[LipschitzNetwork], x: Floats) -> Floats:
    """Scores (n_members, n_rows)."""
    rows = torch.as_tensor(x, dtype=torch.float32)
    return np.stack([member(rows)[:, 0].double().numpy() for member in networks])


def certified_slopes(networks: Sequence[LipschitzNetwork]) -> tuple[float, float]:
    """The least and the largest slope that any network can have, by its certificate."""
    certificates = [certify(freeze(member)) for member in networks]
    if not all(certificate.holds for certificate in certificates):
        raise ValueError("a certificate does not hold; this must not happen: report it")
    slopes = [slope.raw for certificate in certificates for slope in certificate.slopes]
    return min(slope.low for slope in slopes), max(slope.high for slope in slopes)
