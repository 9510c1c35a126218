"""Fig. 3: can a Lipschitz network learn a complicated boundary exactly?

Question: does training on three flower-shaped curves reach zero loss under a bound of the slope?
Data: circle of oscillating radius, r = 1.5, α = 0.18, ω = 12 (Eq. 12); labels 0, 0.5, 1; λ = 2.
Claim: zero loss; the contours at 0.5 and 1.0 trace out the middle and the outer curve.
Run time: about 35 seconds; --quick 3 seconds.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from isotone import LipschitzNetwork, Recipe
from isotone.losses import AbsoluteError
from isotone.typing import Floats
from studies.figures import GRAY, ORANGE, PURPLE, draw
from studies.paper.fits import certified_slopes, fit, network, predict
from studies.paper.toys import Toy, flower
from studies.study import Outcome, main

WIDTHS = [2, 128, 128, 1]
N_POINTS = 400  # per curve
REACH = 2.4  # of the picture
LEVELS = {0.5: ORANGE, 1.0: PURPLE}


def run(quick: bool) -> Outcome:
    n_seeds, epochs, n_grid = (1, 3, 60) if quick else (3, 3000, 300)
    toy = flower(n=N_POINTS)
    members = [network(WIDTHS, toy, seed, chain="inf") for seed in range(n_seeds)]
    recipe = Recipe(epochs=epochs, batch_size=200, learning_rate=0.01, final_rate=0.003)
    fit(members, toy, recipe, AbsoluteError())
    between = flower(n=7 * N_POINTS)  # mostly points that were not trained on
    errors = np.abs(predict(members, toy.x) - toy.y).mean(axis=1)
    elsewhere = np.abs(predict(members, between.x) - between.y)
    figure, (panel,) = draw(size=(4.6, 3.8))
    show(figure, panel, toy, members[int(np.argsort(errors)[n_seeds // 2])], n_grid)
    numbers = {
        "error": float(errors.mean()),
        "worst_seed": float(errors.max()),
        "error_on_contour_0.5": float(elsewhere[:, between.y == 0.5].mean()),
        "error_on_contour_1.0": float(elsewhere[:, between.y == 1.0].mean()),
        "largest_slope": certified_slopes(members)[1],
        "parameters": float(sum(p.numel() for p in members[0].parameters())),
    }
    return Outcome(numbers, figure)


def show(figure: Figure, panel: Axes, toy: Toy, member: LipschitzNetwork, n_grid: int) -> None:
    """Heat map, data and contours of the seed with the median error."""
    axis = np.linspace(-REACH, REACH, n_grid)
    score = evaluate(member, axis)
    image = panel.imshow(
        score,
        extent=(-REACH, REACH, -REACH, REACH),
        origin="lower",
        cmap="cividis",
        vmin=-0.5,
        vmax=1.5,
    )
    figure.colorbar(image, ax=panel, label="output of the network")
    panel.plot(*toy.x[::2].T, ".", color="white", markersize=2.2)
    panel.contour(axis, axis, score, levels=list(LEVELS), colors=list(LEVELS.values()))
    handles = [Line2D([], [], color=c, label=f"contour at {v}") for v, c in LEVELS.items()]
    handles.append(Line2D([], [], color=GRAY, marker=".", linestyle="", label="data (white)"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    panel.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal")


def evaluate(member: LipschitzNetwork, axis: Floats) -> Floats:
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    scores: Floats = predict([member], grid)[0].reshape(len(axis), len(axis))
    return scores


if __name__ == "__main__":
    main(__file__, run)
