"""FusedTrainer: many small networks of one shape, trained together in C++.

Members of a stack may differ in their weights, bounds, residuals, loss parameters and data order:
seeds, bootstraps, scans of λ. Each is the function of `MonotonicNetwork` or `LipschitzNetwork`
with dense layers, `norm="columns"` and `apply="direct"`, and is trained as torch would train it,
up to rounding; torch itself is not needed.

Arithmetic: float32. The result of a member is the same, bit for bit, whatever the number of
threads and of other members. It is the same for all instruction sets that multiply and add in one
rounding (AVX2 and AVX-512); the baseline rounds twice and differs in the last digits. Units that
tie are not swapped, so that gradients take a path that a sort could have taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.checks import check_choice, check_count, check_finite, check_weights
from isotone.compiled import engine
from isotone.training.fields import Field, Looked, Visited, compress
from isotone.training.rows import Labels, Rows, check_features, check_order, check_targets
from isotone.training.stack import (
    LABEL_LOSSES,
    FusedLoss,
    adam_schedule,
    check_fields,
    check_layers,
    check_loss,
    check_within,
    flat_mask,
    group_sizes_of,
)
from isotone.typing import Chain, Floats, Precision, Reals


class FusedTrainer:
    r"""Adam for a stack of S members, each :math:`f(x) = g(\mathrm{scale} \cdot x) + R x`.

    Layers are normalized as in Eq. 8: :math:`W' = W / \max(1, \mathrm{size}/\mathrm{bound})`, per
    column with its absolute sum (`chain="one"`), or per row with its largest entry in the first
    layer and its absolute sum in the others (`chain="inf"`). Parameters begin as zeros: write to
    `weights` and `biases`.

    Parameters
    ----------
    layers : (n_features, ..., n_outputs), such as [4, 20, 20, 1]
    group_size : size of the groups that are sorted between layers; None sorts all units
    n_members : S
    chain : "one" or "inf"
    bounds : (S, n_layers), or what broadcasts to it
    feature_scale : (S, n_features), likewise
    residual : (S, n_outputs, n_features), likewise
    lipschitz_max : (S, n_features), likewise: `feature_scale` is learned and stays below this.
        Then `residual` is per unit of it: :math:`f(x) = g(\Lambda x) + R \Lambda x`
    fields : how many features, one after the other, are of one column: copies, or with `Field`
        indicators of categories. They are looked up, see `isotone.training.fields`
    masks : per layer, (n_out, n_in), false where weights are zero and stay so; None for a layer
        without such. Empty if no layer has any
    lipschitz_rate : how fast logarithms of `feature_scale` are learned, relative to the weights
    loss : mean over rows, and sum over outputs, of

        - "cross_entropy": of logits times a temperature; labels 0 and 1 (or a probability in
          between) for one output, otherwise whole numbers from 0 on
        - "squared_error", "absolute_error": squared and absolute errors
        - "hinge": max(0, margin - ±f) for labels 0 and 1, one output
        - "quantile": the pinball loss of a level
    loss_parameter : (S,), or what broadcasts to it: temperature, margin or level; "squared_error"
        and "absolute_error" have none. Levels that differ between outputs are (S, n_outputs),
        likewise
    weight_decay : AdamW if positive, as torch.optim.AdamW; otherwise torch.optim.Adam
    betas, eps : of Adam
    precision : "float32"; "float64" is for comparisons

    Attributes
    ----------
    weights : per layer, (S, n_out, n_in), before normalization; write into them
    biases : per layer, (S, n_out); write into them
    log_lipschitz : (S, n_features), logarithms of a `feature_scale` that is learned, or None

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> trainer = FusedTrainer([1, 4, 1], n_members=3, residual=1.0, loss="squared_error")
    >>> for weight in trainer.weights:
    ...     weight[:] = rng.normal(size=weight.shape)
    >>> x = np.linspace(-1, 1, 64)[:, None]
    >>> before = trainer.loss(x, x**3)
    >>> for _ in range(50):
    ...     losses = trainer.train_epoch(x, x**3, batch_size=16, learning_rates=0.01)
    >>> bool(np.all(losses < before))
    True
    """

    def __init__(
        self,
        layers: Sequence[int],
        group_size: int | None = None,
        *,
        n_members: int,
        chain: Chain = "one",
        bounds: ArrayLike = 1.0,
        feature_scale: ArrayLike = 1.0,
        residual: ArrayLike = 0.0,
        lipschitz_max: ArrayLike | None = None,
        fields: Sequence[int | Field] = (),
        masks: Sequence[ArrayLike | None] = (),
        lipschitz_rate: float = 10.0,
        loss: FusedLoss,
        loss_parameter: ArrayLike = 1.0,
        weight_decay: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        precision: Precision = "float32",
    ) -> None:
        self.layers = check_layers(layers)
        self.n_members = check_count("n_members", n_members)
        self.loss_kind: FusedLoss = check_loss(loss, self.layers[-1])
        group_sizes = group_sizes_of(self.layers, group_size)
        check_choice("chain", chain, get_args(Chain))
        self._dtype = np.dtype(check_choice("precision", precision, get_args(Precision)))
        learns = lipschitz_max is not None
        self.fields = check_fields(fields, self.layers[0])
        mask = flat_mask(masks, self.layers, by_feature=bool(self.fields))
        self._zeros = None if mask is None else np.flatnonzero(mask == 0)
        self._stack = engine.Stack(
            self.layers, group_sizes, chain, loss, learns, self.fields, mask
        )
        scale = self._per_member("feature_scale", feature_scale, self.layers[0], positive=learns)
        self._constants = {
            "bounds": self._per_member("bounds", bounds, len(group_sizes), positive=True),
            "feature_scale": self._log_lipschitz_max(lipschitz_max) if learns else scale,
            "residual": self._per_member("residual", residual, self.layers[-1], self.layers[0]),
            "loss_parameter": self._loss_parameter(loss_parameter),
        }
        self.lipschitz_rate = check_within("lipschitz_rate", lipschitz_rate)
        self.weight_decay = check_within("weight_decay", weight_decay)
        self.betas = (check_within("betas", betas[0], 1.0), check_within("betas", betas[1], 1.0))
        self.eps = check_within("eps", eps)
        self.n_steps = 0
        shape = (self.n_members, self._stack.n_parameters)
        self._parameters, self._first_moment, self._second_moment = (
            np.zeros(shape, self._dtype) for _ in range(3)
        )
        self.weights, self.biases, self.log_lipschitz = self._views(self._parameters)
        if self.log_lipschitz is not None:
            self.log_lipschitz[:] = np.minimum(np.log(scale), self._constants["feature_scale"])

    def train_epoch(
        self,
        x: ArrayLike | Looked,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        order: ArrayLike | None = None,
        *,
        batch_size: int,
        learning_rates: float | ArrayLike,
        threads: int = 1,
    ) -> Floats:
        """Take one step of Adam per batch; the last batch may be smaller.

        Parameters
        ----------
        x : (n_rows, n_features), finite; with `fields` it may be `Looked`
        y : (n_rows,) or (n_rows, n_outputs); class numbers for "cross_entropy"
        sample_weight : (n_rows,) for all members or (S, n_rows), not negative: a batch of n rows
            minimizes Σ w l / (n w̄), w̄ the mean of all visits, so that its gradient is unbiased.
            Rows of no weight are skipped and cost nothing
        order : rows to visit, (n_visits,) for all members or (S, n_visits); by default all rows as
            they come. Rows may be left out or repeated: that is a bootstrap.
        batch_size : rows per step
        learning_rates : one number, or one per step
        threads : members are spread over them

        Returns
        -------
        (S,): mean loss of the batches, each before its step. NaN if a parameter is not finite.
        """
        features = self._features(x)
        rows = self._rows(features, y, sample_weight)
        visits = None if order is None else check_order(order, self.n_members, len(rows))
        n_visits = len(rows) if visits is None else visits.shape[-1]
        n_steps = -(-n_visits // check_count("batch_size", batch_size))
        steps = range(self.n_steps + 1, self.n_steps + n_steps + 1)
        schedule = adam_schedule(steps, learning_rates, self.betas, self.weight_decay)
        losses = np.empty(self.n_members)
        engine.train(
            self._stack,
            **self._constants,
            parameters=self._masked(),
            first_moment=self._first_moment,
            second_moment=self._second_moment,
            **_visited(features),
            y=rows.y,
            sample_weight=rows.weight,
            order=visits,
            batch_size=batch_size,
            schedule=schedule,
            beta1=self.betas[0],
            beta2=self.betas[1],
            eps=self.eps,
            lipschitz_rate=self.lipschitz_rate,
            losses=losses,
            threads=check_count("threads", threads),
            isa=self._isa,
        )
        self.n_steps += len(schedule)
        return losses

    def loss(
        self,
        x: ArrayLike | Looked,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        threads: int = 1,
    ) -> Floats:
        """The loss of every member, (S,)."""
        features = self._features(x)
        rows = self._rows(features, y, sample_weight)
        return self._evaluate(features, rows.y, rows.weight, threads=threads)

    def predict(self, x: ArrayLike | Looked, *, threads: int = 1) -> Reals:
        """The outputs of every member, (S, n_rows, n_outputs); logits for "cross_entropy"."""
        features = self._features(x)
        shape = self.n_members, len(_values(features)), self.layers[-1]
        predictions = np.empty(shape, self._dtype)
        self._evaluate(features, threads=threads, predictions=predictions)
        return predictions

    def gradients(
        self, x: ArrayLike | Looked, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> tuple[Floats, tuple[Reals, ...], tuple[Reals, ...], Reals | None]:
        """The loss (S,), and its derivatives as `weights`, `biases` and `log_lipschitz`."""
        gradients = np.empty_like(self._parameters)
        features = self._features(x)
        rows = self._rows(features, y, sample_weight)
        losses = self._evaluate(features, rows.y, rows.weight, gradients=gradients)
        return losses, *self._views(gradients)

    def state(self) -> dict[str, NDArray[Any]]:
        """Copies of all that training changes; with `load_state` it resumes to the same bits."""
        return {
            "parameters": self._parameters.copy(),
            "first_moment": self._first_moment.copy(),
            "second_moment": self._second_moment.copy(),
            "n_steps": np.array(self.n_steps),
        }

    def load_state(self, state: Mapping[str, ArrayLike]) -> None:
        """Continue from what `state` gave, for a trainer of the same shape."""
        targets = [self._parameters, self._first_moment, self._second_moment]
        names = ["parameters", "first_moment", "second_moment"]
        if missing := {*names, "n_steps"} - set(state):
            raise ValueError(f"`state` lacks {sorted(missing)}; give what `state()` returned")
        arrays = [np.asarray(state[name]) for name in names]
        for name, array, target in zip(names, arrays, targets, strict=True):
            if array.shape != target.shape or array.dtype != target.dtype:
                raise ValueError(
                    f"`{name}` of the state is {array.dtype} of shape {array.shape} but this "
                    f"trainer has {target.dtype} of shape {target.shape}; make a trainer of the "
                    "same layers, members and precision"
                )
        for array, target in zip(arrays, targets, strict=True):
            target[:] = array
        self.n_steps = int(np.asarray(state["n_steps"]))

    # ---- for the engine -------------------------------------------------------------------

    _isa = ""  # the fastest that runs here; tests name others

    def _masked(self) -> Reals:
        """The parameters, with zeros outside of the masks."""
        if self._zeros is not None:
            self._parameters[:, self._zeros] = 0
        return self._parameters

    def _views(
        self, parameters: Reals
    ) -> tuple[tuple[Reals, ...], tuple[Reals, ...], Reals | None]:
        """Weights and biases of every layer and log λ, one after the other in a member's row.

        Weights that are looked up are stored by feature.
        """
        weights, biases, offset = [], [], 0
        for n_in, n_out in pairwise(self.layers):
            bias = offset + n_out * n_in
            if self.fields and not offset:
                by_feature = parameters[:, :bias].reshape(-1, n_in, n_out)
                weights.append(by_feature.swapaxes(1, 2))
            else:
                weights.append(parameters[:, offset:bias].reshape(-1, n_out, n_in))
            biases.append(parameters[:, bias : bias + n_out])
            offset = bias + n_out
        rest = parameters[:, offset:]
        return tuple(weights), tuple(biases), rest if rest.shape[1] else None

    def _evaluate(
        self,
        features: Reals | Looked,
        y: Reals | None = None,
        weight: Reals | None = None,
        *,
        threads: int = 1,
        **outputs: Reals,
    ) -> Floats:
        losses = np.empty(self.n_members)
        engine.evaluate(
            self._stack,
            **self._constants,
            parameters=self._masked(),
            **_visited(features),
            y=y,
            sample_weight=weight,
            gradients=outputs.get("gradients"),
            predictions=outputs.get("predictions"),
            losses=losses,
            threads=check_count("threads", threads),
            isa=self._isa,
        )
        return losses

    def _features(self, x: ArrayLike | Looked) -> Reals | Looked:
        """Checked rows; with fields, what moves in them."""
        if isinstance(x, Looked):
            if x.fields != self.fields:
                raise ValueError(
                    f"the rows were looked up for fields {x.fields} but the trainer has "
                    f"{self.fields}; they must agree"
                )
            return x
        table = check_features(x, self._dtype, self.layers[0])
        return compress(table, self.fields) if self.fields else table

    def _rows(
        self, features: Reals | Looked, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> Rows:
        n_outputs = self.layers[-1]
        labels: Labels | None = None
        if self.loss_kind in LABEL_LOSSES:
            labels = "binary" if n_outputs == 1 else "classes"
        table = _values(features)
        targets = check_targets(y, table, n_outputs, labels)
        if sample_weight is None:
            return Rows(table, targets)
        weight = np.require(sample_weight, self._dtype, ["C", "A", "E"])
        return Rows(
            table, targets, check_weights("sample_weight", weight, len(table), self.n_members)
        )

    # ---- checks of arguments --------------------------------------------------------------

    def _per_member(
        self, name: str, values: ArrayLike | None, *shape: int, positive: bool = False
    ) -> Reals:
        array = np.asarray(values, dtype=self._dtype)
        wanted = (self.n_members, *shape)
        try:
            full = np.broadcast_to(array, wanted)
        except ValueError:
            raise ValueError(
                f"`{name}` has shape {array.shape}; give {wanted}, one row per member, or what "
                "broadcasts to it"
            ) from None
        check_finite(name, full)
        if positive and not np.all(full > 0):
            raise ValueError(f"`{name}` must be positive in {self._dtype}; choose larger numbers")
        return np.require(full, requirements=["C", "A", "E"])

    def _log_lipschitz_max(self, values: ArrayLike | None) -> Reals:
        largest = self._per_member("lipschitz_max", values, self.layers[0], positive=True)
        return np.log(largest)

    def _loss_parameter(self, values: ArrayLike) -> Reals:
        columns = np.asarray(values)[..., None] if np.ndim(values) == 1 else values
        parameter = self._per_member("loss_parameter", columns, self.layers[-1], positive=True)
        if self.loss_kind == "quantile" and not np.all(parameter < 1):
            raise ValueError(
                "`loss_parameter` is the level of the quantile and must lie between 0 and 1"
            )
        return parameter


def _values(features: Reals | Looked) -> Reals:
    return features.values if isinstance(features, Looked) else features


def _visited(features: Reals | Looked) -> dict[str, Any]:
    """The arguments of the engine about rows."""
    seen = features.visited if isinstance(features, Looked) else Visited(None, features, None)
    return {"x": seen.values, "cells": seen.cells, "usual": seen.usual}
