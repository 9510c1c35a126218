r"""Mixture: several candidates of a search as one network.

Candidates err differently, so a weighted average of them is better than the best. The weights are
chosen on rows that the members leave out.

Members of different candidates see different inputs of a column: the scaled column :math:`s_1`, or
copies :math:`s_1, \ldots, s_m` of it. Between the knots of all candidates each of these is linear,
and outside constant, so that it is a sum of the copies :math:`\phi_f` that these knots give:

.. math:: s_i(x) = a_i + \sum_f B_{if}\,\phi_f(x), \qquad
          B_{if} = \tfrac12 \bigl(s_i(k_f) - s_i(k_{f-1})\bigr)

A member with first weights W and :math:`\lambda_i` is therefore one with
:math:`\lambda_f = \sum_i \lambda_i B_{if}` and first weights
:math:`\sum_i W_i \lambda_i B_{if} / \lambda_f`, which are means of columns and keep their bound.
Only logarithms are not linear: knots are added until the error is below a hundredth. And a member
that continues beyond the training rows no longer does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from isotone.estimators.fitting.trial import Trial
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.scaling import Scaling
from isotone.losses import mean
from isotone.nn.network import MonotonicNetwork
from isotone.training.learners import FusedLearner, StackLearner, bounded_layers
from isotone.training.recipe import History
from isotone.training.rows import Rows
from isotone.typing import Floats, Indices

_PARTS = 8  # weights are multiples of an eighth
_EVEN = 100  # rows that cannot tell candidates apart, in addition to those that are left out
MOST_COPIES = 8192  # of all columns together
_ROUNDING = 1e-9  # an eighth that is computed may be a little less
_STEP = 0.25  # between knots of a logarithm, in scaled units
_LEAST = 1e-6  # λ of a copy that a member does not see


@dataclass(frozen=True, eq=False)
class Found:
    """A trial with trained members; member k did not learn from the rows of part k."""

    trial: Trial
    members: list[MonotonicNetwork]
    history: History
    learner: StackLearner | FusedLearner
    parts: Indices

    @property
    def loss(self) -> float:
        """The mean of the members' on rows they did not learn from."""
        return float(np.mean(self.history.validation, axis=1).min())

    def left_out(self) -> tuple[Rows, Tensor]:
        """Rows that members did not learn from, and what these say of them, (n, n_outputs)."""
        if self.trial.validation is not None:
            rows = self.trial.validation
            return rows, self.learner.predict(rows.x).mean(dim=0)
        member = self.parts[self.parts < len(self.members)]
        rows = self.trial.rows[self.parts < len(self.members)]
        return rows, self.learner.predict(rows.x)[member, torch.arange(len(rows))]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Members of one design, each with its share in the average."""

    trial: Trial
    members: list[MonotonicNetwork]
    shares: Floats
    history: History

    def freeze(self) -> FrozenNetwork:
        return self.trial.freeze(self.members, self.shares)

    def lipschitz(self) -> Floats:
        """λ of every column, in the units asked for."""
        return self.trial.learned(self.members, self.shares)


def mix(found: Sequence[Found]) -> Mixture:
    """The candidates with the weights that have the least loss on rows not learned from.

    Of a candidate as many members are kept as it has eighths, so that there are at most eight.
    """
    weights = choose_weights(found)
    best = found[int(np.argmax(weights))]
    if weights.max() == 1.0:
        n = len(best.members)
        return Mixture(best.trial, best.members, np.full(n, 1.0 / n), best.history)
    kept = [(one, weight) for one, weight in zip(found, weights, strict=True) if weight > 0]
    trial = _common([one.trial for one, _ in kept])
    if len(trial.view.sources) > MOST_COPIES:
        return mix([best])
    members, shares = [], []
    for one, weight in kept:
        own, relation = one.members[: round(_PARTS * weight)], _relate(one.trial, trial)
        members += [_seeing(member, *relation, trial) for member in own]
        shares += [weight / len(own)] * len(own)
    return Mixture(trial, members, np.array(shares), best.history)


def choose_weights(found: Sequence[Found]) -> Floats:
    r"""One per candidate, multiples of an eighth that add up to 1.

    Those with the least loss on n left-out rows, v, have learned from the rows themselves. Of few
    rows that is much, so that they are drawn to equal ones, :math:`1/k`:

    .. math:: w = \frac{n\,v + 100 / k}{n + 100}
    """
    if len(found) == 1:
        return np.ones(1)
    said = [one.left_out() for one in found]
    rows, scores = said[0][0], torch.stack([score for _, score in said]).double()
    y, weight = torch.as_tensor(rows.y), torch.as_tensor(rows.weights())

    def loss(weights: Floats) -> float:
        mixed = torch.tensordot(torch.as_tensor(weights), scores, dims=1)
        return float(mean(found[0].trial.design.loss(mixed, y), weight))

    best, n = min(_simplex(len(found)), key=loss), len(rows)
    return _rounded((n * best + _EVEN / len(found)) / (n + _EVEN))


def _rounded(weights: Floats) -> Floats:
    """To eighths whose sum is still 1."""
    whole = np.floor(_PARTS * weights + _ROUNDING)
    missing = _PARTS - round(whole.sum())
    whole[np.argsort(whole - _PARTS * weights, kind="stable")[:missing]] += 1
    return whole / _PARTS


def _simplex(n: int) -> Iterator[Floats]:
    """All weights in eighths, the first candidate's first."""
    grid = np.stack(np.meshgrid(*[np.arange(_PARTS + 1)] * n, indexing="ij"), axis=-1)
    whole = grid.reshape(-1, n)
    yield from whole[whole.sum(axis=1) == _PARTS][::-1] / _PARTS


def _common(trials: Sequence[Trial]) -> Trial:
    """A trial with the knots of all."""
    task = trials[0].task
    names = {name for trial in trials for name in trial.knots}
    knots = {}
    for k, name in enumerate(task.inputs.encoded):
        if name in names:
            wanted = [trial.knots[name] for trial in trials if name in trial.knots]
            is_plain = len(wanted) < len(trials)
            places = np.unique(np.concatenate([*wanted, task.knots.get(name, [])]))
            knots[name] = _refined(places, task.scaling.take([k])) if is_plain else places
    return replace(trials[0], knots=knots)


def _refined(knots: Floats, scaling: Scaling) -> Floats:
    r"""Knots with more between them, where the scaling of the column is a logarithm.

    Over h scaled units, :math:`a \log x` is off a line by at most about :math:`h^2 / 8a`.
    """
    if not scaling.log[0]:
        return knots
    floor = np.clip(scaling.floor - scaling.offset, knots[0], knots[-1])
    knots = np.unique(np.append(knots, floor))
    places = scaling.transform(knots[:, None])[:, 0]
    step = _STEP * min(1.0, float(scaling.factor[0])) ** 0.5
    parts = [
        np.linspace(low, high, max(1, int(np.ceil((high - low) / step))), endpoint=False)[1:]
        for low, high in pairwise(places)
    ]
    between = scaling.inverse(np.concatenate(parts)[:, None])[:, 0]
    return np.unique(np.append(knots, np.clip(between, knots[0], knots[-1])))


@torch.no_grad()
def _seeing(
    member: MonotonicNetwork, shift: Floats, slopes: Floats, common: Trial
) -> MonotonicNetwork:
    """The member as a network of the inputs that all have in common, by its a and B."""
    steep = np.maximum(member.lipschitz @ slopes, _LEAST)
    result = common.design.build(steep, seed=0).double()
    assert result.log_lipschitz is not None
    result.log_lipschitz.copy_(torch.as_tensor(np.log(steep)))
    layers, known = bounded_layers(result), bounded_layers(member)
    first = known[0].normalized().double().numpy() * member.lipschitz
    for layer, source in zip(layers, known, strict=True):
        is_first = layer is layers[0]
        weight = torch.as_tensor(first @ slopes / steep) if is_first else source.normalized()
        layer.weight.copy_(weight)
        assert layer.bias is not None
        assert source.bias is not None
        layer.bias.copy_(source.bias)
    for layer, change in ((layers[0], first @ shift), (layers[-1], member.residual() @ shift)):
        assert layer.bias is not None
        layer.bias.add_(torch.as_tensor(change))
    return result


def _relate(own: Trial, common: Trial) -> tuple[Floats, Floats]:
    """a and B: the inputs of one trial from those of another that has all its knots."""
    n_own, n_common = len(own.view.sources), len(common.view.sources)
    shift, slopes = np.zeros(n_own), np.zeros((n_own, n_common))
    scaling = common.view.scaling
    for column in range(len(common.task.inputs.encoded)):
        mine = np.flatnonzero(own.view.sources == column)
        theirs = np.flatnonzero(common.view.sources == column)
        if len(theirs) == 1:
            slopes[mine, theirs] = 1.0
            continue
        reach = 1.0 / scaling.factor[theirs]
        low, high = scaling.center[theirs] - reach, scaling.center[theirs] + reach
        ends = np.append(low[0], high)
        rows = np.zeros((len(ends), len(common.task.inputs.encoded)))
        rows[:, column] = ends
        values = own.view.transform(rows)[:, mine]
        rise = np.maximum(np.diff(values, axis=0), 0.0) / 2
        slopes[np.ix_(mine, theirs)] = rise.T
        shift[mine] = values[0] + rise.sum(axis=0)
    return shift, slopes
