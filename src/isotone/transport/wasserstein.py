r"""Transport: the Wasserstein distance of two clouds, with a certified lower bound.

`wasserstein` trains a critic of constant 1 (Kantorovich and Rubinstein; see
`isotone.transport.duality`), freezes it, and relies on the frozen numbers alone: the lower bound
holds whatever training did. Its memory is that of the clouds; time depends on the steps, hardly on
the number of points. For small clouds, up to about 2000 points each, the critic's scores are then
raised until they prove nearly the whole distance (see `isotone.transport.potentials`).
`upper_bound=True` adds the cost of a plan (see `isotone.transport.couplings`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from isotone.checks import check_count
from isotone.freezing.freeze import freeze
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.notebook import card, text_table
from isotone.inputs.scaling import Scaling
from isotone.nn.network import MetricOrder
from isotone.rounding import digits_down, digits_up
from isotone.training.rows import split
from isotone.transport import couplings
from isotone.transport.clouds import Cloud, common_scaling, reach, read_pair
from isotone.transport.critics import GROUP_SIZE, WIDTHS, Critics, cosine, draws, seed_of
from isotone.transport.duality import dual_value, unit_scores
from isotone.transport.potentials import PAIRS
from isotone.transport.potentials import refine as refined

_EVERY = 50  # steps between two entries of the history


@dataclass(frozen=True)
class Schedule:
    """How a critic is trained.

    Parameters
    ----------
    steps : at most
    batch_size : points of each cloud in a step; a cloud that is not larger is used whole
    learning_rate : at the start; falls along a cosine
    validation : share of the points that are kept from training, 0 for none; the critic that
        tells *them* apart best is kept, and training stops when `patience` steps have not
        improved on it
    """

    steps: int = 3000
    batch_size: int = 2048
    learning_rate: float = 0.02
    validation: float = 0.0
    patience: int = 500

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "patience"):
            check_count(name, getattr(self, name))
        if not 0 < self.learning_rate < 10:
            raise ValueError(
                f"`learning_rate={self.learning_rate}` must be positive, such as 0.01"
            )
        if not 0 <= self.validation < 1:
            raise ValueError(
                f"`validation={self.validation}` must be a share of the points, such as 0.2, or 0"
            )


@dataclass
class Ascent:
    """History: the critic's value in raw units, every 50 steps; batches scatter around it."""

    step: list[int] = field(default_factory=list)
    training: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    best_step: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class Distance:
    """The Wasserstein distance of order 1 of two clouds.

    Parameters
    ----------
    estimate : the best value found on *all* given points, that of the frozen critic or of refined
        potentials; never above the distance except by rounding
    lower_bound : certified: the distance of the given clouds is at least this
    upper_bound : the cost of a feasible plan, rounded up: at most this; None if not asked for
    critic_bound : what the frozen critic alone certifies; the lower bound where nothing is refined
    held_out : with `validation`, the critic's value on the points it did not learn from, which
        estimates the distance between what the clouds were drawn from, without memorized noise
    critic : takes raw points; its certified constant is 1 / (unit of its scaling)
    """

    estimate: float
    lower_bound: float
    upper_bound: float | None
    critic_bound: float
    held_out: float | None
    critic: FrozenNetwork
    history: Ascent

    def __str__(self) -> str:
        return text_table(["distance of order 1", ""], list(self._facts().items()))

    def _repr_html_(self) -> str:
        """What a notebook shows: the estimate and its bounds."""
        return card("Wasserstein distance of order 1", self._facts(), [], [])

    def _facts(self) -> dict[str, str]:
        """Bounds are never shown sharper than they are."""
        facts = {
            "estimate": f"{self.estimate:.6g}",
            "at least (certified)": digits_down(self.lower_bound, 6),
        }
        if self.upper_bound is not None:
            facts["at most (feasible plan)"] = digits_up(self.upper_bound, 6)
        facts["critic alone certifies"] = digits_down(self.critic_bound, 6)
        if self.held_out is not None:
            facts["on held-out points"] = f"{self.held_out:.6g}"
        return facts


def wasserstein(
    P: ArrayLike,
    Q: ArrayLike,
    weights_p: ArrayLike | None = None,
    weights_q: ArrayLike | None = None,
    *,
    metric: MetricOrder = 2,
    random_state: int | None = None,
    schedule: Schedule | None = None,
    widths: Sequence[int] = WIDTHS,
    group_size: int | None = GROUP_SIZE,
    refine: bool = True,
    upper_bound: bool = False,
    features: Sequence[str] | None = None,
    progress: bool = False,
) -> Distance:
    r"""The least mean distance by which the mass of P can be moved onto Q.

    .. math:: W_1(P, Q) = \min_\pi \sum_{ij} \pi_{ij} \|x_i - y_j\|_p
                        = \max_{|g(x) - g(y)| \le \|x - y\|_p} E_P[g] - E_Q[g]

    Parameters
    ----------
    P, Q : (n, d) and (m, d), points
    weights_p, weights_q : (n,) and (m,), at least 0; only their ratios count. None: all equal
    metric : p, one of 1, 2 and infinity
    random_state : the same number gives the same bits; None draws one
    schedule : how long and in what batches to train
    widths, group_size : of the critic; see `isotone.transport.critics`
    refine : raise the critic's scores point by point where there are at most 2²² pairs of points;
        this finds what a network cannot learn, the noise of small samples, too
    upper_bound : look for a feasible plan, too
    features : names of the coordinates, for the critic
    progress : show a bar

    Examples
    --------
    >>> P = np.random.default_rng(0).normal(size=(100, 2))
    >>> found = wasserstein(P, P + [3.0, 4.0], random_state=0, schedule=Schedule(steps=300))
    >>> found.lower_bound <= 5.0 and found.estimate > 4.9
    True
    """
    clouds = read_pair(P, Q, weights_p, weights_q)
    schedule = Schedule() if schedule is None else schedule
    if not isinstance(schedule, Schedule):
        raise TypeError(
            f"`schedule={schedule!r}` must be a Schedule, such as Schedule(steps=1000)"
        )
    seed = seed_of(random_state)
    training, held_out = _divide(clouds, schedule, seed)
    scaling = common_scaling(*clouds)
    critics = Critics(
        clouds[0].n_features, metric=metric, widths=widths, group_size=group_size, seed=seed
    )
    history = _train(critics, training, held_out, scaling, schedule, seed, progress)
    critic = freeze(
        critics.networks()[0],
        scaling=scaling,
        clip=reach(scaling, *clouds),
        grid=None,
        features=features,
    )
    found = best = dual_value(critic, *clouds)
    if refine and len(clouds[0]) * len(clouds[1]) <= PAIRS:
        best = found.larger(refined(*clouds, critic.metric, unit_scores(critic, clouds[1])))
    unseen = None if held_out is None else dual_value(critic, *held_out).value
    above = couplings.upper_bound(*clouds, critic.metric, seed=seed) if upper_bound else None
    return Distance(
        best.value, best.lower_bound, above, found.lower_bound, unseen, critic, history
    )


class _Batch(NamedTuple):
    P: Tensor
    p: Tensor
    Q: Tensor
    q: Tensor


Pair = tuple[Cloud, Cloud]


def _train(
    critics: Critics,
    training: Pair,
    held_out: Pair | None,
    scaling: Scaling,
    schedule: Schedule,
    seed: int,
    progress: bool,
) -> Ascent:
    start, unit, history = time.perf_counter(), float(scaling.factor[0]), Ascent()
    checks = None if held_out is None else list(_batches(held_out, scaling, schedule, seed, 8))
    best, best_value = critics.weights(), -np.inf
    with _bar(progress) as bar:
        task = bar.add_task("", total=schedule.steps, value="")
        for step, batch in enumerate(_batches(training, scaling, schedule, seed, schedule.steps)):
            rate = cosine(schedule.learning_rate, step, schedule.steps)
            value = float(critics.ascend(*batch, rate=rate)[0]) / unit
            if step % _EVERY and step < schedule.steps - 1:
                continue
            history.step.append(step)
            history.training.append(value)
            bar.update(task, completed=step + 1, value=f"{value:.5g}")
            if checks is None:
                continue
            history.validation.append(_validate(critics, checks) / unit)
            if history.validation[-1] > best_value:
                best, best_value = critics.weights(), history.validation[-1]
                history.best_step = step
            elif step - history.best_step >= schedule.patience:
                break
    if checks is not None:
        critics.load_weights(best)
    history.seconds = time.perf_counter() - start
    return history


@torch.no_grad()
def _validate(critics: Critics, checks: list[_Batch]) -> float:
    return float(np.mean([float(critics.value(*batch)[0]) for batch in checks]))


def _batches(
    clouds: Pair, scaling: Scaling, schedule: Schedule, seed: int, n_batches: int
) -> Iterator[_Batch]:
    """Scaled points with weights: whole clouds, or a number of draws from them."""
    streams = [
        draws(cloud, scaling, schedule.batch_size, seed + k) for k, cloud in enumerate(clouds)
    ]
    for _ in range(n_batches):
        (P, p), (Q, q) = (next(stream) for stream in streams)
        yield _Batch(P, p, Q, q)


def _divide(clouds: Pair, schedule: Schedule, seed: int) -> tuple[Pair, Pair | None]:
    """Points to learn from, and points to judge by."""
    if not schedule.validation:
        return clouds, None
    if min(len(clouds[0]), len(clouds[1])) < 2:
        raise ValueError(
            f"`validation={schedule.validation}` needs at least two points in each cloud, but "
            f"there are {len(clouds[0])} and {len(clouds[1])}: leave it at 0"
        )
    masks = [
        split(len(cloud), schedule.validation, seed=seed + k) for k, cloud in enumerate(clouds)
    ]
    (kept_p, held_p), (kept_q, held_q) = masks
    P, Q = clouds
    return (P[kept_p], Q[kept_q]), (P[held_p], Q[held_q])


def _bar(shown: bool) -> Progress:
    columns = BarColumn(), TextColumn("{task.fields[value]}"), TimeRemainingColumn()
    return Progress(TextColumn("critic"), *columns, disable=not shown, transient=True)
