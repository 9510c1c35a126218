r"""Shape fits: parameters of shapes that lie on a cloud, by its Wasserstein distance.

.. math:: \min_\theta W_1(S_\theta, Q) = \min_\theta \max_g E_{S_\theta}[g] - E_Q[g]

Critics and parameters take turns. Several starts run side by side, each with a critic of its own,
and the one whose shape ends up nearest is the result, after its last steps went down the exact
distance (`isotone.transport.polish`). `flow` moves free points instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from rich.progress import track
from torch import Tensor

from isotone.checks import check_count
from isotone.inputs.scaling import Scaling
from isotone.nn.network import MetricOrder
from isotone.transport.clouds import Cloud, common_scaling, read_pair
from isotone.transport.critics import Critics, cosine, draws, seed_of
from isotone.transport.polish import Polish
from isotone.transport.shapes import Outlines
from isotone.typing import Floats

Function = Callable[[Tensor], tuple[Tensor, Tensor]]

_BATCH = 1024
_FRAMES = 24


@dataclass(frozen=True)
class Turns:
    """How critics and parameters take turns.

    Parameters
    ----------
    steps : of the parameters
    critic_steps : of the critics before each
    warm_up : steps of the critics before the first, and after the last
    learning_rate : of the parameters, in their units; falls along a cosine
    critic_rate : of the critics
    polish : steps of the best start after that, down the exact distance, without a critic; 0 for
        none. Each solves a linear program, of some 30 ms for 450 points and a cloud of 500; from a
        cloud of more than 1024 points each step draws that many
    """

    steps: int = 200
    critic_steps: int = 4
    warm_up: int = 100
    learning_rate: float = 0.03
    critic_rate: float = 0.01
    polish: int = 60

    def __post_init__(self) -> None:
        for name in ("steps", "critic_steps", "warm_up"):
            check_count(name, getattr(self, name))
        check_count("polish", self.polish, least=0)
        for name in ("learning_rate", "critic_rate"):
            if not 0 < getattr(self, name) < 10:
                raise ValueError(f"`{name}={getattr(self, name)}` must be positive, such as 0.01")


@dataclass(frozen=True, eq=False)
class ShapeFit:
    """The best of several fits.

    Parameters
    ----------
    theta : (k,), of the best start
    distance : its distance to the cloud (to 1024 points of a larger one): the cost of the best
        plan, or without a polish what its critic finds, which is less
    distances : of all starts before the polish, by their critics
    thetas : (n_starts, k), where all starts were before the polish
    film : (n_frames, k), the path of the best one
    """

    theta: Floats
    distance: float
    distances: Floats
    thetas: Floats
    film: Floats


def fit_shape(
    shape: Outlines | Function,
    Q: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    start: ArrayLike | None = None,
    units: ArrayLike | None = None,
    n_starts: int = 8,
    metric: MetricOrder = 2,
    turns: Turns | None = None,
    random_state: int | None = None,
    progress: bool = False,
) -> ShapeFit:
    """Fit a shape to a weighted cloud.

    Parameters
    ----------
    shape : of `isotone.transport.shapes`, or your own function of θ (s, k) in torch, for any
        number s of starts, which gives points (s, m, d) and weights (s, m) that sum to one
    Q, weights : (n, d) and (n,), the cloud
    start : (n_starts, k) or (k,); needed for a function of your own
    units : (k,), the size of a sensible step of every parameter; 1 if None
    n_starts : how many starts a shape of `isotone.transport.shapes` draws

    Examples
    --------
    >>> from isotone.transport.shapes import Circles
    >>> t = np.linspace(0, 2 * np.pi, 50, endpoint=False)
    >>> Q = np.stack([3 + np.cos(t), np.sin(t)], axis=1)
    >>> fit = fit_shape(Circles(), Q, n_starts=2, turns=Turns(steps=100), random_state=0)
    >>> bool(np.abs(fit.theta - [3, 0, 1]).max() < 0.1)
    True
    """
    cloud, turns, seed = Cloud.of(Q, weights, "Q"), turns or Turns(), seed_of(random_state)
    scaling = common_scaling(cloud, cloud)
    thetas, unit = _beginning(shape, cloud, scaling, start, units, n_starts, seed)
    fit = _Fit(shape, cloud, scaling, thetas, unit, metric, seed)
    fit.ascend(turns.warm_up, turns.critic_rate)
    film = []
    every = max(1, turns.steps // _FRAMES)
    for step in track(range(turns.steps), "fit", disable=not progress, transient=True):
        if step % every == 0:
            film.append(fit.theta())
        fit.ascend(turns.critic_steps, cosine(turns.critic_rate, step, turns.steps, 0.1))
        fit.descend(cosine(turns.learning_rate, step, turns.steps))
        fit.remember(max(turns.steps // 4, 3))
    fit.settle()
    values = fit.ascend(turns.warm_up, 0.3 * turns.critic_rate)
    best, ends = int(np.argmin(values)), fit.theta()
    way, distance = np.array([*film, ends])[:, best], float(values[best])
    if turns.polish and np.isfinite(distance):
        last, exact = fit.polish(best, turns.polish, turns.learning_rate)
        distance = exact if np.isfinite(exact) else distance
        way = np.concatenate([way, last[1:][:: -max(1, turns.polish // _FRAMES)][::-1]])
    return ShapeFit(way[-1], distance, values, ends, way)


class _Fit:
    """Parameters and critics of all starts."""

    def __init__(
        self,
        shape: Function,
        cloud: Cloud,
        scaling: Scaling,
        thetas: Floats,
        unit: Floats,
        metric: MetricOrder,
        seed: int,
    ) -> None:
        self.shape = shape
        self.unit = torch.as_tensor(unit)
        self.center = torch.as_tensor(scaling.center.copy())
        self.factor = float(scaling.factor[0])
        self.parameters = (torch.as_tensor(thetas) / self.unit).requires_grad_()
        self.optimizer = torch.optim.Adam([self.parameters], betas=(0.5, 0.9))
        self.average = self.parameters.detach().clone()
        self.critics = Critics(
            cloud.n_features, len(thetas), metric=metric, widths=(32, 32), group_size=8, seed=seed
        )
        self.batches = draws(cloud, scaling, _BATCH, seed)
        self._check(cloud)

    def theta(self) -> Floats:
        return (self.parameters * self.unit).detach().numpy()

    def points(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """Scaled points and weights of the shapes."""
        points, weights = self.shape(parameters * self.unit)
        return ((points - self.center) * self.factor).float(), weights.float()

    def ascend(self, n_steps: int, rate: float) -> Floats:
        """Train the critics; mean values of the last half of the steps, in raw units."""
        with torch.no_grad():
            points, weights = self.points(self.parameters)
        values = [
            self.critics.ascend(points, weights, *next(self.batches), rate=rate)
            for _ in range(n_steps)
        ]
        late = torch.stack(values[n_steps // 2 :]).mean(dim=0)
        return late.double().numpy() / self.factor

    def descend(self, rate: float) -> None:
        """One step of all parameters."""
        values = self.critics.value(*self.points(self.parameters), *next(self.batches))
        (self.parameters.grad,) = torch.autograd.grad(values.sum(), self.parameters)
        self.optimizer.param_groups[0]["lr"] = rate
        self.optimizer.step()

    @torch.no_grad()
    def remember(self, memory: int) -> None:
        """Follow the parameters with a running mean over about this number of steps."""
        self.average.lerp_(self.parameters, min(1.0, 3.0 / memory))

    @torch.no_grad()
    def settle(self) -> None:
        """Replace the last parameters, which jitter, with their mean."""
        self.parameters.copy_(self.average)

    def polish(self, best: int, steps: int, rate: float) -> tuple[Floats, float]:
        """The final path of one start (steps + 1, k), and the exact distance at its end."""
        with torch.no_grad():
            scores = self.critics(self.points(self.parameters)[0])[best].double().numpy()
        metric = self.critics.networks()[0].metric
        last = Polish(self.points, self.parameters[best], self.batches, scores, metric)
        way = last.run(steps, rate) * self.unit.numpy()
        return way, last.distance() / self.factor

    @torch.no_grad()
    def _check(self, cloud: Cloud) -> None:
        for starts in (1, len(self.parameters)):
            points, weights = self.points(self.parameters[:starts])
            good = points.ndim == 3 and (len(points), points.shape[2]) == (
                starts,
                cloud.n_features,
            )
            if not good or weights.shape != points.shape[:2]:
                raise ValueError(
                    f"the shape gave points {tuple(points.shape)} and weights "
                    f"{tuple(weights.shape)}; for {starts} starts they must be "
                    f"({starts}, m, {cloud.n_features}) and ({starts}, m)"
                )
        if not bool(torch.isfinite(points).all()) or not bool((weights >= 0).all()):
            raise ValueError(
                "the shape gave NaN or infinity, or negative weights; points must be finite and "
                "weights at least 0, as softmax gives"
            )
        if not torch.allclose(weights.sum(dim=1), torch.ones(starts), atol=1e-3):
            raise ValueError(
                "the shape gave weights that do not sum to one; those of every start must: divide "
                "by their sum"
            )


def _beginning(
    shape: Outlines | Function,
    cloud: Cloud,
    scaling: Scaling,
    start: ArrayLike | None,
    units: ArrayLike | None,
    n_starts: int,
    seed: int,
) -> tuple[Floats, Floats]:
    """Starts (n_starts, k) and units (k,) of the parameters."""
    if isinstance(shape, Outlines):
        if cloud.n_features != 2:
            raise ValueError(
                f"outlines lie in the plane but `Q` has {cloud.n_features} columns; give two, or "
                "a shape of your own"
            )
        units = shape.units(1.0 / float(scaling.factor[0])) if units is None else units
        if start is None:
            check_count("n_starts", n_starts)
            start = shape.start(cloud, n_starts, np.random.default_rng(seed))
    elif start is None:
        raise ValueError(
            "`start` is missing; a shape of your own needs it: give parameters (k,), or several "
            "starts (n_starts, k)"
        )
    thetas = np.atleast_2d(np.asarray(start, dtype=np.float64))
    unit = np.asarray(np.ones(thetas.shape[1]) if units is None else units, dtype=np.float64)
    right = thetas.ndim == 2 and len(thetas) > 0 and unit.shape == (thetas.shape[1],)
    if not right or not np.all(np.isfinite(thetas)) or not np.all((unit > 0) & (unit < np.inf)):
        raise ValueError(
            f"`start` has shape {thetas.shape} and `units` {unit.shape}; give finite parameters "
            "for at least one start, (n_starts, k), and one positive unit for each of k"
        )
    return thetas, unit


def flow(
    P: ArrayLike,
    Q: ArrayLike,
    weights_p: ArrayLike | None = None,
    weights_q: ArrayLike | None = None,
    *,
    steps: int = 100,
    frames: int = 5,
    critic_steps: int = 10,
    metric: MetricOrder = 2,
    random_state: int | None = None,
) -> Floats:
    r"""Points of P moving to Q, (frames, n, d): the gradient flow of the distance.

    .. math:: \dot x_i = -\nabla g(x_i)

    Every point moves down the critic at unit speed, for as long as the mean distance takes; steps
    shrink at the end.
    """
    clouds = read_pair(P, Q, weights_p, weights_q)
    for name, count in (("steps", steps), ("frames", frames), ("critic_steps", critic_steps)):
        check_count(name, count)
    seed, scaling = seed_of(random_state), common_scaling(*clouds)
    critics = Critics(clouds[0].n_features, metric=metric, seed=seed)
    x = torch.as_tensor(scaling.transform(clouds[0].points)).float().requires_grad_()
    p = torch.as_tensor(clouds[0].shares()).float()
    batches = draws(clouds[1], scaling, _BATCH, seed)
    shown, film = set(np.linspace(0, steps, frames, dtype=int).tolist()), []
    length = 0.0
    for step in range(steps + 1):
        if step in shown:
            film.append(scaling.inverse(x.detach().double().numpy()))
        for _ in range(critic_steps if step else 20 * critic_steps):
            value = critics.ascend(x, p, *next(batches), rate=0.01)
        length = length or 2.5 * float(value[0])
        score = critics(x).sum()
        (slope,) = torch.autograd.grad(score, x)
        share = 2.0 * (1.0 - step / steps) / steps
        x = (x - length * share * slope).detach().requires_grad_()
    return np.array(film)
