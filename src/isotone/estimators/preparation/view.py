"""View: what a network sees of the features of raw rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from isotone.estimators.preparation.oblique import Oblique
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category
from isotone.inputs.knots import Knots
from isotone.inputs.scaling import Scaling
from isotone.training.fields import Field, Looked, first_features
from isotone.typing import Floats, Indices


@dataclass(frozen=True, eq=False)
class View:
    """What a network sees of the features: each of them scaled, or in copies between knots.

    Parameters
    ----------
    sources : for every input of the network the number of its feature, ascending
    scaling : of the inputs
    fields : which inputs are of one column
    coordinates : what stands in for some features, each of which is one input
    """

    sources: Indices
    scaling: Scaling
    fields: tuple[Field, ...]
    coordinates: Oblique | None = None

    @classmethod
    def of(
        cls,
        scaling: Scaling,
        inputs: Inputs,
        knots: Mapping[str, Floats],
        wanted: Collection[str] = (),
        indicators: Sequence[range] = (),
        coordinates: Oblique | None = None,
    ) -> View:
        """Copies of the features that have knots.

        Those that only missing values need, and nobody wanted, go where a fill stands at a floor.

        Parameters
        ----------
        indicators : runs of features that are one field
        """
        parts = []
        for k, name in enumerate(inputs.encoded):
            part, fill = scaling.take([k]), inputs.owner(k).fill
            if name in knots and (name in wanted or not _is_lowest(part, fill)):
                part = Knots.at([knots[name]]).scaling
            parts.append(part)
        sources = np.repeat(np.arange(len(parts)), [part.n_features for part in parts])
        fields = _fields(inputs, np.bincount(sources).tolist(), indicators)
        return cls(sources, Scaling.join(parts), fields, coordinates)

    @property
    def copies(self) -> tuple[int, ...]:
        """The sources, or nothing if the inputs are the features."""
        several = len(self.sources) > len(np.unique(self.sources))
        return tuple(self.sources.tolist()) if several else ()

    def transform(self, X: Floats) -> Floats:
        """Inputs of the network, (n_rows, n_inputs), of features (n_rows, n_features)."""
        several = np.bincount(self.sources)[self.sources] > 1
        with np.errstate(over="ignore"):
            x = self.scaling.transform(X[:, self.sources])
        x = np.where(several, np.clip(x, -1.0, 1.0), x) if several.any() else x
        if self.coordinates is not None:
            self.coordinates.change(x, self.replaced)
        return x

    @property
    def replaced(self) -> Indices:
        """Inputs of the network that are coordinates."""
        if self.coordinates is None:
            return np.zeros(0, np.intp)
        return np.searchsorted(self.sources, self.coordinates.places)

    def look(self, X: Floats) -> Looked:
        """What counts in the inputs of the network, without a table of all of them."""
        cells = np.empty((len(X), len(self.fields)), np.int32)
        values = np.empty((len(X), len(self.fields)), np.float32)
        firsts = first_features(self.fields)
        for f, (first, field) in enumerate(zip(firsts, self.fields, strict=True)):
            inputs = slice(first, first + field.n_features)
            features = X[:, np.unique(self.sources[inputs])]
            place, values[:, f] = self._count(features, inputs, field)
            cells[:, f] = first + place
        if self.coordinates is not None:
            self.coordinates.change(values, np.searchsorted(firsts, self.replaced))
        return Looked(cells, values, self.fields)

    def _count(self, features: Floats, inputs: slice, field: Field) -> tuple[Indices, Floats]:
        """Which input of a field counts in every row, and its value."""
        if field.is_category:
            place = (features != 0).argmax(axis=1)
            return place, np.take_along_axis(features, place[:, None], axis=1)[:, 0]
        scaling = self.scaling.take(range(inputs.start, inputs.stop))
        if field.n_features == 1:
            return np.zeros(len(features), np.intp), scaling.transform(features)[:, 0]
        x, ends = features[:, 0], scaling.center + 1.0 / scaling.factor
        place = np.minimum(np.searchsorted(ends, x, side="right"), field.n_features - 1)
        with np.errstate(over="ignore"):
            value = (x - scaling.center[place]) * scaling.factor[place]
        return place, np.clip(value, -1.0, 1.0)


def _fields(inputs: Inputs, counts: list[int], indicators: Sequence[range]) -> tuple[Field, ...]:
    """Categories of one column, indicators, and copies of one feature, with the number of each."""
    found = []
    n_own = len(inputs.uncompleted)
    runs = {k: run for run in indicators for k in run}
    for source, features in groupby(range(n_own), lambda k: runs.get(k) or inputs.owner(k)):
        own = [counts[k] for k in features]
        is_category = isinstance(source, Category | range)
        found += [Field(len(own), True)] if is_category else [Field(count) for count in own]
    return (*found, *(Field(count) for count in counts[n_own:]))


def _is_lowest(scaling: Scaling, fill: float | None) -> bool:
    """Whether no value of the only column is below its fill once it is scaled."""
    with np.errstate(over="ignore"):
        scaled, lowest = scaling.transform(np.array([[fill], [-1e308]], np.float64))[:, 0]
    return bool(scaled == lowest)
