"""Can a network with bounded weights fit |x|?

Question: how close to |x| come GroupSort and ReLU under the norm constraint, λ = 1?
Data: |x| at 201 points of [-1, 1]; three layers of width 20, 5 seeds.
Claim: ReLU networks cannot fit |x| if the layers are norm-constrained; GroupSort networks can.
Run time: about 10 seconds; --quick 2 seconds.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from isotone import LipschitzLinear, LipschitzNetwork
from isotone.typing import Floats
from studies.figures import BLACK, BLUE, GREEN, ORANGE, draw, plot_seeds
from studies.paper.fits import fit, full_batch, network, predict
from studies.paper.toys import Toy, absolute
from studies.paper.unconstrained import Stack
from studies.study import Outcome, main

WIDTHS = [1, 20, 20, 1]


def run(quick: bool) -> Outcome:
    n_seeds, steps = (2, 5) if quick else (5, 1000)
    toy = absolute()
    free = Stack(WIDTHS, n_seeds, nn.ReLU())
    free.train(toy.x, toy.y, steps)
    curves = {
        "GroupSort, λ = 1": train(toy, [network(WIDTHS, toy, s) for s in range(n_seeds)], steps),
        "ReLU, λ = 1": train(toy, [relu_network(s) for s in range(n_seeds)], steps),
        "ReLU, unconstrained": free.predict(toy.x),
    }
    figure, (fits, errors) = draw(1, 2, size=(3.4, 2.8))
    for (label, values), color in zip(curves.items(), (BLUE, ORANGE, GREEN), strict=True):
        plot_seeds(fits, toy.x[:, 0], values, color, label)
        plot_seeds(errors, toy.x[:, 0], values - toy.y, color, label)
    fits.plot(toy.x[:, 0], toy.y, color=BLACK, linestyle=":", label="|x|")
    fits.set(xlabel="x", ylabel="y", ylim=(-0.05, 1.5))
    fits.legend(loc="upper center")
    errors.set(xlabel="x", ylabel="y - |x|")
    sort, relu, unconstrained = (largest_error(toy, values) for values in curves.values())
    return Outcome(
        {
            "groupsort_error": float(np.median(sort)),
            "relu_error": float(np.median(relu)),
            "relu_best_seed": float(relu.min()),
            "unconstrained_relu_error": float(np.median(unconstrained)),
        },
        figure,
    )


def relu_network(seed: int) -> LipschitzNetwork:
    torch.manual_seed(seed)
    layers = [LipschitzLinear(1, 20), nn.ReLU(), LipschitzLinear(20, 20), nn.ReLU()]
    return LipschitzNetwork([*layers, LipschitzLinear(20, 1)])


def train(toy: Toy, members: list[LipschitzNetwork], steps: int) -> Floats:
    fit(members, toy, full_batch(toy, steps))
    return predict(members, toy.x)


def largest_error(toy: Toy, curves: Floats) -> Floats:
    """Of every curve."""
    errors: Floats = np.abs(curves - toy.y).max(axis=1)
    return errors


if __name__ == "__main__":
    main(__file__, run)
