"""Circles, ellipses and triangles found in clouds with outliers.

Question: does a shape that moves down its critic come to lie where the points were drawn from?
Data: 20 clouds for each kind: 500 points around an outline, noise 0.1, a tenth of them strays.
Claim: the parameters come back within the noise.
Run time: four to five minutes of one core.

Settings were chosen on clouds of other seeds, from 1000 on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from matplotlib.axes import Axes

from isotone.transport import Outlines, ShapeFit, Turns, fit_shape
from isotone.typing import Floats
from studies.figures import BLUE, GRAY, ORANGE, draw
from studies.study import Outcome, main
from studies.transport.outlines import BOX, KINDS, NOISE, Sample, draw_sample

N_FRAMES = 5


def run(quick: bool) -> Outcome:
    n_clouds = 1 if quick else 20
    figure, axes = draw(3, N_FRAMES, size=(1.8, 1.8), sharex=True, sharey=True)
    numbers: dict[str, float] = {"clouds": float(3 * n_clouds)}
    for row, (kind, shape) in enumerate(KINDS.items()):
        outline = shape(background=BOX, blur=NOISE, density="free")
        turns = Turns(6, warm_up=4, polish=2) if quick else Turns()
        samples = [draw_sample(kind, seed) for seed in range(n_clouds)]
        fits = [
            fit_shape(outline, sample.points, n_starts=2, turns=turns, random_state=seed)
            for seed, sample in enumerate(samples)
        ]
        errors = np.array([s.error(f.theta) for s, f in zip(samples, fits, strict=True)])
        numbers[f"{kind}_within_noise"] = float((errors <= NOISE).sum())
        numbers[f"{kind}_median_error"] = float(np.median(errors))
        numbers[f"{kind}_largest_error"] = float(errors.max())
        strip(axes[row * N_FRAMES : (row + 1) * N_FRAMES], samples[0], fits[0], outline)
    return Outcome(numbers, figure)


def strip(axes: list[Axes], sample: Sample, fit: ShapeFit, outline: Outlines) -> None:
    """The way of one fit, in a few frames."""
    last = len(fit.film) - 1
    frames = np.unique(np.round(last * np.linspace(0, 1, len(axes)) ** 2).astype(int))
    for axis, frame in zip(axes, frames, strict=False):
        axis.plot(*sample.points.T, ".", color=GRAY, markersize=1.5)
        curve = points_of(outline, fit.film[frame])
        axis.plot(*curve.T, color=ORANGE if frame < last else BLUE, linewidth=2)
        axis.set(xlim=(-2.6, 2.6), ylim=(-2.6, 2.6), xticks=[], yticks=[], aspect="equal")
        axis.set_title("start" if frame == 0 else f"{100 * frame / last:.0f} %")


def points_of(outline: Outlines, theta: Floats) -> Floats:
    """The closed curve of one outline, (n_points + 1, 2)."""
    sharp = replace(outline, blur=0.0, background=None, density="even")
    points, _ = sharp(torch.as_tensor(theta)[None, : outline.n_each])
    curve: Floats = points[0].numpy()
    return np.concatenate([curve, curve[:1]])


if __name__ == "__main__":
    main(__file__, run)
