"""FrozenNetwork: the cut between learning and using. Read-only numbers, NumPy, no torch.

Everything after training takes a `FrozenNetwork` and nothing else, so that a score, a certificate
and an exported program are about the very same numbers.
"""

from __future__ import annotations

import importlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isotone import limits
from isotone.arithmetic import ieee_arithmetic
from isotone.checks import check_choice, check_signs
from isotone.compiled import engine
from isotone.elementary import divides, snap_grid
from isotone.frozen import modelfile
from isotone.frozen.engine import Engine
from isotone.frozen.joint import JointDirection, check_joint_cst
from isotone.frozen.lookup import Copies
from isotone.frozen.modelfile import Arrays
from isotone.frozen.notebook import card, describe_directions, quoted
from isotone.frozen.steps import (
    Step,
    arrays_of,
    check_nesting,
    describe,
    describe_shape,
    read_only,
    starts_dense,
    weights_of,
    width_after,
    work_of,
)
from isotone.inputs.chain import Inputs, Policy
from isotone.inputs.scaling import Scaling
from isotone.typing import Floats, Metric, Outputs, Precision, Reals, Signs

_SMALLEST_CLIP, _LARGEST_CLIP = 2.0**-64, 2.0**64


@dataclass(frozen=True, eq=False, repr=False)
class FrozenNetwork:
    r"""A network of fixed numbers: :math:`f_j(x) = g_j(u) + \sum_i r_{ji} u_i`.

    Here :math:`u` is the scaled row, clamped to [-`clip`, `clip`] and, unless `grid` is None,
    rounded to multiples of `grid`. `lipschitz` and `monotonic_cst` are what the network claims;
    `isotone.certify` proves whether its numbers satisfy it.

    Parameters
    ----------
    features : names of the network's inputs, in order
    scaling : from features to scaled inputs
    steps : g, applied one after the other
    residual : (n_outputs, n_features), the coefficients r
    lipschitz : (n_features,), the claimed λᵢ: g has slope at most λᵢ along feature i
    monotonic_cst : (n_outputs, n_features), -1, 0 or +1; for several logits row k is about the
        probability of class k after softmax
    outputs : "values", or "logits" of one class (two classes) or of several
    classes : names of the classes of logits, if known
    metric : "1", "2" or "inf", the norm on the scaled inputs for which λ is claimed
    precision : the arithmetic of the steps
    clip, grid : positive; `grid` a power of two that divides `clip`, or None
    provenance : anything worth keeping that JSON can hold
    certificate : what a certificate said when the network was frozen; a claim, not a proof
    joint_cst : rates of columns; no output falls when they move together
    inputs : from a raw row to the features; without text and fills the columns are the features,
        and have their names
    """

    features: tuple[str, ...]
    scaling: Scaling
    steps: tuple[Step, ...]
    residual: Floats
    lipschitz: Floats
    monotonic_cst: Signs
    outputs: Outputs = "values"
    classes: tuple[str, ...] | None = None
    metric: Metric = "1"
    precision: Precision = "float64"
    clip: float = 1024.0
    grid: float | None = 2.0**-20
    provenance: Mapping[str, Any] = field(default_factory=dict)
    certificate: Mapping[str, Any] | None = None
    inputs: Inputs = field(default_factory=Inputs)
    joint_cst: tuple[JointDirection, ...] = ()

    def __post_init__(self) -> None:
        check_signs("monotonic_cst", self.monotonic_cst)
        for name, kind in (("residual", float), ("lipschitz", float), ("monotonic_cst", np.int8)):
            object.__setattr__(self, name, read_only(np.asarray(getattr(self, name), kind)))
        for name in ("clip", "grid"):  # a whole number would have another fingerprint
            number = getattr(self, name)
            object.__setattr__(self, name, None if number is None else float(number))
        if self._follows_features():
            object.__setattr__(self, "inputs", Inputs.numbers(self.features))
        self._check_choices()
        check_nesting(self.steps)
        self._check_shapes()
        self._check_limits()
        self._check_numbers()
        about = self.inputs, self.scaling, self.n_outputs, self.of_classes
        object.__setattr__(self, "joint_cst", check_joint_cst(self.joint_cst, *about))

    def _follows_features(self) -> bool:
        """Whether columns of numbers must take the features' names; turned ones are refused."""
        names, given = self.inputs.names, tuple(self.features)
        plain = self.inputs.is_plain and not self.inputs.copies
        return plain and len(names) in (0, len(given)) and sorted(names) != sorted(given)

    def _check_choices(self) -> None:
        allowed = {
            "outputs": ("values", "logits"),
            "metric": ("1", "2", "inf"),
            "precision": ("float64", "float32"),
        }
        for name, choices in allowed.items():
            check_choice(name, getattr(self, name), choices)
        for name in ("features", "classes"):
            names = getattr(self, name) or ()
            if len(set(names)) != len(names):
                raise ValueError(f"`{name}` has repeated names; they must differ: {names}")
        for name in ("provenance", "certificate"):
            value = getattr(self, name)
            if not isinstance(value, Mapping) and (name, value) != ("certificate", None):
                raise ValueError(f"`{name}` is {value!r:.50}; it must be a dictionary")

    def _check_shapes(self) -> None:
        n, found = self.n_features, (self.scaling.n_features, self.lipschitz.shape)
        if n == 0 or found != (n, (n,)):
            raise ValueError(
                f"`features` has {n} names; it needs a scaling and `lipschitz` of that length, "
                f"got {found[0]} and {found[1]}: give one name per feature"
            )
        if self.inputs.features != tuple(self.features):
            raise ValueError(
                f"`inputs` give the features {', '.join(self.inputs.features)!r:.200}, which are "
                f"not the {n} of the network, {', '.join(self.features)!r:.200}; they must agree"
            )
        if not self.steps:
            raise ValueError("a network needs at least one step, such as a dense one")
        if self.copies is not None and not starts_dense(self.steps):
            raise ValueError("a network of copies must begin with dense steps")
        m = width_after(self.steps, n)
        for name in ("residual", "monotonic_cst"):
            shape = getattr(self, name).shape
            if shape != (m, n):
                raise ValueError(
                    f"`{name}` has shape {shape}; {m} outputs and {n} features need {(m, n)}"
                )
        if self.classes is not None and self.outputs != "logits":
            raise ValueError(
                "`classes` are given but the network's outputs are values; build it with "
                "outputs='logits', or leave `classes` out"
            )
        if self.classes is not None and len(self.classes) != max(m, 2):
            raise ValueError(f"{m} logits need {max(m, 2)} class names; got {len(self.classes)}")

    def _check_limits(self) -> None:
        arrays = self._arrays
        for limit, n in (
            (limits.FEATURES, self.n_features),
            (limits.OUTPUTS, self.n_outputs),
            (limits.SLOPES, self.n_features * self.n_outputs),
            (limits.TENSORS, len(arrays)),
            (limits.BYTES, sum(array.nbytes for array in arrays.values())),
            (limits.WORK, work_of(self.steps, self.n_features)),
        ):
            limit.check(n)

    def _check_numbers(self) -> None:
        if not ((self.lipschitz > 0) & np.isfinite(self.lipschitz)).all():
            raise ValueError(f"`lipschitz` must be positive and finite; got {self.lipschitz}")
        if not np.isfinite(self.residual).all():
            raise ValueError("`residual` holds NaN or infinity; it must be finite")
        precision = np.dtype(self.precision)
        for name, array in self._arrays.items():
            if array.dtype != precision and name != "residual":
                raise ValueError(
                    f"the array {name!r} is {array.dtype} but the network's precision is "
                    f"{self.precision}; they must agree"
                )
        weights = np.array(weights_of(self.steps), float)
        for name, number in (
            ("residual", self.residual),
            ("clip", np.asarray(self.clip)),
            ("weights", weights),
        ):
            if number.dtype != precision and not np.array_equal(number, number.astype(precision)):
                raise ValueError(f"`{name}` holds numbers that {self.precision} cannot hold")
        if not _SMALLEST_CLIP <= self.clip <= _LARGEST_CLIP:
            raise ValueError(
                f"`clip={self.clip}` must be between {_SMALLEST_CLIP:g} and {_LARGEST_CLIP:g}"
            )
        ends = [self.clip] if self.copies is None else [self.clip, 1.0]
        if self.grid is not None and not all(divides(self.grid, end) for end in ends):
            raise ValueError(
                f"`clip={self.clip}` and `grid={self.grid}` do not fit: the grid must be a power "
                "of two that divides the clip, and 1 if there are knots, into at most 2**51 "
                "parts, as 2**-20 divides 1024"
            )

    @property
    def n_features(self) -> int:
        return len(self.features)

    @property
    def n_outputs(self) -> int:
        return len(self.residual)

    @property
    def output_names(self) -> list[str]:
        """What to call the outputs: by class if each is one, or else by number."""
        if self.classes is not None and len(self.classes) == self.n_outputs:
            return list(self.classes)
        return [str(k) for k in range(self.n_outputs)]

    def names_of(self, what: str) -> list[str]:
        """What to call a column for every output: `score`, or `score_` and the output's name."""
        several = [f"{what}_{name}" for name in self.output_names]
        return [what] if self.n_outputs == 1 else several

    def about(self, output: int) -> str:
        """What a declared direction of an output is about, in words."""
        if self.outputs == "values":
            return "score" if self.n_outputs == 1 else f"output {self.output_names[output]}"
        if self.n_outputs > 1:
            return f"probability of {self.output_names[output]}"
        return f"probability of {'class 1' if self.classes is None else self.classes[1]}"

    @property
    def of_classes(self) -> bool:
        """Whether directions are about probabilities after softmax."""
        return self.outputs == "logits" and self.n_outputs > 1

    @property
    def shape(self) -> str:
        """Numbers of features and units, as 4-20-20-1, or 4-(8 × 20-20-1) for eight members."""
        return f"{self.n_features}-{describe_shape(self.steps)}"

    @property
    def n_parameters(self) -> int:
        return sum(array.size for array in arrays_of(self.steps).values())

    @cached_property
    @ieee_arithmetic()
    def fingerprint(self) -> str:
        """SHA-256 of everything that decides the score of a raw row and what is claimed of it."""
        return modelfile.checksum(json.dumps(self._definition(), sort_keys=True), self._arrays)

    def __repr__(self) -> str:
        return f"<FrozenNetwork {self.shape} {self.precision} {self.fingerprint[:12]}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: what the network is and claims, not what it proves."""
        claim = (self.certificate or {}).get("guarantee")
        stated = "nothing" if claim is None else quoted(claim, most=200)
        facts = {
            "shape": f"{self.shape}, {self.precision}",
            "outputs": ", ".join([self.outputs, *(self.classes or ())]),
            "stated when frozen": f"{stated}; isotone.certify recomputes it",
            "fingerprint": self.fingerprint,
        }
        rows = [(name, *self.describe(i)) for i, name in enumerate(self.inputs.encoded)]
        return card("FrozenNetwork", facts, ["feature", "declared", "λ", "scaled input"], rows)

    def describe(self, feature: int, digits: int = 6) -> tuple[str, str, str]:
        """The direction, λ and scaled input of an encoded feature, in words."""
        first, count = self.inputs.firsts[feature], self.inputs.counts[feature]
        largest = self.lipschitz[first : first + count].max()
        scaled = self.scaling.describe(first, digits) if count == 1 else f"{count + 1} knots"
        return self.direction(feature), f"{largest:.4g}", scaled

    def direction(self, feature: int) -> str:
        """The declared direction along an encoded feature, in words."""
        return describe_directions(self.directions[:, feature].tolist(), self.output_names)

    @cached_property
    def directions(self) -> Signs:
        """Directions along encoded features, (n_outputs, n_encoded); 0 where copies differ."""
        signs, firsts = self.monotonic_cst, self.inputs.firsts
        low, high = (f.reduceat(signs, firsts, axis=1) for f in (np.minimum, np.maximum))
        return read_only(np.where(low == high, low, np.int8(0)))

    def __reduce__(self) -> tuple[type[FrozenNetwork], tuple[Any, ...]]:
        return FrozenNetwork, tuple(getattr(self, f.name) for f in fields(self))

    @ieee_arithmetic()
    def snap(self, X: ArrayLike) -> Reals:
        """What enters the first step: scaled, clamped, on the grid, (n_rows, n_features)."""
        if self.copies is not None:
            return self.copies.expand(self.copies.cells(np.asarray(X))).T
        with np.errstate(over="ignore"):
            u = np.clip(self.scaling.transform(X), -self.clip, self.clip)
        if self.grid is not None:
            u = snap_grid(u, self.grid)
        return u.astype(self.precision)

    @cached_property
    def copies(self) -> Copies | None:
        """How the inputs of the network are copies of features, if they are."""
        numbers = self.scaling, self.clip, self.grid, self.precision
        return Copies.of(self.inputs.copies, *numbers) if self.inputs.copies else None

    def score(self, X: Any, on_unseen: Policy = "error") -> Reals:
        """Score raw rows.

        Parameters
        ----------
        X : a data frame, Arrow table or dictionary with the columns of `inputs`, in any order; or,
            if all of them are numbers, an array (n_rows, n_columns)
        on_unseen : what to do with a row that contains values never seen in training: raise an
            "error", treat them as "missing", give no score ("skip", NaN) or this number; see
            `Engine`

        Returns
        -------
        (n_rows,) for one output, otherwise (n_rows, n_outputs)
        """
        if on_unseen == "error":
            return self._engine(X)
        engine = Engine(self, on_unseen=on_unseen)
        scores = engine(X)
        if engine.n_unseen:
            warnings.warn(
                f"{engine.n_unseen} of {len(scores)} rows contain values never seen in "
                f"training; handled with `on_unseen={on_unseen!r}`",
                stacklevel=2,
            )
        return scores

    def encode(self, X: Any, on_unseen: Policy = "error") -> Floats:
        """Features of raw rows, (n_rows, n_encoded); see `Inputs.encode`."""
        return self.inputs.encode(X, on_unseen=on_unseen)

    def score_features(self, features: Floats) -> Reals:
        """Score rows that `encode` made, (n_rows, n_encoded)."""
        return self._engine.score_features(features)

    @cached_property
    def _engine(self) -> Engine:
        return Engine(self)

    def probability(self, X: Any, on_unseen: Policy = "error") -> Floats:
        """Probability of the second class for one logit (n_rows,), of every class for several."""
        return self.to_probability(self.score(X, on_unseen))

    @ieee_arithmetic()
    def to_probability(self, score: Reals) -> Floats:
        """Logistic or softmax function of computed logits, from monotone operations only.

        Where differences of logits are monotone to the last bit, computed probabilities are.
        """
        if self.outputs != "logits":
            raise ValueError(
                "probabilities need outputs='logits'; this network gives values: use `score`"
            )
        z = np.require(score, np.float64, ["C", "A", "E"])
        engine.find_probabilities(z, probabilities := np.empty_like(z))
        return probabilities

    @ieee_arithmetic()
    def save(self, path: str | Path) -> None:
        """Write one `.isotone` file, whole or not at all."""
        stated = None if self.certificate is None else dict(self.certificate)
        about = {"provenance": dict(self.provenance), "certificate": stated}
        modelfile.write(path, self._definition() | about, self._arrays)

    def report(self, table: Any = None, **options: Any) -> Any:
        """The report as a page that notebooks show; see `isotone.report.show`."""
        return importlib.import_module("isotone.report").show(self, table, **options)

    def _definition(self) -> dict[str, Any]:
        return {
            "inputs": self.inputs.to_dict(),
            "features": list(self.features),
            "scaling": self.scaling.to_dict(),
            "steps": describe(self.steps, numbers=False),
            "lipschitz": self.lipschitz.tolist(),
            "monotonic_cst": self.monotonic_cst.tolist(),
            "outputs": self.outputs,
            "classes": None if self.classes is None else list(self.classes),
            "metric": self.metric,
            "precision": self.precision,
            "clip": self.clip,
            "grid": self.grid,
        } | ({"joint_cst": [dict(one) for one in self.joint_cst]} if self.joint_cst else {})

    @cached_property
    def _arrays(self) -> Arrays:
        return arrays_of(self.steps) | {"residual": self.residual}
